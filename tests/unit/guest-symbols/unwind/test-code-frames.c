/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where a vCPU stands, or was interrupted, callers are found by code: at each
 * instruction of a function the stack has the same callers. Without code, walks
 * by frame records leave some out.
 */
#include "guest-symbols/arch/arch.h"
#include "tests/lib/frame-kernel.h"
#include "tests/lib/test-main.h"

#include <string.h>

#define STACK   0xffff800080c00000ull
#define TEXT    0xffff800080010000ull
#define BYTES   0x2000
#define CODE(n) (TEXT + 0x100 * (n))

/* The frames of the caller and of its caller. */
#define CALLER  (CODE(2) + 8)
#define OUTER   (CODE(3) + 8)

enum { RA = 1, SP = 2, TP = 4, S0 = 8, A3 = 13, A4 = 14 };
enum { X22 = 22, X29 = 29, X30 = 30, ARM_SP = 31 };

/* struct pt_regs of riscv64 */
enum { PT_RA = 8, PT_S0 = 64, PT_STATUS = 256, STATUS_SPP = 0x100 };

typedef struct Guest {
    GsKernel k;
    GsUnwinder *u;
    uint64_t stack[BYTES / 8], text[BYTES / 8];
    uint64_t reg[GS_GENERAL_REGS], sepc;
    uint64_t frames[16];
    unsigned n;
} Guest;

static const void *page_of(void *opaque, uint64_t va)
{
    Guest *g = opaque;

    if (va - STACK < BYTES) {
        return &g->stack[((va - STACK) & ~0xfffull) / 8];
    }
    return va - TEXT < BYTES ? &g->text[((va - TEXT) & ~0xfffull) / 8] : NULL;
}

static void put_bytes(Guest *g, uint64_t va, const void *from, size_t len)
{
    memcpy((char *)page_of(g, va) + (va & 0xfff), from, len);
}

static void put(Guest *g, uint64_t va, uint64_t word)
{
    put_bytes(g, va, &word, sizeof(word));
}

static void put_record(Guest *g, uint64_t va, uint64_t fp, uint64_t ra)
{
    put(g, va, fp);
    put(g, va + 8, ra);
}

static const FrameSymbol symbols[] = {
    { TEXT, "_stext" }, { CODE(1), "callee" }, { CODE(2), "caller" },
    { CODE(3), "outer" }, { CODE(4), "inside" }, { CODE(5), "next" },
    { CODE(6), "el1h_64_irq" }, { CODE(7), "vectors" },
    { CODE(8), "__switch_to" }, { CODE(9), "handle_exception" },
    { CODE(10), "ret_from_exception" }, { CODE(11), "ret_from_fork" },
    { CODE(12), "behind" },
};

