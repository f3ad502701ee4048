/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory operands of riscv64 instructions: see gs-instruction.h.
 *
 * Owns gs_operand_riscv64() and gs_modifies_riscv64(). Instructions have 16 or
 * 32 bits. Those of 32 bits have the base register in bits 19 to 15. Of those
 * of 16 bits, quadrant 0 has loads and stores by one of x8 to x15, and quadrant
 * 2 by sp.
 *
 * Source: The RISC-V Instruction Set Manual, volume I, version 20240411. Pure
 * functions.
 */
#include "guest-symbols/arch/arch-internal.h"
#include "guest-symbols/base/bytes.h"

/* Opcodes: bits 6 to 2. */
#define LOAD            0x00
#define LOAD_FP         0x01
#define CUSTOM_0        0x02
#define MISC_MEM        0x03
#define STORE           0x08
#define STORE_FP        0x09
#define CUSTOM_1        0x0a
#define AMO             0x0b
#define CUSTOM_2        0x16
#define RESERVED        0x1a
#define SYSTEM          0x1c
#define CUSTOM_3        0x1e
#define LONGER          0x07    /* in bits 4 to 2: more than 32 bits */

enum { REG_SP = 2, REG_GP = 3, REG_TP = 4, REG_FP = 8 };

/* In C code s0 is the frame pointer. Saved registers and variables are below
 * it; what is above it can be an object, if a function in assembler uses s0 for
 * something else. Bit 31 is the sign of the displacement, except in atomic and
 * vector instructions, which have none. */
static bool base_touches(uint32_t insn, bool has_displacement)
{
    switch (insn >> 15 & 31) {
    case REG_SP: case REG_GP: case REG_TP:
        return false;
    case REG_FP:
        return !has_displacement || !(insn >> 31);
    default:
        return true;
    }
}

/* Loads and stores of floating point registers have a width of 1 to 4 in bits
 * 14 to 12; the other widths are those of vectors. */
static bool is_vector(uint32_t insn)
{
    unsigned width = insn >> 12 & 7;

    return width == 0 || width > 4;
}

static bool long_touches(uint32_t insn)
{
    unsigned funct3 = insn >> 12 & 7;

    switch (insn >> 2 & 31) {
    case LOAD: case STORE:
        return base_touches(insn, true);
    case LOAD_FP: case STORE_FP:
        return base_touches(insn, !is_vector(insn));
    case AMO:
        return base_touches(insn, false);
    case MISC_MEM:                      /* cbo.zero; not fences, cbo.clean */
        return funct3 == 2 && insn >> 20 == 4;
    case SYSTEM:                        /* hlv, hsv; not mop */
        return funct3 == 4 && !(insn >> 31);
    case CUSTOM_0: case CUSTOM_1: case CUSTOM_2: case CUSTOM_3: case RESERVED:
        return true;
    default:
        return (insn >> 2 & 7) == LONGER;
    }
}

bool gs_operand_riscv64(const uint8_t *bytes, size_t len)
{
    if (len < 2) {
        return true;
    }
    if ((bytes[0] & 3) != 3) {
        /* quadrant 0, except c.addi4spn, and 0, which is not valid and traps */
        return (bytes[0] & 3) == 0 && bytes[1] >> 5;
    }
    return len < 4 || long_touches(gs_u32_at(bytes));
}

/* "A" and "Zacas". */
bool gs_modifies_riscv64(const uint8_t *bytes, size_t len)
{
    unsigned op = len < 4 ? 0 : bytes[3] >> 3;

    /* neither lr nor sc */
    return len >= 4 && (bytes[0] & 0x7f) == 0x2f && op != 2 && op != 3;
}
