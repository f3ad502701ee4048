/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ORC walks find each kind of frame that a kernel has, end for each reason,
 * and follow modules that are loaded and unloaded.
 */
#include "guest-symbols/symbols/symtab.h"
#include "tests/lib/frame-kernel.h"
#include "tests/lib/guest-stacks.h"
#include "tests/lib/test-main.h"

#define LAYOUT GS_ORC_LAYOUT_6_4
#define TEXT 0xffffffff81000000ull
#define MOD 0xffffffffc0100000ull

/* Functions, 0x100 bytes each; a frame in them returns to +0x50. */
enum {
    LEAF,           /* sp + 8 */
    PUSHES,         /* sp + 32, bp saved at -16 */
    FRAMED,         /* based on bp */
    REALIGNED,      /* through a slot below bp */
    IRQ_CALL,       /* the call on the irq stack: *sp + 16 */
    IRQ_ENTRY,      /* registers at sp + 8 */
    NMI_ENTRY,      /* iret frame only, at sp + 8 */
    SYSCALL,        /* registers at sp */
    KTHREAD,        /* the end */
    NO_UNWIND,
    R10_BASED,      /* sp is r10 */
    ODD,            /* sp + 8, but sp + 64 from +0x50 on */
    KEEPS_ODD,      /* sp + 4, nonsense */
    OLD_INDIRECT,   /* registers at *(sp + 8), as before 5.12 */
    DOWN,           /* *sp + 0: to wherever the stack says */
};

#define AT(f) (TEXT + (f) * 0x100 + 0x50)
#define START(f) (TEXT + (f) * 0x100)

static const OrcRow rows[] = {
    { START(LEAF), GS_ORC_CALL, R_SP, 8 },
    { START(PUSHES), GS_ORC_CALL, R_SP, 32, R_PREV_SP, -16 },
    { START(FRAMED), GS_ORC_CALL, R_BP, 16, R_PREV_SP, -16 },
    { START(REALIGNED), GS_ORC_CALL, R_AT_BP, -8, R_BP, 0 },
    { START(IRQ_CALL), GS_ORC_CALL, R_AT_SP, 16 },
    { START(IRQ_ENTRY), GS_ORC_REGS, R_SP, 8 },
    { START(NMI_ENTRY), GS_ORC_REGS_PARTIAL, R_SP, 8 },
    { START(SYSCALL), GS_ORC_REGS, R_SP, 0 },
    { START(KTHREAD), GS_ORC_END },
    { START(NO_UNWIND), GS_ORC_UNDEFINED },
    { START(R10_BASED), GS_ORC_CALL, R_R10, 0 },
    { START(ODD), GS_ORC_CALL, R_SP, 8 },
    { START(ODD) + 0x50, GS_ORC_CALL, R_SP, 64 },
    { START(KEEPS_ODD), GS_ORC_CALL, R_SP, 12 },
    { START(OLD_INDIRECT), GS_ORC_REGS, R_AT_SP, 8 },
    { START(DOWN), GS_ORC_CALL, R_AT_SP, 0 },
};

static Guest *guest_new(void)
{
    return guest_new_of(TEXT, rows, G_N_ELEMENTS(rows));
}

/* A case with a guest @g whose kernel has these rows. */
#define GUEST_TEST(fn, path) \
    TEST_IN(g_autoptr(Guest), Guest *g, guest_new(), fn, path)

/* ---- frames ----------------------------------------------------------- */

GUEST_TEST(test_calls, "/unwind/calls")
{
    uint64_t sp = TASK + 0x100;

    PUT(g, sp, AT(PUSHES));
    PUT(g, sp + 8, 0, 0, 0xb9, AT(LEAF));
    PUT(g, sp + 40, AT(KTHREAD));
    ASSERT_STOP(unwind(g, AT(LEAF), sp, 1), GS_STOP_END);
    ASSERT_FRAMES(g, AT(LEAF), AT(PUSHES), AT(LEAF), AT(KTHREAD));
    g_assert_cmpuint(g->n_pages, ==, 1);
}

GUEST_TEST(test_warm_equals_cold, "/unwind/warm-equals-cold")
{
    uint64_t sp = TASK + 0x100;

    PUT(g, sp, AT(LEAF), AT(PUSHES), 0, 0, 0, AT(KTHREAD));
    for (int i = 0; i < 3; i++) {
        ASSERT_STOP(unwind(g, AT(LEAF), sp, 1), GS_STOP_END);
        ASSERT_FRAMES(g, AT(LEAF), AT(LEAF), AT(PUSHES), AT(KTHREAD));
    }
}

