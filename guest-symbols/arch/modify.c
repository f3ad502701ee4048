/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Instructions that read memory and write the same memory: see gs-operand.h.
 *
 * Owns gs_arch_modifies_memory(). Sources: Intel SDM, volume 2, appendix A; Arm
 * ARM, C4 (atomic memory operations, compare and swap); RISC-V "A" and "Zacas".
 * Pure functions.
 */
#include <string.h>

#include "guest-symbols/api/gs-operand.h"

/* ---- x86-64 -------------------------------------------------------------- */

/* Bit n: /n of the group modifies its operand. */
#define ALL 0xffu

static unsigned one_byte_group(uint8_t opcode)
{
    switch (opcode) {
    case 0x80: case 0x81: case 0x83:
        return ALL & ~(1u << 7);                /* cmp */
    case 0x86: case 0x87: case 0xc0: case 0xc1:
    case 0xd0: case 0xd1: case 0xd2: case 0xd3:
        return ALL;
    case 0xf6: case 0xf7:
        return 1u << 2 | 1u << 3;               /* not, neg */
    case 0xfe: case 0xff:
        return 1u << 0 | 1u << 1;               /* inc, dec */
    default:
        /* add, or, adc, sbb, and, sub, xor with a register */
        return opcode < 0x38 && (opcode & 7) < 2 ? ALL : 0;
    }
}

static unsigned two_byte_group(uint8_t opcode)
{
    switch (opcode) {
    case 0xa4: case 0xa5: case 0xac: case 0xad: /* shld, shrd */
    case 0xab: case 0xb3: case 0xbb:            /* bts, btr, btc */
    case 0xb0: case 0xb1: case 0xc0: case 0xc1: /* cmpxchg, xadd */
        return ALL;
    case 0xba:
        return 1u << 5 | 1u << 6 | 1u << 7;
    case 0xc7:
        return 1u << 1;                         /* cmpxchg8b, cmpxchg16b */
    default:
        return 0;
    }
}

static bool is_prefix(uint8_t byte)
{
    return (byte && strchr("\x26\x2e\x36\x3e\x64\x65\x66\x67\xf0\xf2\xf3",
                           byte)) || (byte & 0xf0) == 0x40;
}

static bool x86_64_modifies(const uint8_t *insn, size_t len)
{
    size_t i = 0;
    unsigned group;

    while (i < len && is_prefix(insn[i])) {
        i++;
    }
    if (i + 2 > len) {
        return false;
    }
    if (insn[i] == 0x0f) {
        i++;
        group = two_byte_group(insn[i]);
    } else {
        group = one_byte_group(insn[i]);
    }
    return i + 1 < len && insn[i + 1] < 0xc0 &&
           (group >> (insn[i + 1] >> 3 & 7) & 1);
}

/* ---- arm64, riscv64 ------------------------------------------------------ */

static bool arm64_modifies(uint32_t insn)
{
    bool loads_only = (insn & 0x3ffffc00) == 0x38bfc000;        /* ldapr */

    return (!loads_only && (insn & 0x3b200c00) == 0x38200000) ||
           (insn & 0x3fa07c00) == 0x08a07c00 ||                 /* cas */
           (insn & 0xbfa07c00) == 0x08207c00;                   /* casp */
}

static bool riscv64_modifies(uint32_t insn)
{
    unsigned op = insn >> 27;

    return (insn & 0x7f) == 0x2f && op != 2 && op != 3;         /* lr, sc */
}

bool gs_arch_modifies_memory(const GsArch *arch, const uint8_t *insn,
                             size_t len)
{
    uint32_t word;

    if (arch->id == GS_ARCH_X86_64) {
        return x86_64_modifies(insn, len);
    }
    if (len < sizeof(word)) {
        return false;
    }
    memcpy(&word, insn, sizeof(word));
    word = GUINT32_FROM_LE(word);
    return arch->id == GS_ARCH_ARM64 ? arm64_modifies(word) :
                                       riscv64_modifies(word);
}
