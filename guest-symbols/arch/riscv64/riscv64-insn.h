/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Decodes those instructions of riscv64 that move the stack pointer, save and
 * load registers, or leave the straight path; see riscv64-insn.c. Any thread.
 */
#ifndef GS_RISCV64_INSN_H
#define GS_RISCV64_INSN_H

#include <stddef.h>
#include <stdint.h>

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
 * @GS_RV_CALL: jumps somewhere, with the address behind it in rd
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

#endif /* GS_RISCV64_INSN_H */
