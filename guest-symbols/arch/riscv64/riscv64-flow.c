/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Follows the paths through a function of riscv64, see riscv64-internal.h.
 *
 * A compiler saves registers only on paths that need it, and puts the ends of
 * such paths anywhere:
 *
 *              beqz  a0, out
 *              addi  sp, sp, -32       the frame is made
 *              ...
 *              addi  sp, sp, 32        and removed
 *              ret
 *        out:  li    a0, -22           no frame here
 *              ret
 *
 * So the frame at an instruction is that of the instruction that leads there.
 * If several do, the first one counts; they agree in code of compilers.
 *
 * Some calls and most traps do not return. The code behind them may then have
 * the frame of another branch. So branches are followed first, the code behind
 * calls next, and the code behind traps last. Code that is not reached by then
 * is the target of a jump table: the function has its whole frame there.
 *
 * The code is untrusted: each instruction is visited once, and the number of
 * different frames is limited.
 */
#include "guest-symbols/arch/riscv64/riscv64-internal.h"

/* More than any function has; the entry of exceptions has seven. */
#define MAX_FRAMES 250

/* The second halfword of an instruction. */
#define INSIDE 255

/* An instruction, in halfwords from the start, and the frame there. */
typedef struct Visit {
    size_t at;
    uint8_t frame;
} Visit;

/**
 * struct GsRvFlow - see riscv64-internal.h
 * @n: halfwords of code
 * @at: for each halfword the number of its frame, or INSIDE; 0: not visited
 * @frames: GsRvFrame, by their numbers; the first is not used
 * @now, @later, @last: Visit, to be made in this order
 * @body: frame of most of the function; 0: not known
 * @end: frame behind the code; 0: no path leads there
 * @calls: a call was seen
 * @many: there were more than MAX_FRAMES
 */
struct GsRvFlow {
    GsRvCode code;
    const uint8_t *bytes;
    size_t n;
    uint8_t *at;
    GArray *frames, *now, *later, *last;
    uint8_t body, end;
    bool calls, changes_stack, many;
};

static GsRvFrame *nth_frame(const GsRvFlow *f, unsigned i)
{
    return &g_array_index(f->frames, GsRvFrame, i);
}

/* @like: a frame that is likely to be the same. */
static uint8_t number_of(GsRvFlow *f, const GsRvFrame *frame, uint8_t like)
{
    if (like && gs_rv_frame_equal(nth_frame(f, like), frame)) {
        return like;
    }
    for (unsigned i = 1; i < f->frames->len; i++) {
        if (gs_rv_frame_equal(nth_frame(f, i), frame)) {
            return i;
        }
    }
    if (f->frames->len > MAX_FRAMES) {
        f->many = true;
        return 1;
    }
    g_array_append_vals(f->frames, frame, 1);
    return f->frames->len - 1;
}

static void visit(const GsRvFlow *f, GArray *when, size_t at, uint8_t frame)
{
    Visit v = { at, frame };

    if (at < f->n && !f->at[at]) {
        g_array_append_val(when, v);
    }
}

/* Does the path continue behind @insn? @next: the number of the frame there. */
static bool continues(GsRvFlow *f, const GsRvInsn *insn, size_t at,
                      uint8_t next)
{
    switch (insn->kind) {
    case GS_RV_BRANCH:
        visit(f, f->now, at + insn->imm / 2, next);
        return true;
    case GS_RV_JUMP:
        visit(f, f->now, at + insn->imm / 2, next);
        return false;
    case GS_RV_CALL:
    case GS_RV_TRAP:
        f->calls = true;
        visit(f, insn->kind == GS_RV_CALL ? f->later : f->last,
              at + insn->len / 2, next);
        return false;
    case GS_RV_LEAVE:
        return false;
    default:
        return true;
    }
}

static void follow(GsRvFlow *f, size_t at, uint8_t frame)
{
    while (at < f->n && !f->at[at]) {
        GsRvInsn insn = gs_rv_decode(f->bytes + at * 2, (f->n - at) * 2);
        GsRvFrame next = *nth_frame(f, frame);

        f->at[at] = frame;
        if (insn.len == 4 && at + 1 < f->n && !f->at[at + 1]) {
            f->at[at + 1] = INSIDE;
        }
        gs_rv_frame_step(&next, f->code, &insn);
        f->changes_stack |= gs_rv_changes_stack(&insn);
        frame = number_of(f, &next, frame);
        if (!f->body && next.cfa == GS_RV_BY_S0) {
            f->body = frame;
        }
        if (!continues(f, &insn, at, frame)) {
            return;
        }
        at += insn.len / 2;
    }
    if (at >= f->n && !f->calls) {
        f->end = frame;
    }
}

static bool take(GArray *from, Visit *out)
{
    if (!from->len) {
        return false;
    }
    *out = g_array_index(from, Visit, from->len - 1);
    g_array_set_size(from, from->len - 1);
    return true;
}

static void follow_all(GsRvFlow *f, size_t at, uint8_t frame)
{
    Visit v;

    follow(f, at, frame);
    while (take(f->now, &v) || take(f->later, &v) || take(f->last, &v)) {
        follow(f, v.at, v.frame);
    }
}

/* Follow the code that no path leads to. At the end it is padding. */
static void follow_rest(GsRvFlow *f)
{
    uint8_t end = f->end;

    for (size_t i = 0; i < f->n; i++) {
        if (!f->at[i]) {
            follow_all(f, i, f->body ? f->body : 1);
        }
    }
    f->end = end;
}

GsRvFlow *gs_rv_flow_new(GsRvCode code, const GsRvFrame *carried,
                         const uint8_t *bytes, size_t len)
{
    GsRvInsn insn = gs_rv_decode(bytes, len);
    GsRvFrame first = gs_rv_frame_at(code, &insn);
    GsRvFlow *f = g_new(GsRvFlow, 1);

    *f = (GsRvFlow) {
        .code = code, .bytes = bytes, .n = len / 2,
        .at = g_malloc0(len / 2 + 1),
        .frames = g_array_new(false, true, sizeof(GsRvFrame)),
        .now = g_array_new(false, false, sizeof(Visit)),
        .later = g_array_new(false, false, sizeof(Visit)),
        .last = g_array_new(false, false, sizeof(Visit)),
    };
    g_array_set_size(f->frames, 1);
    follow_all(f, 0, number_of(f, code == GS_RV_FUNCTION && carried ?
                                   carried : &first, 0));
    follow_rest(f);
    if (f->many) {
        gs_rv_flow_free(f);
        return NULL;
    }
    return f;
}

void gs_rv_flow_free(GsRvFlow *f)
{
    if (f) {
        g_free(f->at);
        g_array_unref(f->frames);
        g_array_unref(f->now);
        g_array_unref(f->later);
        g_array_unref(f->last);
        g_free(f);
    }
}

const GsRvFrame *gs_rv_flow_at(const GsRvFlow *f, size_t off)
{
    uint8_t i = off / 2 < f->n ? f->at[off / 2] : 0;

    return i && i != INSIDE ? nth_frame(f, i) : NULL;
}

const GsRvFrame *gs_rv_flow_end(const GsRvFlow *f)
{
    return f->end ? nth_frame(f, f->end) : NULL;
}

bool gs_rv_flow_changes_stack(const GsRvFlow *f)
{
    return f->changes_stack;
}
