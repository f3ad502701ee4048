/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of arm64 share: each uses what is above its own section. */
#ifndef GS_ARM64_INTERNAL_H
#define GS_ARM64_INTERNAL_H

#include "guest-symbols/export/cfi-writer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <glib.h>

/* ---- instructions -------------------------------------------------------- */

/*
 * What arm64 instructions do to a frame, for arm64-flow.c; see arm64-code.c.
 */

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

/* ---- paths --------------------------------------------------------------- */

/*
 * Where the frame is at each instruction of an arm64 function; see
 * arm64-flow.c.
 */

/** enum GsArm64Rule - how the caller is found */
typedef enum GsArm64Rule {
    GS_ARM64_UNKNOWN,
    GS_ARM64_CALLED,        /* by the other members of GsArm64State */
    GS_ARM64_RECORD,        /* by the frame record that x29 points to */
    GS_ARM64_ELR,           /* its pc is in a register, after an exception */
    GS_ARM64_REGS,          /* it is in a struct pt_regs, which is at the CFA */
    GS_ARM64_END,           /* there is none in the kernel */
} GsArm64Rule;

/** enum GsArm64Ra - where the return address is */
typedef enum GsArm64Ra {
    GS_ARM64_RA_X30, GS_ARM64_RA_SAVED, GS_ARM64_RA_REG, GS_ARM64_RA_LOST,
} GsArm64Ra;

/**
 * struct GsArm64State - the frame before an instruction
 * @weak: the instruction is behind a call, which may not return
 * @by_x29: the CFA is x29 + @x29_off, else sp + @sp_off
 * @sp_known: @sp_off is true
 * @x29_live, @x29_saved: x29 of the caller is in x29; at CFA + @x29_at
 * @reg: register of the return address, or of the interrupted pc
 * @copy: a register that has a copy of x30, 0: none
 * @ra_at: the return address is at CFA + @ra_at
 */
typedef struct GsArm64State {
    GsArm64Rule rule;
    GsArm64Ra ra;
    bool weak, by_x29, sp_known, x29_live, x29_saved;
    uint8_t reg, copy;
    int64_t sp_off, x29_off, x29_at, ra_at;
} GsArm64State;

/** gs_arm64_flow() - return (owned) the states before the @n instructions */
GsArm64State *gs_arm64_flow(const uint8_t *code, size_t n);

/* ---- call frame information ---------------------------------------------- */

/* Call frame information of arm64 code; see cfi-arm64.c. */

/** Tables of exception vectors that a kernel has at most. */
#define GS_ARM64_VECTORS 3
/** Functions that stacks begin in, which are not recognised by their code. */
#define GS_ARM64_ENDS    1

/**
 * struct GsArm64Cfi - what all functions have in common
 * @w: (borrowed) the writer; @mem: memory of the guest
 * @canonical: upper bits that are set in every address of code; there return
 *             addresses may be signed
 * @vectors: tables of exception vectors, 0: none
 * @ends: functions that stacks begin in, 0: none
 * @freed: code whose memory has other data now
 * @switches: the function that calls another one on the stack of interrupts,
 *            0: none
 * @boots: rest_init(): the code of its caller is freed after the boot. 0: the
 *         kernel has no such symbol
 * @usual, @signal: the CIEs
 */
typedef struct GsArm64Cfi {
    GsCfi *w;
    const GsMem *mem;
    uint64_t canonical;
    uint64_t vectors[GS_ARM64_VECTORS], ends[GS_ARM64_ENDS], switches;
    uint64_t boots;
    GsRange freed;
    uint32_t usual, signal;
} GsArm64Cfi;

/** gs_arm64_cfi_begin() - write the CIEs; all members before them are set */
void gs_arm64_cfi_begin(GsArm64Cfi *c);

/** gs_arm64_cfi() - write the rules of a function: a GsCfiFunction of a
 *  GsArm64Cfi */
void gs_arm64_cfi(void *cfi, GsRange range, const uint8_t *code);

#endif /* GS_ARM64_INTERNAL_H */
