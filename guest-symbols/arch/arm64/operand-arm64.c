/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory operands of arm64 instructions: see gs-instruction.h.
 *
 * Owns gs_operand_arm64() and gs_modifies_arm64(). Bits 28 to 25 say to which
 * group an instruction belongs. In the group of loads and stores, bits 9 to 5
 * are the base register, with few exceptions:
 *
 *     31    29 28     25 24                          9     5 4     0
 *     |  ...  | x 1 x 0 |             ...           |   Rn  |   Rt  |
 *
 * Source: Arm ARM, chapter C4.1. Pure functions.
 */
#include "guest-symbols/arch/arch-internal.h"
#include "guest-symbols/base/bytes.h"

#define REG_FP  29
#define REG_SP  31

typedef struct Encoding {
    uint32_t mask, value;
} Encoding;

/* Loads and stores that access no object, whatever their registers are. */
static const Encoding none[] = {
    { 0x3b000000, 0x18000000 },     /* literals, relative to pc */
    { 0xffc00000, 0xf9800000 },     /* prfm [Xn, #imm] */
    { 0xffe00c00, 0xf8a00800 },     /* prfm [Xn, Xm] */
    { 0xffe00c00, 0xf8800000 },     /* prfum */
};
/* Copies and fills: their addresses are in other registers than Rn. */
static const Encoding copies = { 0x3b200c00, 0x19000400 };
/* dc zva, dc gva, dc gzva: zero a block of memory, its tags, or both. */
static const Encoding dc_zva[] = {
    { 0xffffffe0, 0xd50b7420 },
    { 0xffffffe0, 0xd50b7460 },
    { 0xffffffe0, 0xd50b7480 },
};

static bool is_one_of(const Encoding *e, size_t n, uint32_t insn)
{
    for (size_t i = 0; i < n; i++) {
        if ((insn & e[i].mask) == e[i].value) {
            return true;
        }
    }
    return false;
}

static bool load_store_touches(uint32_t insn)
{
    unsigned rn = insn >> 5 & 31;

    if (is_one_of(&copies, 1, insn)) {
        return true;
    }
    return rn != REG_SP && rn != REG_FP &&
           !is_one_of(none, G_N_ELEMENTS(none), insn);
}

bool gs_operand_arm64(const uint8_t *bytes, size_t len)
{
    uint32_t insn;

    if (len < 4) {
        return true;
    }
    insn = gs_u32_at(bytes);
    switch (insn >> 25 & 15) {
    case 0:                             /* udf; matrices of SME */
        return insn >> 16;
    case 2:                             /* SVE: bit 31 says it is memory */
        return insn >> 31;
    case 1: case 3:                     /* not allocated */
        return true;
    case 4: case 6: case 12: case 14:
        return load_store_touches(insn);
    case 10: case 11:                   /* branches, system instructions */
        return is_one_of(dc_zva, G_N_ELEMENTS(dc_zva), insn);
    default:                            /* arithmetic */
        return false;
    }
}

/* C4: atomic memory operations, compare and swap. */
bool gs_modifies_arm64(const uint8_t *bytes, size_t len)
{
    uint32_t insn = len < 4 ? 0 : gs_u32_at(bytes);
    bool loads_only = (insn & 0x3ffffc00) == 0x38bfc000;        /* ldapr */

    return (!loads_only && (insn & 0x3b200c00) == 0x38200000) ||
           (insn & 0x3fa07c00) == 0x08a07c00 ||                 /* cas */
           (insn & 0xbfa07c00) == 0x08207c00;                   /* casp */
}