/* bp is restored by one frame and used by the next. */
GUEST_TEST(test_frame_pointer, "/unwind/frame-pointer")
{
    uint64_t sp = TASK + 0x100;
    uint64_t bp = TASK + 0x200;

    PUT(g, sp, 0, 0, bp, AT(FRAMED));               /* PUSHES' frame */
    PUT(g, bp, TASK + 0x300, AT(REALIGNED));
    PUT(g, TASK + 0x300 - 8, TASK + 0x380, 0x77);   /* CFA; saved bp */
    PUT(g, TASK + 0x380 - 8, AT(KTHREAD));
    ASSERT_STOP(unwind(g, AT(PUSHES), sp, 0), GS_STOP_END);
    ASSERT_FRAMES(g, AT(PUSHES), AT(FRAMED), AT(REALIGNED), AT(KTHREAD));
}

/* A call that does not return belongs to the code before it. */
/* Needed only by the frames that are found by it. */
GUEST_TEST(test_unreadable_frame_pointer, "/unwind/unreadable-frame-pointer")
{
    PUT(g, TASK, AT(KTHREAD));
    ASSERT_STOP(unwind(g, AT(PUSHES), TASK - 24, 0), GS_STOP_END);
    ASSERT_FRAMES(g, AT(PUSHES), AT(KTHREAD));
    PUT(g, TASK, AT(FRAMED));
    ASSERT_STOP(unwind(g, AT(PUSHES), TASK - 24, 0), GS_STOP_BAD_FRAME);
    ASSERT_FRAMES(g, AT(PUSHES), AT(FRAMED));
}

GUEST_TEST(test_return_address_is_of_the_call,
           "/unwind/return-address-is-of-the-call")
{
    uint64_t sp = TASK + 0x100;

    PUT(g, sp, AT(KTHREAD));
    ASSERT_STOP(unwind(g, AT(ODD), sp, 0), GS_STOP_END);
    ASSERT_FRAMES(g, AT(ODD), AT(KTHREAD));
}

GUEST_TEST(test_exact_start, "/unwind/exact-start")
{
    GsRegs regs = { AT(ODD), TASK + 0x100, 0, true };

    PUT(g, TASK + 0x100 + 56, AT(KTHREAD));
    ASSERT_STOP(gs_unwind(g->u, &regs, guest_page, g, g->frames, 64, &g->n),
                GS_STOP_END);
    ASSERT_FRAMES(g, AT(ODD), AT(KTHREAD));
}

/* irq stack -> entry code -> interrupted task code, whose ip is exact. */
GUEST_TEST(test_interrupt, "/unwind/interrupt")
{
    uint64_t irq_sp = IRQ + 0x3fe8;
    uint64_t regs = TASK + 0x500;
    const GsRegs from = { AT(LEAF), irq_sp, 0, false, 0 };

    PUT(g, irq_sp, AT(IRQ_CALL));
    PUT(g, irq_sp + 8, regs - 24);      /* the task's sp, then + 16 */
    PUT(g, regs - 16, AT(IRQ_ENTRY), 0);
    put_regs(g, regs, AT(ODD), KERNEL_CS, TASK + 0x600, TASK + 0x700, 0);
    PUT(g, TASK + 0x600 + 56, AT(FRAMED));
    PUT(g, TASK + 0x700, 0, AT(KTHREAD));
    ASSERT_STOP(unwind(g, AT(LEAF), irq_sp, 0), GS_STOP_END);
    ASSERT_FRAMES(g, AT(LEAF), AT(IRQ_CALL), AT(IRQ_ENTRY), AT(ODD),
                  AT(FRAMED), AT(KTHREAD));
    for (unsigned i = 1; i <= 6; i++) {
        g_assert_cmphex(gs_unwind_saved(g->u, &from, guest_page, g, g->frames,
                                        i), ==, i == 3 ? regs : 0);
    }
}

/* Before 5.12: the way back is a pointer to registers. */
GUEST_TEST(test_old_irq_stack, "/unwind/old-irq-stack")
{
    uint64_t regs = TASK + 0x500;

    PUT(g, IRQ + 0x3fe0, AT(OLD_INDIRECT), 0, regs);
    put_regs(g, regs, AT(LEAF), KERNEL_CS, TASK + 0x600, 0, 0);
    PUT(g, TASK + 0x600, AT(KTHREAD));
    ASSERT_STOP(unwind(g, AT(LEAF), IRQ + 0x3fe0, 0), GS_STOP_END);
    ASSERT_FRAMES(g, AT(LEAF), AT(OLD_INDIRECT), AT(LEAF), AT(KTHREAD));
}

