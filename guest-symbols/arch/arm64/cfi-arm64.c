/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Call frame information of arm64 code, from the code itself. Called while a
 * debug file is made, by that thread; no state is kept.
 *
 * Kernels keep frame records: x29 points to {caller's x29, return address}. But
 * a function has to make its record first, has none any more before it returns,
 * and leaf functions make none. arm64-flow.c finds the frame at each
 * instruction; this file writes it:
 *
 *     frame                            DWARF
 *     in prologue and epilogue         CFA = sp + n, x29 the same or saved,
 *                                      return address in x30 or saved
 *     in the body                      CFA = x29 + n, both saved
 *     behind the entry of an           CFA = struct pt_regs; each register at
 *     exception                        CFA + its offset, pc and sp among them
 *     code that cannot be read or      by the record that x29 points to: the
 *     was freed, vectors of the        rules of the CIE
 *     kernel
 *     first functions of tasks, and    no return address
 *     vectors of user mode
 *
 * The first instructions of an exception have the interrupted pc in elr_el1
 * only, for which DWARF has no number that debuggers know.
 *
 * Functions whose frames are a struct pt_regs get the CIE with 'S' (signal
 * frame), as on x86-64 (see cfi-orc.c): the caller's pc is an interrupted
 * instruction. So does the function that changes to the stack of interrupts.
 *
 * Return addresses may be signed, in bits that are set in every address of
 * code. The rules set these bits.
 */
#include "guest-symbols/arch/arch-internal.h"
#include "guest-symbols/arch/arm64/arm64-internal.h"

enum {
    X19 = GS_ARM64_X19, X28 = GS_ARM64_X28, X29 = GS_ARM64_X29,
    X30 = GS_ARM64_X30, SP = GS_ARM64_SP, PC = GS_ARM64_PC,
};

/* Exceptions that come from the kernel have the first half of a table, those
 * from user mode the second. */
#define HALF_OF_VECTORS 0x400

/* ---- rules -------------------------------------------------------------- */

static void put_record(const GsArm64Cfi *c)
{
    gs_cfi_cfa(c->w, X29, 16);
    gs_cfi_saved_by(c->w, X29, X29, 0);
    gs_cfi_saved_with(c->w, PC, X29, 8, c->canonical);
}

static void put_cfa(const GsArm64Cfi *c, const GsArm64State *s)
{
    gs_cfi_cfa(c->w, s->by_x29 ? X29 : SP, s->by_x29 ? s->x29_off : s->sp_off);
}

static void put_x29(const GsArm64Cfi *c, const GsArm64State *s)
{
    if (s->x29_live) {
        gs_cfi_same(c->w, X29);
    } else if (s->x29_saved) {
        gs_cfi_saved(c->w, X29, s->x29_at);
    } else {
        gs_cfi_undefined(c->w, X29);
    }
}

static void put_return_address(const GsArm64Cfi *c, const GsArm64State *s)
{
    switch (s->ra) {
    case GS_ARM64_RA_X30:
        gs_cfi_in_with(c->w, PC, X30, c->canonical);
        break;
    case GS_ARM64_RA_REG:
        gs_cfi_in_with(c->w, PC, s->reg, c->canonical);
        break;
    case GS_ARM64_RA_SAVED:
        gs_cfi_saved_with(c->w, PC, s->by_x29 ? X29 : SP,
                          (s->by_x29 ? s->x29_off : s->sp_off) + s->ra_at,
                          c->canonical);
        break;
    case GS_ARM64_RA_LOST:
        gs_cfi_undefined(c->w, PC);
        break;
    }
}

static void put_regs(const GsArm64Cfi *c)
{
    for (unsigned reg = 0; reg <= PC; reg++) {
        gs_cfi_saved(c->w, reg, 8 * (int64_t)reg);
    }
}

/* The registers that were interrupted live still, but for x21 to x23, which an
 * entry uses. */
static void put_elr(const GsArm64Cfi *c, const GsArm64State *s)
{
    put_x29(c, s);
    gs_cfi_in(c->w, PC, s->reg);
}

/* The registers are not in a struct pt_regs any more. */
static void forget_regs(const GsArm64Cfi *c)
{
    for (unsigned reg = 0; reg <= X30; reg++) {
        gs_cfi_undefined(c->w, reg);
    }
    gs_cfi_value(c->w, SP, 0);
}

/* @before: the rule in force */
static void put_state(const GsArm64Cfi *c, const GsArm64State *s,
                      GsArm64Rule before)
{
    if (before == GS_ARM64_REGS) {
        forget_regs(c);
    }
    if (s->rule == GS_ARM64_RECORD) {
        put_record(c);
        return;
    }
    put_cfa(c, s);
    if (s->rule == GS_ARM64_REGS) {
        put_regs(c);
    } else if (s->rule == GS_ARM64_ELR) {
        put_elr(c, s);
    } else if (s->rule == GS_ARM64_END) {
        gs_cfi_undefined(c->w, PC);
    } else {
        put_x29(c, s);
        put_return_address(c, s);
    }
}

static uint32_t put_cie(const GsArm64Cfi *c, bool signal)
{
    uint32_t cie = gs_cfi_begin_cie(c->w, signal, PC);

    put_record(c);
    for (unsigned reg = X19; reg <= X28; reg++) {
        gs_cfi_undefined(c->w, reg);
    }
    gs_cfi_end(c->w);
    return cie;
}

void gs_arm64_cfi_begin(GsArm64Cfi *c)
{
    c->usual = put_cie(c, false);
    c->signal = put_cie(c, true);
}

/* ---- functions ---------------------------------------------------------- */

static bool same_cfa(const GsArm64State *a, const GsArm64State *b)
{
    return a->by_x29 == b->by_x29 &&
           (a->by_x29 ? a->x29_off == b->x29_off : a->sp_off == b->sp_off);
}

static bool same_x29(const GsArm64State *a, const GsArm64State *b)
{
    return a->x29_live == b->x29_live &&
           (a->x29_live || (a->x29_saved == b->x29_saved &&
                            (!a->x29_saved || a->x29_at == b->x29_at)));
}

static bool same_ra(const GsArm64State *a, const GsArm64State *b)
{
    return a->ra == b->ra &&
           (a->ra != GS_ARM64_RA_SAVED || a->ra_at == b->ra_at) &&
           (a->ra != GS_ARM64_RA_REG || a->reg == b->reg);
}

/* Return true if both make the same rules. */
static bool same_state(const GsArm64State *a, const GsArm64State *b)
{
    if (a->rule != b->rule || a->rule == GS_ARM64_RECORD) {
        return a->rule == b->rule;
    }
    if (!same_cfa(a, b) || a->rule == GS_ARM64_REGS ||
        a->rule == GS_ARM64_END) {
        return same_cfa(a, b);
    }
    return same_x29(a, b) && same_ra(a, b) &&
           (a->rule != GS_ARM64_ELR || a->reg == b->reg);
}

static bool needs_signal(const GsArm64State *at, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (at[i].rule == GS_ARM64_REGS || at[i].rule == GS_ARM64_ELR) {
            return true;
        }
    }
    return false;
}

