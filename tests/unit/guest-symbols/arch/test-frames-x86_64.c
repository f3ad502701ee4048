/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stacks of x86-64 kernels with frame pointers are walked to their real end:
 * through interrupts, other stacks and system calls. Without ORC and frame
 * pointers a stack has one frame, and the walk says why.
 */
#include "tests/lib/guest-stacks.h"
#include "tests/lib/test-main.h"

#define TEXT    0xffffffff81000000ull
#define AT(f)   (TEXT + (f) * 0x100 + 0x50)
#define REGS    0xa8            /* sizeof(struct pt_regs) */

static Guest *guest_by(GsUnwindBy by)
{
    static const OrcRow row = { TEXT, GS_ORC_CALL, R_SP, 8 };
    Guest *g = guest_new_of(TEXT, &row, 1);

    gs_unwinder_free(g->u);
    g->k.unwind_by = by;
    g->k.text[0] = (GsRange) { TEXT, TEXT + 0x10000 };
    g->u = gs_unwinder_new(&g->k);
    return g;
}

static void put_record(Guest *g, uint64_t va, uint64_t bp, uint64_t ra)
{
    guest_put(g, va, bp);
    guest_put(g, va + 8, ra);
}

/* The walk is kept under @value, and then recognised. */
static void assert_kept(Guest *g, uint64_t ip, uint64_t sp, uint64_t bp)
{
    const GsRegs regs = { ip, sp, bp, false };
    uint64_t value = 0;

    gs_unwind_remember(g->u, 3, 77);
    g_assert_true(gs_unwind_again(g->u, &regs, guest_page, g, 3, &value));
    g_assert_cmpuint(value, ==, 77);
}

static void assert_other(Guest *g, uint64_t ip, uint64_t sp, uint64_t bp)
{
    const GsRegs regs = { ip, sp, bp, false };
    uint64_t value;

    g_assert_false(gs_unwind_again(g->u, &regs, guest_page, g, 3, &value));
}

/* A case with a guest @g that has frame records. */
#define FRAMES_TEST(fn, path) \
    TEST_IN(g_autoptr(Guest), Guest *g, guest_by(GS_UNWIND_BY_FRAMES), fn, path)

/* do_syscall_64() saves an rbp that the entry code has cleared. */
FRAMES_TEST(system_call, "/arch-x86_64/system-call")
{
    put_record(g, TASK + 0x40, TASK + 0x80, AT(2));
    put_record(g, TASK + 0x80, 0, AT(3));
    ASSERT_STOP(unwind(g, AT(1), TASK + 0x10, TASK + 0x40), GS_STOP_END);
    ASSERT_FRAMES(g, AT(1), AT(2), AT(3));
    assert_kept(g, AT(1), TASK + 0x10, TASK + 0x40);
    guest_put(g, TASK + 0x80, TASK + 0xc0);
    assert_other(g, AT(1), TASK + 0x10, TASK + 0x40);
    guest_put(g, TASK + 0x80, (TASK + 0x90) | 1);
    assert_other(g, AT(1), TASK + 0x10, TASK + 0x40);
}

/* The registers of a kernel thread are zeros. */
FRAMES_TEST(kernel_thread, "/arch-x86_64/kernel-thread")
{
    put_record(g, TASK + 0x40, (TASK + 0x50) | 1, AT(2));
    put_regs(g, TASK + 0x50, 0, 0, 0, 0, 0);
    ASSERT_STOP(unwind(g, AT(1), TASK + 0x10, TASK + 0x40), GS_STOP_END);
    ASSERT_FRAMES(g, AT(1), AT(2));
    assert_kept(g, AT(1), TASK + 0x10, TASK + 0x40);
    put_regs(g, TASK + 0x50, AT(5), KERNEL_CS, 0, 0, 0);
    assert_other(g, AT(1), TASK + 0x10, TASK + 0x40);
}