/*
 * An NMI, whose entry has an iret frame only, in entry code that has all
 * registers: those are good for the code that was interrupted twice.
 */
GUEST_TEST(test_nmi_in_entry, "/unwind/nmi-in-entry")
{
    uint64_t regs = TASK + 0x500;

    PUT(g, NMI + 0x800, AT(IRQ_ENTRY));
    put_regs(g, NMI + 0x810, AT(NMI_ENTRY), KERNEL_CS, regs - 0x40,
             TASK + 0x700, TASK + 0xa00);
    put_iret(g, regs - 0x38, AT(R10_BASED), KERNEL_CS, TASK + 0x600);
    PUT(g, TASK + 0xa00 - 8, AT(KTHREAD));
    ASSERT_STOP(unwind(g, AT(LEAF), NMI + 0x800, 0), GS_STOP_END);
    ASSERT_FRAMES(g, AT(LEAF), AT(IRQ_ENTRY), AT(NMI_ENTRY), AT(R10_BASED),
                  AT(KTHREAD));
}

GUEST_TEST(test_register_base_needs_registers,
           "/unwind/register-base-needs-registers")
{
    ASSERT_STOP(unwind(g, AT(R10_BASED), TASK + 0x100, 0), GS_STOP_BAD_FRAME);
    ASSERT_FRAMES(g, AT(R10_BASED));
}

GUEST_TEST(test_partial_registers_alone, "/unwind/partial-registers-alone")
{
    put_iret(g, TASK + 0x108, AT(R10_BASED), KERNEL_CS, TASK + 0x600);
    ASSERT_STOP(unwind(g, AT(NMI_ENTRY), TASK + 0x100, 0), GS_STOP_BAD_FRAME);
    ASSERT_FRAMES(g, AT(NMI_ENTRY), AT(R10_BASED));
}

GUEST_TEST(test_null_call, "/unwind/null-call")
{
    GsRegs regs = { 0, TASK + 0x100, 0, true };

    PUT(g, TASK + 0x100, AT(KTHREAD));
    ASSERT_STOP(gs_unwind(g->u, &regs, guest_page, g, g->frames, 64, &g->n),
                GS_STOP_END);
    ASSERT_FRAMES(g, 0, AT(KTHREAD));
}

/* ---- code without a table --------------------------------------------- */

GUEST_TEST(test_bpf, "/unwind/bpf")
{
    uint64_t bp = TASK + 0x200;

    PUT(g, TASK + 0x100, BPF + 0x84);
    PUT(g, bp, 0x55, AT(LEAF), AT(KTHREAD));
    ASSERT_STOP(unwind(g, AT(LEAF), TASK + 0x100, bp), GS_STOP_END);
    ASSERT_FRAMES(g, AT(LEAF), BPF + 0x84, AT(LEAF), AT(KTHREAD));
}

GUEST_TEST(test_bpf_without_frame_pointer, "/unwind/bpf-without-frame-pointer")
{
    PUT(g, TASK + 0x100, BPF + 0x84);
    ASSERT_STOP(unwind(g, AT(LEAF), TASK + 0x100, TASK + 0x80),
                GS_STOP_UNKNOWN_PC);
    ASSERT_FRAMES(g, AT(LEAF), BPF + 0x84);
    ASSERT_STOP(unwind(g, AT(LEAF), TASK + 0x100, 7), GS_STOP_UNKNOWN_PC);
    ASSERT_FRAMES(g, AT(LEAF), BPF + 0x84);
}

/* A page that may be generated code, but holds none that is known. */
GUEST_TEST(test_foreign_page, "/unwind/foreign-page")
{
    g->has_code = true;
    memset(g->code, 0, sizeof(g->code));
    PUT(g, TASK + 0x100, BPF + 0x84);
    ASSERT_STOP(unwind(g, AT(LEAF), TASK + 0x100, 0), GS_STOP_UNKNOWN_PC);
    ASSERT_FRAMES(g, AT(LEAF), BPF + 0x84);
}

/* ---- ends ------------------------------------------------------------- */

