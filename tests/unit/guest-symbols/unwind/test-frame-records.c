/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Walks by frame records find the frames of arm64 and riscv64 stacks, also
 * with signed return addresses. They end at records that no kernel writes.
 */
#include "guest-symbols/arch/arch.h"
#include "tests/lib/frame-kernel.h"
#include "tests/lib/test-main.h"

#include <string.h>

#define STACK   0xffff800080c00000ull
#define IRQ     0xffff800080004000ull
#define BYTES   0x4000
#define TEXT    0xffff800080010000ull
#define CODE(n) (TEXT + 0x100 * (n))
#define JIT     0xffff800090000040ull

typedef struct Guest {
    GsKernel k;
    GsUnwinder *u;
    uint64_t task[BYTES / 8], irq[BYTES / 8];
    uint64_t frames[16];
    unsigned n;
} Guest;

static const void *page_of(void *opaque, uint64_t va)
{
    Guest *g = opaque;

    if (va - STACK < BYTES) {
        return &g->task[((va - STACK) & ~0xfffull) / 8];
    }
    return va - IRQ < BYTES ? &g->irq[((va - IRQ) & ~0xfffull) / 8] : NULL;
}

static void put(Guest *g, uint64_t va, uint64_t word)
{
    memcpy((char *)page_of(g, va) + (va & 0xfff), &word, sizeof(word));
}

static void put_record(Guest *g, uint64_t va, uint64_t fp, uint64_t ra)
{
    put(g, va, fp);
    put(g, va + 8, ra);
}

static const FrameSymbol symbols[] = {
    { TEXT - 0x1000, "_start" }, { TEXT, "_stext" },
    { CODE(0x40), "handle_exception" },
    { CODE(0x41), "ret_from_exception" },
    { CODE(0x42), "ret_from_fork" }, { CODE(0x43), "next" },
};

static Guest *guest_new(const GsArch *arch, bool meta)
{
    Guest *g = g_new0(Guest, 1);
    const GsRange image = { TEXT, TEXT + 0x20000 };
    const GsRange text = { TEXT, TEXT + 0x10000 };

    frame_kernel_init(&g->k, arch, image, text, symbols,
                      G_N_ELEMENTS(symbols), meta);
    g->u = gs_unwinder_new(&g->k);
    return g;
}

static void guest_free(Guest *g)
{
    gs_unwinder_free(g->u);
    frame_kernel_clear(&g->k);
    g_free(g);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Guest, guest_free)

static const char *walk(Guest *g, uint64_t ip, uint64_t sp, uint64_t fp)
{
    const GsRegs regs = { .ip = ip, .sp = sp, .bp = fp };

    return gs_stop_name(gs_unwind(g->u, &regs, page_of, g, g->frames,
                                  G_N_ELEMENTS(g->frames), &g->n));
}

#define ASSERT_FRAMES(g, ...) do { \
        const uint64_t want_[] = { __VA_ARGS__ }; \
        g_assert_cmpuint((g)->n, ==, G_N_ELEMENTS(want_)); \
        for (size_t i_ = 0; i_ < G_N_ELEMENTS(want_); i_++) { \
            g_assert_cmphex((g)->frames[i_], ==, want_[i_]); \
        } \
    } while (0)

/* ---- arm64 -------------------------------------------------------------- */

/* x0-x30, sp, pc, pstate, ..., the record */
static void put_arm64_regs(Guest *g, uint64_t regs, uint64_t fp, uint64_t pc,
                           uint64_t pstate)
{
    put(g, regs + 29 * 8, fp);
    put(g, regs + 32 * 8, pc);
    put(g, regs + 33 * 8, pstate);
}

/* Cases with a guest @g of one architecture. */
#define ARM64_TEST(fn, path) \
    TEST_IN(g_autoptr(Guest), Guest *g, \
            guest_new(&gs_arch_arm64, false), fn, path)
#define RISCV64_TEST(fn, path) \
    TEST_IN(g_autoptr(Guest), Guest *g, \
            guest_new(&gs_arch_riscv64, false), fn, path)

ARM64_TEST(arm64_kernel_thread, "/frames/arm64-kernel-thread")
{
    put_record(g, STACK + 0x100, STACK + 0x140, CODE(2));
    put_record(g, STACK + 0x140, STACK + 0x200, CODE(3));
    put_arm64_regs(g, STACK + 0x200 - FRAME_REGS_AT, 0, 0, 5);
    g_assert_cmpstr(walk(g, CODE(1), STACK + 0x100, STACK + 0x100), ==,
                    "end");
    ASSERT_FRAMES(g, CODE(1), CODE(2), CODE(3));
}

