/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How instructions of riscv64 change where the caller's registers are. Called
 * by riscv64-flow.c; no state, any thread.
 *
 * A usual function:
 *
 *     instruction            CFA         ra          s0
 *                            sp          in ra       in s0
 *     addi sp, sp, -48       sp + 48
 *     sd   ra, 40(sp)                    CFA - 8
 *     sd   s0, 32(sp)                                CFA - 16
 *     addi s0, sp, 48        s0
 *     ...
 *     ld   ra, 40(sp)
 *     ld   s0, 32(sp)        sp + 48                 in s0
 *     addi sp, sp, 48        sp          in ra
 *     ret
 *
 * ra is taken for saved as long as its place is above sp: in the body compilers
 * load it as the value of __builtin_return_address(), and calls follow.
 *
 * A function without calls may leave ra where it is. One with a variable number
 * of arguments stores the rest of them above its record, and s0 is below the
 * CFA then.
 *
 * The entry of exceptions (handle_exception) finds the interrupted registers in
 * place, except for tp, and the interrupted pc in sepc. It stores them one by
 * one in a struct pt_regs; pc is stored when no other is needed any more.
 *
 *     sd   sp, 16(tp)        sp may be used for other things from here on
 *     ld   sp, 16(tp)
 *     addi sp, sp, -288
 *     sd   ra, 8(sp)
 *     ...
 *     sd   s2, 0(sp)         all are in the struct pt_regs at sp
 *     ...
 *     ld   sp, 16(sp)        all are in their registers again, pc in sepc
 *     sret
 *
 * __switch_to() stores the registers of one task and loads those of another.
 * Its caller is the old task's until it loads ra.
 */
#include "guest-symbols/arch/riscv64/riscv64-internal.h"

#include <glib.h>


/* struct pt_regs: epc, x1, x2, ... x31 (asm/ptrace.h) */
enum { PT_EPC = 0, PT_RA = 8, PT_SP = 16, PT_S0 = 64 };

/* struct thread_struct begins with ra, sp, s0 (asm/processor.h). */
enum { THREAD_SP = 8, THREAD_S0 = 16 };

static GsRvPlace at_cfa(int32_t off)
{
    return (GsRvPlace) { .kind = GS_RV_AT_CFA, .off = off };
}

static GsRvPlace at_reg(uint8_t reg, int32_t off)
{
    return (GsRvPlace) { GS_RV_AT_REG, reg, off };
}

static bool same_place(const GsRvPlace *a, const GsRvPlace *b)
{
    return a->kind == b->kind && a->reg == b->reg && a->off == b->off;
}

bool gs_rv_frame_equal(const GsRvFrame *a, const GsRvFrame *b)
{
    return a->cfa == b->cfa && a->pc == b->pc && a->depth == b->depth &&
           a->depth_known == b->depth_known && a->above == b->above &&
           same_place(&a->ra, &b->ra) && same_place(&a->s0, &b->s0) &&
           same_place(&a->sp, &b->sp) && same_place(&a->word, &b->word);
}

GsRvFrame gs_rv_frame_at(GsRvCode code, const GsRvInsn *first)
{
    GsRvFrame f = { .depth_known = true };

    if (code == GS_RV_EXCEPTION) {
        f.pc = first->kind == GS_RV_CSR && first->rd == GS_RV_TP ?
               GS_RV_PC_SEPC : GS_RV_PC_REGS;
    }
    return f;
}

bool gs_rv_changes_stack(const GsRvInsn *insn)
{
    return insn->kind == GS_RV_ADD && insn->rd == GS_RV_SP &&
           insn->rs1 && insn->rs1 != GS_RV_SP &&
           insn->rs2 && insn->rs2 != GS_RV_SP;
}

/* ---- usual functions ---------------------------------------------------- */

/* What is below sp is not the frame's any more. */
static void drop_ra(GsRvFrame *f)
{
    if (f->depth_known && f->ra.kind == GS_RV_AT_CFA &&
        f->ra.off + f->depth < 0) {
        f->ra = (GsRvPlace) { 0 };
    }
}

static void add_to_sp(GsRvFrame *f, const GsRvInsn *insn)
{
    if (insn->kind == GS_RV_ADDI && insn->rs1 == GS_RV_SP) {
        f->depth -= insn->imm;
    } else if (insn->kind == GS_RV_ADDI && insn->rs1 == GS_RV_S0 &&
               f->cfa == GS_RV_BY_S0) {
        f->depth = f->above - insn->imm;
        f->depth_known = true;
    } else if (f->cfa == GS_RV_BY_S0) {
        f->depth_known = false;
    }
    drop_ra(f);
}

/* Does @insn make s0 the frame pointer? It points right behind the record, or
 * behind the saved s0 if ra is not saved. */
static bool is_frame_pointer(const GsRvFrame *f, const GsRvInsn *insn)
{
    int32_t record = f->s0.off + f->depth - insn->imm;

    return insn->kind == GS_RV_ADDI && insn->rd == GS_RV_S0 &&
           insn->rs1 == GS_RV_SP && f->cfa == GS_RV_BY_SP &&
           f->s0.kind == GS_RV_AT_CFA && (record == -16 || record == -8);
}

