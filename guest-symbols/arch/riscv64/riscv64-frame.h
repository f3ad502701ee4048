/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where the caller's registers are at an instruction of riscv64, and how the
 * instructions change that; see riscv64-frame.c. Any thread.
 */
#ifndef GS_RISCV64_FRAME_H
#define GS_RISCV64_FRAME_H

#include "guest-symbols/arch/riscv64/riscv64-insn.h"

#include <stdbool.h>

/**
 * struct GsRvPlace - where a register of the caller is
 * @kind: in the register itself, at CFA + @off, or at @reg + @off
 */
typedef struct GsRvPlace {
    enum { GS_RV_LIVE, GS_RV_AT_CFA, GS_RV_AT_REG } kind;
    uint8_t reg;
    int32_t off;
} GsRvPlace;

/** enum GsRvCfa - the CFA is sp + depth, s0 + above, or a word in memory */
typedef enum GsRvCfa { GS_RV_BY_SP, GS_RV_BY_S0, GS_RV_BY_WORD } GsRvCfa;

/**
 * enum GsRvPc - where the caller's pc is
 * @GS_RV_PC_RA: it is the return address
 * @GS_RV_PC_SEPC: an exception came, and its pc is in the register sepc
 * @GS_RV_PC_REGS: and all registers are in the struct pt_regs at the CFA
 */
typedef enum GsRvPc { GS_RV_PC_RA, GS_RV_PC_SEPC, GS_RV_PC_REGS } GsRvPc;

/**
 * struct GsRvFrame - the frame at an instruction
 * @depth: CFA - sp, if @depth_known
 * @above: CFA - s0, of GS_RV_BY_S0
 * @word: of GS_RV_BY_WORD
 * @ra, @s0, @sp: the caller's. A live sp is the CFA, but before a struct
 *                pt_regs is made it is sp itself
 */
typedef struct GsRvFrame {
    GsRvCfa cfa;
    GsRvPc pc;
    bool depth_known;
    int32_t depth, above;
    GsRvPlace word, ra, s0, sp;
} GsRvFrame;

/** enum GsRvCode - code that is not of usual functions */
typedef enum GsRvCode {
    GS_RV_FUNCTION, GS_RV_EXCEPTION, GS_RV_SWITCH,
} GsRvCode;

/** gs_rv_frame_at() - return the frame at the first instruction of @code. */
GsRvFrame gs_rv_frame_at(GsRvCode code, const GsRvInsn *first);
/** gs_rv_frame_step() - change @f by an instruction. */
void gs_rv_frame_step(GsRvFrame *f, GsRvCode code, const GsRvInsn *insn);
/** gs_rv_frame_equal() - are all places the same? */
bool gs_rv_frame_equal(const GsRvFrame *a, const GsRvFrame *b);
/** gs_rv_changes_stack() - does @insn load the address of another stack? */
bool gs_rv_changes_stack(const GsRvInsn *insn);

#endif /* GS_RISCV64_FRAME_H */