ARM64_TEST(arm64_system_call, "/frames/arm64-system-call")
{
    uint64_t regs = STACK + 0x400;

    put_record(g, STACK + 0x100, regs + FRAME_REGS_AT, CODE(2));
    put_arm64_regs(g, regs, 0x7ffff0, 0x400000, 0);
    g_assert_cmpstr(walk(g, CODE(1), STACK + 0xf0, STACK + 0x100), ==,
                    "user");
    ASSERT_FRAMES(g, CODE(1), CODE(2));
}

ARM64_TEST(arm64_interrupt_on_its_stack, "/frames/arm64-interrupt-on-its-stack")
{
    uint64_t regs = STACK + 0x400;

    put_record(g, IRQ + 0x100, STACK + 0x200, CODE(2));
    put_record(g, STACK + 0x200, regs + FRAME_REGS_AT, CODE(3));
    put_record(g, regs + FRAME_REGS_AT, STACK + 0x800, CODE(4) + 2);
    put_record(g, STACK + 0x800, STACK + 0x900, CODE(5));
    g_assert_cmpstr(walk(g, CODE(1), IRQ + 0x100, IRQ + 0x100), ==, "end");
    ASSERT_FRAMES(g, CODE(1), CODE(2), CODE(3), CODE(4) + 2, CODE(5));
}

/* Since 6.13 a word tells that the registers are those of an exception. */
TEST(arm64_interrupt_told_by_its_record,
     "/frames/arm64-interrupt-told-by-its-record")
{
    g_autoptr(Guest) g = guest_new(&gs_arch_arm64, true);
    uint64_t regs = STACK + 0x400, user = STACK + 0xa00;

    put_record(g, STACK + 0x100, regs + FRAME_REGS_AT, CODE(2));
    put(g, regs + FRAME_REGS_AT + 16, 2);
    put_arm64_regs(g, regs, STACK + 0x800, CODE(3) + 4, 5);
    put_record(g, STACK + 0x800, user + FRAME_REGS_AT, CODE(4));
    put(g, user + FRAME_REGS_AT + 16, 1);
    put_arm64_regs(g, user, 1, 0x400000, 0);
    g_assert_cmpstr(walk(g, CODE(1), STACK + 0x100, STACK + 0x100), ==,
                    "user");
    ASSERT_FRAMES(g, CODE(1), CODE(2), CODE(3) + 4, CODE(4));
}

ARM64_TEST(arm64_signed_addresses, "/frames/arm64-signed-addresses")
{
    put_record(g, STACK + 0x100, STACK + 0x140,
               CODE(2) ^ 0x7f37000000000000ull);
    g_assert_cmpstr(walk(g, CODE(1), STACK + 0x100, STACK + 0x100), ==,
                    "end");
    ASSERT_FRAMES(g, CODE(1), CODE(2));
}

/* 39 bits: signatures reach lower. */
ARM64_TEST(arm64_narrow_addresses, "/frames/arm64-narrow-addresses")
{
    GsUnwinder *u;

    g->k.text[0] = (GsRange) { 0xffffffc080010000, 0xffffffc080020000 };
    u = gs_unwinder_new(&g->k);
    gs_unwinder_free(g->u);
    g->u = u;
    put_record(g, STACK + 0x100, STACK + 0x140, 0x5a80aac080010200);
    g_assert_cmpstr(walk(g, 0xffffffc080010100, STACK + 0x100,
                         STACK + 0x100), ==, "end");
    ASSERT_FRAMES(g, 0xffffffc080010100, 0xffffffc080010200);
}

ARM64_TEST(arm64_code_without_a_name, "/frames/arm64-code-without-a-name")
{
    put_record(g, STACK + 0x100, STACK + 0x140, JIT);
    put_record(g, STACK + 0x140, STACK + 0x180, CODE(2));
    g_assert_cmpstr(walk(g, CODE(1), STACK + 0x100, STACK + 0x100), ==,
                    "end");
    ASSERT_FRAMES(g, CODE(1), JIT, CODE(2));
    put_record(g, STACK + 0x140, STACK + 0x180, JIT + 64);
    put_record(g, STACK + 0x180, STACK + 0x1c0, CODE(3));
    g_assert_cmpstr(walk(g, CODE(1), STACK + 0x100, STACK + 0x100), ==,
                    "unknown-pc");
    ASSERT_FRAMES(g, CODE(1));
}

