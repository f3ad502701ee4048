/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Instructions of x86-64 that a breakpoint may be planted on: see
 * gs-instruction.h.
 *
 * QEMU emulates all of them: see target/i386/kvm/code-hooks.c in qemu-patches/.
 * test-emulated.c compares both lists. Source: Intel SDM, volume 2.
 * Pure functions.
 */
#include "guest-symbols/arch/arch-internal.h"
#include "guest-symbols/arch/x86-64/length-x86_64.h"

#include <string.h>

/* An opcode behind its prefixes. @modrm: NULL: the instruction ends */
typedef struct Opcode {
    bool gs, op16;
    uint8_t rex, byte;
    const uint8_t *modrm;
} Opcode;

static bool is_register(const Opcode *o)
{
    return o->modrm && *o->modrm >> 6 == 3;
}

static bool is_memory(const Opcode *o)
{
    return o->modrm && *o->modrm >> 6 != 3;
}

static unsigned extension(const Opcode *o)
{
    return o->modrm ? *o->modrm >> 3 & 7 : 8;
}

/* Return true for xor of a register with itself. */
static bool is_zeroing(const Opcode *o)
{
    return is_register(o) && extension(o) == (*o->modrm & 7) &&
           !(o->rex & 4) == !(o->rex & 1);
}

/* add, and, sub, cmp of a register and an immediate */
static bool is_sum(const Opcode *o)
{
    unsigned which = extension(o);

    return is_register(o) &&
           (which == 0 || which == 4 || which == 5 || which == 7);
}

/* test of memory and an immediate, without an index */
static bool is_test(const Opcode *o)
{
    return is_memory(o) && extension(o) == 0 && (*o->modrm & 7) != 4;
}

/* mov and movslq to a register; %gs is for memory */
static bool is_load(const Opcode *o)
{
    return !o->op16 && (!o->gs || is_memory(o));
}

static bool is_emulated(const Opcode *o)
{
    switch (o->byte) {
    case 0xf6: case 0xf7:
        return is_test(o);
    case 0x63:
        return is_load(o) && o->rex & 8;
    case 0x8b:
        return is_load(o);
    case 0x89: case 0x8d:
        return !o->op16 && !o->gs && (o->byte == 0x89 || is_memory(o));
    }
    if (o->gs || o->op16) {
        return false;
    }
    switch (o->byte) {
    case 0x31: case 0x33:
        return is_zeroing(o);
    case 0x85:
        return is_register(o);
    case 0x81: case 0x83:
        return is_sum(o);
    case 0xe8: case 0xe9: case 0xeb:
        return true;
    default:
        return (o->byte >= 0x50 && o->byte <= 0x5f) ||
               (o->byte >= 0xb8 && o->byte <= 0xbf);
    }
}

/* nop, with any operand */
static bool is_nop(const uint8_t *insn, const uint8_t *end)
{
    while (insn < end && (*insn == 0x66 || *insn == 0x2e)) {
        insn++;
    }
    return insn < end && (*insn == 0x90 || (end - insn > 2 &&
                                            insn[0] == 0x0f &&
                                            insn[1] == 0x1f));
}

/* Split an instruction. Return false if it has nothing but prefixes. */
static bool split(const uint8_t *insn, const uint8_t *end, Opcode *o)
{
    for (; insn < end && (*insn == 0x65 || *insn == 0x66); insn++) {
        o->gs |= *insn == 0x65;
        o->op16 |= *insn == 0x66;
    }
    if (insn < end && (*insn & 0xf0) == 0x40) {
        o->rex = *insn++;
    }
    if (insn == end) {
        return false;
    }
    o->byte = *insn++;
    o->modrm = insn < end ? insn : NULL;
    return true;
}

GsBreakpoint gs_breakpoint_x86_64(const uint8_t *insn, size_t len)
{
    static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
    size_t n = gs_x86_64_length(insn, len);
    const uint8_t *end = insn + n;
    Opcode o = { 0 };

    if ((n == sizeof(endbr64) && !memcmp(insn, endbr64, n)) ||
        is_nop(insn, end)) {
        return GS_BREAKPOINT_NOTHING;
    }
    if (!split(insn, end, &o)) {
        return GS_BREAKPOINT_NEVER;
    }
    if (o.byte == 0xc3 && n == 1) {
        return GS_BREAKPOINT_RETURN;
    }
    return is_emulated(&o) ? GS_BREAKPOINT_PLAIN : GS_BREAKPOINT_NEVER;
}