static void store(GsRvFrame *f, const GsRvInsn *insn)
{
    GsRvPlace *place = insn->rs2 == GS_RV_RA ? &f->ra :
                       insn->rs2 == GS_RV_S0 && f->cfa == GS_RV_BY_SP ?
                       &f->s0 : NULL;

    if (place && place->kind == GS_RV_LIVE && insn->rs1 == GS_RV_SP &&
        f->depth_known) {
        *place = at_cfa(insn->imm - f->depth);
    }
}

/* Is what @insn loads from the stack the register that is at @place? */
static bool loads(const GsRvFrame *f, const GsRvInsn *insn,
                  const GsRvPlace *place)
{
    return insn->rs1 == GS_RV_SP && place->kind == GS_RV_AT_CFA &&
           (!f->depth_known || insn->imm - f->depth == place->off);
}

static void load(GsRvFrame *f, const GsRvInsn *insn)
{
    if (insn->rd == GS_RV_S0 && loads(f, insn, &f->s0)) {
        f->depth = insn->imm - f->s0.off;
        f->depth_known = true;
        f->cfa = GS_RV_BY_SP;
        f->above = 0;
        f->s0 = (GsRvPlace) { 0 };
    }
}

static void step_function(GsRvFrame *f, const GsRvInsn *insn)
{
    if (insn->kind == GS_RV_STORE) {
        store(f, insn);
    } else if (insn->kind == GS_RV_LOAD) {
        load(f, insn);
    } else if (is_frame_pointer(f, insn)) {
        f->cfa = GS_RV_BY_S0;
        f->above = f->depth - insn->imm;
    } else if (insn->rd == GS_RV_SP) {
        add_to_sp(f, insn);
    }
}

/* ---- exceptions --------------------------------------------------------- */

static void store_regs(GsRvFrame *f, const GsRvInsn *insn)
{
    if (insn->rs1 == GS_RV_TP && insn->rs2 == GS_RV_SP &&
        f->sp.kind == GS_RV_LIVE) {
        f->sp = at_reg(GS_RV_TP, insn->imm);
    } else if (insn->rs1 != GS_RV_SP) {
        return;
    } else if (insn->rs2 == GS_RV_RA && insn->imm == PT_RA) {
        f->ra = at_cfa(PT_RA);
    } else if (insn->rs2 == GS_RV_S0 && insn->imm == PT_S0) {
        f->s0 = at_cfa(PT_S0);
    } else if (insn->imm == PT_EPC) {
        *f = (GsRvFrame) { .pc = GS_RV_PC_REGS, .depth_known = true };
    }
}

static void load_regs(GsRvFrame *f, const GsRvInsn *insn)
{
    if (insn->rd != GS_RV_SP) {
        return;
    }
    if (insn->rs1 == GS_RV_TP && f->sp.kind == GS_RV_AT_REG &&
        insn->imm == f->sp.off) {
        f->sp = (GsRvPlace) { 0 };
    } else if (insn->rs1 == GS_RV_SP && insn->imm == PT_SP &&
               f->pc == GS_RV_PC_REGS) {
        f->pc = GS_RV_PC_SEPC;
    }
}

static void step_exception(GsRvFrame *f, const GsRvInsn *insn)
{
    if (insn->kind == GS_RV_STORE && f->pc == GS_RV_PC_SEPC) {
        store_regs(f, insn);
    } else if (insn->kind == GS_RV_LOAD) {
        load_regs(f, insn);
    }
}

/* ---- switches of tasks -------------------------------------------------- */

static void step_switch(GsRvFrame *f, const GsRvInsn *insn)
{
    if (insn->kind == GS_RV_STORE && insn->rs2 == GS_RV_S0 &&
        insn->rs1 != GS_RV_SP && f->s0.kind == GS_RV_LIVE) {
        f->s0 = at_reg(insn->rs1, insn->imm);
    } else if (insn->kind == GS_RV_LOAD && insn->rd == GS_RV_RA) {
        f->cfa = GS_RV_BY_WORD;
        f->word = at_reg(insn->rs1, insn->imm + THREAD_SP);
        f->s0 = at_reg(insn->rs1, insn->imm + THREAD_S0);
    } else if (insn->kind == GS_RV_LOAD && insn->rd == GS_RV_SP) {
        f->cfa = GS_RV_BY_SP;
        f->word = (GsRvPlace) { 0 };
    } else if (insn->kind == GS_RV_LOAD && insn->rd == GS_RV_S0 &&
               f->s0.reg == insn->rs1 && f->s0.off == insn->imm) {
        f->s0 = (GsRvPlace) { 0 };
    }
}

void gs_rv_frame_step(GsRvFrame *f, GsRvCode code, const GsRvInsn *insn)
{
    static void (*const step[])(GsRvFrame *f, const GsRvInsn *insn) = {
        [GS_RV_FUNCTION] = step_function,
        [GS_RV_EXCEPTION] = step_exception,
        [GS_RV_SWITCH] = step_switch,
    };

    step[code](f, insn);
}