/* gdb takes a caller whose code cannot be read for a stub, and the value that
 * x30 has there for its return address. Freed code is unmapped: give x30 that
 * value. It is in the record that the caller's x29 points to. */
static void put_link(const GsArm64Cfi *c, const GsArm64State *s)
{
    if (s->rule == GS_ARM64_CALLED && s->by_x29) {
        gs_cfi_saved_behind(c->w, X30, X29, 8, c->canonical);
    }
}

static void put_function(const GsArm64Cfi *c, GsRange r, const uint8_t *code)
{
    size_t n = (r.end - r.start) / 4;
    g_autofree GsArm64State *at = gs_arm64_flow(code, n);
    GsArm64State before = { .rule = GS_ARM64_RECORD };
    bool signal = r.start == c->switches || needs_signal(at, n);

    gs_cfi_begin_fde(c->w, signal ? c->signal : c->usual, r.start, r.end);
    for (size_t i = 0; i < n; i++) {
        if (at[i].rule && !same_state(&at[i], &before)) {
            gs_cfi_advance(c->w, r.start + 4 * i);
            put_state(c, &at[i], before.rule);
            if (r.start == c->boots) {
                put_link(c, &at[i]);
            }
            before = at[i];
        }
    }
    gs_cfi_end(c->w);
}

