/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ORC as call frame information. Called while a debug file is made, by that
 * thread; no state.
 *
 * An ORC entry says where the caller's sp is, and where its rbp. DWARF says the
 * same, with the CFA in the place of the caller's sp:
 *
 *     ORC                              DWARF
 *     CALL, sp = sp + 16,              CFA = rsp + 16, return address at
 *           bp at CFA - 16             CFA - 8, rbp at CFA - 16
 *     CALL, sp = *(sp) + 8             CFA by an expression (interrupt stacks)
 *     REGS at sp + 0                   CFA = rsp, the address of the struct
 *                                      pt_regs; each register at CFA + its
 *                                      offset, rip and rsp among them
 *     REGS_PARTIAL at sp + 0           CFA = rsp; rip at CFA, rsp at CFA + 24;
 *                                      all others are not saved yet, but live
 *     END, UNDEFINED                   no return address
 *
 * ORC says nothing about rbx and r12 to r15, so their values in callers are
 * undefined, except for those of interrupted code.
 *
 * A debugger looks up a caller one byte below its return address, as ka does.
 * For code that was interrupted this is wrong. So functions with such frames
 * get the CIE with 'S' (signal frame). Functions that run on one stack and
 * return to another one get this CIE, too: gdb ends a backtrace whose stack
 * does not grow, except at signal frames.
 */
#include "guest-symbols/export/cfi-orc.h"
#include "guest-symbols/export/cfi-maker.h"

/* DWARF numbers (System V ABI, AMD64 supplement). */
enum {
    RBX = 3, RBP = 6, RSP = 7, R12 = 12, R15 = 15, RIP = 16, RFLAGS = 49,
    NONE = 0xff,
};

/* The DWARF numbers of the words of struct pt_regs: r15 to r12, bp, bx, r11 to
 * r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss. */
static const uint8_t regs_word[] = {
    15, 14, 13, 12, RBP, RBX, 11, 10, 9, 8, 0, 2, 1, 4, 5, NONE, RIP, NONE,
    RFLAGS, RSP, NONE,
};
#define PT_BP 32

/* What a range begins with: the rule of the CIE. */
static const GsOrcRule first_rule = {
    .type = GS_ORC_CALL, .sp = GS_ORC_SP, .sp_off = 8,
};

/* The code pushed rbp, and rsp was copied to rbp. */
static const GsOrcRule by_bp = {
    .type = GS_ORC_CALL, .sp = GS_ORC_SP_BP, .sp_off = 16,
    .bp = GS_ORC_BP_AT_CFA, .bp_off = -16,
};

static void put_cie_rules(GsCfi *w)
{
    gs_cfi_cfa(w, RSP, first_rule.sp_off);
    gs_cfi_saved(w, RIP, -8);
    gs_cfi_undefined(w, RBX);
    for (unsigned reg = R12; reg <= R15; reg++) {
        gs_cfi_undefined(w, reg);
    }
    gs_cfi_end(w);
}

GsOrcCies gs_orc_cies(GsCfi *w)
{
    GsOrcCies cies;

    cies.usual = gs_cfi_begin_cie(w, false, RIP);
    put_cie_rules(w);
    cies.signal = gs_cfi_begin_cie(w, true, RIP);
    put_cie_rules(w);
    return cies;
}

/* ---- one rule ----------------------------------------------------------- */

/* The bits of a rule that DWARF can say. */
static GsOrcRule plain(const GsOrcRule *rule)
{
    GsOrcRule r = *rule;

    r.exact = 0;
    if (r.type < GS_ORC_CALL) {
        return (GsOrcRule) { .type = GS_ORC_END, .sp = GS_ORC_SP, .sp_off = 8 };
    }
    return r;
}

/* Return the rules that @type has changed to those of the CIE. */
static void restore(GsCfi *w, GsOrcType type)
{
    switch (type) {
    case GS_ORC_REGS:
        for (size_t i = 0; i < G_N_ELEMENTS(regs_word); i++) {
            if (regs_word[i] != NONE) {
                gs_cfi_restore(w, regs_word[i]);
            }
        }
        break;
    case GS_ORC_REGS_PARTIAL:
        gs_cfi_restore(w, RBX);
        for (unsigned reg = R12; reg <= R15; reg++) {
            gs_cfi_restore(w, reg);
        }
        gs_cfi_restore(w, RFLAGS);
        gs_cfi_restore(w, RSP);
        gs_cfi_restore(w, RIP);
        break;
    default:
        gs_cfi_restore(w, RIP);
        break;
    }
}

