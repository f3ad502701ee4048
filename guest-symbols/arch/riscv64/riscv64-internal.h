/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of riscv64 share: each uses what is above its own section. */
#ifndef GS_RISCV64_INTERNAL_H
#define GS_RISCV64_INTERNAL_H

#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <glib.h>

/* ---- instructions -------------------------------------------------------- */

/*
 * Decodes those instructions of riscv64 that move the stack pointer, save and
 * load registers, or leave the straight path; see riscv64-insn.c. Any thread.
 */

/** Registers. DWARF has the same numbers. */
enum { GS_RV_RA = 1, GS_RV_SP = 2, GS_RV_TP = 4, GS_RV_S0 = 8 };

/**
 * enum GsRvKind - what an instruction does
 * @GS_RV_OTHER: nothing of the kinds below
 * @GS_RV_ADDI: rd = rs1 + imm
 * @GS_RV_ADD: rd = rs1 + rs2, or rs1 - rs2
 * @GS_RV_STORE: *(rs1 + imm) = rs2, eight bytes
 * @GS_RV_LOAD: rd = *(rs1 + imm), eight bytes
 * @GS_RV_CSR: rd = a control register, which may change
 * @GS_RV_BRANCH: may jump by imm
 * @GS_RV_JUMP: jumps by imm
 * @GS_RV_CALL: jumps somewhere, with the address behind it in rd; jal: by imm
 * @GS_RV_LEAVE: jumps to what a register has, or returns from an exception
 * @GS_RV_TRAP: ebreak: BUG() does not continue behind it, WARN() does
 */
typedef enum GsRvKind {
    GS_RV_OTHER, GS_RV_ADDI, GS_RV_ADD, GS_RV_STORE, GS_RV_LOAD, GS_RV_CSR,
    GS_RV_BRANCH, GS_RV_JUMP, GS_RV_CALL, GS_RV_LEAVE, GS_RV_TRAP,
} GsRvKind;

/**
 * struct GsRvInsn - one instruction
 * @len: 2 or 4 bytes
 * @rd, @rs1, @rs2, @imm: as the kind says
 */
typedef struct GsRvInsn {
    GsRvKind kind;
    uint8_t len, rd, rs1, rs2;
    int32_t imm;
} GsRvInsn;

/** gs_rv_decode() - decode the instruction at @code. @len: bytes there; one
 *  that is cut off is GS_RV_LEAVE. */
GsRvInsn gs_rv_decode(const uint8_t *code, size_t len);

/* ---- frames -------------------------------------------------------------- */

/*
 * Where the caller's registers are at an instruction of riscv64, and how the
 * instructions change that; see riscv64-frame.c. Any thread.
 */

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

/* ---- paths --------------------------------------------------------------- */

/*
 * The frames at all instructions of a function of riscv64, see riscv64-flow.c.
 * One thread at a time.
 */

/** struct GsRvFlow - a function whose paths are followed */
typedef struct GsRvFlow GsRvFlow;

/**
 * gs_rv_flow_new() - follow all paths through a function
 * @bytes: (borrowed) its instructions, @len bytes
 * @carried: (nullable) the frame of the function before, which runs into it
 *
 * Returns: (owned) NULL if it has more kinds of frames than any function needs.
 */
GsRvFlow *gs_rv_flow_new(GsRvCode code, const GsRvFrame *carried,
                         const uint8_t *bytes, size_t len);
void gs_rv_flow_free(GsRvFlow *f);

/** gs_rv_flow_at() - return the frame at the instruction at byte @off. Returns:
 *  (borrowed) NULL if none begins there. */
const GsRvFrame *gs_rv_flow_at(const GsRvFlow *f, size_t off);
/** gs_rv_flow_end() - return the frame behind the last instruction. Returns:
 *  (borrowed) NULL if no path without a call leads there. */
const GsRvFrame *gs_rv_flow_end(const GsRvFlow *f);
/** gs_rv_flow_changes_stack() - does it load the address of another stack? */
bool gs_rv_flow_changes_stack(const GsRvFlow *f);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(GsRvFlow, gs_rv_flow_free)

#endif /* GS_RISCV64_INTERNAL_H */
