/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fault rules on the fake QEMU: a call that fails returns before its first
 * instruction with the result and the stack pointer of a return, has no pending
 * call and no event; the VM stops at a call once; a trapped entry is decided
 * once; without rules nothing changes.
 */
#include "tests/lib/fake-capture.h"
#include "tests/lib/test-main.h"
#include "kalloc-tracer/calls/calls.h"
#include "kalloc-tracer/capture/capture-internal.h"

#define NOT_HOOKED (TEXT + 0x6c0)

static uint32_t add(FakeCapture *w, const KtFaultSpec *spec)
{
    g_autoptr(GError) err = NULL;
    uint32_t id = kt_faults_add(w->t, kt_capture_kernel(w->capture), spec,
                                &err);

    g_assert_no_error(err);
    return id;
}

static const KtFaultSpec all = { .what = "not_hooked", .value = "-12" };

CAPTURE_TEST(fails, "/inject-fault/fails")
{
    uint64_t sp;

    test_qemu_run(START);
    add(w, &all);
    call(w, 2, NOT_HOOKED, 1);
    sp = *test_qemu_reg(GS_REG_SP);
    g_assert_cmphex(test_qemu_left(), !=, 0);
    g_assert_cmphex(*test_qemu_reg(GS_REG_RESULT), ==, (uint64_t)-12);
    call(w, 2, START, 1);
    g_assert_cmphex(test_qemu_left(), ==, 0);
    g_assert_cmphex(sp, ==, *test_qemu_reg(GS_REG_SP) + 8);
    g_assert_cmpuint(counter_of(w, KT_CNT_FAULTS_MADE), ==, 1);
}

/* A hook at the same address does not see the call: nothing is pending. */
CAPTURE_TEST(hooked_functions, "/inject-fault/hooked-functions")
{
    uint32_t id;

    test_qemu_run(START);
    id = add(w, &(KtFaultSpec) { .what = "kmalloc", .times = 1 });
    enter_kmalloc(w, 1);
    g_assert_cmphex(test_qemu_left(), !=, 0);
    g_assert_cmphex(*test_qemu_reg(GS_REG_RESULT), ==, 0);
    g_assert_cmpuint(kt_pending_calls_pending(w->capture->shared.calls), ==, 0);
    enter_kmalloc(w, 1);
    g_assert_cmphex(test_qemu_left(), ==, 0);
    g_assert_cmpuint(kt_pending_calls_pending(w->capture->shared.calls), ==, 1);
    leave_kmalloc(w, 1, BLOCK);
    g_assert_cmpuint(stats_of(w).live_blocks, ==, 1);
    g_assert_cmpuint(kt_faults_remove(w->t, id), ==, 1);
    run_kfree(w, BLOCK);
    g_assert_cmpuint(stats_of(w).live_blocks, ==, 0);
}

CAPTURE_TEST(stops, "/inject-fault/stops")
{
    test_qemu_run(START);
    add(w, &(KtFaultSpec) { .what = "not_hooked", .times = 1,
                            .action = KT_FAULT_DO_STOP });
    call(w, 2, NOT_HOOKED, 1);
    g_assert_cmphex(test_qemu_left(), ==, NOT_HOOKED);
    g_assert_cmpuint(test_qemu_stops(), ==, 1);
    call(w, 2, NOT_HOOKED, 1);
    g_assert_cmphex(test_qemu_left(), ==, 0);
    g_assert_cmpuint(test_qemu_stops(), ==, 1);
    g_assert_cmpuint(counter_of(w, KT_CNT_CALLS_ENTERED), ==, 1);
    call(w, 2, NOT_HOOKED, 1);
    g_assert_cmphex(test_qemu_left(), ==, 0);
    g_assert_cmpuint(counter_of(w, KT_CNT_CALLS_ENTERED), ==, 2);
}

/* The first instruction is a breakpoint, whose handler repeats the entry. */
CAPTURE_TEST(trapped_entries, "/inject-fault/trapped-entries")
{
    test_qemu_run(START);
    add(w, &(KtFaultSpec) { .what = "not_hooked", .value = "-12",
                            .condition = "times == 2" });
    test_qemu_trap(true);
    call(w, 2, NOT_HOOKED, 1);
    test_qemu_trap(false);
    call(w, 2, NOT_HOOKED, 1);
    g_assert_cmphex(test_qemu_left(), ==, 0);
    call(w, 2, NOT_HOOKED, 1);
    g_assert_cmphex(test_qemu_left(), !=, 0);
}

static void add_stop(void *w)
{
    add(w, &(KtFaultSpec) { .what = "not_hooked",
                            .action = KT_FAULT_DO_STOP });
}

/* A watched function gets a rule while a vCPU runs code that was translated
 * before: QEMU does not let that code leave. */
TEST(older_code, "/inject-fault/older-code")
{
    const KtWatchSpec watched = { .functions = "not_hooked" };
    g_autoptr(FakeCapture) w = fake_capture_new(NULL, false);
    g_autoptr(GError) err = NULL;

    kt_calls_configure(w->t, 1 << 20, 1);
    test_qemu_run(START);
    kt_calls_add(w->t, kt_capture_kernel(w->capture), &watched, &err);
    g_assert_no_error(err);
    test_qemu_when_translated(add_stop, w);
    call(w, 2, NOT_HOOKED, 1);
    g_assert_cmphex(test_qemu_left(), ==, 0);
    g_assert_cmpuint(test_qemu_stops(), ==, 0);
    call(w, 2, NOT_HOOKED, 1);
    g_assert_cmphex(test_qemu_left(), ==, NOT_HOOKED);
}

CAPTURE_TEST(no_rules, "/inject-fault/no-rules")
{
    test_qemu_run(START);
    add(w, &all);
    kt_faults_remove(w->t, 0);
    call(w, 2, NOT_HOOKED, 1);
    g_assert_cmphex(test_qemu_left(), ==, 0);
    g_assert_cmpuint(counter_of(w, KT_CNT_CALLS_ENTERED), ==, 0);
}

CAPTURE_TEST(a_new_boot, "/inject-fault/a-new-boot")
{
    add(w, &all);                       /* no kernel is known yet */
    test_qemu_run(START);
    call(w, 2, NOT_HOOKED, 1);
    g_assert_cmphex(test_qemu_left(), !=, 0);
    test_qemu_reset();
    test_qemu_run(START);
    call(w, 2, NOT_HOOKED, 1);
    g_assert_cmphex(test_qemu_left(), !=, 0);
}
