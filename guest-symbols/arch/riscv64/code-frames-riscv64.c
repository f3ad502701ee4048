/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds callers by code of riscv64: evaluates what riscv64-flow.c
 * finds, as the rules of cfi-riscv64.c say it to debuggers. Owns
 * gs_riscv64_code; called by code-frames.c.
 */
#include "guest-symbols/arch/arch-internal.h"
#include "guest-symbols/arch/riscv64/riscv64-internal.h"
#include "guest-symbols/kernel/kernel.h"

#include <string.h>

/* How many functions may run into the next one, one after the other. */
#define CARRIES 4

static GsRvFlow *follow(const GsFrameRecords *f, const GsCode *fn,
                        const GsRvFrame *carried)
{
    GsRvCode kind = gs_range_has(f->entry, fn->range.start) ? GS_RV_EXCEPTION :
                    !strcmp(fn->name, "__switch_to") ? GS_RV_SWITCH :
                                                       GS_RV_FUNCTION;

    return gs_rv_flow_new(kind, carried, fn->bytes,
                          fn->range.end - fn->range.start);
}

/* Find functions in front of @start, each right before the next. Returns: how
 * many; @at: (out) where they begin, the last one first */
static size_t find_before(const GsKernel *k, uint64_t start,
                          uint64_t at[CARRIES])
{
    GsSymbol sym;
    size_t n = 0;

    while (n < CARRIES && gs_kernel_symbolize(k, start - 1, &sym) &&
           sym.va + sym.size == start) {
        at[n++] = start = sym.va;
    }
    return n;
}

/* Does the function at @va run into the code behind it? @carries: the one
 * before runs into this one, with the frame *@end; @end: (out) its own there */
static bool runs_on(const GsFrameRecords *f, const Walk *w, uint64_t va,
                    bool carries, GsRvFrame *end)
{
    g_auto(GsCode) fn = { 0 };
    g_autoptr(GsRvFlow) flow = NULL;
    const GsRvFrame *found;

    if (!gs_code_at(f->code->k, w, va, &fn)) {
        return false;
    }
    flow = follow(f, &fn, carries ? end : NULL);
    found = flow ? gs_rv_flow_end(flow) : NULL;
    *end = found ? *found : (GsRvFrame) { 0 };
    return found;
}

static GsRvFlow *flow_of(const GsFrameRecords *f, const Walk *w,
                         const GsCode *fn)
{
    uint64_t at[CARRIES];
    size_t n = find_before(f->code->k, fn->range.start, at);
    GsRvFrame carried = { 0 };
    bool carries = false;

    while (n--) {
        carries = runs_on(f, w, at[n], carries, &carried);
    }
    return follow(f, fn, carries ? &carried : NULL);
}

/* Read a place of @s; @cfa: its CFA. */
static bool read_place(const GsCodeFrames *c, Walk *w, const GsRvPlace *place,
                       uint64_t cfa, unsigned reg, uint64_t *out)
{
    uint64_t base = place->kind == GS_RV_AT_CFA ? cfa : c->reg[place->reg];

    *out = c->reg[reg];
    return place->kind == GS_RV_LIVE ||
           read_word(w, base + (uint64_t)(int64_t)place->off, out);
}

static bool find_cfa(const GsCodeFrames *c, Walk *w, const GsRvFrame *s,
                     uint64_t *cfa)
{
    switch (s->cfa) {
    case GS_RV_BY_S0:
        *cfa = c->reg[GS_RV_S0] + (uint64_t)(int64_t)s->above;
        return true;
    case GS_RV_BY_WORD:
        return read_word(w, c->reg[s->word.reg] +
                            (uint64_t)(int64_t)s->word.off, cfa);
    default:
        *cfa = c->reg[GS_RV_SP] + (uint64_t)(int64_t)s->depth;
        return true;
    }
}

static bool step_called(const GsCodeFrames *c, Walk *w, const GsRvFrame *s,
                        uint64_t cfa)
{
    uint64_t ra, s0;

    if (!gs_frame_records_move(w, cfa) ||
        !read_place(c, w, &s->ra, cfa, GS_RV_RA, &ra) ||
        !read_place(c, w, &s->s0, cfa, GS_RV_S0, &s0) || !ra) {
        return false;
    }
    w->ip = ra;
    w->bp = s0;
    return true;
}

/* The entry of exceptions has the interrupted registers in their places, or in
 * the part of the struct pt_regs that is stored. */
static bool step_sepc(GsCodeFrames *c, Walk *w, const GsRvFrame *s,
                      uint64_t cfa, GsStop *stop)
{
    uint64_t pc = c->sepc, ra, sp, s0;

    if (pc && !gs_walk_in_kernel(w, pc)) {
        *stop = GS_STOP_USER;
        return true;
    }
    if (!pc || !read_place(c, w, &s->sp, cfa, GS_RV_SP, &sp) ||
        !read_place(c, w, &s->ra, cfa, GS_RV_RA, &ra) ||
        !read_place(c, w, &s->s0, cfa, GS_RV_S0, &s0) ||
        !gs_frame_records_move(w, sp - 8)) {
        return false;
    }
    w->ip = pc;
    w->bp = c->reg[GS_RV_S0] = s0;
    w->exact = 1;
    c->reg[GS_RV_RA] = ra;
    c->reg[GS_RV_SP] = sp;
    c->sepc = 0;
    c->known = true;
    return true;
}

static bool step_frame(const GsFrameRecords *f, Walk *w, const GsRvFrame *s,
                       GsStop *stop)
{
    uint64_t cfa;

    if (!find_cfa(f->code, w, s, &cfa)) {
        return false;
    }
    switch (s->pc) {
    case GS_RV_PC_SEPC:
        return step_sepc(f->code, w, s, cfa, stop);
    case GS_RV_PC_REGS:
        if (!gs_frame_records_move(w, cfa)) {
            return false;
        }
        *stop = f->code->records->step(f, w);   /* the struct is at w->sp */
        return true;
    default:
        return step_called(f->code, w, s, cfa);
    }
}

static bool step(const GsFrameRecords *f, Walk *w, const GsCode *fn,
                 GsStop *stop)
{
    g_autoptr(GsRvFlow) flow = NULL;
    const GsRvFrame *s;

    *stop = GS_GO_ON;
    if (gs_frame_records_is_outermost(f, w->ip + 1)) {
        *stop = GS_STOP_END;
        return true;
    }
    flow = flow_of(f, w, fn);
    s = flow ? gs_rv_flow_at(flow, w->ip - fn->range.start) : NULL;
    return s && step_frame(f, w, s, stop);
}

const GsCodeRules gs_riscv64_code = { step, NULL };
