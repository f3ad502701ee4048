/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Functions whose code has an inlined kmalloc() or kfree(): the calls and jumps
 * in it are events, or the function's own return is.
 */
#include "tests/lib/fake-capture.h"

#include <string.h>

#define CALLS_ALLOC     (KREALLOC + 0x10)
#define CALLS_FREE      (KREALLOC + 0x20)
#define JUMPS_TO_FREE   (KFREE_SENSITIVE + 0x8)
#define CALL_BYTES      5
#define MOVED           (BLOCK + 0x400)

/* Put a call (0xe8) or jump (0xe9) to @to into the kernel, and a nop: around
 * them are zeros, which are instructions of two bytes. */
static void put_branch(FakeCapture *w, uint64_t at, uint8_t opcode,
                       uint64_t to)
{
    int32_t off = to - (at + CALL_BYTES);

    w->image[at - TEXT] = opcode;
    memcpy(w->image + (at - TEXT) + 1, &off, sizeof(off));
    w->image[at - TEXT + CALL_BYTES] = 0x90;
}

static void put_inlined(FakeCapture *w)
{
    put_branch(w, CALLS_ALLOC, 0xe8, ALLOC_INNER);
    put_branch(w, CALLS_FREE, 0xe8, FREE_INNER);
    put_branch(w, JUMPS_TO_FREE, 0xe9, FREE_INNER);
    test_qemu_run(START);
}

/* Move BLOCK to MOVED, inside krealloc(). */
static void move(void)
{
    *test_qemu_reg(GS_REG_SP) = STACK + 1024;
    *test_qemu_reg(GS_REG_ARG3) = 300;
    test_qemu_run(CALLS_ALLOC);
    *test_qemu_reg(GS_REG_RESULT) = MOVED;
    test_qemu_run(CALLS_ALLOC + CALL_BYTES);
    *test_qemu_reg(GS_REG_ARG1) = BLOCK;
    test_qemu_run(CALLS_FREE);
}

CAPTURE_TEST(calls_are_events, "/record-sites/calls-are-events")
{
    put_inlined(w);
    run_kmalloc(w, BLOCK);
    move();
    g_assert_cmpuint(stats_of(w).live_blocks, ==, 1);
    g_assert_cmpuint(stats_of(w).errors, ==, 0);
    run_kfree(w, MOVED);
    g_assert_cmpuint(stats_of(w).live_blocks, ==, 0);
    g_assert_cmpuint(stats_of(w).errors, ==, 0);
    run_kfree(w, BLOCK);
    g_assert_cmpuint(stats_of(w).errors, ==, 1);
}

CAPTURE_TEST(jumps_are_events, "/record-sites/jumps-are-events")
{
    put_inlined(w);
    run_kmalloc(w, BLOCK);
    *test_qemu_reg(GS_REG_ARG1) = BLOCK;
    call(w, 2, JUMPS_TO_FREE, 0);
    g_assert_cmpuint(stats_of(w).live_blocks, ==, 0);
    g_assert_cmpuint(stats_of(w).errors, ==, 0);
    call(w, 2, JUMPS_TO_FREE, 0);
    g_assert_cmpuint(stats_of(w).errors, ==, 1);
}

/* kmalloc() and kfree() call the same functions, and have events already. */
CAPTURE_TEST(other_calls_are_none, "/record-sites/other-calls-are-none")
{
    put_inlined(w);
    run_kmalloc(w, BLOCK);
    *test_qemu_reg(GS_REG_ARG1) = BLOCK;
    call(w, 2, FREE_INNER, 0);
    g_assert_cmpuint(stats_of(w).live_blocks, ==, 1);
    g_assert_cmpuint(stats_of(w).errors, ==, 0);
}

/* A call that is inside the allocator when recording begins returns memory that
 * was freed meanwhile. */
CAPTURE_TEST(calls_under_way, "/record-sites/calls-under-way")
{
    put_inlined(w);
    run_kmalloc(w, MOVED);
    kt_tracer_set_enabled(w->t, false);
    *test_qemu_reg(GS_REG_SP) = STACK + 1024;
    test_qemu_run(CALLS_ALLOC);
    *test_qemu_reg(GS_REG_ARG1) = BLOCK;
    test_qemu_run(CALLS_FREE);
    kt_tracer_set_enabled(w->t, true);
    run_kfree(w, MOVED);
    *test_qemu_reg(GS_REG_SP) = STACK + 1024;
    *test_qemu_reg(GS_REG_RESULT) = MOVED;
    test_qemu_run(CALLS_ALLOC + CALL_BYTES);
    g_assert_cmpuint(stats_of(w).live_blocks, ==, 1);
    g_assert_cmpuint(stats_of(w).errors, ==, 0);
}

/* Neither calls anything known: krealloc() is an event when it returns,
 * kfree_sensitive() when it is entered. */
CAPTURE_TEST(functions_record_themselves, "/record-sites/themselves")
{
    put_branch(w, CALLS_ALLOC, 0xe8, TEXT + 0x6c0);
    put_branch(w, JUMPS_TO_FREE, 0xe9, TEXT + 0x6c0);
    test_qemu_run(START);
    run_kmalloc(w, BLOCK);
    *test_qemu_reg(GS_REG_ARG1) = 300;
    call(w, 2, KREALLOC, BLOCK);
    leave_kmalloc(w, 2, BLOCK);                 /* in place */
    g_assert_cmpuint(stats_of(w).live_blocks, ==, 1);
    call(w, 2, KREALLOC, BLOCK);
    leave_kmalloc(w, 2, 0);                     /* failed */
    g_assert_cmpuint(stats_of(w).live_blocks, ==, 1);
    call(w, 2, KREALLOC, 0);
    leave_kmalloc(w, 2, MOVED);                 /* new */
    g_assert_cmpuint(stats_of(w).live_blocks, ==, 2);
    call(w, 2, KREALLOC, MOVED);
    leave_kmalloc(w, 2, MOVED + 0x400);         /* moved */
    g_assert_cmpuint(stats_of(w).live_blocks, ==, 2);
    call(w, 2, KREALLOC, MOVED + 0x400);
    leave_kmalloc(w, 2, KT_ZERO_SIZE_PTR);      /* freed */
    g_assert_cmpuint(stats_of(w).live_blocks, ==, 1);
    call(w, 2, KFREE_SENSITIVE, BLOCK);
    g_assert_cmpuint(stats_of(w).live_blocks, ==, 0);
    g_assert_cmpuint(stats_of(w).errors, ==, 0);
}
