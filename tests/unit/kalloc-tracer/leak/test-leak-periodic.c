/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Periodic leak scans: when they are made, what they report, and what
 * kt_leak_list() returns after them.
 */
#include "tests/lib/guest-memory.h"
#include "tests/lib/test-main.h"
#include "kalloc-tracer/snapshot/snapshot.h"

#define LEAKS (LG_OBJECTS + 3)      /* see test-leak-scan.c */

static const KtLeakPlan *plan_of(LeakGuest *g)
{
    static KtLeakPlan plan;

    plan = (KtLeakPlan) { .vm = &g->vm, .kernel = &g->k };
    return &plan;
}

static void check_line(LeakGuest *g, const char *want)
{
    g_autofree char *line = kt_leak_periodic(g->t, plan_of(g));

    g_assert_cmpstr(line, ==, want);
}

static void check_listed(LeakGuest *g, unsigned n)
{
    g_autoptr(GArray) leaks = NULL;
    uint64_t us;

    g_assert_true(kt_leak_list(g->t, &leaks, &us));
    g_assert_cmpuint(leaks->len, ==, n);
}

static void push(LeakGuest *g, KtEventKind kind, uint64_t us)
{
    KtEvent ev = { .kind = kind, .va = LG_OBJECT(3), .size = 64, .actual = 64,
                   .us = us, .layer = KT_LAYER_CACHE,
                   .family = KT_FAMILY_ANY };

    kt_tracer_push(g->t, 0, &ev);
}

LEAK_TEST(test_due_each_so_many_seconds, "/leak-watch/due-each-so-many-seconds")
{
    g_assert_false(kt_leak_periodic_due(g->t));
    kt_leak_set_every(g->t, 3);
    for (unsigned i = 0; i < 3; i++) {
        g_assert_false(kt_leak_periodic_due(g->t));
        g_assert_false(kt_leak_periodic_due(g->t));
        g_assert_true(kt_leak_periodic_due(g->t));
        g_free(kt_leak_periodic(g->t, plan_of(g)));
    }
    kt_leak_set_every(g->t, 0);
    for (unsigned i = 0; i < 9; i++) {
        g_assert_false(kt_leak_periodic_due(g->t));
    }
}

LEAK_TEST(test_new_leaks_are_told_once, "/leak-watch/new-leaks-are-told-once")
{
    check_line(g, "leak scan at 1us: 19 leaked blocks, 19 of them new; "
                  "ka leak list prints them");
    check_line(g, NULL);
    lg_put(g, LG_IMAGE + LG_ROOT, LG_OBJECT(5));
    check_line(g, NULL);
    check_listed(g, LEAKS - 1);
    lg_put(g, LG_IMAGE + LG_ROOT, 0);
    check_line(g, "leak scan at 1us: 19 leaked blocks, 1 of them new; "
                  "ka leak list prints them");
}

/* A freed block is not listed, nor a new block at its address. */
LEAK_TEST(test_the_list_is_of_what_still_lives,
          "/leak-watch/the-list-is-of-what-still-lives")
{
    g_autoptr(GArray) none = NULL;
    uint64_t us;

    g_assert_false(kt_leak_list(g->t, &none, &us));
    g_assert_cmpuint(none->len, ==, 0);
    g_free(kt_leak_periodic(g->t, plan_of(g)));
    check_listed(g, LEAKS);
    push(g, KT_EV_FREE, 5);
    check_listed(g, LEAKS - 1);
    push(g, KT_EV_ALLOC, 6);
    check_listed(g, LEAKS - 1);
    check_line(g, "leak scan at 6us: 19 leaked blocks, 1 of them new; "
                  "ka leak list prints them");
}

/* All vCPUs are in user mode: the scan is tried again in the next second. */
LEAK_TEST(test_what_cannot_be_now_is_tried_again,
          "/leak-watch/what-cannot-be-now-is-tried-again")
{
    kt_leak_set_every(g->t, 2);
    g_assert_false(kt_leak_periodic_due(g->t));
    g->vm.n_vcpus = 0;
    for (unsigned i = 0; i < 9; i++) {
        g_assert_true(kt_leak_periodic_due(g->t));
        check_line(g, NULL);
    }
    g_assert_true(kt_leak_periodic_due(g->t));
    check_line(g, "no leak scan could be made: no vCPU maps the kernel's "
                  "memory now (all are in user mode, or it has not booted so "
                  "far): let it run for a moment");
    g_assert_false(kt_leak_periodic_due(g->t));
}

/* The error is reported once, and the scan waits until the next one is due. */
LEAK_TEST(test_what_cannot_ever_be_is_told_once,
          "/leak-watch/what-cannot-ever-be-is-told-once")
{
    kt_leak_set_every(g->t, 2);
    g_clear_pointer(&g->k.btf, gs_btf_free);
    for (unsigned i = 0; i < 3; i++) {
        g_autofree char *line = NULL;

        g_assert_false(kt_leak_periodic_due(g->t));
        g_assert_true(kt_leak_periodic_due(g->t));
        line = kt_leak_periodic(g->t, plan_of(g));
        g_assert_cmpint(line && g_str_has_prefix(line, "no leak scan could be "
                                                 "made: no block can be "), ==,
                        i == 0);
    }
}

static void reset(LeakGuest *g, const GByteArray *state)
{
    kt_tracer_reset(g->t);
}

static void load(LeakGuest *g, const GByteArray *state)
{
    GsBytes in = { state->data, state->len };

    g_assert_true(kt_snapshot_load(g->t, gs_stream_from_bytes, &in, NULL));
}

static void lose(LeakGuest *g, const GByteArray *state)
{
    kt_tracer_reset_unknown(g->t);
}

/* After a reset or a loaded snapshot, a block may have the same address and
 * time as one that was reported or cleared before. */
static void test_of_one_life(gconstpointer data)
{
    void (*const leave)(LeakGuest *, const GByteArray *) = data;
    g_autoptr(LeakGuest) g = leak_guest_new();
    g_autoptr(GByteArray) state = g_byte_array_new();
    g_autoptr(GArray) leaks = NULL;
    KtLeakHold hold;
    uint64_t us;

    kt_snapshot_save(g->t, gs_stream_to_array, state);
    g_free(kt_leak_periodic(g->t, plan_of(g)));
    g_assert_cmpuint(kt_leak_dismiss(g->t), ==, LEAKS);
    push(g, KT_EV_FREE, 5);
    push(g, KT_EV_ALLOC, 6);
    check_line(g, "leak scan at 6us: 1 leaked blocks, 1 of them new; "
                  "ka leak list prints them");
    g_assert_true(kt_leak_known(g->t, LG_OBJECT(3), 6, &hold));
    leave(g, state);
    g_assert_false(kt_leak_scanned(g->t, &us));
    g_assert_cmpuint(us, ==, 0);
    g_assert_false(kt_leak_list(g->t, &leaks, &us));
    g_assert_false(kt_leak_known(g->t, LG_OBJECT(3), 6, &hold));
    load(g, state);
    check_line(g, "leak scan at 1us: 19 leaked blocks, 19 of them new; "
                  "ka leak list prints them");
}

TEST_WITH(test_of_one_life, "/leak-watch/reset", reset)
TEST_WITH(test_of_one_life, "/leak-watch/state", load)
TEST_WITH(test_of_one_life, "/leak-watch/lost", lose)
