/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rules file: what is accepted, what is refused and why. And a search ends
 * soon after its deadline, in whatever phase it is.
 */
#include "tests/lib/test-main.h"
#include "kalloc-tracer/leak/leak-internal.h"

G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtLeakScanner, kt_leak_scanner_free)

#define BASE    0xffff888000000000ull

TEST(test_rules_are_read, "/rules/are-read")
{
    g_autoptr(KtLeakScanner) l = kt_leak_scanner_new(NULL);
    unsigned before = l->rules->len;
    const KtLeakRule *r;

    g_assert_true(kt_leaks_parse(l, "# a comment\n\n"
                                 " not-leak func acpi_init # why\n"
                                 "scan-area\tcache foo 10-4f\n", "f", NULL));
    g_assert_cmpuint(l->rules->len, ==, before + 2);
    r = &g_array_index(l->rules, KtLeakRule, before + 1);
    g_assert_cmpint(r->kind, ==, KT_LEAK_RULE_SCAN_AREA);
    g_assert_cmpint(r->by, ==, KT_LEAK_BY_CACHE);
    g_assert_cmpstr(r->name, ==, "foo");
    g_assert_cmphex(r->lo, ==, 0x10);
    g_assert_cmphex(r->hi, ==, 0x4f);
}

TEST(test_bad_rules_are_refused, "/rules/bad-ones-are-refused")
{
    static const struct {
        const char *text, *why;
    } bad[] = {
        { "ignore func a\nleak func b\n", "f:2: a rule is not-leak, ignore, "
          "no-scan or scan-area" },
        { "ignore\n", "f:1: the second word is func or cache" },
        { "ignore file a\n", "f:1: the second word is func or cache" },
        { "\nignore func\n", "f:2: the third word is the name of a function "
          "or cache" },
        { "no-scan func a b\n", "f:1: one word too many; comments begin with "
          "#" },
        { "scan-area func a\n", "f:1: the fourth word is a range of hex "
          "offsets, as 10-40" },
        { "scan-area func a 40-10\n", "f:1: the fourth word is a range of hex "
          "offsets, as 10-40" },
        { "scan-area func a 10-40x\n", "f:1: the fourth word is a range of "
          "hex offsets, as 10-40" },
        { "scan-area func a 0-10000000000000000\n", "f:1: the fourth word is "
          "a range of hex offsets, as 10-40" },
    };
    g_autoptr(KtLeakScanner) l = kt_leak_scanner_new(NULL);
    unsigned before = l->rules->len;

    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) err = NULL;

        g_assert_false(kt_leaks_parse(l, bad[i].text, "f", &err));
        g_assert_cmpstr(err->message, ==, bad[i].why);
        g_assert_cmpuint(l->rules->len, ==, before);
    }
}

static bool note_bytes(void *opaque, uint64_t bytes)
{
    *(uint64_t *)opaque = bytes;
    return true;
}

/* A call with 0 bytes does not reset the progress. */
TEST(test_progress_does_not_go_back, "/rules/progress-does-not-go-back")
{
    uint64_t told = 0;
    KtLeakPlan plan = { .progress = note_bytes, .opaque = &told };
    KtLiveSet w = { .plan = &plan, .deadline = G_MAXINT64 };

    g_assert_true(kt_live_set_progress(&w, 100));
    g_assert_true(kt_live_set_progress(&w, 0));
    g_assert_cmpuint(told, ==, 100);
}

/* Before the first scan, and in a guest without blocks. */
TEST(test_nothing_is_known, "/rules/nothing-is-known")
{
    KtConfig config = KT_CONFIG_DEFAULT;
    KtTracer *t = kt_tracer_new(&config, NULL);
    g_autoptr(GArray) live = g_array_new(FALSE, FALSE, sizeof(KtLiveBlock));
    const KtLiveSet w = { .live = live };
    KtLeakHold hold;

    g_assert_false(kt_leak_known(t, BASE, 0, &hold));
    g_assert_null(kt_live_set_find(&w, BASE));
    kt_tracer_free(t);
}

static bool has_left(void *opaque, uint64_t bytes)
{
    return false;
}

/* In this guest every symbol is a function of a rule, and every block has its
 * own stack. Applying the rules still ends soon after the deadline. */
TEST(test_rules_end_when_nobody_waits, "/rules/end-when-nobody-waits")
{
    g_autoptr(GString) map = g_string_new("ffffffff81000000 T _stext\n"
                                          "ffffffff81000000 T _text\n");
    g_autoptr(GsKernel) k = NULL;
    KtConfig config = KT_CONFIG_DEFAULT;
    KtTracer *t = kt_tracer_new(&config, NULL);
    KtLeakPlan plan = { .progress = has_left };
    g_autoptr(GArray) live = g_array_new(FALSE, FALSE, sizeof(KtLiveBlock));
    g_autoptr(GError) err = NULL;
    KtLiveSet w = { .plan = &plan,
                    .tracer = t,
                    .live = live,
                    .deadline = G_MAXINT64,
                    .scan = kt_marker_new() };
    uint8_t excused[100] = { 0 };
    KtLeakScanner *l = kt_leak_scanner_new(NULL);

    for (unsigned i = 0; i < 10000; i++) {
        g_string_append_printf(map, "%llx T mine\n",
                               0xffffffff81000000ull + i * 16);
    }
    g_string_append(map, "ffffffff82000000 T _etext\n");
    k = gs_kernel_new_from_data(map->str, map->len, "map", &err);
    g_assert_no_error(err);
    plan.kernel = k;
    g_assert_true(kt_leaks_parse(l, "ignore func mine", "f", NULL));
    for (uint64_t i = 0; i < G_N_ELEMENTS(excused); i++) {
        uint64_t pc = 0xffffffff81000001ull + i * 16;
        KtLiveBlock b = { .va = BASE + i * 64, .len = 64 };

        b.stack = kt_tracer_intern_stack(t, &pc, 1, GS_STOP_END);
        g_array_append_val(live, b);
        kt_marker_add(w.scan, b.va, b.len, 0);
    }
    kt_leak_apply_rules(l, &w, excused);
    g_assert_true(w.ended);
    g_assert_true(excused[0]);
    g_assert_false(excused[99]);
    kt_leak_scanner_free(l);
    kt_marker_free(w.scan);
    kt_tracer_free(t);
}
