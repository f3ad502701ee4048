/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A stack that was walked before is recognised. It is not recognised once a
 * word that the walk read has changed.
 */
#include "tests/lib/guest-stacks.h"
#include "tests/lib/test-main.h"
#include "guest-symbols/unwind/walk-cache.h"

#define TEXT 0xffffffff81000000ull
#define MOD 0xffffffffc0100000ull
#define SP (TASK + 0x100)

/* Functions, 0x100 bytes each; a frame in them returns to +0x50. */
enum {
    LEAF,           /* sp + 8 */
    PUSHES,         /* sp + 32, bp saved at -16 */
    FRAMED,         /* based on bp */
    IRQ_ENTRY,      /* registers at sp */
    KTHREAD,        /* the end */
    SWITCHED,       /* sp is what is at sp */
    NO_UNWIND,
};

#define AT(f) (TEXT + (f) * 0x100 + 0x50)
#define START(f) (TEXT + (f) * 0x100)

static const OrcRow rows[] = {
    { START(LEAF), GS_ORC_CALL, R_SP, 8 },
    { START(PUSHES), GS_ORC_CALL, R_SP, 32, R_PREV_SP, -16 },
    { START(FRAMED), GS_ORC_CALL, R_BP, 16, R_PREV_SP, -16 },
    { START(IRQ_ENTRY), GS_ORC_REGS, R_SP, 0 },
    { START(KTHREAD), GS_ORC_END },
    { START(SWITCHED), GS_ORC_CALL, R_AT_SP, 0 },
    { START(NO_UNWIND), GS_ORC_UNDEFINED },
};

static Guest *guest_new(void)
{
    return guest_new_of(TEXT, rows, G_N_ELEMENTS(rows));
}

/* What is told of the stack at SP with that frame pointer; 0 for nothing. */
static uint64_t again_of(Guest *g, uint64_t bp, uint32_t kind)
{
    const GsRegs regs = { AT(LEAF), SP, bp, false };
    uint64_t value = 0;

    g->n_pages = 0;
    return gs_unwind_again(g->u, &regs, guest_page, g, kind, &value) ? value
                                                                     : 0;
}

static uint64_t again(Guest *g)
{
    return again_of(g, 0, 1);
}

static void remember(Guest *g, uint64_t bp, uint64_t value)
{
    unwind(g, AT(LEAF), SP, bp);
    gs_unwind_remember(g->u, 1, value);
}

/* A case with a guest @g whose kernel has these rows. */
#define GUEST_TEST(fn, path) \
    TEST_IN(g_autoptr(Guest), Guest *g, guest_new(), fn, path)

/* ---- recognised --------------------------------------------------------- */

GUEST_TEST(test_what_was_remembered, "/paths/what-was-remembered")
{
    PUT(g, SP, AT(PUSHES), 0, 0, 0xb9, AT(LEAF), AT(KTHREAD));
    g_assert_cmpuint(again(g), ==, 0);
    remember(g, 0, 7);
    g_assert_cmpuint(again(g), ==, 7);
    g_assert_cmpuint(g->n_pages, ==, 1);
    PUT(g, SP + 8, 1, 2, 3);            /* what frames keep besides */
    g_assert_cmpuint(again(g), ==, 7);
}

GUEST_TEST(test_of_its_kind, "/paths/of-its-kind")
{
    PUT(g, SP, AT(LEAF), AT(KTHREAD));
    remember(g, 0, 7);
    g_assert_cmpuint(again_of(g, 0, 2), ==, 0);
    unwind(g, AT(LEAF), SP, 0);
    gs_unwind_remember(g->u, 2, 8);
    g_assert_cmpuint(again_of(g, 0, 2), ==, 8);
    g_assert_cmpuint(again(g), ==, 7);
}