GUEST_TEST(test_user, "/unwind/user")
{
    PUT(g, TASK + 0x100, AT(SYSCALL));
    put_regs(g, TASK + 0x108, 0x401000, USER_CS, 0x7ffc00000000, 0, 0);
    ASSERT_STOP(unwind(g, AT(LEAF), TASK + 0x100, 0), GS_STOP_USER);
    ASSERT_FRAMES(g, AT(LEAF), AT(SYSCALL));
}

GUEST_TEST(test_unknown, "/unwind/unknown")
{
    PUT(g, TASK + 0x100, AT(NO_UNWIND));
    ASSERT_STOP(unwind(g, AT(LEAF), TASK + 0x100, 0), GS_STOP_UNKNOWN_PC);
    ASSERT_FRAMES(g, AT(LEAF), AT(NO_UNWIND));
    PUT(g, TASK + 0x100, 0x401000);
    ASSERT_STOP(unwind(g, AT(LEAF), TASK + 0x100, 0), GS_STOP_UNKNOWN_PC);
    ASSERT_FRAMES(g, AT(LEAF));
    PUT(g, TASK + 0x100, 0);
    ASSERT_STOP(unwind(g, AT(LEAF), TASK + 0x100, 0), GS_STOP_UNKNOWN_PC);
    ASSERT_FRAMES(g, AT(LEAF));
    PUT(g, TASK + 0x100, 1);
    ASSERT_STOP(unwind(g, AT(LEAF), TASK + 0x100, 0), GS_STOP_UNKNOWN_PC);
    ASSERT_FRAMES(g, AT(LEAF));
    ASSERT_STOP(unwind(g, 0x401000, TASK, 0), GS_STOP_UNKNOWN_PC);
    ASSERT_FRAMES(g, 0x401000);
}

TEST(test_bad_stack, "/unwind/bad-stack")
{
    static const uint64_t bad_sp[] = {
        0, 1, 8, 16, 0x7ffffffff000ull, 1ull << 63, (1ull << 63) + 8,
        TASK + STACK_SIZE, TASK + 4, UINT64_MAX, UINT64_MAX - 7,
        UINT64_MAX - 15,
    };
    g_autoptr(Guest) g = guest_new();

    for (size_t i = 0; i < G_N_ELEMENTS(bad_sp); i++) {
        GsStop stop = unwind(g, AT(LEAF), bad_sp[i], 0);

        g_assert_true(stop == GS_STOP_BAD_FRAME || stop == GS_STOP_UNKNOWN_PC);
        ASSERT_FRAMES(g, AT(LEAF));
    }
}

GUEST_TEST(test_not_upwards, "/unwind/not-upwards")
{
    PUT(g, TASK + 0xf8, AT(LEAF), TASK + 0x100);
    ASSERT_STOP(unwind(g, AT(DOWN), TASK + 0x100, 0), GS_STOP_BAD_FRAME);
    ASSERT_FRAMES(g, AT(DOWN));
    ASSERT_STOP(unwind(g, AT(KEEPS_ODD), TASK + 0x100, 0), GS_STOP_BAD_FRAME);
    ASSERT_FRAMES(g, AT(KEEPS_ODD));
}

/* Two stacks that point at each other. */
GUEST_TEST(test_stack_ring, "/unwind/stack-ring")
{
    PUT(g, TASK + 0x100, IRQ + 0x100);
    PUT(g, IRQ + 0xf8, AT(DOWN), TASK + 0x100);
    PUT(g, TASK + 0xf8, AT(DOWN));
    ASSERT_STOP(unwind(g, AT(DOWN), TASK + 0x100, 0), GS_STOP_BAD_FRAME);
    g_assert_cmpuint(g->n, <, 16);
}

GUEST_TEST(test_depth, "/unwind/depth")
{
    GsRegs regs = { AT(LEAF), TASK + 0x100, 0, false };

    PUT(g, TASK + 0x100, AT(LEAF), AT(LEAF), AT(KTHREAD));
    ASSERT_STOP(gs_unwind(g->u, &regs, guest_page, g, g->frames, 3, &g->n),
                GS_STOP_DEPTH);
    ASSERT_FRAMES(g, AT(LEAF), AT(LEAF), AT(LEAF));
    ASSERT_STOP(gs_unwind(g->u, &regs, guest_page, g, g->frames, 4, &g->n),
                GS_STOP_END);
    g_assert_cmpuint(g->n, ==, 4);
    ASSERT_STOP(gs_unwind(g->u, &regs, guest_page, g, g->frames, 0, &g->n),
                GS_STOP_DEPTH);
    g_assert_cmpuint(g->n, ==, 0);
}

