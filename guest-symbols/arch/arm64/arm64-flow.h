/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where the frame is at each instruction of an arm64 function; see
 * arm64-flow.c.
 */
#ifndef GS_ARM64_FLOW_H
#define GS_ARM64_FLOW_H

#include "guest-symbols/arch/arm64/arm64-code.h"

#include <glib.h>

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

#endif /* GS_ARM64_FLOW_H */
