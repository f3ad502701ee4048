/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Arming of access checks in a kernel without types: nothing is checked, the
 * reason is said, and no instruction has a callback. What is wanted outlives
 * the boot. (The kernels of tests/guest have types.)
 */
#include "tests/lib/fake-capture.h"
#include "tests/lib/test-main.h"

static KtAccessInfo info_of(const FakeCapture *w)
{
    KtAccessInfo info = { 0 };

    kt_access_info(w->t, &info);
    g_free(info.text);
    info.text = NULL;
    return info;
}

static bool has_callback(void)
{
    return test_qemu_access(CALLER + 8, &(TestQemuAccess) { BLOCK, 3, false });
}

static void check_refused(const FakeCapture *w)
{
    KtAccessInfo info = info_of(w);

    g_assert_true(info.wanted);
    g_assert_false(info.armed);
    g_assert_nonnull(strstr(info.why_not, "no types"));
    g_assert_false(has_callback());
}

CAPTURE_TEST(test_wanted_before, "/watch-access/wanted-before")
{
    kt_access_arm(w->t, &(KtAccessSpec) { 0 });
    g_assert_true(info_of(w).wanted);
    g_assert_null(info_of(w).why_not);
    test_qemu_run(START);
    check_refused(w);
    test_qemu_reset();
    g_assert_null(info_of(w).why_not);
    test_qemu_run(START);
    check_refused(w);
}

CAPTURE_TEST(test_wanted_later, "/watch-access/wanted-later")
{
    test_qemu_run(START);
    g_assert_false(has_callback());
    kt_access_arm(w->t, &(KtAccessSpec) { 0 });
    check_refused(w);
    g_assert_true(kt_access_disarm(w->t));
    g_assert_null(info_of(w).why_not);
    g_assert_false(has_callback());
}
