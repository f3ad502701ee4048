/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Calls that have not returned: nested calls, tail calls, calls whose return
 * never comes, and tasks that run on another vCPU when they return.
 */
#include "tests/lib/test-main.h"
#include "kalloc-tracer/calls/call-records.h"

G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtOpenCalls, kt_open_calls_free)

/* Enter @point with the stack pointer @sp, to return to @site. Returns: the
 * points of stale calls as decimal digits, the newest first. */
static unsigned enter(KtOpenCalls *o, unsigned cpu, uint64_t sp, uint64_t site,
                      unsigned point)
{
    KtOpenCall *c = kt_open_calls_get(o, cpu);
    unsigned stale = 0;

    g_assert_nonnull(c);
    *c = (KtOpenCall) { .sp = sp, .site = site, .call.point = { point } };
    for (c = kt_open_calls_add(o, c); c;) {
        KtOpenCall *next = c->next;

        stale = stale * 10 + c->call.point.v;
        kt_open_calls_put(o, cpu, c);
        c = next;
    }
    return stale;
}

/* Return in the same form the points of the calls that return. */
static unsigned leave(KtOpenCalls *o, unsigned cpu, uint64_t sp, uint64_t site)
{
    KtOpenCall *c = kt_open_calls_remove(o, sp, site);
    unsigned points = 0;

    while (c) {
        KtOpenCall *next = c->next;

        points = points * 10 + c->call.point.v;
        kt_open_calls_put(o, cpu, c);
        c = next;
    }
    return points;
}

/* A case with a table @o of one vCPU. */
#define OPEN_TEST(fn, path) \
    TEST_IN(g_autoptr(KtOpenCalls), KtOpenCalls *o, \
            kt_open_calls_new(NULL, 1), fn, path)

OPEN_TEST(nested_calls, "/open-calls/nested-calls")
{
    g_assert_cmpuint(enter(o, 0, 0x100, 0x10, 1), ==, 0);
    g_assert_cmpuint(enter(o, 0, 0x80, 0x20, 2), ==, 0);
    g_assert_cmpuint(enter(o, 0, 0x40, 0x20, 2), ==, 0);    /* recursion */
    g_assert_cmpuint(kt_open_calls_count(o), ==, 3);
    g_assert_cmpuint(leave(o, 0, 0x80, 0x10), ==, 0);
    g_assert_cmpuint(leave(o, 0, 0x40, 0x20), ==, 2);
    g_assert_cmpuint(leave(o, 0, 0x80, 0x20), ==, 2);
    g_assert_cmpuint(leave(o, 0, 0x100, 0x10), ==, 1);
    g_assert_cmpuint(leave(o, 0, 0x100, 0x10), ==, 0);
    g_assert_cmpuint(kt_open_calls_count(o), ==, 0);
}

/* 1 jumps to 2, which returns for both. */
OPEN_TEST(tail_calls, "/open-calls/tail-calls")
{
    enter(o, 0, 0x100, 0x10, 1);
    g_assert_cmpuint(enter(o, 0, 0x100, 0x10, 2), ==, 0);
    g_assert_cmpuint(leave(o, 0, 0x100, 0x10), ==, 21);
}

/* A longjmp, or a task that ended: the same place of the stack is used by the
 * same function again, or by a call that returns elsewhere. */
OPEN_TEST(returns_that_never_come, "/open-calls/returns-that-never-come")
{
    enter(o, 0, 0x100, 0x10, 1);
    g_assert_cmpuint(enter(o, 0, 0x100, 0x10, 1), ==, 1);
    enter(o, 0, 0x100, 0x10, 2);
    g_assert_cmpuint(enter(o, 0, 0x100, 0x20, 3), ==, 21);
    g_assert_cmpuint(leave(o, 0, 0x100, 0x20), ==, 3);
    g_assert_cmpuint(kt_open_calls_count(o), ==, 0);
}

/* A task enters on vCPU 0 and sleeps; another task, whose stack is elsewhere,
 * enters the same function; the first one returns on vCPU 1. */
TEST(task_switches, "/open-calls/task-switches")
{
    g_autoptr(KtOpenCalls) o = kt_open_calls_new(NULL, 2);

    enter(o, 0, 0x1100, 0x10, 1);
    g_assert_cmpuint(enter(o, 0, 0x2100, 0x10, 1), ==, 0);
    g_assert_cmpuint(leave(o, 1, 0x1100, 0x10), ==, 1);
    g_assert_cmpuint(leave(o, 0, 0x2100, 0x10), ==, 1);
}

/* A fault rule makes one of two calls of a tail call return. */
OPEN_TEST(one_point_returns, "/open-calls/one-point-returns")
{
    KtOpenCall *c;

    enter(o, 0, 0x100, 0x10, 1);
    enter(o, 0, 0x100, 0x10, 2);
    g_assert_null(kt_open_calls_remove_point(o, 0x100, 0x10,
                                             (KtPointId) { 3 }));
    c = kt_open_calls_remove_point(o, 0x100, 0x10, (KtPointId) { 2 });
    g_assert_cmpuint(c->call.point.v, ==, 2);
    g_assert_null(c->next);
    kt_open_calls_put(o, 0, c);
    g_assert_cmpuint(leave(o, 0, 0x100, 0x10), ==, 1);
}

OPEN_TEST(many_calls, "/open-calls/many-calls")
{
    for (unsigned i = 1; i <= 20000; i++) {
        enter(o, 0, 0x100 * i, 0x10, 1);
    }
    g_assert_cmpuint(kt_open_calls_count(o), ==, 20000);
    for (unsigned i = 1; i <= 10000; i++) {
        g_assert_cmpuint(leave(o, 0, 0x100 * i, 0x10), ==, 1);
    }
    kt_open_calls_clear(o);
    g_assert_cmpuint(kt_open_calls_count(o), ==, 0);
}
