/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: scripts of any bytes (script=FILE).
 *
 * Checks: a script is accepted, or refused with one line that begins with the
 * file's name. An accepted script runs for each moment without a crash, and
 * each command that runs is counted.
 */
#include "tests/fuzz/fuzz.h"
#include "monitor-cmds/script/script.h"
#include "tests/lib/events.h"

static bool puts_nothing(void *opaque, const char *text)
{
    g_assert_true(g_str_has_suffix(text, "\n"));
    return true;
}

static void say(const char *line)
{
    g_assert_null(strchr(line, '\n'));
}

static void run(const McScript *s, TestWorld *w, McMoment moment,
                const char *module)
{
    McContext ctx = *test_world_context(w);
    g_autoptr(McScriptRun) r = mc_script_begin(s, moment, module);

    ctx.puts = puts_nothing;
    if (r && !mc_script_run(r, &ctx, false, say)) {
        g_assert_true(mc_script_run(r, &ctx, true, say));
    }
}

static void run_all(const McScript *s)
{
    g_autoptr(TestWorld) w = test_world_new("alloc va=1000 size=40 us=1\n");
    uint64_t ran;

    for (unsigned i = 0; i < s->blocks->len; i++) {
        const McScriptBlock *b = &g_array_index(s->blocks, McScriptBlock, i);

        run(s, w, b->moment, b->module);
    }
    ran = kt_tracer_counter(test_world_tracer(w), KT_CNT_SCRIPT_COMMANDS);
    g_assert_true(ran || !s->n_commands);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(GError) err = NULL;
    g_autoptr(McScript) s = mc_script_new((const char *)data, size, "name",
                                          "m", &err);

    g_assert_true(!s == (err != NULL));
    if (err) {
        g_assert_true(g_str_has_prefix(err->message, "name:"));
        g_assert_null(strchr(err->message, '\n'));
    } else if (s->n_commands <= 8) {
        run_all(s);
    }
    return 0;
}