/* Several with the same first two frames. */
GUEST_TEST(test_alternatives, "/paths/alternatives")
{
    for (uint64_t i = 0; i < 8; i++) {
        PUT(g, SP, AT(LEAF), AT(PUSHES) + i, 0, 0, 0, AT(KTHREAD));
        remember(g, 0, 10 + i);
    }
    for (uint64_t i = 0; i < 8; i++) {
        PUT(g, SP + 8, AT(PUSHES) + i);
        g_assert_cmpuint(again(g), ==, 10 + i);
    }
}

GUEST_TEST(test_elsewhere_in_memory, "/paths/elsewhere-in-memory")
{
    const GsRegs regs = { AT(LEAF), IRQ + 0x3f0, 0, false };
    uint64_t value;

    PUT(g, SP, AT(LEAF), AT(KTHREAD));
    remember(g, 0, 7);
    PUT(g, IRQ + 0x3f0, AT(LEAF), AT(KTHREAD));
    g_assert_true(gs_unwind_again(g->u, &regs, guest_page, g, 1, &value));
    g_assert_cmpuint(value, ==, 7);
}

GUEST_TEST(test_user, "/paths/user")
{
    uint64_t regs = SP + 8;

    PUT(g, SP, AT(IRQ_ENTRY));
    put_regs(g, regs, 0x401000, USER_CS, 0x7ffc00000000, 0, 0);
    remember(g, 0, 7);
    put_regs(g, regs, 0x402000, USER_CS, 0x7ffd00000000, 0, 0);
    g_assert_cmpuint(again(g), ==, 7);
    put_regs(g, regs, AT(KTHREAD), KERNEL_CS, TASK + 0x400, 0, 0);
    g_assert_cmpuint(again(g), ==, 0);
}

/* Frames that are found by bp: saved by one, and still in the register. */
GUEST_TEST(test_frame_pointers, "/paths/frame-pointers")
{
    uint64_t bp = TASK + 0x200;

    PUT(g, SP, AT(PUSHES), 0, 0, bp, AT(FRAMED));
    PUT(g, bp, bp + 0x40, AT(FRAMED));
    PUT(g, bp + 0x40, 0, AT(KTHREAD));
    remember(g, 0, 7);
    g_assert_cmpuint(again(g), ==, 7);
    /* as RANDOMIZE_KSTACK_OFFSET moves the outer frames */
    PUT(g, SP + 24, bp + 0x80);
    PUT(g, bp + 0x80, bp + 0x100, AT(FRAMED));
    PUT(g, bp + 0x100, 0, AT(KTHREAD));
    g_assert_cmpuint(again(g), ==, 7);
    PUT(g, bp + 0x108, AT(LEAF));
    g_assert_cmpuint(again(g), ==, 0);
}

GUEST_TEST(test_frame_pointer_in_register, "/paths/frame-pointer-in-register")
{
    uint64_t bp = TASK + 0x200;

    PUT(g, SP, AT(FRAMED));
    PUT(g, bp, 0, AT(KTHREAD));
    PUT(g, bp + 0x40, 0, AT(KTHREAD));
    remember(g, bp, 7);
    g_assert_cmpuint(again_of(g, bp, 1), ==, 7);
    g_assert_cmpuint(again_of(g, bp + 0x40, 1), ==, 7);
    g_assert_cmpuint(again_of(g, bp + 0x80, 1), ==, 0);
    g_assert_cmpuint(again_of(g, bp + 4, 1), ==, 0);
    g_assert_cmpuint(again_of(g, 0, 1), ==, 0);
}

