/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Benchmark of stack walks, per frame: 200 different stacks of 16 frames,
 * walked in turn, with an ORC table as large as a distribution kernel's. As in
 * a running guest, the stacks fit in the host's second-level cache.
 *
 * Prints "name value unit" lines for three cases: the unwinder's cache is warm;
 * the whole stack is recognised; the cache is emptied before each round, as
 * insmod does.
 */
#include "tests/lib/orc-writer.h"
#include "guest-symbols/arch/arch.h"
#include "guest-symbols/kernel/kernel.h"
#include "guest-symbols/modules/modules.h"
#include <stdio.h>

#define TEXT 0xffffffff81000000ull
#define STACK 0xffffc90000000000ull

enum {
    N_FUNCS = 60000,
    FUNC_SIZE = 256,
    ROWS_A_FUNC = 6,
    N_STACKS = 200,
    DEPTH = 16,
    STACK_WORDS = 1024,
    N_HOT = 1000,       /* functions that appear in stacks */
};

typedef struct Bench {
    GsKernel k;
    GsUnwinder *u;
    OrcRow *rows;
    uint64_t *stacks;
    GsRegs regs[N_STACKS];
} Bench;

static const void *stack_page(void *opaque, uint64_t va)
{
    Bench *b = opaque;
    uint64_t off = (va - STACK) & ~0xfffull;

    return off < N_STACKS * STACK_WORDS * 8 ? (char *)b->stacks + off : NULL;
}

/* A function: prologue, body with calls, epilogue. */
static void make_table(Bench *b, GRand *rand)
{
    b->rows = g_new0(OrcRow, N_FUNCS * ROWS_A_FUNC);
    for (size_t i = 0; i < N_FUNCS; i++) {
        OrcRow *r = &b->rows[i * ROWS_A_FUNC];
        uint64_t va = TEXT + i * FUNC_SIZE;
        int16_t body = 16 + 8 * g_rand_int_range(rand, 0, 10);
        OrcReg bp = g_rand_boolean(rand) ? R_PREV_SP : R_NONE;
        int16_t bp_off = bp ? -16 : 0;

        r[0] = (OrcRow) { va, GS_ORC_CALL, R_SP, 8 };
        r[1] = (OrcRow) { va + 2, GS_ORC_CALL, R_SP, 16 };
        r[2] = (OrcRow) { va + 8, GS_ORC_CALL, R_SP, body, bp, bp_off };
        r[3] = (OrcRow) { va + 200, GS_ORC_CALL, R_SP, 16 };
        r[4] = (OrcRow) { va + 202, GS_ORC_CALL, R_SP, 8 };
        r[5] = (OrcRow) { va + 240, GS_ORC_UNDEFINED };
    }
    b->rows[2] = (OrcRow) { TEXT + 8, GS_ORC_END };
}

static void make_stack(Bench *b, GRand *rand, size_t nth)
{
    uint64_t *stack = b->stacks + nth * STACK_WORDS;
    uint64_t va = STACK + nth * STACK_WORDS * 8;
    size_t at = 300;
    size_t func = 1 + g_rand_int_range(rand, 0, N_HOT) * 37;

    b->regs[nth] = (GsRegs) {
        .ip = TEXT + func * FUNC_SIZE + 64, .sp = va + at * 8,
    };
    for (unsigned depth = 1; depth < DEPTH; depth++) {
        at += b->rows[func * ROWS_A_FUNC + 2].sp_off / 8;
        func = 1 + g_rand_int_range(rand, 0, N_HOT) * 37;
        if (depth == DEPTH - 1) {
            func = 0;
        }
        stack[at - 1] = TEXT + func * FUNC_SIZE + 64;
    }
}

static void bench_init(Bench *b)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(1);
    GsRange text = { TEXT, TEXT + (uint64_t)N_FUNCS * FUNC_SIZE };
    OrcArrays a;
    GsOrcRaw raw;

    make_table(b, rand);
    a = orc_writer_finish(GS_ORC_LAYOUT_6_4, text.end, b->rows,
                          N_FUNCS * ROWS_A_FUNC);
    raw = orc_writer_raw(&a);
    b->k.arch = &gs_arch_x86_64;
    b->k.orc = gs_orc_set_new();
    b->k.modules = gs_modules_new();
    if (!gs_orc_set_load(b->k.orc, text, &text, 1, &raw, NULL)) {
        g_error("the table was refused");
    }
    orc_writer_clear(&a);
    b->u = gs_unwinder_new(&b->k);
    b->stacks = g_new0(uint64_t, N_STACKS * STACK_WORDS);
    for (size_t i = 0; i < N_STACKS; i++) {
        make_stack(b, rand, i);
    }
}

static void bench_clear(Bench *b)
{
    gs_unwinder_free(b->u);
    gs_orc_set_free(b->k.orc);
    gs_modules_free(b->k.modules);
    g_free(b->rows);
    g_free(b->stacks);
}

/* Walk all stacks in turn. Returns: nanoseconds per frame. */
static double run(Bench *b, unsigned rounds, bool cold)
{
    uint64_t frames[64];
    uint64_t total = 0;
    gint64 ns = 0;

    for (unsigned r = 0; r < rounds; r++) {
        gint64 start;

        if (cold) {
            gs_orc_set_set_slide(b->k.orc, 0);
        }
        start = g_get_monotonic_time();
        for (size_t i = 0; i < N_STACKS; i++) {
            unsigned n;
            GsStop stop = gs_unwind(b->u, &b->regs[i], stack_page, b, frames,
                                    64, &n);

            if (stop != GS_STOP_END || n != DEPTH) {
                g_error("stack %zu: %s after %u", i, gs_stop_name(stop), n);
            }
            total += n;
        }
        ns += (g_get_monotonic_time() - start) * 1000;
    }
    return (double)ns / total;
}

/* Returns: nanoseconds to recognise a stack that was walked before. */
static double run_again(Bench *b, unsigned rounds)
{
    uint64_t frames[64], value;
    gint64 start;
    unsigned n;

    for (size_t i = 0; i < N_STACKS; i++) {
        gs_unwind(b->u, &b->regs[i], stack_page, b, frames, 64, &n);
        gs_unwind_remember(b->u, 0, i);
    }
    start = g_get_monotonic_time();
    for (unsigned r = 0; r < rounds; r++) {
        for (size_t i = 0; i < N_STACKS; i++) {
            if (!gs_unwind_again(b->u, &b->regs[i], stack_page, b, 0, &value) ||
                value != i) {
                g_error("stack %zu is not recognised", i);
            }
        }
    }
    return (g_get_monotonic_time() - start) * 1000.0 / rounds / N_STACKS;
}

int main(void)
{
    Bench b = { 0 };
    double best = 1e9;

    bench_init(&b);
    run(&b, 10, false);
    for (int i = 0; i < 7; i++) {
        best = MIN(best, run(&b, 100, false));
    }
    printf("unwind.ns_per_frame %.2f ns\n", best);
    printf("unwind.again_ns %.1f ns\n", run_again(&b, 500));
    printf("unwind.cold_ns_per_frame %.2f ns\n", run(&b, 50, true));
    bench_clear(&b);
    return 0;
}
