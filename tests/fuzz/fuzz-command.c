/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: command lines of any bytes, on a small map with every kind of
 * block and error.
 *
 * Checks: each line of output ends with a newline and is printable ASCII; a
 * wrong command line prints exactly one line.
 */
#include "tests/fuzz/fuzz.h"
#include "tests/lib/bare-tracer.h"
#include "tests/lib/events.h"

static const char script[] =
    "symbol va=ffffffff81000000 name=_stext\n"
    "symbol va=ffffffff81000100 name=kmalloc\n"
    "symbol va=ffffffff81000200 name=add\n"
    "symbol va=ffffffff81000300 name=init type=t\n"
    "symbol va=ffffffff81000400 name=init type=t\n"
    "symbol va=ffffffff81000500 name=_etext\n"
    "module va=ffffffffc0100000 name=ext4 base=ffffffffc0000000 size=4000\n"
    "modsym va=ffffffffc0000000 name=ext4_alloc\n"
    "hook name=kmalloc va=ffffffff81000100 hits=1\n"
    "hook name=kmalloc_trace note=not\\x20here\n"
    "alloc va=1000 size=40 us=1 pid=1 comm=init cache=kmalloc-64 "
    "stack=ffffffff81000110,ffffffff81000310\n"
    "alloc va=2000 size=0 actual=8 us=2\n"
    "alloc va=3000 size=10 us=3 stack=ffffffff81000410\n"
    "rcu va=3000 us=4 stack=ffffffff81000210\n"
    "free va=3000 us=5 stack=ffffffffc0000010\n"
    "free va=1000 us=6 pid=2 comm=a\\x1b\\xff stack=ffffffff81000310\n"
    "free va=1000 us=7\n"
    "free va=3008 us=8\n"
    "alloc va=1000 size=8 us=9 cache=\\x22\\x5c\n"
    "alloc va=ffffffffffffff00 size=100 us=10\n";

static void check_output(const char *text, int rc)
{
    unsigned lines = 0;

    for (const char *p = text; *p; p++) {
        g_assert_true(*p == '\n' || (*p >= 0x20 && *p < 0x7f));
        lines += *p == '\n';
    }
    g_assert_true(!*text || g_str_has_suffix(text, "\n"));
    g_assert_true(rc == 0 || (rc == 1 && lines == 1));
}

/* Return true if a command disabled the tracer or cleared the map. */
static bool has_changed(TestWorld *w)
{
    KtTracer *t = test_world_tracer(w);
    KtStats s = tracer_stats(t);

    return !s.live_blocks || !kt_tracer_enabled(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static TestWorld *w;
    g_autofree char *line = g_strndup((const char *)data, size);
    g_auto(GStrv) completions = NULL;
    g_autofree char *text = NULL;
    int rc;

    if (!w) {
        w = test_world_new(script);
    }
    text = test_world_run(w, line, &rc);
    check_output(text, rc);
    completions = mc_complete(test_world_context(w), line);
    g_assert_nonnull(completions);
    if (has_changed(w)) {
        g_clear_pointer(&w, test_world_free);
    }
    return 0;
}