ARM64_TEST(arm64_senseless_records, "/frames/arm64-senseless-records")
{
    uint64_t at = STACK + 0x100;

    /* round and round */
    put_record(g, at, at, CODE(2));
    g_assert_cmpstr(walk(g, CODE(1), at, at), ==, "bad-frame");
    /* nowhere, not aligned, the user's, half a record */
    g_assert_cmpstr(walk(g, CODE(1), at, 0xffff900000000000ull), ==,
                    "bad-frame");
    g_assert_cmpstr(walk(g, CODE(1), at, at + 4), ==, "bad-frame");
    g_assert_cmpstr(walk(g, CODE(1), at, 0x1000), ==, "bad-frame");
    g_assert_cmpstr(walk(g, CODE(1), at, STACK + BYTES - 8), ==,
                    "bad-frame");
    put_record(g, at, at + 64, 0);
    g_assert_cmpstr(walk(g, CODE(1), at, at), ==, "bad-frame");
    ASSERT_FRAMES(g, CODE(1));
}

ARM64_TEST(arm64_as_many_as_asked_for, "/frames/arm64-as-many-as-asked-for")
{
    for (unsigned i = 0; i < 20; i++) {
        put_record(g, STACK + 0x100 + 16 * i, STACK + 0x110 + 16 * i,
                   CODE(2 + i));
    }
    g_assert_cmpstr(walk(g, CODE(1), STACK + 0x100, STACK + 0x100), ==,
                    "depth");
    g_assert_cmpuint(g->n, ==, G_N_ELEMENTS(g->frames));
}

/* ---- riscv64 ------------------------------------------------------------ */

/* The frame pointer is behind the record. */
static void put_behind(Guest *g, uint64_t fp, uint64_t s0, uint64_t ra)
{
    put_record(g, fp - 16, s0, ra);
}

static void put_riscv64_regs(Guest *g, uint64_t regs, uint64_t epc,
                             uint64_t ra, uint64_t s0, uint64_t status)
{
    put(g, regs, epc);
    put(g, regs + 8, ra);
    put(g, regs + 64, s0);
    put(g, regs + 256, status);
}

RISCV64_TEST(riscv64_kernel_thread, "/frames/riscv64-kernel-thread")
{
    put_behind(g, STACK + 0x140, STACK + 0x180, CODE(2));
    /* what stood in the register when the thread began is its function */
    put_behind(g, STACK + 0x180, CODE(9), CODE(0x42) + 14);
    g_assert_cmpstr(walk(g, CODE(1), STACK + 0x100, STACK + 0x140), ==,
                    "end");
    ASSERT_FRAMES(g, CODE(1), CODE(2), CODE(0x42) + 14);
}

RISCV64_TEST(riscv64_start_of_a_cpu, "/frames/riscv64-start-of-a-cpu")
{
    put_behind(g, STACK + 0x140, 0, TEXT - 0x800);
    g_assert_cmpstr(walk(g, CODE(1), STACK + 0x100, STACK + 0x140), ==,
                    "end");
    ASSERT_FRAMES(g, CODE(1));
}

RISCV64_TEST(riscv64_system_call, "/frames/riscv64-system-call")
{
    put_behind(g, STACK + 0x140, 0x7ffff0, CODE(0x40) + 64);
    put_riscv64_regs(g, STACK + 0x140, 0x10000, 0, 0, 0x20);
    g_assert_cmpstr(walk(g, CODE(1), STACK + 0x100, STACK + 0x140), ==,
                    "user");
    ASSERT_FRAMES(g, CODE(1), CODE(0x40) + 64);
}

RISCV64_TEST(riscv64_interrupt, "/frames/riscv64-interrupt")
{
    uint64_t regs = STACK + 0x400;

    put_behind(g, IRQ + 0x140, regs, CODE(2));
    put_behind(g, regs, STACK + 0x800, CODE(0x40) + 64);
    put_riscv64_regs(g, regs, CODE(3) + 2, CODE(7), STACK + 0x800, 0x120);
    put_behind(g, STACK + 0x800, STACK + 0x900, CODE(4));
    put_behind(g, STACK + 0x900, CODE(9), CODE(0x42) + 14);
    g_assert_cmpstr(walk(g, CODE(1), IRQ + 0x100, IRQ + 0x140), ==, "end");
    ASSERT_FRAMES(g, CODE(1), CODE(2), CODE(0x40) + 64, CODE(3) + 2, CODE(4),
                  CODE(0x42) + 14);
}

