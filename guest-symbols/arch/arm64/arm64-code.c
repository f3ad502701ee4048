/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Decodes the arm64 instructions that change a frame, or where execution goes:
 * Arm Architecture Reference Manual, C4.1. Called by arm64-flow.c; no state.
 * All other instructions are GS_ARM64_OTHER.
 */
#include "guest-symbols/arch/arm64/arm64-internal.h"
#include "guest-symbols/base/bytes.h"

/* Return bits @at and up, @n of them, with their sign. */
static int32_t signed_field(uint32_t insn, unsigned at, unsigned n)
{
    return (int32_t)(insn << (32 - n - at)) >> (32 - n);
}

/* ---- where execution goes ----------------------------------------------- */

/* An instruction is @bits in the bits of @mask; its distance has @n bits, from
 * bit @at up. */
static const struct {
    uint32_t mask, bits;
    GsArm64Flow flow;
    uint8_t at, n;
} flows[] = {
    { 0xfc000000, 0x14000000, GS_ARM64_JUMP, 0, 26 },       /* b */
    { 0xfc000000, 0x94000000, GS_ARM64_CALL, 0, 0 },        /* bl */
    { 0xff000000, 0x54000000, GS_ARM64_BRANCH, 5, 19 },     /* b.cond */
    { 0x7e000000, 0x34000000, GS_ARM64_BRANCH, 5, 19 },     /* cbz, cbnz */
    { 0x7e000000, 0x36000000, GS_ARM64_BRANCH, 5, 14 },     /* tbz, tbnz */
    { 0xfefff000, 0xd63f0000, GS_ARM64_CALL, 0, 0 },        /* blr, blraa */
    { 0xfefff000, 0xd61f0000, GS_ARM64_INDIRECT, 0, 0 },    /* br, braa */
    { 0xfffff000, 0xd65f0000, GS_ARM64_LEAVE, 0, 0 },       /* ret, retaa */
    { 0xfffff000, 0xd69f0000, GS_ARM64_LEAVE, 0, 0 },       /* eret */
    { 0xffe0001f, 0xd4200000, GS_ARM64_TRAP, 0, 0 },        /* brk */
};

static void decode_flow(uint32_t insn, GsArm64Insn *out)
{
    for (size_t i = 0; i < G_N_ELEMENTS(flows); i++) {
        if ((insn & flows[i].mask) == flows[i].bits) {
            out->flow = flows[i].flow;
            out->target = flows[i].n ?
                          signed_field(insn, flows[i].at, flows[i].n) : 0;
            return;
        }
    }
}

/* ---- sp and x29 --------------------------------------------------------- */

/* add, sub of a number: registers 31 are sp. */
static void decode_add(uint32_t insn, GsArm64Insn *out)
{
    unsigned from = insn >> 5 & 31, to = insn & 31;
    int32_t n = (int32_t)(insn >> 10 & 0xfff) << (insn >> 22 & 1 ? 12 : 0);

    out->n = insn >> 30 & 1 ? -n : n;
    if (to == GS_ARM64_SP) {
        out->kind = from == GS_ARM64_SP ? GS_ARM64_MOVE_SP :
                    from == GS_ARM64_X29 ? GS_ARM64_SP_BY_X29 :
                                           GS_ARM64_SP_UNKNOWN;
    } else if (from == GS_ARM64_SP) {
        out->kind = to == GS_ARM64_X29 ? GS_ARM64_SET_X29 : GS_ARM64_COPY_SP;
    }
}

static const struct {
    uint32_t mask, bits;
    GsArm64Kind kind;
} moves[] = {
    { 0xbfe0001f, 0x8b20001f, GS_ARM64_SP_UNKNOWN },    /* add, sub sp, x, x */
    { 0xff80001f, 0x9200001f, GS_ARM64_SP_UNKNOWN },    /* and sp, x, #n */
    { 0xffffffe0, 0xaa1e03e0, GS_ARM64_COPY_X30 },      /* mov x, x30 */
    { 0xffffffe0, 0xd5384020, GS_ARM64_READ_ELR },      /* mrs x, elr_el1 */
    { 0xffffffe0, 0xd5184020, GS_ARM64_WRITE_ELR },     /* msr elr_el1, x */
    { 0xffffffe0, 0xd5184100, GS_ARM64_WRITE_SP_EL0 },  /* msr sp_el0, x */
};

