/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Follows the instructions of an arm64 function along its branches, and keeps
 * where the caller's x29, its sp and the return address are. Called by
 * cfi-arm64.c and code-frames-arm64.c; no state is kept.
 *
 *     instruction                    the frame behind it
 *                                    CFA = sp,       return address in x30
 *     stp x29, x30, [sp, #-48]!      CFA = sp + 48,  both saved at CFA - 48
 *     mov x29, sp                    CFA = x29 + 48, both saved at CFA - 48
 *     cbz x0, 1f                     the same, also at 1f
 *     ...
 *     ldp x29, x30, [sp], #48        CFA = sp,       return address in x30
 *     ret                            nothing
 *
 * The code behind a call is followed last, from lower to higher addresses: if
 * the callee does not return, other code may follow, which is reached by a
 * branch from somewhere else. Code that nothing leads to (a target of a table,
 * of a patched branch, of an exception) has the frame of the code that it
 * jumps to, or of the function's body.
 *
 * Entries of exceptions are recognised by what they do (arch/arm64/kernel/
 * entry.S). Each stores all registers in a struct pt_regs at sp:
 *
 *     stp x0, x1, [sp, #0]           pc not known: caller by x29's record
 *     ...
 *     stp x28, x29, [sp, #224]
 *     add x21, sp, #336              sp of the interrupted code: not from user
 *     mrs x22, elr_el1               pc of the interrupted code is in x22
 *     stp x30, x21, [sp, #240]
 *     add x29, sp, #304              x29 of that code is saved at sp + 232
 *     stp x22, x23, [sp, #256]       all is saved in struct pt_regs
 *
 * The way back is recognised by its load of the pc for elr_el1.
 */
#include "guest-symbols/arch/arm64/arm64-internal.h"

/* Offsets in struct pt_regs (uapi/asm/ptrace.h). */
#define PT_X29  (8 * GS_ARM64_X29)
#define PT_PC   (8 * GS_ARM64_PC)

/* If x9 has a copy of x30, the callee is a tracer that restores x30. */
enum { X9 = 9 };

#define PASSES  4

/* The frame of a function that was called, before its first instruction. */
static const GsArm64State at_entry = {
    .rule = GS_ARM64_CALLED, .sp_known = true, .x29_live = true,
};

/**
 * struct Flow - one function
 * @at: before each instruction, as far as it is known
 * @todo: uint32_t, instructions to go on from
 * @first: @at[0]
 * @body: between prologue and epilogue, if its rule is set
 * @user: exceptions come from user mode, or go there
 */
typedef struct Flow {
    const uint8_t *code;
    size_t n;
    GsArm64State *at;
    GArray *todo;
    GsArm64State first, body;
    bool user;
} Flow;

/* ---- what a function is ------------------------------------------------- */

/**
 * struct Marks - instructions that make a function an entry or a way back
 * @elr, @pc: registers with the interrupted pc: from elr_el1, from pt_regs
 */
typedef struct Marks {
    uint8_t elr, pc;
    bool has_sp, is_entry, is_return, writes_sp_el0;
} Marks;

static void mark(Marks *m, const GsArm64Insn *in)
{
    if (in->kind == GS_ARM64_COPY_SP && in->n && m->elr == GS_ARM64_NO_REG) {
        m->has_sp = true;
    } else if (in->kind == GS_ARM64_READ_ELR && m->elr == GS_ARM64_NO_REG) {
        m->elr = in->reg;
    } else if (in->kind == GS_ARM64_STORE && in->n == PT_PC) {
        m->is_entry |= in->reg == m->elr && in->reg2 != GS_ARM64_NO_REG;
    } else if (in->kind == GS_ARM64_LOAD && in->n == PT_PC) {
        m->pc = in->reg;
    } else if (in->kind == GS_ARM64_WRITE_ELR) {
        m->is_return |= in->reg == m->pc;
    }
    m->writes_sp_el0 |= in->kind == GS_ARM64_WRITE_SP_EL0;
}

static void find_first(Flow *f)
{
    Marks m = { .elr = GS_ARM64_NO_REG, .pc = GS_ARM64_NO_REG };

    for (size_t i = 0; i < f->n; i++) {
        GsArm64Insn in = gs_arm64_insn(f->code, i);

        mark(&m, &in);
    }
    f->first = at_entry;
    if (m.is_entry) {
        f->user = !m.has_sp;
        f->first.rule = f->user ? GS_ARM64_END : GS_ARM64_RECORD;
    } else if (m.is_return) {
        f->user = m.writes_sp_el0;
        f->first.rule = GS_ARM64_REGS;
    }
}

/* ---- functions ---------------------------------------------------------- */

static void set_x29(GsArm64State *s, int64_t n)
{
    bool is_record = s->ra == GS_ARM64_RA_SAVED &&
                     s->ra_at == n + 8 - s->sp_off;

    s->by_x29 = true;
    s->x29_off = s->sp_off - n;
    s->x29_live = false;
    if (is_record) {
        s->x29_saved = true;
        s->x29_at = n - s->sp_off;
    }
}

/* A register is stored at CFA + @at. */
static void store(GsArm64State *s, unsigned reg, int64_t at)
{
    if (reg == GS_ARM64_X29 && s->x29_live && !s->x29_saved) {
        s->x29_saved = true;
        s->x29_at = at;
    } else if (reg == GS_ARM64_X30 && s->ra == GS_ARM64_RA_X30) {
        s->ra = GS_ARM64_RA_SAVED;
        s->ra_at = at;
    }
}

static bool is_at(const GsArm64State *s, int64_t n, int64_t at)
{
    return !s->sp_known || n - s->sp_off == at;
}

/* A register is loaded from sp + @n. The place of the saved x29 says where sp
 * is, if it was not known. Compilers use x30 for other values, too. */
static void load(GsArm64State *s, unsigned reg, int64_t n)
{
    if (reg == GS_ARM64_X29 && s->x29_saved && is_at(s, n, s->x29_at)) {
        s->sp_off = n - s->x29_at;
        s->sp_known = s->x29_live = true;
        s->by_x29 = s->x29_saved = false;
    } else if (reg == GS_ARM64_X30 && s->ra == GS_ARM64_RA_SAVED &&
               is_at(s, n, s->ra_at)) {
        s->ra = GS_ARM64_RA_X30;
    }
}

static void access_stack(GsArm64State *s, const GsArm64Insn *in)
{
    s->sp_off -= in->before;
    if (in->kind == GS_ARM64_STORE) {
        store(s, in->reg, in->n - s->sp_off);
        store(s, in->reg2, in->n + 8 - s->sp_off);
    } else {
        load(s, in->reg, in->n);
        load(s, in->reg2, in->n + 8);
    }
    s->sp_off -= in->after;
}

static void step_called(GsArm64State *s, const GsArm64Insn *in)
{
    switch (in->kind) {
    case GS_ARM64_MOVE_SP:
        s->sp_off -= in->n;
        break;
    case GS_ARM64_SP_BY_X29:
        s->sp_known |= s->by_x29;
        s->sp_off = s->by_x29 ? s->x29_off - in->n : s->sp_off;
        break;
    case GS_ARM64_SP_UNKNOWN:
        s->sp_known = false;
        break;
    case GS_ARM64_SET_X29:
        if (s->sp_known) {
            set_x29(s, in->n);
        }
        break;
    case GS_ARM64_COPY_X30:
        s->copy = s->ra == GS_ARM64_RA_X30 ? in->reg : 0;
        break;
    case GS_ARM64_STORE:
    case GS_ARM64_LOAD:
        access_stack(s, in);
        break;
    default:
        break;
    }
}

/* ---- exceptions --------------------------------------------------------- */

static void set_entry_x29(GsArm64State *s, int64_t n)
{
    s->x29_off = -n;
    s->x29_live = false;
    s->x29_saved = true;
    s->x29_at = PT_X29 - s->sp_off;
}

/* @size: of struct pt_regs, known if the exception came from the kernel */
static void step_entry(const Flow *f, GsArm64State *s, const GsArm64Insn *in)
{
    if (in->kind == GS_ARM64_COPY_SP && s->rule == GS_ARM64_RECORD) {
        s->sp_off = in->n;
    } else if (in->kind == GS_ARM64_READ_ELR && s->rule == GS_ARM64_RECORD) {
        s->rule = GS_ARM64_ELR;
        s->reg = in->reg;
    } else if (in->kind == GS_ARM64_SET_X29) {
        set_entry_x29(s, in->n);
    } else if (in->kind == GS_ARM64_STORE && in->n == PT_PC) {
        s->rule = GS_ARM64_REGS;
        s->sp_off = 0;
        s->by_x29 = !s->x29_live;
    } else if (in->kind == GS_ARM64_LOAD && s->rule == GS_ARM64_REGS &&
               (in->reg == GS_ARM64_X29 || in->reg2 == GS_ARM64_X29)) {
        s->by_x29 = false;
        s->x29_live = true;
    } else if (in->kind == GS_ARM64_MOVE_SP && s->rule == GS_ARM64_REGS) {
        s->rule = f->user ? GS_ARM64_END : GS_ARM64_RECORD;
    }
}

/* ---- the way through a function ----------------------------------------- */

/* Code at @i is reached with the frame @s. */
static void reach(Flow *f, size_t i, const GsArm64State *s, bool weak)
{
    uint32_t next = (uint32_t)i;
    GsArm64State *at = i < f->n ? &f->at[i] : NULL;

    if (!at || (at->rule && (weak || !at->weak))) {
        return;
    }
    *at = *s;
    at->weak = weak;
    if (!weak) {
        g_array_append_val(f->todo, next);
    }
}

/* A call overwrites x30. @at is the frame as callees find it. */
static void step_call(GsArm64State *at, GsArm64State *s)
{
    if (s->rule == GS_ARM64_CALLED && s->ra == GS_ARM64_RA_X30) {
        if (s->copy == X9) {
            at->rule = GS_ARM64_RECORD;
        } else {
            s->ra = s->copy ? GS_ARM64_RA_REG : GS_ARM64_RA_LOST;
            s->reg = s->copy;
            *at = *s;
        }
    }
}

static void visit(Flow *f, size_t i)
{
    GsArm64Insn in = gs_arm64_insn(f->code, i);
    GsArm64State s = f->at[i];

    if (s.rule == GS_ARM64_CALLED) {
        step_called(&s, &in);
    } else {
        step_entry(f, &s, &in);
    }
    if (!f->body.rule && s.rule == GS_ARM64_CALLED && s.by_x29) {
        f->body = s;
    }
    if (in.flow == GS_ARM64_CALL) {
        step_call(&f->at[i], &s);
    }
    if (in.flow <= GS_ARM64_BRANCH) {
        reach(f, i + 1, &s, false);
    } else if (in.flow == GS_ARM64_CALL || in.flow == GS_ARM64_TRAP) {
        reach(f, i + 1, &s, true);
    }
    if (in.flow == GS_ARM64_BRANCH || in.flow == GS_ARM64_JUMP) {
        reach(f, i + (size_t)(ptrdiff_t)in.target, &s, false);
    }
}

/* Go on from @i, as far as no call lies between. */
static void follow(Flow *f, size_t i)
{
    uint32_t next = (uint32_t)i;

    f->at[i].weak = false;
    g_array_append_val(f->todo, next);
    while (f->todo->len) {
        next = g_array_index(f->todo, uint32_t, f->todo->len - 1);
        g_array_set_size(f->todo, f->todo->len - 1);
        visit(f, next);
    }
}

/* ---- code that nothing leads to ----------------------------------------- */

/* Return the frame of the code that @i jumps to, or falls into, if no frame is
 * made before. */
static const GsArm64State *find_known(const Flow *f, size_t i)
{
    for (; i < f->n; i++) {
        GsArm64Insn in = gs_arm64_insn(f->code, i);
        size_t to = i + (size_t)(ptrdiff_t)in.target;
        bool jumps = in.flow == GS_ARM64_BRANCH || in.flow == GS_ARM64_JUMP;

        if (f->at[i].rule) {
            return &f->at[i];
        }
        if (jumps && to < f->n && f->at[to].rule) {
            return &f->at[to];
        }
        if (in.flow == GS_ARM64_LEAVE || (in.flow == GS_ARM64_JUMP &&
                                          to >= f->n)) {
            return &f->first;
        }
        if (in.kind != GS_ARM64_OTHER || in.flow == GS_ARM64_JUMP ||
            in.flow == GS_ARM64_INDIRECT) {
            break;
        }
    }
    return f->body.rule ? &f->body : &f->first;
}

static void pass(Flow *f, bool last)
{
    for (size_t i = 0; i < f->n; i++) {
        if (!f->at[i].rule && last) {
            f->at[i] = *find_known(f, i);
            f->at[i].weak = true;
        }
        if (f->at[i].weak) {
            follow(f, i);
        }
    }
}

GsArm64State *gs_arm64_flow(const uint8_t *code, size_t n)
{
    Flow f = {
        .code = code, .n = n, .at = g_new0(GsArm64State, n + 1),
        .todo = g_array_new(false, false, sizeof(uint32_t)),
    };

    find_first(&f);
    if (n) {
        f.at[0] = f.first;
        f.at[0].weak = true;
    }
    for (unsigned i = 1; i <= PASSES; i++) {
        pass(&f, i == PASSES);
    }
    g_array_unref(f.todo);
    return f.at;
}