/* Registers of the kernel's, on the same stack. */
GUEST_TEST(test_through_an_interrupt, "/paths/through-an-interrupt")
{
    uint64_t inner = TASK + 0x400;

    PUT(g, SP, AT(IRQ_ENTRY));
    put_regs(g, SP + 8, AT(LEAF), KERNEL_CS, inner, 0, 0);
    PUT(g, inner, AT(KTHREAD));
    remember(g, 0, 7);
    g_assert_cmpuint(g->n, ==, 4);
    g_assert_cmpuint(again(g), ==, 7);
    /* interrupted elsewhere in the same function, and deeper */
    put_regs(g, SP + 8, AT(LEAF), KERNEL_CS, inner + 0x40, 0, 0);
    PUT(g, inner + 0x40, AT(KTHREAD));
    g_assert_cmpuint(again(g), ==, 7);
    put_regs(g, SP + 8, AT(LEAF) + 1, KERNEL_CS, inner, 0, 0);
    g_assert_cmpuint(again(g), ==, 0);
    put_regs(g, SP + 8, AT(LEAF), USER_CS, inner, 0, 0);
    g_assert_cmpuint(again(g), ==, 0);
    put_regs(g, SP + 8, AT(LEAF), KERNEL_CS, SP - 8, 0, 0);
    g_assert_cmpuint(again(g), ==, 0);
}

/* What an interrupt saved of bp lies in no fixed distance from the stack that
 * it interrupted: a frame that is found by it is looked for anew. */
GUEST_TEST(test_frame_pointer_of_an_interrupt,
           "/paths/frame-pointer-of-an-interrupt")
{
    uint64_t inner = TASK + 0x400, bp = TASK + 0x600;

    PUT(g, SP, AT(IRQ_ENTRY));
    put_regs(g, SP + 8, AT(LEAF), KERNEL_CS, inner, bp, 0);
    PUT(g, SP + 8 + PT_BP + 8, bp);
    PUT(g, inner, AT(FRAMED));
    PUT(g, bp, 0, AT(KTHREAD));
    remember(g, 0, 7);
    g_assert_cmpuint(g->n, ==, 5);
    put_regs(g, SP + 8, AT(LEAF), KERNEL_CS, inner + 8, 0, 0);
    PUT(g, inner + 8, AT(FRAMED));
    g_assert_cmpuint(again(g), ==, 0);
    ASSERT_STOP(unwind(g, AT(LEAF), SP, 0), GS_STOP_BAD_FRAME);
}

/* From the stack of interrupts, where the other one's pointer was left. */
GUEST_TEST(test_from_another_stack, "/paths/from-another-stack")
{
    const uint64_t top = IRQ + 0xff8, outer = TASK + 0x800;
    const GsRegs regs = { AT(LEAF), top - 8, 0, false };
    uint64_t value = 0;

    PUT(g, top - 8, AT(SWITCHED), outer);
    PUT(g, outer - 8, AT(LEAF), AT(KTHREAD));
    ASSERT_STOP(unwind(g, regs.ip, regs.sp, 0), GS_STOP_END);
    ASSERT_FRAMES(g, AT(LEAF), AT(SWITCHED), AT(LEAF), AT(KTHREAD));
    gs_unwind_remember(g->u, 1, 7);
    g_assert_true(gs_unwind_again(g->u, &regs, guest_page, g, 1, &value));
    g_assert_cmpuint(value, ==, 7);
    PUT(g, top, outer + 0x100);
    PUT(g, outer + 0xf8, AT(LEAF), AT(KTHREAD));
    g_assert_true(gs_unwind_again(g->u, &regs, guest_page, g, 1, &value));
    PUT(g, outer + 0x100, AT(LEAF));
    g_assert_false(gs_unwind_again(g->u, &regs, guest_page, g, 1, &value));
    PUT(g, top, IRQ + 0x800);           /* no longer another one */
    PUT(g, IRQ + 0x7f8, AT(LEAF), AT(KTHREAD));
    g_assert_false(gs_unwind_again(g->u, &regs, guest_page, g, 1, &value));
}

/* ---- no longer ---------------------------------------------------------- */