/* The registers of the code that was interrupted, but for rbp. */
static void put_regs(GsCfi *w)
{
    for (size_t i = 0; i < G_N_ELEMENTS(regs_word); i++) {
        if (regs_word[i] != NONE && regs_word[i] != RBP) {
            gs_cfi_saved(w, regs_word[i], 8 * i);
        }
    }
}

static void put_partial_regs(GsCfi *w)
{
    gs_cfi_saved(w, RIP, 0);
    gs_cfi_saved(w, RFLAGS, 16);
    gs_cfi_saved(w, RSP, 24);
    gs_cfi_same(w, RBX);
    for (unsigned reg = R12; reg <= R15; reg++) {
        gs_cfi_same(w, reg);
    }
}

static void put_type(GsCfi *w, GsOrcType from, GsOrcType to)
{
    if (from != GS_ORC_CALL) {
        restore(w, from);
    }
    switch (to) {
    case GS_ORC_REGS:
        put_regs(w);
        break;
    case GS_ORC_REGS_PARTIAL:
        put_partial_regs(w);
        break;
    case GS_ORC_END:
        gs_cfi_undefined(w, RIP);
        break;
    default:
        break;
    }
}

static unsigned word_reg(int off)
{
    size_t i = off / 8;

    return off >= 0 && i < G_N_ELEMENTS(regs_word) ? regs_word[i] : NONE;
}

static void put_cfa(GsCfi *w, const GsOrcRule *r)
{
    switch (r->sp) {
    case GS_ORC_SP_BP:
        gs_cfi_cfa(w, RBP, r->sp_off);
        break;
    case GS_ORC_SP_AT_SP:
        gs_cfi_cfa_at(w, RSP, 0, r->sp_off);
        break;
    case GS_ORC_SP_AT_SP_OFF:
        gs_cfi_cfa_at(w, RSP, r->sp_off, 0);
        break;
    case GS_ORC_SP_AT_BP_OFF:
        gs_cfi_cfa_at(w, RBP, r->sp_off, 0);
        break;
    case GS_ORC_SP_REG:
        if (word_reg(r->sp_off) < RIP) {
            gs_cfi_cfa(w, word_reg(r->sp_off), 0);
        }
        break;
    default:
        gs_cfi_cfa(w, RSP, r->sp_off);
        break;
    }
}

static void put_bp(GsCfi *w, const GsOrcRule *r)
{
    if (r->bp == GS_ORC_BP_AT_BP) {
        gs_cfi_saved_by(w, RBP, RBP, r->bp_off);
    } else if (r->bp == GS_ORC_BP_AT_CFA && r->bp_off % 8 == 0) {
        gs_cfi_saved(w, RBP, r->bp_off);
    } else if (r->bp == GS_ORC_BP_AT_CFA) {
        gs_cfi_undefined(w, RBP);
    } else if (r->type == GS_ORC_REGS) {
        gs_cfi_saved(w, RBP, PT_BP);
    } else {
        gs_cfi_same(w, RBP);
    }
}

static bool same_cfa(const GsOrcRule *a, const GsOrcRule *b)
{
    return a->sp == b->sp && a->sp_off == b->sp_off;
}

static bool same_bp(const GsOrcRule *a, const GsOrcRule *b)
{
    return a->bp == b->bp &&
           (a->bp == GS_ORC_BP_KEEP || a->bp_off == b->bp_off);
}

/* Write how @to differs from @from, which is in force at w->pc. */
static void put_rule(GsCfi *w, uint64_t pc, GsOrcRule *from, GsOrcRule to)
{
    bool typed = from->type != to.type;

    if (!typed && same_cfa(from, &to) && same_bp(from, &to)) {
        return;
    }
    gs_cfi_advance(w, pc);
    if (typed) {
        put_type(w, from->type, to.type);
    }
    if (!same_cfa(from, &to)) {
        put_cfa(w, &to);
    }
    if (!same_bp(from, &to) ||
        (typed && (from->type == GS_ORC_REGS || to.type == GS_ORC_REGS))) {
        put_bp(w, &to);
    }
    *from = to;
}

/* ---- ranges ------------------------------------------------------------- */

/**
 * struct Place - a place in an ORC table
 * @i: the first entry behind the code that was written
 */
typedef struct Place {
    GsOrcCode code;
    size_t i;
} Place;

/*
 * Return the address from which @to is in force; ORC says @pc.
 *
 * lldb 14 looks up a caller at its return address. Behind a call that does not
 * return this is other code, or none. So the rule of the call holds for one
 * byte more if nothing can stand there:
 *
 *     call start_kernel       CFA = rsp + 24
 *     ud2                     a branch leads here: CFA = rsp + 8
 *
 * ORC has no rule where there is no code. Freed code does not run, so all of
 * its addresses on stacks are return addresses.
 */