/* Its return address is in the register, its caller's s0 where it would be. */
RISCV64_TEST(riscv64_interrupted_leaf, "/frames/riscv64-interrupted-leaf")
{
    uint64_t regs = STACK + 0x400;

    put_behind(g, STACK + 0x140, STACK + 0x7f0, CODE(0x40) + 64);
    put_riscv64_regs(g, STACK + 0x140, 0, 0, 0, 0);
    put_behind(g, regs, STACK + 0x800, CODE(0x40) + 64);
    put_riscv64_regs(g, regs, CODE(3) + 2, CODE(7), STACK + 0x800, 0x120);
    put(g, STACK + 0x7f8, STACK + 0x900);
    put_behind(g, STACK + 0x900, CODE(9), CODE(0x42) + 14);
    put_behind(g, STACK + 0x200, regs, CODE(2));
    g_assert_cmpstr(walk(g, CODE(1), STACK + 0x1f0, STACK + 0x200), ==,
                    "end");
    ASSERT_FRAMES(g, CODE(1), CODE(2), CODE(0x40) + 64, CODE(3) + 2, CODE(7),
                  CODE(0x42) + 14);
}

/* An interrupt of a task: walks to CODE(2), to the entry, and on from @epc. */
static const char *walk_from_interrupt(Guest *g, uint64_t epc, uint64_t ra,
                                       uint64_t s0)
{
    uint64_t regs = STACK + 0x400;

    put_behind(g, STACK + 0x140, regs, CODE(2));
    put_behind(g, regs, s0, CODE(0x40) + 64);
    put_riscv64_regs(g, regs, epc, ra, s0, 0x120);
    return walk(g, CODE(1), STACK + 0x100, STACK + 0x140);
}

/* A task begins with its function in s0, or with 0. */
RISCV64_TEST(riscv64_interrupted_before_the_first_record,
             "/frames/riscv64-interrupted-before-the-first-record")
{
    const uint64_t fork = CODE(0x42), registers[] = { CODE(9), CODE(9) + 2, 0 };

    for (size_t i = 0; i < G_N_ELEMENTS(registers); i++) {
        g_assert_cmpstr(walk_from_interrupt(g, CODE(9), fork + 14,
                                            registers[i]), ==, "end");
        ASSERT_FRAMES(g, CODE(1), CODE(2), CODE(0x40) + 64, CODE(9),
                      fork + 14);
        g_assert_cmpstr(walk_from_interrupt(g, fork, CODE(5), registers[i]),
                        ==, "end");
        ASSERT_FRAMES(g, CODE(1), CODE(2), CODE(0x40) + 64, fork);
    }
    /* the function behind is no outermost one */
    g_assert_cmpstr(walk_from_interrupt(g, CODE(0x43), CODE(5), 0), ==,
                    "bad-frame");
    /* it has made its record, and the register was not used since */
    put_behind(g, STACK + 0x800, STACK + 0x900, CODE(4));
    put_behind(g, STACK + 0x900, CODE(9), fork + 14);
    g_assert_cmpstr(walk_from_interrupt(g, CODE(3), fork + 14, STACK + 0x800),
                    ==, "end");
    ASSERT_FRAMES(g, CODE(1), CODE(2), CODE(0x40) + 64, CODE(3), CODE(4),
                  fork + 14);
}

RISCV64_TEST(riscv64_interrupted_at_the_edges_of_code,
             "/frames/riscv64-interrupted-at-the-edges-of-code")
{
    const uint64_t module = TEXT + 0x100000, fork = CODE(0x42) + 14;

    put_behind(g, STACK + 0x800, CODE(9), fork);
    g_assert_true(gs_kernel_add_module_data(&g->k, module, "mod", module,
                                            0x1000, NULL, 0, 0, NULL, NULL, 0,
                                            NULL));
    g_assert_cmpstr(walk_from_interrupt(g, module, CODE(5), STACK + 0x800), ==,
                    "end");
    ASSERT_FRAMES(g, CODE(1), CODE(2), CODE(0x40) + 64, module, fork);
    g_assert_cmpstr(walk_from_interrupt(g, module + 0x1000, CODE(5),
                                        STACK + 0x800), ==, "unknown-pc");
    g_assert_cmpuint(g->n, ==, 3);
}

RISCV64_TEST(riscv64_senseless_records, "/frames/riscv64-senseless-records")
{
    uint64_t at = STACK + 0x140;

    put_behind(g, at, at, CODE(2));
    g_assert_cmpstr(walk(g, CODE(1), STACK + 0x100, at), ==, "bad-frame");
    g_assert_cmpstr(walk(g, CODE(1), STACK + 0x100, 0), ==, "bad-frame");
    put_behind(g, at, at + 64, 0);
    g_assert_cmpstr(walk(g, CODE(1), STACK + 0x100, at), ==, "unknown-pc");
    put_behind(g, at, at + 64, 0x1234);
    g_assert_cmpstr(walk(g, CODE(1), STACK + 0x100, at), ==, "unknown-pc");
    ASSERT_FRAMES(g, CODE(1));
}

