/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: the views of tasks, open files and modules in untrusted guest
 * memory.
 *
 * Byte 0 chooses a guest: that of a golden case. Then each five bytes change a
 * word of its memory: a page, a word in it, and the new value: an address in
 * one of the pages, a small number, or the same with its bytes reversed.
 *
 * Checks: all commands end, and print printable lines.
 */
#include "tests/fuzz/fuzz.h"
#include "tests/lib/events.h"

#define CASES KA_SOURCE_DIR "/tests/replay/cases/"
#define COMMANDS 5

static const struct {
    const char *name;
    const char *command[COMMANDS];
} guests[] = {
    { "076-task", { "task --threads -v", "task 1 --threads -j", "task 1",
                    "task work* -v" } },
    { "078-files", { "files 1 -v -n 9", "files 1 -j -n 9" } },
    { "079-mod", { "mod -v", "mod -j", "mod ext4" } },
};

/* Pages that the guests have, and what leads to none. */
static const uint64_t pages[16] = {
    0xffff888000001000, 0xffff888000003000, 0xffff888000005000,
    0xffff888000010000, 0xffff888000011000, 0xffff888000012000,
    0xffff888000014000, 0xffff888000015000, 0xffff888000016000,
    0xffff888000017000, 0xffff888000020000, 0xffff888000030000,
    0xffffffff82000000, 0xffffffff82001000, 0xffffffff82002000, 0,
};

static char *read_script(unsigned guest)
{
    g_autofree char *path = g_strconcat(CASES, guests[guest].name, "/events",
                                        NULL);
    char *script = NULL;

    if (!g_file_get_contents(path, &script, NULL, NULL)) {
        abort();
    }
    return script;
}

static void bend(TestWorld *w, const uint8_t *d)
{
    uint64_t va = pages[d[0] & 15] + d[1] * 16u + (d[2] & 8);
    uint64_t value = pages[d[0] >> 4] +
                     ((d[3] | (uint64_t)d[4] << 8) << (d[2] >> 4));
    g_autofree char *word = NULL;

    if (!pages[d[0] & 15]) {
        return;
    }
    if (d[2] & 1) {
        value = GUINT64_SWAP_LE_BE(value);
    }
    word = g_strdup_printf("word va=%" G_GINT64_MODIFIER "x value=%"
                           G_GINT64_MODIFIER "x", va, value);
    test_world_events(w, word);
}

static void run(TestWorld *w, const char *command)
{
    g_autofree char *text = test_world_run(w, command, NULL);

    for (const char *p = text; *p; p++) {
        if (*p != '\n' && (*p < 0x20 || *p >= 0x7f)) {
            abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static char *script[G_N_ELEMENTS(guests)];
    g_autoptr(TestWorld) w = NULL;
    unsigned guest = len ? data[0] % G_N_ELEMENTS(guests) : 0;

    if (!script[guest]) {
        script[guest] = read_script(guest);
    }
    w = test_world_new(script[guest]);
    for (size_t i = 1; i + 5 <= len; i += 5) {
        bend(w, data + i);
    }
    for (unsigned i = 0; i < COMMANDS && guests[guest].command[i]; i++) {
        run(w, guests[guest].command[i]);
    }
    return 0;
}
