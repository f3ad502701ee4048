/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Calls and jumps of riscv64: see gs-instruction.h. Pure functions.
 *
 * A call to far away has two instructions, and so has a far jump:
 *
 *     auipc ra, high          ra = va + high
 *     jalr  ra, low(ra)       calls ra + low
 */
#include "guest-symbols/arch/arch-internal.h"
#include "guest-symbols/arch/riscv64/riscv64-internal.h"
#include "guest-symbols/base/bytes.h"

#define REG_OF(word, at) ((word) >> (at) & 31)

static bool is_far(const uint8_t *insn, size_t len)
{
    uint32_t high, low;

    if (len < 8) {
        return false;
    }
    high = gs_u32_at(insn);
    low = gs_u32_at(insn + 4);
    return (high & 0x7f) == 0x17 && (low & 0x707f) == 0x67 &&
           REG_OF(high, 7) == REG_OF(low, 15);
}

static GsBranch far_branch(uint64_t va, const uint8_t *insn)
{
    uint32_t high = gs_u32_at(insn), low = gs_u32_at(insn + 4);
    int64_t off = (int32_t)(high & 0xfffff000);

    return (GsBranch) {
        .len = 8, .direct = true, .call = REG_OF(low, 7) != 0,
        .to = va + off + ((int32_t)low >> 20),
    };
}

/* Bits 2 to 4 of longer instructions are ones; the kernel has none. */
static bool is_longer(const uint8_t *insn)
{
    return (insn[0] & 0x1f) == 0x1f;
}

bool gs_branch_riscv64(uint64_t va, const uint8_t *insn, size_t len,
                       GsBranch *out)
{
    GsRvInsn in;

    if (len < 2 || is_longer(insn) || (len < 4 && (insn[0] & 3) == 3)) {
        return false;
    }
    if (is_far(insn, len)) {
        *out = far_branch(va, insn);
        return true;
    }
    in = gs_rv_decode(insn, len);
    *out = (GsBranch) { .len = in.len, .to = va + (int64_t)in.imm };
    out->call = in.kind == GS_RV_CALL && (insn[0] & 0x7f) == 0x6f;
    out->maybe = in.kind == GS_RV_BRANCH;
    out->direct = out->call || out->maybe || in.kind == GS_RV_JUMP;
    return true;
}