static Guest *guest_new(const GsArch *arch, bool meta)
{
    Guest *g = g_new0(Guest, 1);
    /* the last page cannot be read */
    const GsRange text = { TEXT, TEXT + BYTES + 0x1000 };

    frame_kernel_init(&g->k, arch, text, text, symbols,
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

/* Walk from @ip with the registers of @g, by code if @by_code. */
static const char *walk_from(Guest *g, uint64_t ip, bool by_code)
{
    bool arm = g->k.arch == &gs_arch_arm64;
    const GsRegs regs = {
        .ip = ip, .sp = g->reg[arm ? ARM_SP : SP],
        .bp = g->reg[arm ? X29 : S0], .exact_ip = true,
    };

    if (by_code) {
        gs_unwinder_use_code(g->u, g->reg, g->sepc);
    }
    return gs_stop_name(gs_unwind(g->u, &regs, page_of, g, g->frames,
                                  G_N_ELEMENTS(g->frames), &g->n));
}

#define ASSERT_WALK(g, ip, stop, ...) do { \
        const uint64_t want_[] = { ip, __VA_ARGS__ }; \
        g_assert_cmpstr(walk_from(g, ip, true), ==, stop); \
        g_assert_cmpuint((g)->n, ==, G_N_ELEMENTS(want_)); \
        for (size_t i_ = 0; i_ < G_N_ELEMENTS(want_); i_++) { \
            g_assert_cmphex((g)->frames[i_], ==, want_[i_]); \
        } \
    } while (0)

/* ---- arm64 -------------------------------------------------------------- */

static const uint32_t arm64_function[] = {
    0xa9bd7bfd,     /* 0: stp x29, x30, [sp, #-48]! */
    0x910003fd,     /* 1: mov x29, sp */
    0x94000100,     /* 2: bl */
    0xa8c37bfd,     /* 3: ldp x29, x30, [sp], #48 */
    0xd65f03c0,     /* 4: ret */
};

/* The record of the caller is at its sp, STACK + 0x400. */
static Guest *arm64_guest(bool meta)
{
    Guest *g = guest_new(&gs_arch_arm64, meta);
    uint64_t end = STACK + 0x800;

    put_bytes(g, CODE(1), arm64_function, sizeof(arm64_function));
    put_record(g, STACK + 0x400, STACK + 0x440, OUTER);
    put_record(g, STACK + 0x440, end, CODE(5) + 4);
    put_record(g, end, 0, 0);
    put(g, end + 16, 1);
    g->reg[ARM_SP] = g->reg[X29] = STACK + 0x400;
    g->reg[X30] = CALLER;
    return g;
}

TEST(arm64_stands, "/code-frames/arm64-stands")
{
    g_autoptr(Guest) g = arm64_guest(true);

    g_assert_cmpstr(walk_from(g, CODE(1), false), ==, "end");
    g_assert_cmphex(g->frames[1], ==, OUTER);       /* the caller is missing */
    ASSERT_WALK(g, CODE(1), "end", CALLER, OUTER, CODE(5) + 4);
    ASSERT_WALK(g, CODE(1) + 16, "end", CALLER, OUTER, CODE(5) + 4);
    g->reg[X30] = CALLER ^ 0x7f37000000000000ull;   /* signed */
    ASSERT_WALK(g, CODE(1), "end", CALLER, OUTER, CODE(5) + 4);
    g->reg[ARM_SP] -= 48;
    put_record(g, g->reg[ARM_SP], STACK + 0x400, CALLER);
    ASSERT_WALK(g, CODE(1) + 4, "end", CALLER, OUTER, CODE(5) + 4);
    g->reg[X29] = g->reg[ARM_SP];
    g->reg[X30] = 1;
    ASSERT_WALK(g, CODE(1) + 8, "end", CALLER, OUTER, CODE(5) + 4);
    ASSERT_WALK(g, CODE(1) + 12, "end", CALLER, OUTER, CODE(5) + 4);
}

static void put_arm64_regs(Guest *g, uint64_t regs, uint64_t pc,
                           uint64_t pstate)
{
    for (unsigned i = 0; i < GS_GENERAL_REGS; i++) {
        put(g, regs + 8 * i, g->reg[i]);
    }
    put(g, regs + 32 * 8, pc);
    put(g, regs + 33 * 8, pstate);
}

/* The record of an exception says that it is one since 6.13. Before, it has the
 * x29 and pc of the interrupted code. */
TEST(arm64_was_interrupted, "/code-frames/arm64-was-interrupted")
{
    for (unsigned meta = 0; meta < 2; meta++) {
        g_autoptr(Guest) g = arm64_guest(meta);
        uint64_t regs = STACK + 0xc00, record = regs + FRAME_REGS_AT;

        put_arm64_regs(g, regs, CODE(1), 5);
        put_record(g, record, meta ? 0 : g->reg[X29], meta ? 0 : CODE(1));
        put(g, record + 16, meta ? 2 : 0);
        put_record(g, STACK + 0xb00, record, CODE(6) + 0x44);
        g->reg[ARM_SP] = g->reg[X29] = STACK + 0xb00;
        g->reg[X30] = 1;
        put_bytes(g, CODE(5), arm64_function, sizeof(arm64_function));
        ASSERT_WALK(g, CODE(5) + 8, "end", CODE(6) + 0x44, CODE(1), CALLER,
                    OUTER, CODE(5) + 4);
    }
}

static const uint32_t arm64_entry[] = {
    0xa90007e0,     /* 0: stp x0, x1, [sp] */
    0xa90e77fc,     /* 1: stp x28, x29, [sp, #224] */
    0x910543f5,     /* 2: add x21, sp, #336 */
    0xd5384036,     /* 3: mrs x22, elr_el1 */
    0xa90f57fe,     /* 4: stp x30, x21, [sp, #240] */
    0x9104c3fd,     /* 5: add x29, sp, #304 */
    0xa9105ff6,     /* 6: stp x22, x23, [sp, #256] */
    0x910003e0,     /* 7: mov x0, sp */
    0x94000100,     /* 8: bl */
};

TEST(arm64_stands_in_an_entry, "/code-frames/arm64-stands-in-an-entry")
{
    g_autoptr(Guest) g = arm64_guest(true);
    uint64_t regs = STACK + 0x400 - 336;

    put_bytes(g, CODE(6), arm64_entry, sizeof(arm64_entry));
    put_arm64_regs(g, regs, CODE(1), 5);
    g->reg[ARM_SP] = regs;
    ASSERT_WALK(g, CODE(6) + 8, "end", OUTER, CODE(5) + 4);
    g->reg[X22] = CODE(1);
    ASSERT_WALK(g, CODE(6) + 16, "end", CODE(1), CALLER, OUTER, CODE(5) + 4);
    g->reg[X29] = regs + 304;
    ASSERT_WALK(g, CODE(6) + 24, "end", CODE(1), CALLER, OUTER, CODE(5) + 4);
    g->reg[X30] = g->reg[X22] = 1;
    ASSERT_WALK(g, CODE(6) + 28, "end", CODE(1), CALLER, OUTER, CODE(5) + 4);
    put(g, regs + 33 * 8, 0);
    g_assert_cmpstr(walk_from(g, CODE(6) + 28, true), ==, "user");
    g_assert_cmpuint(g->n, ==, 1);
}

/* Vectors are no functions; they, and code that cannot be read, are walked by
 * records. */
TEST(arm64_not_by_code, "/code-frames/arm64-not-by-code")
{
    g_autoptr(Guest) g = arm64_guest(true);
    uint64_t unreadable = TEXT + BYTES;

    ASSERT_WALK(g, CODE(7) + 4, "end", OUTER, CODE(5) + 4);
    put_record(g, STACK + 0x400, STACK + 0x440, OUTER);
    g_assert_cmpstr(walk_from(g, unreadable, true), ==, "end");
    g_assert_cmphex(g->frames[1], ==, OUTER);
}

/* ---- riscv64 ------------------------------------------------------------ */

static const uint16_t riscv64_function[] = {
    0x1141,         /* 0: addi sp, sp, -16 */
    0xe406,         /* 1: sd ra, 8(sp) */
    0xe022,         /* 2: sd s0, 0(sp) */
    0x0800,         /* 3: addi s0, sp, 16 */
    0x9582,         /* 4: jalr a1 */
    0x60a2,         /* 5: ld ra, 8(sp) */
    0x6402,         /* 6: ld s0, 0(sp) */
    0x0141,         /* 7: addi sp, sp, 16 */
    0x8082,         /* 8: ret */
};

/* The caller's sp is STACK + 0x400, and its record ends at STACK + 0x440. */
static Guest *riscv64_guest(void)
{
    Guest *g = guest_new(&gs_arch_riscv64, false);

    put_bytes(g, CODE(1), riscv64_function, sizeof(riscv64_function));
    put_record(g, STACK + 0x430, STACK + 0x480, OUTER);
    put_record(g, STACK + 0x470, 0, CODE(11) + 14);
    g->reg[SP] = STACK + 0x400;
    g->reg[S0] = STACK + 0x440;
    g->reg[RA] = CALLER;
    return g;
}

#define RISCV64_CALLERS CALLER, OUTER, CODE(11) + 14

TEST(riscv64_stands, "/code-frames/riscv64-stands")
{
    g_autoptr(Guest) g = riscv64_guest();

    g_assert_cmpstr(walk_from(g, CODE(1), false), ==, "end");
    g_assert_cmphex(g->frames[1], ==, OUTER);
    ASSERT_WALK(g, CODE(1), "end", RISCV64_CALLERS);
    ASSERT_WALK(g, CODE(1) + 16, "end", RISCV64_CALLERS);
    g->reg[SP] -= 16;
    ASSERT_WALK(g, CODE(1) + 2, "end", RISCV64_CALLERS);
    put_record(g, g->reg[SP], STACK + 0x440, CALLER);
    ASSERT_WALK(g, CODE(1) + 6, "end", RISCV64_CALLERS);
    ASSERT_WALK(g, CODE(1) + 14, "end", RISCV64_CALLERS);
    g->reg[S0] = STACK + 0x400;
    g->reg[RA] = 1;
    ASSERT_WALK(g, CODE(1) + 10, "end", RISCV64_CALLERS);
    ASSERT_WALK(g, CODE(11) + 2, "end");
}

/* A function runs into the next symbol, where its frame is still made. */
TEST(riscv64_symbol_inside, "/code-frames/riscv64-symbol-inside")
{
    static const uint16_t word[] = { 0x1141, 0xe406 };
    g_autoptr(Guest) g = riscv64_guest();

    for (uint64_t va = CODE(3); va < CODE(4); va += 2) {
        put_bytes(g, va, &(uint16_t) { 0x0001 }, 2);    /* nop */
    }
    put_bytes(g, CODE(3), word, sizeof(word));
    put_record(g, STACK + 0x3f0, 0, CALLER);
    g->reg[SP] = STACK + 0x3f0;
    g->reg[RA] = 1;
    ASSERT_WALK(g, CODE(4) + 2, "end", RISCV64_CALLERS);
}

static void put_riscv64_regs(Guest *g, uint64_t regs, uint64_t epc,
                             uint64_t status)
{
    for (unsigned i = 1; i < GS_GENERAL_REGS; i++) {
        put(g, regs + 8 * i, g->reg[i]);
    }
    put(g, regs, epc);
    put(g, regs + PT_STATUS, status);
}

static const uint16_t riscv64_entry[] = {
    0x1273, 0x1402,     /*  0: csrrw tp, sscratch, tp */
    0x3823, 0x0022,     /*  4: sd sp, 16(tp) */
    0x3103, 0x0082,     /*  8: ld sp, 8(tp) */
    0x712d,             /* 12: addi sp, sp, -288 */
    0xe406,             /* 14: sd ra, 8(sp) */
    0xe0a2,             /* 16: sd s0, 64(sp) */
    0x4401,             /* 18: li s0, 0 */
    0x2973, 0x1410,     /* 20: csrr s2, sepc */
    0xe04a,             /* 24: sd s2, 0(sp) */
    0x9582,             /* 26: jalr a1 */
    0x6602,             /* 28: ld a2, 0(sp) */
    0x1073, 0x1416,     /* 30: csrw sepc, a2 */
    0x60a2,             /* 34: ld ra, 8(sp) */
    0x6406,             /* 36: ld s0, 64(sp) */
    0x6142,             /* 38: ld sp, 16(sp) */
    0x0073, 0x1020,     /* 40: sret */
};

/* The vCPU stands at the first instruction of what the entry calls, where s0 is
 * the interrupted one, and then in the entry itself. */
TEST(riscv64_was_interrupted, "/code-frames/riscv64-was-interrupted")
{
    g_autoptr(Guest) g = riscv64_guest();
    uint64_t regs = STACK + 0xc00;

    put_bytes(g, CODE(9), riscv64_entry, sizeof(riscv64_entry));
    put_riscv64_regs(g, regs, CODE(1), STATUS_SPP);
    g->reg[SP] = regs;
    g->reg[RA] = CODE(10);
    ASSERT_WALK(g, CODE(1), "end", CODE(10), CODE(1), RISCV64_CALLERS);
    ASSERT_WALK(g, CODE(9) + 26, "end", CODE(1), RISCV64_CALLERS);
    put(g, regs + PT_STATUS, 0);
    g_assert_cmpstr(walk_from(g, CODE(1), true), ==, "user");
    g_assert_cmpuint(g->n, ==, 2);
}

/* Registers have the interrupted values until the entry changes them. */
TEST(riscv64_stands_in_an_entry, "/code-frames/riscv64-stands-in-an-entry")
{
    g_autoptr(Guest) g = riscv64_guest();
    uint64_t regs = STACK + 0x400 - 288, task = STACK + 0x600;

    put_bytes(g, CODE(9), riscv64_entry, sizeof(riscv64_entry));
    g->sepc = CODE(1);
    ASSERT_WALK(g, CODE(9), "end", CODE(1), RISCV64_CALLERS);
    g->reg[TP] = task;
    ASSERT_WALK(g, CODE(9) + 4, "end", CODE(1), RISCV64_CALLERS);
    put(g, task + 16, g->reg[SP]);
    g->reg[SP] = 1;             /* may be used for other things */
    ASSERT_WALK(g, CODE(9) + 8, "end", CODE(1), RISCV64_CALLERS);
    g->reg[SP] = STACK + 0x400;
    ASSERT_WALK(g, CODE(9) + 12, "end", CODE(1), RISCV64_CALLERS);
    put(g, regs + PT_RA, g->reg[RA]);
    put(g, regs + PT_S0, g->reg[S0]);
    g->reg[SP] = regs;
    g->reg[RA] = g->reg[S0] = 1;
    ASSERT_WALK(g, CODE(9) + 20, "end", CODE(1), RISCV64_CALLERS);
    g->sepc = 0x1000;
    g_assert_cmpstr(walk_from(g, CODE(9) + 20, true), ==, "user");
    g_assert_cmpuint(g->n, ==, 1);
}

/* The way back has all of them in place again. */
TEST(riscv64_leaves_an_entry, "/code-frames/riscv64-leaves-an-entry")
{
    g_autoptr(Guest) g = riscv64_guest();

    put_bytes(g, CODE(9), riscv64_entry, sizeof(riscv64_entry));
    g->sepc = CODE(1);
    ASSERT_WALK(g, CODE(9) + 40, "end", CODE(1), RISCV64_CALLERS);
    g->sepc = 0;                /* not known */
    ASSERT_WALK(g, CODE(9) + 40, "end", OUTER, CODE(11) + 14);
}

TEST(riscv64_stands_in_a_switch, "/code-frames/riscv64-stands-in-a-switch")
{
    static const uint16_t word[] = {
        0xb023, 0x0016,     /*  0: sd ra, 0(a3) */
        0xb423, 0x0026,     /*  2: sd sp, 8(a3) */
        0xea80,             /*  4: sd s0, 16(a3) */
        0x3083, 0x0007,     /*  5: ld ra, 0(a4) */
        0x3103, 0x0087,     /*  7: ld sp, 8(a4) */
        0x6b00,             /*  9: ld s0, 16(a4) */
        0x8082,             /* 10: ret */
    };
    g_autoptr(Guest) g = riscv64_guest();

    put_bytes(g, CODE(8), word, sizeof(word));
    g->reg[A3] = STACK + 0x600;
    g->reg[A4] = STACK + 0x700;
    put(g, STACK + 0x610, STACK + 0x440);
    put(g, STACK + 0x708, STACK + 0x420);
    put(g, STACK + 0x710, STACK + 0x480);
    g->reg[S0] = 0;
    ASSERT_WALK(g, CODE(8) + 10, "end", RISCV64_CALLERS);
    ASSERT_WALK(g, CODE(8) + 14, "end", CALLER, CODE(11) + 14);
}

/* ---- both --------------------------------------------------------------- */

/* Random code and registers end the walk. */
TEST(random_code, "/code-frames/random-code")
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(20261127);

    for (unsigned round = 0; round < 2000; round++) {
        g_autoptr(Guest) g = round & 1 ? riscv64_guest() : arm64_guest(true);

        for (size_t i = 0; i < BYTES / 8; i++) {
            g->text[i] = (uint64_t)g_rand_int(rand) << 32 | g_rand_int(rand);
            g->stack[i] = g_rand_int(rand) & 1 ?
                          STACK + g_rand_int_range(rand, 0, BYTES) / 8 * 8 :
                          TEXT + g_rand_int_range(rand, 0, BYTES);
        }
        for (size_t i = 0; i < GS_GENERAL_REGS; i++) {
            g->reg[i] = STACK + g_rand_int_range(rand, 0, BYTES);
        }
        g->sepc = TEXT + g_rand_int_range(rand, 0, BYTES);
        walk_from(g, TEXT + g_rand_int_range(rand, 0, BYTES), true);
        g_assert_cmpuint(g->n, <=, G_N_ELEMENTS(g->frames));
    }
}
