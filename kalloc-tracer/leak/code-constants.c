/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pointers in instructions: see code-constants.h.
 */
#include "kalloc-tracer/leak/code-constants.h"

#include <string.h>

static uint32_t insn_at(const uint8_t *code, unsigned i)
{
    uint32_t v;

    memcpy(&v, code + 4 * i, sizeof(v));
    return GUINT32_FROM_LE(v);
}

/* ---- x86-64 ------------------------------------------------------------- */

/* REX.W, with REX.B for r8 to r15; then b8 plus the register's number. */
static bool x86_64_constant(const uint8_t *code, uint64_t *out)
{
    uint64_t v;

    if ((code[0] & 0xfe) != 0x48 || (code[1] & 0xf8) != 0xb8) {
        return false;
    }
    memcpy(&v, code + 2, sizeof(v));
    *out = GUINT64_FROM_LE(v);
    return true;
}

/* ---- arm64 -------------------------------------------------------------- */

/* Is this movz (@part 0) or movk of the register, shifted by 16 * @part? */
static bool is_wide_move(uint32_t insn, unsigned part, uint32_t reg)
{
    uint32_t opcode = part ? 0xf2800000 | part << 21 : 0xd2800000;

    return (insn & 0xffe0001f) == (opcode | reg);
}

static bool arm64_constant(const uint8_t *code, uint64_t *out)
{
    uint32_t reg = insn_at(code, 0) & 31;
    uint64_t value = 0;

    for (unsigned i = 0; i < 4; i++) {
        uint32_t insn = insn_at(code, i);

        if (!is_wide_move(insn, i, reg)) {
            return false;
        }
        value |= (uint64_t)(insn >> 5 & 0xffff) << 16 * i;
    }
    *out = value;
    return true;
}

/* ---- riscv64 ------------------------------------------------------------ */

#define RISCV_NOP   0x00000013u
#define RISCV_LUI   0x37u
#define RISCV_ADDIW 0x1bu

static uint32_t destination(uint32_t insn)
{
    return insn >> 7 & 31;
}

/* Is this addiw of a register to itself, or, without @lui, of zero? */
static bool is_addiw(uint32_t insn, bool lui)
{
    uint32_t from = insn >> 15 & 31;

    return (insn & 0x707f) == RISCV_ADDIW &&
           from == (lui ? destination(insn) : 0);
}

/* Decode a pair that loads 32 bits. @reg: (out) the register */
static bool riscv_half(uint32_t lui, uint32_t addiw, uint32_t *reg,
                       uint32_t *out)
{
    bool has_lui = lui != RISCV_NOP, has_addiw = addiw != RISCV_NOP;

    *reg = destination(has_lui ? lui : addiw);
    if ((!has_lui && !has_addiw) || !*reg ||
        (has_lui && (lui & 0x7f) != RISCV_LUI) ||
        (has_addiw &&
         (!is_addiw(addiw, has_lui) || destination(addiw) != *reg))) {
        return false;
    }
    *out = (has_lui ? lui & 0xfffff000 : 0) +
           (has_addiw ? (uint32_t)((int32_t)addiw >> 20) : 0);
    return true;
}

static bool riscv64_constant(const uint8_t *code, uint64_t *out)
{
    uint32_t low, high, reg, other;

    if (!riscv_half(insn_at(code, 0), insn_at(code, 2), &reg, &low) ||
        !riscv_half(insn_at(code, 1), insn_at(code, 3), &other, &high) ||
        reg == other) {
        return false;
    }
    *out = (uint64_t)high << 32 | low;
    return true;
}

/* ---- all ---------------------------------------------------------------- */

bool kt_code_constant(GsArchId arch, const uint8_t *code, uint64_t *out)
{
    switch (arch) {
    case GS_ARCH_X86_64:
        return x86_64_constant(code, out);
    case GS_ARCH_ARM64:
        return arm64_constant(code, out);
    case GS_ARCH_RISCV64:
        return riscv64_constant(code, out);
    default:
        return false;
    }
}

unsigned kt_code_step(GsArchId arch)
{
    return arch == GS_ARCH_ARM64 ? 4 : arch == GS_ARCH_RISCV64 ? 2 : 1;
}
