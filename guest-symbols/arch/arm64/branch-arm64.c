/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Calls and jumps of arm64: see gs-instruction.h.
 *
 * Source: Arm ARM, "Branches, Exception Generating and System instructions".
 * Pure functions.
 */
#include "guest-symbols/arch/arch-internal.h"
#include "guest-symbols/base/bytes.h"

/* @n bits from bit @at up are the signed distance, in instructions. */
typedef struct Distance {
    uint32_t mask, bits;
    uint8_t at, n;
    bool call, maybe;
} Distance;

static const Distance known[] = {
    { 0xfc000000, 0x94000000, 0, 26, .call = true },      /* bl */
    { 0xfc000000, 0x14000000, 0, 26 },                    /* b */
    { 0xff000000, 0x54000000, 5, 19, .maybe = true },     /* b.cond, bc.cond */
    { 0x7e000000, 0x34000000, 5, 19, .maybe = true },     /* cbz, cbnz */
    { 0x7e000000, 0x36000000, 5, 14, .maybe = true },     /* tbz, tbnz */
};

bool gs_branch_arm64(uint64_t va, const uint8_t *insn, size_t len,
                     GsBranch *out)
{
    uint32_t word;

    *out = (GsBranch) { .len = 4 };
    if (len < 4) {
        return false;
    }
    word = gs_u32_at(insn);
    for (size_t i = 0; i < G_N_ELEMENTS(known); i++) {
        const Distance *d = &known[i];

        if ((word & d->mask) == d->bits) {
            uint32_t top = word << (32 - d->at - d->n);

            out->direct = true;
            out->call = d->call;
            out->maybe = d->maybe;
            out->to = va + 4 * (int64_t)((int32_t)top >> (32 - d->n));
            break;
        }
    }
    return true;
}