/* The first half has the rules of the CIE. */
static void put_vectors(const GsArm64Cfi *c, GsRange r)
{
    const GsArm64State end = { .rule = GS_ARM64_END, .sp_known = true };
    bool user = false;

    gs_cfi_begin_fde(c->w, c->usual, r.start, r.end);
    for (uint64_t va = r.start; r.end - va > HALF_OF_VECTORS; user = !user) {
        va += HALF_OF_VECTORS;
        gs_cfi_advance(c->w, va);
        if (user) {
            put_record(c);
        } else {
            put_state(c, &end, GS_ARM64_RECORD);
        }
    }
    gs_cfi_end(c->w);
}

static void put_end(const GsArm64Cfi *c, GsRange r)
{
    gs_cfi_begin_fde(c->w, c->usual, r.start, r.end);
    gs_cfi_undefined(c->w, PC);
    gs_cfi_end(c->w);
}

static bool is_one_of(const uint64_t *list, size_t n, uint64_t va)
{
    for (size_t i = 0; i < n; i++) {
        if (va && list[i] == va) {
            return true;
        }
    }
    return false;
}

void gs_arm64_cfi(void *cfi, GsRange range, const uint8_t *code)
{
    const GsArm64Cfi *c = cfi;
    bool freed = gs_range_has(c->freed, range.start);

    if (is_one_of(c->vectors, G_N_ELEMENTS(c->vectors), range.start)) {
        put_vectors(c, range);
    } else if (is_one_of(c->ends, G_N_ELEMENTS(c->ends), range.start)) {
        put_end(c, range);
    } else if (code && !freed) {
        put_function(c, range, code);
    } else {
        gs_cfi_begin_fde(c->w, c->usual, range.start, range.end);
        gs_cfi_end(c->w);
    }
}

/* ---- of a kernel -------------------------------------------------------- */

static void find_functions(GsArm64Cfi *c, const GsKernel *k)
{
    static const char *const names[GS_ARM64_VECTORS] = {
        "vectors", "tramp_vectors", "__bp_harden_el1_vectors",
    };

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        c->vectors[i] = gs_kernel_address(k, names[i]);
    }
    c->ends[0] = gs_kernel_address(k, "__primary_switched");
    c->switches = gs_kernel_address(k, "call_on_irq_stack");
    c->boots = gs_kernel_address(k, "rest_init");
}

static void *begin(GsCfi *w, const GsKernel *k, const GsMem *mem)
{
    const GsFrameRules *rules = gs_frame_rules_find(k);
    GsFrameRecords f;
    GsArm64Cfi *c;

    if (!mem || rules != &gs_arm64_frames) {
        return NULL;
    }
    gs_frame_records_prepare(&f, rules, k, NULL);
    c = g_new0(GsArm64Cfi, 1);
    c->w = w;
    c->mem = mem;
    c->canonical = f.canonical;
    find_functions(c, k);
    c->freed = gs_cfi_freed(k, mem);
    gs_arm64_cfi_begin(c);
    return c;
}

static void add(void *maker, const GsCfiCode *code)
{
    const GsArm64Cfi *c = maker;

    gs_cfi_foreach_function(code, c->mem, gs_arm64_cfi, maker);
}

const GsCfiMaker gs_arm64_cfi_maker = {
    .made_of = "frame records", .begin = begin, .add = add,
};
