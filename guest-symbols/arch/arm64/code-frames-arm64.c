/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds callers by code of arm64: evaluates what arm64-flow.c finds,
 * as the rules of cfi-arm64.c say it to debuggers. Owns
 * gs_arm64_code; called by code-frames.c.
 */
#include "guest-symbols/arch/arch-internal.h"
#include "guest-symbols/arch/arm64/arm64-internal.h"
#include "guest-symbols/kernel/kernel.h"

#include <string.h>

enum { X29 = GS_ARM64_X29, X30 = GS_ARM64_X30, SP = GS_ARM64_SP };

/* struct pt_regs (uapi/asm/ptrace.h) */
enum { REGS_X29 = 29 * 8, REGS_PC = 32 * 8, REGS_PSTATE = 33 * 8 };

#define PSTATE_MODE 0xfull      /* 0: EL0 */

/* Tables of exception vectors: no functions. */
static const char *const vectors[] = {
    "vectors", "tramp_vectors", "__bp_harden_el1_vectors",
};

static uint64_t cfa_of(const GsCodeFrames *c, const GsArm64State *s)
{
    return s->by_x29 ? c->reg[X29] + (uint64_t)s->x29_off :
                       c->reg[SP] + (uint64_t)s->sp_off;
}

static bool find_x29(const GsCodeFrames *c, Walk *w, const GsArm64State *s,
                     uint64_t *x29)
{
    *x29 = c->reg[X29];
    return s->x29_live ||
           (s->x29_saved &&
            read_word(w, cfa_of(c, s) + (uint64_t)s->x29_at, x29));
}

static bool find_return(const GsCodeFrames *c, Walk *w, const GsArm64State *s,
                        uint64_t *ra)
{
    *ra = c->reg[X30];
    switch (s->ra) {
    case GS_ARM64_RA_X30:
        break;
    case GS_ARM64_RA_REG:
        *ra = c->reg[s->reg];
        break;
    case GS_ARM64_RA_SAVED:
        return read_word(w, cfa_of(c, s) + (uint64_t)s->ra_at, ra) && *ra;
    case GS_ARM64_RA_LOST:
        return false;
    }
    return *ra;
}

/* The caller's record may be right at its sp. */
static bool move_to(Walk *w, uint64_t sp)
{
    return gs_frame_records_move(w, sp - 8);
}

static bool step_called(const GsFrameRecords *f, Walk *w, const GsArm64State *s)
{
    uint64_t ra, x29;

    if (!find_return(f->code, w, s, &ra) || !find_x29(f->code, w, s, &x29) ||
        !move_to(w, cfa_of(f->code, s))) {
        return false;
    }
    w->ip = ra | f->canonical;
    w->bp = x29;
    return true;
}

/* An exception came, and most registers are still those of the code that was
 * interrupted. */
static bool step_elr(GsCodeFrames *c, Walk *w, const GsArm64State *s,
                     GsStop *stop)
{
    uint64_t sp = cfa_of(c, s), x29;

    if (!find_x29(c, w, s, &x29) || !move_to(w, sp)) {
        return false;
    }
    w->ip = c->reg[s->reg];
    w->bp = c->reg[X29] = x29;
    w->exact = 1;
    c->reg[SP] = sp;
    c->known = true;
    *stop = gs_walk_in_kernel(w, w->ip) ? GS_GO_ON : GS_STOP_USER;
    return true;
}

static bool step_regs(Walk *w, uint64_t regs, GsStop *stop)
{
    uint64_t pstate;

    if (!move_to(w, regs) || !read_word(w, regs + REGS_PC, &w->ip) ||
        !read_word(w, regs + REGS_X29, &w->bp) ||
        !read_word(w, regs + REGS_PSTATE, &pstate)) {
        return false;
    }
    w->regs = regs;
    w->exact = 1;
    *stop = pstate & PSTATE_MODE ? GS_GO_ON : GS_STOP_USER;
    return true;
}

static bool is_vectors(const char *name)
{
    for (size_t i = 0; i < G_N_ELEMENTS(vectors); i++) {
        if (!strcmp(name, vectors[i])) {
            return true;
        }
    }
    return false;
}

static bool step(const GsFrameRecords *f, Walk *w, const GsCode *fn,
                 GsStop *stop)
{
    size_t n = (fn->range.end - fn->range.start) / 4;
    size_t i = (w->ip - fn->range.start) / 4;
    g_autofree GsArm64State *at = NULL;

    *stop = GS_GO_ON;
    if (i >= n || is_vectors(fn->name)) {
        return false;
    }
    at = gs_arm64_flow(fn->bytes, n);
    switch (at[i].rule) {
    case GS_ARM64_CALLED:
        return step_called(f, w, &at[i]);
    case GS_ARM64_ELR:
        return step_elr(f->code, w, &at[i], stop);
    case GS_ARM64_REGS:
        return step_regs(w, cfa_of(f->code, &at[i]), stop);
    case GS_ARM64_END:
        *stop = GS_STOP_END;
        return true;
    default:
        return false;
    }
}

/* Before 6.13 (commit c2c6b27b5aa1) the record of an exception looks like one
 * of a function. It is in the struct pt_regs, which has the same values. */
static bool enter(const GsFrameRecords *f, Walk *w)
{
    uint64_t record = w->bp, regs = record - f->regs_at, x29, lr, pc, fp;
    GsSymbol sym;

    if (f->has_meta || !f->has_regs_at ||
        !gs_kernel_symbolize(f->code->k, w->ip - 1, &sym) ||
        strncmp(sym.name, "el1", 3) || !read_word(w, record, &x29) ||
        !read_word(w, record + 8, &lr) || !lr ||
        !read_word(w, regs + REGS_PC, &pc) ||
        !read_word(w, regs + REGS_X29, &fp) || pc != lr || fp != x29 ||
        !gs_frame_records_move(w, record)) {
        return false;
    }
    w->ip = pc;
    w->bp = x29;
    w->regs = regs;
    w->exact = 1;
    return true;
}

const GsCodeRules gs_arm64_code = { step, enter };
