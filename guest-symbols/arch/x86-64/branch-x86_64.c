/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Calls and jumps of x86-64: see gs-instruction.h.
 *
 * Source: Intel SDM, volume 2, "CALL", "JMP", "Jcc". Pure functions.
 */
#include "guest-symbols/arch/arch-internal.h"
#include "guest-symbols/arch/x86-64/length-x86_64.h"
#include "guest-symbols/base/bytes.h"

/* Skip prefixes that the kernel has before jumps: cs, bnd and notrack. */
static const uint8_t *opcode_of(const uint8_t *insn, const uint8_t *end)
{
    while (insn < end && (*insn == 0x2e || *insn == 0x3e || *insn == 0xf2)) {
        insn++;
    }
    return insn;
}

bool gs_branch_x86_64(uint64_t va, const uint8_t *insn, size_t len,
                      GsBranch *out)
{
    size_t n = gs_x86_64_length(insn, len);
    const uint8_t *end = insn + n, *op = opcode_of(insn, end);
    bool near = false, shortly = false, on_flags;

    *out = (GsBranch) { .len = n };
    if (op < end) {
        out->call = op[0] == 0xe8;
        on_flags = op[0] == 0x0f && op + 1 < end && (op[1] & 0xf0) == 0x80;
        out->maybe = on_flags || (op[0] & 0xf0) == 0x70;
        near = op[0] == 0xe8 || op[0] == 0xe9 || on_flags;
        shortly = op[0] == 0xeb || (op[0] & 0xf0) == 0x70;
    }
    out->direct = near || shortly;
    if (near) {
        out->to = va + n + (int32_t)gs_u32_at(end - 4);
    } else if (shortly) {
        out->to = va + n + (int8_t)end[-1];
    }
    return n;
}