FRAMES_TEST(exception_from_user_mode, "/arch-x86_64/exception-from-user-mode")
{
    put_record(g, TASK + 0x40, (TASK + 0x50) | 1, AT(2));
    put_regs(g, TASK + 0x50, 0x401000, USER_CS, 0x7ffe0000, 0x123, 0);
    ASSERT_STOP(unwind(g, AT(1), TASK + 0x10, TASK + 0x40), GS_STOP_USER);
    ASSERT_FRAMES(g, AT(1), AT(2));
    assert_kept(g, AT(1), TASK + 0x10, TASK + 0x40);
    put_regs(g, TASK + 0x50, AT(5), KERNEL_CS, 0, 0, 0);
    assert_other(g, AT(1), TASK + 0x10, TASK + 0x40);
}

/* The handler's record is on the IRQ stack, the registers and the record that
 * they lead to are on the task's. */
static void put_interrupt(Guest *g, uint64_t task)
{
    put_record(g, IRQ + 0x100, task, AT(2));
    put_record(g, task, (task + 0x10) | 1, AT(3));
    put_regs(g, task + 0x10, AT(4) + 3, KERNEL_CS, task + 0x10 + REGS,
             task + 0x10 + REGS + 0x28, 0);
    put_record(g, task + 0x10 + REGS + 0x28, 0, AT(5));
}

FRAMES_TEST(interrupt_on_its_own_stack,
            "/arch-x86_64/interrupt-on-its-own-stack")
{
    put_interrupt(g, TASK + 0x1000);
    ASSERT_STOP(unwind(g, AT(1), IRQ + 0x80, IRQ + 0x100), GS_STOP_END);
    ASSERT_FRAMES(g, AT(1), AT(2), AT(3), AT(4) + 3, AT(5));
    assert_kept(g, AT(1), IRQ + 0x80, IRQ + 0x100);
    put_interrupt(g, TASK + 0x2340);    /* the same, elsewhere */
    ASSERT_STOP(unwind(g, AT(1), IRQ + 0x80, IRQ + 0x100), GS_STOP_END);
    ASSERT_FRAMES(g, AT(1), AT(2), AT(3), AT(4) + 3, AT(5));
    assert_kept(g, AT(1), IRQ + 0x80, IRQ + 0x100);
    guest_put(g, TASK + 0x2350 + 128, AT(6));
    assert_other(g, AT(1), IRQ + 0x80, IRQ + 0x100);
}

FRAMES_TEST(damaged_stacks, "/arch-x86_64/damaged-stacks")
{
    put_record(g, TASK + 0x40, TASK + 0x80, 0x1234);
    ASSERT_STOP(unwind(g, AT(1), TASK, TASK + 0x40), GS_STOP_UNKNOWN_PC);
    ASSERT_FRAMES(g, AT(1));
    put_record(g, TASK + 0x40, 0x5000, AT(2));
    ASSERT_STOP(unwind(g, AT(1), TASK, TASK + 0x40), GS_STOP_BAD_FRAME);
    ASSERT_FRAMES(g, AT(1), AT(2));
    put_record(g, TASK + 0x40, TASK + 0x40, AT(2));     /* in a circle */
    g_assert_cmpint(unwind(g, AT(1), TASK, TASK + 0x40), !=, GS_STOP_END);
    put_record(g, TASK + 0x40, 0x5001, AT(2));
    ASSERT_STOP(unwind(g, AT(1), TASK, TASK + 0x40), GS_STOP_BAD_FRAME);
    put_record(g, TASK + 0x40, (TASK + 0x53), AT(2));
    ASSERT_STOP(unwind(g, AT(1), TASK, TASK + 0x40), GS_STOP_BAD_FRAME);
    ASSERT_STOP(unwind(g, AT(1), TASK, 0), GS_STOP_END);
    assert_other(g, AT(1), TASK, 0);
}

TEST(no_unwinder, "/arch-x86_64/no-unwinder")
{
    g_autoptr(Guest) g = guest_by(GS_UNWIND_BY_NOTHING);

    put_record(g, TASK + 0x40, 0, AT(2));
    ASSERT_STOP(unwind(g, AT(1), TASK, TASK + 0x40), GS_STOP_NO_UNWINDER);
    ASSERT_FRAMES(g, AT(1));
    gs_unwind_remember(g->u, 3, 77);
    assert_other(g, AT(1), TASK, TASK + 0x40);
}