static void decode_move(uint32_t insn, GsArm64Insn *out)
{
    for (size_t i = 0; i < G_N_ELEMENTS(moves); i++) {
        if ((insn & moves[i].mask) == moves[i].bits) {
            out->kind = moves[i].kind;
            out->reg = insn & 31;
            return;
        }
    }
}

/* ---- stores and loads --------------------------------------------------- */

/* Forms with a change of sp: behind the access (post-index), or before it. */
static void set_offset(GsArm64Insn *out, int32_t n, bool before, bool after)
{
    out->n = before || after ? 0 : n;
    out->before = before ? n : 0;
    out->after = after ? n : 0;
}

/* stp, ldp: bits 23 and 24 are the form. */
static void decode_pair(uint32_t insn, GsArm64Insn *out)
{
    bool vector = insn >> 26 & 1, load = insn >> 22 & 1;
    unsigned size = insn >> 30, form = insn >> 23 & 3;
    unsigned shift = vector ? 2 + size : size == 2 ? 3 : 2;

    out->kind = load ? GS_ARM64_LOAD : GS_ARM64_STORE;
    set_offset(out, signed_field(insn, 15, 7) * (1 << shift), form == 3,
               form == 1);
    if (!vector && size == 2) {
        out->reg = insn & 31;
        out->reg2 = insn >> 10 & 31;
    }
}

/* str, ldr with 9 bits of offset: bits 10 and 11 are the form. */
static void decode_near(uint32_t insn, GsArm64Insn *out)
{
    unsigned form = insn >> 10 & 3;

    out->kind = insn >> 22 & 3 ? GS_ARM64_LOAD : GS_ARM64_STORE;
    set_offset(out, signed_field(insn, 12, 9), form == 3, form == 1);
    if (insn >> 30 == 3 && !(insn >> 26 & 1) && !(insn >> 23 & 1)) {
        out->reg = insn & 31;
    }
}

/* str, ldr with 12 bits of offset: they do not change sp. */
static void decode_far(uint32_t insn, GsArm64Insn *out)
{
    if (insn >> 30 == 3 && !(insn >> 26 & 1) && !(insn >> 23 & 1)) {
        out->kind = insn >> 22 & 1 ? GS_ARM64_LOAD : GS_ARM64_STORE;
        out->n = (int32_t)(insn >> 10 & 0xfff) * 8;
        out->reg = insn & 31;
    }
}

static void decode_memory(uint32_t insn, GsArm64Insn *out)
{
    if ((insn >> 5 & 31) != GS_ARM64_SP) {
        return;
    }
    if ((insn & 0x3a000000) == 0x28000000) {
        decode_pair(insn, out);
    } else if ((insn & 0x3b200000) == 0x38000000) {
        decode_near(insn, out);
    } else if ((insn & 0x3b000000) == 0x39000000) {
        decode_far(insn, out);
    }
}

GsArm64Insn gs_arm64_insn(const uint8_t *code, size_t i)
{
    GsArm64Insn out = { .reg = GS_ARM64_NO_REG, .reg2 = GS_ARM64_NO_REG };
    uint32_t insn = gs_u32_at(code + 4 * i);

    if ((insn & 0x1c000000) == 0x14000000) {            /* branches, system */
        decode_flow(insn, &out);
        decode_move(insn, &out);
    } else if ((insn & 0x0a000000) == 0x08000000) {
        decode_memory(insn, &out);
    } else if ((insn & 0xbf800000) == 0x91000000) {
        decode_add(insn, &out);
    } else {
        decode_move(insn, &out);
    }
    return out;
}