TEST(test_another_address, "/paths/another-address")
{
    const uint64_t words[] = { AT(LEAF), AT(LEAF), AT(LEAF), AT(KTHREAD) };
    g_autoptr(Guest) g = guest_new();

    for (unsigned i = 0; i < G_N_ELEMENTS(words); i++) {
        PUT(g, SP, words[0], words[1], words[2], words[3]);
        remember(g, 0, 7);
        PUT(g, SP + 8 * i, words[i] + 1);
        g_assert_cmpuint(again(g), ==, 0);
        PUT(g, SP + 8 * i, words[i] & UINT32_MAX);
        g_assert_cmpuint(again(g), ==, 0);
    }
}

/* What once led up the stack leads down: a walk stops there. */
GUEST_TEST(test_down_the_stack, "/paths/down-the-stack")
{
    uint64_t bp = TASK + 0x200, down = TASK + 0x40;

    PUT(g, SP, AT(PUSHES), 0, 0, bp, AT(FRAMED));
    PUT(g, bp, 0, AT(KTHREAD));
    remember(g, 0, 7);
    PUT(g, SP + 24, down);
    PUT(g, down, 0, AT(KTHREAD));
    g_assert_cmpuint(again(g), ==, 0);
    ASSERT_STOP(unwind(g, AT(LEAF), SP, 0), GS_STOP_BAD_FRAME);
}

GUEST_TEST(test_unreadable, "/paths/unreadable")
{
    uint64_t bp = TASK + 0x200;

    PUT(g, SP, AT(PUSHES), 0, 0, bp, AT(FRAMED));
    PUT(g, bp, 0, AT(KTHREAD));
    remember(g, 0, 7);
    PUT(g, SP + 24, TASK + STACK_SIZE - 8);
    g_assert_cmpuint(again(g), ==, 0);
}

TEST(test_modules_came_or_went, "/paths/modules-came-or-went")
{
    OrcRow row = { MOD, GS_ORC_CALL, R_SP, 16 };
    g_auto(OrcArrays) a = orc_writer_finish(GS_ORC_LAYOUT_6_4, MOD + 0x800,
                                            &row, 1);
    g_autoptr(Guest) g = guest_new();

    PUT(g, SP, AT(LEAF), AT(KTHREAD));
    remember(g, 0, 7);
    g_assert_true(gs_kernel_add_module_data(&g->k, MOD, "mod", MOD, 0x1000,
                                            NULL, 0, a.ip_va, a.ip, a.orc,
                                            a.n, NULL));
    g_assert_cmpuint(again(g), ==, 0);
}

/* ---- never -------------------------------------------------------------- */

GUEST_TEST(test_cut_short, "/paths/cut-short")
{
    PUT(g, SP, AT(LEAF), AT(NO_UNWIND));
    remember(g, 0, 7);
    g_assert_cmpuint(again(g), ==, 0);
    PUT(g, SP, AT(LEAF), 0x401000);
    remember(g, 0, 7);
    g_assert_cmpuint(again(g), ==, 0);
}

GUEST_TEST(test_too_deep, "/paths/too-deep")
{
    for (unsigned i = 0; i < GS_PATH_CODE; i++) {
        PUT(g, SP + 8 * i, AT(LEAF));
    }
    PUT(g, SP + 8 * (GS_PATH_CODE - 1), AT(KTHREAD));
    remember(g, 0, 7);
    g_assert_cmpuint(again(g), ==, 7);
    PUT(g, SP + 8 * (GS_PATH_CODE - 1), AT(LEAF), AT(KTHREAD));
    remember(g, 0, 8);
    g_assert_cmpuint(again(g), ==, 0);
}

GUEST_TEST(test_inexact_start_only, "/paths/inexact-start")
{
    GsRegs regs = { AT(LEAF), SP, 0, true };
    uint64_t value;

    PUT(g, SP, AT(LEAF), AT(KTHREAD));
    remember(g, 0, 7);
    g_assert_false(gs_unwind_again(g->u, &regs, guest_page, g, 1, &value));
    regs.ip = 0;
    g_assert_false(gs_unwind_again(g->u, &regs, guest_page, g, 1, &value));
}