GUEST_TEST(test_two_pages, "/unwind/two-pages")
{
    uint64_t sp = TASK + 0x1000 - 16;

    PUT(g, sp, AT(LEAF), AT(PUSHES), 0, 0, 0xb9, AT(KTHREAD));
    ASSERT_STOP(unwind(g, AT(LEAF), sp, 0), GS_STOP_END);
    g_assert_cmpuint(g->n, ==, 4);
    g_assert_cmpuint(g->n_pages, ==, 2);
}

TEST(test_slide, "/unwind/slide")
{
    const uint64_t slide = 0x12200000;
    g_autoptr(Guest) g = guest_new();

    PUT(g, TASK + 0x100, AT(KTHREAD));
    ASSERT_STOP(unwind(g, AT(LEAF), TASK + 0x100, 0), GS_STOP_END);
    gs_orc_set_set_slide(g->k.orc, slide);
    g->k.slide = slide;
    ASSERT_STOP(unwind(g, AT(LEAF), TASK + 0x100, 0), GS_STOP_UNKNOWN_PC);
    PUT(g, TASK + 0x100, AT(KTHREAD) + slide);
    ASSERT_STOP(unwind(g, AT(LEAF) + slide, TASK + 0x100, 0), GS_STOP_END);
    ASSERT_FRAMES(g, AT(LEAF) + slide, AT(KTHREAD) + slide);
}

/* Old tables say END of them, too. */
TEST(test_retpolines_are_no_end, "/unwind/retpolines-are-no-end")
{
    static const FrameSymbol symbols[] = {
        { AT(KTHREAD), "__x86_indirect_thunk_rax" },
        { AT(KTHREAD) + 32, "__x86_indirect_thunk_r15" },
        { AT(KTHREAD) + 64, "behind" },
    };
    g_autoptr(Guest) g = guest_new();

    gs_unwinder_free(g->u);
    g->k.symtab = frame_symtab(symbols, G_N_ELEMENTS(symbols));
    g->u = gs_unwinder_new(&g->k);
    for (unsigned i = 0; i < 2; i++) {
        PUT(g, TASK + 0x100, AT(KTHREAD) + 64);
        ASSERT_STOP(unwind(g, AT(LEAF), TASK + 0x100, 0),
                    GS_STOP_UNKNOWN_PC);
        PUT(g, TASK + 0x100, AT(KTHREAD) + 65);
        ASSERT_STOP(unwind(g, AT(LEAF), TASK + 0x100, 0), GS_STOP_END);
    }
    PUT(g, TASK + 0x100, AT(KTHREAD));
    ASSERT_STOP(unwind(g, AT(LEAF), TASK + 0x100, 0), GS_STOP_END);
    gs_symtab_free(g_steal_pointer(&g->k.symtab));
}

TEST(test_stop_names, "/unwind/stop-names")
{
    for (int i = 0; i < GS_STOP__COUNT; i++) {
        g_assert_cmpstr(gs_stop_name(i), !=, "?");
    }
    g_assert_cmpstr(gs_stop_name(GS_STOP__COUNT), ==, "?");
}

/* ---- modules ---------------------------------------------------------- */

static void add_module(Guest *g, int16_t off)
{
    OrcRow row = { MOD, GS_ORC_CALL, R_SP, off };
    g_auto(OrcArrays) a = orc_writer_finish(LAYOUT, MOD + 0x800, &row, 1);
    bool ok = gs_kernel_add_module_data(&g->k, MOD, "mod", MOD, 0x1000, NULL,
                                        0, a.ip_va, a.ip, a.orc, a.n, NULL);

    g_assert_true(ok);
}

GUEST_TEST(test_module_comes_and_goes, "/unwind/module-comes-and-goes")
{
    PUT(g, TASK + 0x100, MOD + 0x40, 0, AT(KTHREAD));
    ASSERT_STOP(unwind(g, AT(LEAF), TASK + 0x100, 0), GS_STOP_UNKNOWN_PC);
    ASSERT_FRAMES(g, AT(LEAF), MOD + 0x40);
    add_module(g, 16);
    ASSERT_STOP(unwind(g, AT(LEAF), TASK + 0x100, 0), GS_STOP_END);
    ASSERT_FRAMES(g, AT(LEAF), MOD + 0x40, AT(KTHREAD));
    gs_kernel_drop_module(&g->k, MOD);
    ASSERT_STOP(unwind(g, AT(LEAF), TASK + 0x100, 0), GS_STOP_UNKNOWN_PC);
    add_module(g, 8);
    PUT(g, TASK + 0x100, MOD + 0x40, AT(LEAF), AT(KTHREAD));
    ASSERT_STOP(unwind(g, AT(LEAF), TASK + 0x100, 0), GS_STOP_END);
    ASSERT_FRAMES(g, AT(LEAF), MOD + 0x40, AT(LEAF), AT(KTHREAD));
}

