/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What arm64 instructions do to a frame, for arm64-flow.c; see arm64-code.c.
 */
#ifndef GS_ARM64_CODE_H
#define GS_ARM64_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* DWARF numbers (DWARF for the Arm 64-bit Architecture). struct pt_regs begins
 * with these registers, in this order. */
enum {
    GS_ARM64_X19 = 19, GS_ARM64_X28 = 28, GS_ARM64_X29 = 29, GS_ARM64_X30 = 30,
    GS_ARM64_SP = 31, GS_ARM64_PC = 32,
};

/** enum GsArm64Kind - what an instruction does to sp, x29, x30 or ELR_EL1 */
typedef enum GsArm64Kind {
    GS_ARM64_OTHER,
    GS_ARM64_MOVE_SP,       /* sp = sp + n */
    GS_ARM64_SP_BY_X29,     /* sp = x29 + n */
    GS_ARM64_SP_UNKNOWN,
    GS_ARM64_SET_X29,       /* x29 = sp + n */
    GS_ARM64_COPY_SP,       /* another register = sp + n */
    GS_ARM64_COPY_X30,      /* reg = x30 */
    GS_ARM64_STORE,         /* reg to sp + n, reg2 behind it */
    GS_ARM64_LOAD,
    GS_ARM64_READ_ELR,      /* reg = ELR_EL1 */
    GS_ARM64_WRITE_ELR,     /* ELR_EL1 = reg */
    GS_ARM64_WRITE_SP_EL0,
} GsArm64Kind;

/** enum GsArm64Flow - where execution goes from an instruction */
typedef enum GsArm64Flow {
    GS_ARM64_NEXT,
    GS_ARM64_BRANCH,        /* to target, or on */
    GS_ARM64_JUMP,          /* to target */
    GS_ARM64_CALL,          /* on, if the callee returns */
    GS_ARM64_TRAP,          /* brk: on, if the handler returns there */
    GS_ARM64_LEAVE,         /* ret, eret */
    GS_ARM64_INDIRECT,      /* br: to another function, or by a table */
} GsArm64Flow;

#define GS_ARM64_NO_REG 0xff

/**
 * struct GsArm64Insn - an instruction
 * @reg, @reg2: 64-bit general registers, GS_ARM64_NO_REG: none
 * @n: offset from sp, as it is after @before
 * @before, @after: are added to sp before and after a store or load
 * @target: (BRANCH, JUMP) distance in instructions
 */
typedef struct GsArm64Insn {
    GsArm64Kind kind;
    GsArm64Flow flow;
    uint8_t reg, reg2;
    int32_t n, before, after;
    int32_t target;
} GsArm64Insn;

/** gs_arm64_insn() - decode the instruction number @i of @code */
GsArm64Insn gs_arm64_insn(const uint8_t *code, size_t i);

#endif /* GS_ARM64_CODE_H */