static uint64_t force_from(const Place *p, uint64_t pc, const GsOrcRule *from,
                           const GsOrcRule *to)
{
    bool freed = gs_range_has(p->code.freed, pc);

    return pc + (freed || (from->type == GS_ORC_CALL &&
                           to->type == GS_ORC_UNDEFINED));
}

static bool rule_at(const Place *p, size_t i, uint64_t end, uint64_t *pc,
                    const GsOrcRule **rule)
{
    if (i >= gs_orc_table_n(p->code.table)) {
        return false;
    }
    *rule = gs_orc_table_nth(p->code.table, i, pc);
    *pc += p->code.slide;
    return *pc < end;
}

/* Do the caller's registers come from an interrupt, or from another stack? */
static bool needs_signal(const GsOrcRule *r)
{
    return r->type >= GS_ORC_REGS || r->exact || r->sp == GS_ORC_SP_AT_SP;
}

static bool range_needs_signal(const Place *p, const GsOrcRule *first,
                               uint64_t end)
{
    const GsOrcRule *rule = first;
    uint64_t pc;

    for (size_t i = p->i; !needs_signal(rule); i++) {
        if (!rule_at(p, i, end, &pc, &rule)) {
            return false;
        }
    }
    return true;
}

static void put_range(GsCfi *w, const GsOrcCies *cies, Place *p, GsRange r)
{
    static const GsOrcRule unknown = { .type = GS_ORC_UNDEFINED };
    const GsOrcRule *rule = gs_orc_table_find(p->code.table,
                                              r.start - p->code.slide);
    GsOrcRule now = first_rule;
    uint64_t pc;

    rule = rule ? rule : &unknown;
    gs_cfi_begin_fde(w, range_needs_signal(p, rule, r.end) ? cies->signal :
                                                             cies->usual,
                     r.start, r.end);
    put_rule(w, r.start, &now, plain(rule));
    for (; rule_at(p, p->i, r.end, &pc, &rule); p->i++) {
        put_rule(w, force_from(p, pc, &now, rule), &now, plain(rule));
    }
    gs_cfi_end(w);
}

/* Make @at the first entry behind @va. */
static void skip_to(Place *at, uint64_t va)
{
    const GsOrcRule *rule;
    uint64_t pc;

    while (rule_at(at, at->i, UINT64_MAX, &pc, &rule) && pc <= va) {
        at->i++;
    }
}

void gs_orc_cfi(GsCfi *w, const GsOrcCies *cies, const GsOrcCode *code,
                GsRange range, const uint64_t *start, size_t n)
{
    Place p = { .code = *code };
    size_t i = 0;

    while (range.start < range.end) {
        GsRange piece = gs_cfi_next_piece(&range, start, n, &i);

        skip_to(&p, piece.start);
        put_range(w, cies, &p, piece);
    }
}

void gs_orc_cfi_by_bp(GsCfi *w, const GsOrcCies *cies, GsRange range,
                      const uint64_t *start, size_t n)
{
    size_t i = 0;

    while (range.start < range.end) {
        GsRange piece = gs_cfi_next_piece(&range, start, n, &i);
        GsOrcRule now = first_rule;

        gs_cfi_begin_fde(w, cies->usual, piece.start, piece.end);
        put_rule(w, piece.start, &now, by_bp);
        gs_cfi_end(w);
    }
}

/* ---- of a kernel -------------------------------------------------------- */

typedef struct Maker {
    GsCfi *w;
    const GsKernel *k;
    GsOrcCies cies;
    GsRange freed;
} Maker;

static void *begin(GsCfi *w, const GsKernel *k, const GsMem *mem)
{
    Maker *m;

    if (!gs_orc_set_table(k->orc)) {
        return NULL;
    }
    m = g_new(Maker, 1);
    *m = (Maker) { w, k, gs_orc_cies(w), gs_cfi_freed(k, mem) };
    return m;
}

static void add(void *maker, const GsCfiCode *c)
{
    const Maker *m = maker;
    g_autoptr(GsOrcTable) own = c->module ?
        gs_orc_set_module_table(m->k->orc, c->module) : NULL;
    GsOrcCode code = { own };

    if (!c->module) {
        code = (GsOrcCode) { gs_orc_set_table(m->k->orc), m->k->slide,
                             m->freed };
    }
    if (code.table) {
        gs_orc_cfi(m->w, &m->cies, &code, c->range, c->start, c->n);
    } else {
        gs_orc_cfi_by_bp(m->w, &m->cies, c->range, c->start, c->n);
    }
}

const GsCfiMaker gs_orc_cfi_maker = {
    .made_of = "ORC", .begin = begin, .add = add,
};
