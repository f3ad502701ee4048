/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Call frame information of riscv64 code, from the code itself. Called while a
 * debug file is made, by that thread.
 *
 * Kernels keep frame records: s0 is the CFA, and {caller's s0, return address}
 * are right below it. But a function has to make its record first, and some
 * make none. So the paths through each function are followed (riscv64-flow.c),
 * and the instructions on them say where the caller's registers are
 * (riscv64-frame.c). The rules of a function are the changes, by address.
 *
 * Frames of exceptions are signal frames, as on x86-64 (see cfi-orc.c): their
 * caller was interrupted. There pc is in the column 64, which DWARF has for
 * this, because ra is a register of the caller, too. A function that changes to
 * another stack has the same kind of frame.
 *
 * A stack ends in the functions that tasks and CPUs begin in.
 */
#include "guest-symbols/arch/arch-internal.h"
#include "guest-symbols/arch/riscv64/riscv64-internal.h"

#include <dwarf.h>

/* DWARF numbers (RISC-V ABIs Specification). */
enum { RA = 1, SP = 2, S0 = 8, S1 = 9, S2 = 18, S11 = 27, T6 = 31, PC = 64,
       SEPC = 4096 + 0x141 };

/* Places in struct pt_regs. */
#define PT_EPC  0

/**
 * struct Rules - what all functions have in common
 * @records: what the walk by frame records knows of the kernel
 * @init: code that is freed when the kernel has started
 * @ends: functions that the code before _stext jumps to
 * @switch_to: address of __switch_to(), 0: not known
 * @usual, @signal: the CIEs
 * @carried: (of the function before) the frame behind its end, if @carries
 */
typedef struct Rules {
    GsCfi *w;
    const GsMem *mem;
    GsFrameRecords records;
    GsRange init;
    GsRange ends[4];
    uint64_t switch_to;
    uint32_t usual, signal;
    GsRvFrame carried;
    bool carries;
} Rules;

/* ---- rules -------------------------------------------------------------- */

/*
 * The CFA "sp" is written as an expression. If the first rule of a function
 * equals lldb's rule for entries of functions, lldb 22 and 23 do not use this
 * table in the frame where a vCPU stands or was interrupted. They emulate the
 * function's instructions instead, and know neither epilogues nor sepc.
 */
static const uint8_t cfa_is_sp[] = { DW_OP_breg0 + SP, 0 };

static void put_cfa(GsCfi *w, const GsRvFrame *f)
{
    switch (f->cfa) {
    case GS_RV_BY_S0:
        gs_cfi_cfa(w, S0, f->above);
        break;
    case GS_RV_BY_WORD:
        gs_cfi_cfa_at(w, f->word.reg, f->word.off, 0);
        break;
    default:
        if (f->depth) {
            gs_cfi_cfa(w, SP, f->depth);
        } else {
            gs_cfi_cfa_by(w, cfa_is_sp, sizeof(cfa_is_sp));
        }
        break;
    }
}

static void put_place(GsCfi *w, unsigned reg, const GsRvPlace *place)
{
    switch (place->kind) {
    case GS_RV_AT_CFA:
        gs_cfi_saved(w, reg, place->off);
        break;
    case GS_RV_AT_REG:
        gs_cfi_saved_by(w, reg, place->reg, place->off);
        break;
    default:
        gs_cfi_same(w, reg);
        break;
    }
}

/* The return address is in ra: "the same" would be the same pc. */
static void put_return(GsCfi *w, unsigned column, const GsRvPlace *ra)
{
    if (ra->kind == GS_RV_LIVE) {
        gs_cfi_in(w, column, RA);
    } else {
        put_place(w, column, ra);
    }
}

/* All registers of the interrupted code. */
static void put_interrupted(GsCfi *w, const GsRvFrame *f)
{
    bool saved = f->pc == GS_RV_PC_REGS;

    for (unsigned reg = RA; reg <= T6; reg++) {
        if (saved) {
            gs_cfi_saved(w, reg, 8 * reg);
        } else {
            gs_cfi_same(w, reg);
        }
    }
    if (saved) {
        gs_cfi_saved(w, PC, PT_EPC);
        return;
    }
    gs_cfi_in(w, PC, SEPC);
    put_place(w, RA, &f->ra);
    put_place(w, SP, &f->sp);
    put_place(w, S0, &f->s0);
}

/* Write the frame @f. @ra: column of the return address; @ends: there is none.
 */
static void put_frame(GsCfi *w, const GsRvFrame *f, unsigned ra, bool ends)
{
    put_cfa(w, f);
    if (f->pc != GS_RV_PC_RA) {
        put_interrupted(w, f);
        return;
    }
    put_place(w, S0, &f->s0);
    if (!ends) {
        put_return(w, ra, &f->ra);
    }
}

static uint32_t put_cie(GsCfi *w, bool signal)
{
    static const GsRvFrame at_entry = { .depth_known = true };
    uint32_t cie = gs_cfi_begin_cie(w, signal, signal ? PC : RA);

    put_frame(w, &at_entry, signal ? PC : RA, false);
    gs_cfi_undefined(w, S1);
    for (unsigned reg = S2; reg <= S11; reg++) {
        gs_cfi_undefined(w, reg);
    }
    gs_cfi_end(w);
    return cie;
}

/* ---- functions ---------------------------------------------------------- */

/* Does no frame call the one at @va? */
static bool ends_at(const Rules *r, uint64_t va)
{
    return gs_ranges_have(r->records.outermost, r->records.n_outermost, va) ||
           gs_ranges_have(r->ends, G_N_ELEMENTS(r->ends), va);
}

/* Write the rules of a function whose code is not known. It has a record. */
static void put_by_record(const Rules *r, GsRange range)
{
    static const GsRvFrame by_record = {
        .cfa = GS_RV_BY_S0, .ra = { .kind = GS_RV_AT_CFA, .off = -8 },
        .s0 = { .kind = GS_RV_AT_CFA, .off = -16 },
    };
    bool ends = ends_at(r, range.start);

    gs_cfi_begin_fde(r->w, r->usual, range.start, range.end);
    put_frame(r->w, &by_record, RA, ends);
    if (ends) {
        gs_cfi_undefined(r->w, RA);
    }
    gs_cfi_end(r->w);
}

static void put_flow(const Rules *r, GsRange range, const GsRvFlow *flow,
                     bool signal)
{
    unsigned ra = signal ? PC : RA;
    bool ends = ends_at(r, range.start);
    const GsRvFrame *before = NULL;

    gs_cfi_begin_fde(r->w, signal ? r->signal : r->usual, range.start,
                     range.end);
    if (ends) {
        gs_cfi_undefined(r->w, ra);
    }
    for (uint64_t va = range.start; va < range.end; va += 2) {
        const GsRvFrame *f = gs_rv_flow_at(flow, va - range.start);

        if (f && (!before || !gs_rv_frame_equal(f, before))) {
            gs_cfi_advance(r->w, va);
            put_frame(r->w, f, ra, ends);
            before = f;
        }
    }
    gs_cfi_end(r->w);
}

static GsRvCode code_of(const Rules *r, uint64_t va)
{
    return gs_range_has(r->records.entry, va) ? GS_RV_EXCEPTION :
           r->switch_to && va == r->switch_to ? GS_RV_SWITCH : GS_RV_FUNCTION;
}

static void put_function(void *opaque, GsRange range, const uint8_t *bytes)
{
    Rules *r = opaque;
    size_t len = range.end - range.start;
    GsRvCode code = code_of(r, range.start);
    g_autoptr(GsRvFlow) flow = NULL;
    const GsRvFrame *end;

    if (bytes && !gs_range_has(r->init, range.start)) {
        flow = gs_rv_flow_new(code, r->carries ? &r->carried : NULL, bytes,
                              len);
    }
    end = flow ? gs_rv_flow_end(flow) : NULL;
    r->carries = end;
    if (end) {
        r->carried = *end;
    }
    if (flow) {
        put_flow(r, range, flow, code == GS_RV_EXCEPTION ||
                                 gs_rv_flow_changes_stack(flow));
    } else {
        put_by_record(r, range);
    }
}

/* ---- the maker ---------------------------------------------------------- */

static void find_functions(Rules *r, const GsKernel *k)
{
    static const char *const ends[] = {
        "start_kernel", "smp_callin", "ret_from_kernel_thread",
    };
    GsSymbol sym;

    G_STATIC_ASSERT(G_N_ELEMENTS(ends) <= G_N_ELEMENTS(r->ends));
    for (size_t i = 0; i < G_N_ELEMENTS(ends); i++) {
        if (gs_kernel_lookup(k, ends[i], &sym)) {
            r->ends[i] = (GsRange) { sym.va, sym.va + sym.size };
        }
    }
    r->switch_to = gs_kernel_address(k, "__switch_to");
    r->init = (GsRange) { gs_kernel_address(k, "_sinittext"),
                          gs_kernel_address(k, "_einittext") };
}

static void *begin_rules(GsCfi *w, const GsKernel *k, const GsMem *mem)
{
    const GsFrameRules *rules = gs_frame_rules_find(k);
    Rules *r;

    if (!mem || rules != &gs_riscv64_frames) {
        return NULL;
    }
    r = g_new0(Rules, 1);
    r->w = w;
    r->mem = mem;
    gs_frame_records_prepare(&r->records, rules, k, NULL);
    find_functions(r, k);
    r->usual = put_cie(w, false);
    r->signal = put_cie(w, true);
    return r;
}

static void add_code(void *maker, const GsCfiCode *code)
{
    Rules *r = maker;

    r->carries = false;
    gs_cfi_foreach_function(code, r->mem, put_function, r);
}

const GsCfiMaker gs_riscv64_cfi_maker = {
    .made_of = "frame records", .begin = begin_rules,
    .add = add_code,
};
