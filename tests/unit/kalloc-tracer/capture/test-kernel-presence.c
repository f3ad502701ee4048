/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Another kernel in guest memory is noticed, and nothing else is. */
#include "tests/lib/fake-capture.h"
#include "tests/lib/test-main.h"

#define OTHER   "Linux version 6.0.1-test (somebody@somewhere) #2\n"
#define ELSEWHERE (TEXT + 0x8000000)
#define SIZE      (4u << 20)

static bool lacks_kernel(FakeCapture *w)
{
    bool lacks;

    kt_capture_lock(w->capture);
    lacks = kt_capture_lacks_kernel(w->capture);
    kt_capture_unlock(w->capture);
    return lacks;
}

static void expect_there(FakeCapture *w)
{
    g_assert_false(lacks_kernel(w));
    g_assert_cmpuint(counter_of(w, KT_CNT_KERNEL_REPLACED), ==, 0);
    g_assert_cmpuint(counter_of(w, KT_CNT_GAPS), ==, 0);
}

/* What the old kernel's hooks see is no error any more. It is said once. */
static void expect_gone(FakeCapture *w)
{
    g_assert_true(lacks_kernel(w));
    g_assert_true(lacks_kernel(w));
    g_assert_cmpuint(counter_of(w, KT_CNT_KERNEL_REPLACED), ==, 1);
    g_assert_true(stats_of(w).blind);
    run_kfree(w, BLOCK);
    run_kfree(w, BLOCK);
    g_assert_cmpuint(stats_of(w).errors, ==, 0);
}

static void start(FakeCapture *w)
{
    g_assert_false(lacks_kernel(w));
    test_qemu_run(START);
    run_kmalloc(w, BLOCK);
    set_jiffies(w, 1000);
    expect_there(w);
}

CAPTURE_TEST(there, "/kernel-presence/there")
{
    start(w);
    set_jiffies(w, 1001);
    expect_there(w);
}

CAPTURE_TEST(other_banner, "/kernel-presence/other-banner")
{
    start(w);
    set_banner(w, OTHER);
    expect_gone(w);
}

CAPTURE_TEST(went_back, "/kernel-presence/went-back")
{
    start(w);
    set_jiffies(w, 999);
    expect_gone(w);
}

/* A vCPU in user space does not show the kernel. */
CAPTURE_TEST(hidden, "/kernel-presence/hidden")
{
    start(w);
    *test_qemu_pc() = 0x400000;
    test_qemu_hide(true);
    expect_there(w);
    *test_qemu_pc() = KMALLOC;
    expect_there(w);
}

/* Its code is there, and runs. */
CAPTURE_TEST(own_code, "/kernel-presence/own-code")
{
    start(w);
    test_qemu_map(TEXT, KS_RODATA - KS_TEXT);
    *test_qemu_pc() = KMALLOC;
    expect_there(w);
}

/* Nothing is where the kernel was. */
CAPTURE_TEST(moved, "/kernel-presence/moved")
{
    start(w);
    test_qemu_map(TEXT, 4096);
    expect_there(w);
    test_qemu_map(ELSEWHERE, SIZE);
    *test_qemu_pc() = ELSEWHERE + SIZE / 2;
    expect_gone(w);
}

/* Code that switches page tables has nothing around it. */
CAPTURE_TEST(trampoline, "/kernel-presence/trampoline")
{
    start(w);
    test_qemu_map(TEXT, 4096);
    test_qemu_map(ELSEWHERE, 4096);
    *test_qemu_pc() = ELSEWHERE + 64;
    expect_there(w);
}

/* The next boot begins anew. */
CAPTURE_TEST(next_boot, "/kernel-presence/next-boot")
{
    start(w);
    set_banner(w, OTHER);
    g_assert_true(lacks_kernel(w));
    test_qemu_reset();
    g_assert_false(lacks_kernel(w));
    set_jiffies(w, 1);
    test_qemu_run(START);
    g_assert_false(lacks_kernel(w));
    g_assert_false(stats_of(w).blind);
}
