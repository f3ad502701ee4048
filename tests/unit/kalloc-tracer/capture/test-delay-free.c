/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * quarantine= with a kernel that has no types: no free is delayed, the reason
 * is said, arguments of calls stay as they are. (The kernels of tests/guest
 * have types.) Without quarantine= nothing is said. The arguments of a call are
 * changed all or none.
 */
#include "tests/lib/fake-capture.h"
#include "tests/lib/test-main.h"
#include "kalloc-tracer/capture/capture-internal.h"

static KtQuarantineInfo info_of(const FakeCapture *w)
{
    KtQuarantineInfo info;

    kt_quarantine_info(w->t, &info);
    return info;
}

static void check_kfree(FakeCapture *w)
{
    run_kmalloc(w, BLOCK);
    run_kfree(w, BLOCK);
    g_assert_cmphex(*test_qemu_reg(GS_REG_ARG0), ==, BLOCK);
    g_assert_cmpuint(stats_of(w).live_blocks, ==, 0);
    g_assert_cmpuint(counter_of(w, KT_CNT_QUARANTINE_DELAYED), ==, 0);
    g_assert_cmpuint(info_of(w).blocks, ==, 0);
}

CAPTURE_TEST(test_no_types, "/delay-free/no-types")
{
    kt_quarantine_set(w->t, 1 << 20);
    test_qemu_run(START);
    g_assert_false(info_of(w).running);
    g_assert_nonnull(strstr(info_of(w).why_not, "no types"));
    check_kfree(w);
}

CAPTURE_TEST(test_off, "/delay-free/off")
{
    test_qemu_run(START);
    g_assert_false(info_of(w).running);
    g_assert_null(info_of(w).why_not);
    check_kfree(w);
    g_assert_cmpuint(counter_of(w, KT_CNT_QUARANTINE_SKIPPED), ==, 0);
}

/* Write two registers; bits of @refused: writes that QEMU refuses. */
static KtWritten write_two(const FakeCapture *w, unsigned refused)
{
    const KtRegValue to[KT_VCPU_WRITES] = {
        { GS_REG_ARG1, 0x11 }, { GS_REG_ARG0, 0x10 },
    };

    *test_qemu_reg(GS_REG_ARG1) = 1;
    *test_qemu_reg(GS_REG_ARG0) = 0;
    test_qemu_write(refused);
    return kt_vcpu_write_regs(&w->capture->vcpu[0], to, KT_VCPU_WRITES);
}

TEST(test_all_or_none, "/delay-free/all-or-none")
{
    static const struct {
        unsigned refused;
        KtWritten done;
        uint64_t arg1, arg0;
    } rows[] = {
        { 0, KT_WRITTEN_ALL, 0x11, 0x10 },
        { 1, KT_WRITTEN_NONE, 1, 0 },
        { 2, KT_WRITTEN_NONE, 1, 0 },
        { 2 | 4, KT_WRITTEN_SOME, 0x11, 0 },
    };
    g_autoptr(FakeCapture) w = fake_capture_new(NULL, false);

    test_qemu_run(START);
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_assert_cmpint(write_two(w, rows[i].refused), ==, rows[i].done);
        g_assert_cmphex(*test_qemu_reg(GS_REG_ARG1), ==, rows[i].arg1);
        g_assert_cmphex(*test_qemu_reg(GS_REG_ARG0), ==, rows[i].arg0);
    }
    test_qemu_write(0);
}
