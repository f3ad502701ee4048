/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * String instructions of x86-64 that repeat: see gs-instruction.h.
 *
 * Owns gs_strings_x86_64.
 * Source: Intel SDM, volume 2, "REP", "MOVS", "STOS", "STD". Pure functions.
 */
#include "guest-symbols/arch/x86-64/length-x86_64.h"
#include "guest-symbols/arch/arch-internal.h"

#define REP         0xf3
#define OPERAND_16  0x66
#define REX         0x40
#define REX_W       0x08
#define MOVS        0xa4        /* and a5 */
#define STOS        0xaa        /* and ab */
#define STD         0xfd

/* Prefixes that change addresses are for others to look at. */
static bool repeats(const uint8_t *insn, size_t len, GsString *out)
{
    bool rep = false, wide = false, narrow = false;
    size_t i = 0;

    for (; i < len && (insn[i] == REP || insn[i] == OPERAND_16); i++) {
        rep |= insn[i] == REP;
        narrow |= insn[i] == OPERAND_16;
    }
    if (i < len && (insn[i] & 0xf0) == REX) {
        wide = insn[i++] & REX_W;
    }
    if (!rep || i >= len ||
        ((insn[i] & 0xfe) != MOVS && (insn[i] & 0xfe) != STOS)) {
        return false;
    }
    out->loads = (insn[i] & 0xfe) == MOVS;
    out->unit = !(insn[i] & 1) ? 1 : wide ? 8 : narrow ? 2 : 4;
    return true;
}

static bool counts_down(const uint8_t *insn, size_t len)
{
    return len && insn[0] == STD;
}

static bool may_count_down(const uint8_t *code, size_t len)
{
    for (size_t i = 0; i < len;) {
        size_t n = gs_x86_64_length(&code[i], len - i);

        if (!n || counts_down(&code[i], n)) {
            return true;
        }
        i += n;
    }
    return false;
}

const GsStringRules gs_strings_x86_64 = {
    repeats, counts_down, may_count_down,
};