typedef struct Racer {
    Guest *g;
    gint stop;
    gint bad;
} Racer;

/* The module's frame is 8 or 16 bytes; both ways the end is two below. */
static gpointer racer_main(gpointer opaque)
{
    Racer *racer = opaque;
    GsUnwinder *u = gs_unwinder_new(&racer->g->k);
    GsRegs regs = { AT(LEAF), TASK + 0x100, 0, false };
    g_autofree Guest *view = g_new0(Guest, 1);

    memcpy(view->task, racer->g->task, sizeof(view->task));
    while (!g_atomic_int_get(&racer->stop)) {
        uint64_t frames[8];
        unsigned n;
        GsStop stop = gs_unwind(u, &regs, guest_page, view, frames, 8, &n);
        bool gone = stop == GS_STOP_UNKNOWN_PC && n == 2;
        bool there = stop == GS_STOP_END && (n == 3 || n == 4);

        if (!gone && !there) {
            g_atomic_int_set(&racer->bad, 1);
        }
    }
    gs_unwinder_free(u);
    return NULL;
}

GUEST_TEST(test_module_race, "/unwind/module-race")
{
    Racer racer = { g };
    GThread *threads[3];

    PUT(g, TASK + 0x100, MOD + 0x40, AT(LEAF), AT(KTHREAD));
    for (size_t i = 0; i < G_N_ELEMENTS(threads); i++) {
        threads[i] = g_thread_new("racer", racer_main, &racer);
    }
    for (int i = 0; i < 1000; i++) {
        add_module(g, i % 2 ? 8 : 16);
        if (i % 3) {
            gs_kernel_drop_module(&g->k, MOD);
        }
    }
    g_atomic_int_set(&racer.stop, 1);
    for (size_t i = 0; i < G_N_ELEMENTS(threads); i++) {
        g_thread_join(threads[i]);
    }
    g_assert_false(racer.bad);
    g_assert_cmpuint(gs_orc_set_n_retired(g->k.orc), ==, 0);
}

/* ---- real kernels ----------------------------------------------------- */

/* A trampoline: a copy of ftrace_caller, in the middle of its frame. */
static void check_trampoline(const char *path)
{
    g_autoptr(GError) err = NULL;
    g_autoptr(GsKernel) k = gs_kernel_open(path, &err);
    g_autoptr(Guest) g = guest_new();
    g_autoptr(GsUnwinder) u = NULL;
    const GsOrcRule *rule;
    GsSymbol sym, end;
    GsRegs regs = { BPF + 0x80, TASK + 0x100, 0, false };

    g_assert_no_error(err);
    if (!gs_kernel_lookup(k, "ftrace_caller", &sym) ||
        !gs_kernel_lookup(k, "ret_from_fork", &end)) {
        return;
    }
    g->has_code = true;
    g_assert_true(gs_kernel_read_image(k, sym.va, g->code, 256));
    rule = gs_orc_table_find(gs_orc_set_table(k->orc), sym.va + 0x7f);
    g_assert_cmpint(rule->type, ==, GS_ORC_CALL);
    PUT(g, TASK + 0x100 + rule->sp_off - 8, sym.va + 1);
    u = gs_unwinder_new(k);
    gs_unwind(u, &regs, guest_page, g, g->frames, 64, &g->n);
    g_assert_cmpuint(g->n, >=, 2);
    g_assert_cmphex(g->frames[1], ==, sym.va + 1);
}

TEST(test_real, "/unwind/real-kernels")
{
    const char *list = g_getenv("KA_TEST_KERNELS");
    g_auto(GStrv) paths = g_strsplit(list ? list : "", ":", -1);

    if (!paths[0]) {
        g_test_skip("KA_TEST_KERNELS is not set");
        return;
    }
    for (size_t i = 0; paths[i]; i++) {
        check_trampoline(paths[i]);
    }
}