/* ---- recognised --------------------------------------------------------- */

/* Is it taken for the stack that was remembered last? */
static bool again(Guest *g, uint64_t ip, uint64_t sp, uint64_t fp)
{
    const GsRegs regs = { .ip = ip, .sp = sp, .bp = fp };
    uint64_t value = 0;

    return gs_unwind_again(g->u, &regs, page_of, g, 1, &value) && value == 7;
}

TEST(arm64_recognised, "/frames/arm64-recognised")
{
    g_autoptr(Guest) g = guest_new(&gs_arch_arm64, true);
    uint64_t regs = STACK + 0x400, user = STACK + 0xa00;

    put_record(g, IRQ + 0x100, regs + FRAME_REGS_AT, CODE(2));
    put(g, regs + FRAME_REGS_AT + 16, 2);
    put_arm64_regs(g, regs, STACK + 0x800, CODE(3) + 4, 5);
    put_record(g, STACK + 0x800, user + FRAME_REGS_AT, CODE(4));
    put(g, user + FRAME_REGS_AT + 16, 1);
    put_arm64_regs(g, user, 1, 0x400000, 0);
    g_assert_cmpstr(walk(g, CODE(1), IRQ + 0x100, IRQ + 0x100), ==, "user");
    gs_unwind_remember(g->u, 1, 7);
    g_assert_true(again(g, CODE(1), IRQ + 0x100, IRQ + 0x100));
    /* signed anew, interrupted deeper, and by another program */
    put_record(g, IRQ + 0x100, regs + FRAME_REGS_AT,
               CODE(2) ^ 0x1230000000000000);
    put_arm64_regs(g, regs, STACK + 0x900, CODE(3) + 4, 5);
    put_record(g, STACK + 0x900, user + FRAME_REGS_AT, CODE(4));
    put_arm64_regs(g, user, 1, 0x500000, 0);
    g_assert_true(again(g, CODE(1), IRQ + 0x100, IRQ + 0x100));
    g_assert_false(again(g, CODE(5), IRQ + 0x100, IRQ + 0x100));
    put_arm64_regs(g, user, 1, CODE(6), 5);
    g_assert_false(again(g, CODE(1), IRQ + 0x100, IRQ + 0x100));
    put_arm64_regs(g, user, 1, 0x500000, 0);
    put(g, regs + FRAME_REGS_AT + 16, 1);
    g_assert_false(again(g, CODE(1), IRQ + 0x100, IRQ + 0x100));
}

RISCV64_TEST(riscv64_recognised, "/frames/riscv64-recognised")
{
    uint64_t regs = STACK + 0x400;

    put_behind(g, IRQ + 0x140, regs, CODE(2));
    put_behind(g, regs, STACK + 0x800, CODE(0x40) + 64);
    put_riscv64_regs(g, regs, CODE(3) + 2, CODE(7), STACK + 0x800, 0x120);
    put_behind(g, STACK + 0x800, STACK + 0x900, CODE(4));
    put_behind(g, STACK + 0x900, CODE(9), CODE(0x42) + 14);
    g_assert_cmpstr(walk(g, CODE(1), IRQ + 0x100, IRQ + 0x140), ==, "end");
    gs_unwind_remember(g->u, 1, 7);
    g_assert_true(again(g, CODE(1), IRQ + 0x100, IRQ + 0x140));
    put(g, STACK + 0x800 - 16, STACK + 0xa00);
    g_assert_false(again(g, CODE(1), IRQ + 0x100, IRQ + 0x140));
    put_behind(g, STACK + 0xa00, CODE(10), CODE(0x42) + 14);
    g_assert_true(again(g, CODE(1), IRQ + 0x100, IRQ + 0x140));
    put(g, regs + 256, 0x20);
    g_assert_false(again(g, CODE(1), IRQ + 0x100, IRQ + 0x140));
}

/* What is found to be code only by what its caller is. */
ARM64_TEST(not_recognised_without_a_name,
           "/frames/not-recognised-without-a-name")
{
    put_record(g, STACK + 0x100, STACK + 0x140, JIT);
    put_record(g, STACK + 0x140, STACK + 0x180, CODE(2));
    g_assert_cmpstr(walk(g, CODE(1), STACK + 0x100, STACK + 0x100), ==,
                    "end");
    gs_unwind_remember(g->u, 1, 7);
    g_assert_false(again(g, CODE(1), STACK + 0x100, STACK + 0x100));
}
