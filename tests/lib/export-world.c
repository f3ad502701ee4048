/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A heap profile for tests: see export-world.h. */
#include "tests/lib/export-world.h"

#include <stdlib.h>
#include <string.h>

#define TEXT 0xffffffff81000000ull

static void set_values(McProfileStack *s, int64_t live, int64_t blocks)
{
    mc_profile_set(s, MC_TOP_live, live);
    mc_profile_set(s, MC_TOP_blocks, blocks);
    mc_profile_set(s, MC_TOP_live_asked, live - blocks);
    mc_profile_set(s, MC_TOP_allocs, 3 * blocks);
    mc_profile_set(s, MC_TOP_asked, 3 * (live - blocks));
    mc_profile_set(s, MC_TOP_reserved, 3 * live);
    mc_profile_set(s, MC_TOP_peak, 2 * live);
}

void export_stack(McHeapProfile *p, const char *symbols, int64_t live,
                  int64_t blocks)
{
    g_auto(GStrv) names = g_strsplit(symbols, " ", -1);
    g_autofree unsigned *frame = g_new(unsigned, g_strv_length(names) + 1);
    unsigned n = 0;

    for (; *symbols && names[n]; n++) {
        const char *hex = strstr(names[n], "+0x");
        uint64_t offset = hex ? g_ascii_strtoull(hex + 3, NULL, 16) : 0;

        frame[n] = mc_heap_profile_frame(
            p, TEXT + 0x1000 * (names[n][0] & 0x3f) + offset, names[n]);
    }
    set_values(mc_heap_profile_stack(p, frame, n), live, blocks);
}

char *export_bytes(McExportId id, const McExport *e, size_t *len)
{
    g_autoptr(GError) error = NULL;
    char *bytes = NULL, *copy;
    size_t n = 0;
    FILE *to = open_memstream(&bytes, &n);

    mc_export_functions[id](e, to, &error);
    g_assert_no_error(error);
    g_assert_cmpint(fclose(to), ==, 0);
    copy = g_malloc(n + 1);
    memcpy(copy, bytes, n + 1);
    free(bytes);
    if (len) {
        *len = n;
    }
    return copy;
}

McHeapProfile *export_hostile(unsigned *n)
{
    static const char *const names[] = {
        "a;b 7\nc;d 9", "e\"f\\", "</script><b>", "\xff\xfe\xc3\x28", "x 4096",
        "=1+1", "%s%n", "\\u0000", "' or 1=1; --", "{\"a\":1}", "# EOF",
    };
    McHeapProfile *p = mc_heap_profile_new();
    g_autofree char *huge = g_strnfill(4096, ';');
    g_autofree char *symbol = g_strconcat(huge, "+0x1[", huge, "]", NULL);
    unsigned frame[2] = { 0, mc_heap_profile_frame(p, TEXT, "root+0x1") };

    frame[0] = mc_heap_profile_frame(p, TEXT + 1, symbol);
    set_values(mc_heap_profile_stack(p, frame, 2), 64, 1);
    for (*n = 1; *n <= G_N_ELEMENTS(names); (*n)++) {
        g_autofree char *hostile = g_strconcat(
            names[*n - 1], "+0x1[", names[*n - 1], "]", NULL);

        frame[0] = mc_heap_profile_frame(p, TEXT + 0x100 * *n, hostile);
        set_values(mc_heap_profile_stack(p, frame, 1), 64, 1);
    }
    mc_heap_profile_note(p, "a note\n# EOF 12\nx;y 7");
    mc_heap_profile_set_banner(p, "Linux \"6.1\"\nx 7");
    return p;
}
