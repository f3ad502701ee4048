/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory operands of x86-64 instructions: see gs-instruction.h.
 *
 * Owns gs_operand_x86_64() and gs_modifies_x86_64(). An instruction is
 *
 *     legacy prefixes | REX | opcode | ModRM | SIB | displacement | immediate
 *     legacy prefixes | VEX, EVEX    | opcode | ModRM | ...
 *
 * A table for each opcode map says which opcodes have a ModRM byte. ModRM and
 * SIB name the base register. Opcodes that access memory without a ModRM byte
 * are few: string instructions, and moves with an absolute address.
 *
 * Source: Intel SDM, volume 2, chapter 2 and appendix A. Pure functions.
 */
#include "guest-symbols/arch/arch-internal.h"

#define REG_SP  4
#define REG_BP  5

/*
 * The rest of an instruction.
 * @at: the next byte to read
 * @opcode: the opcode byte, in its map
 * @base_high: the base register is one of r8 to r15 (REX.B and the like)
 * @index_high: the same of the index register
 * @by_gs: the segment register is gs
 * @short_address: addresses have 32 bits
 */
typedef struct Insn {
    const uint8_t *at, *end;
    uint8_t opcode;
    bool base_high, index_high;
    bool by_gs;
    bool short_address;
} Insn;

/*
 * One letter an opcode, 16 a line:
 *     .  no memory operand, or only the stack
 *     M  a ModRM byte, which may name a memory operand
 *     N  a ModRM byte, but memory is not accessed (hints, lea, undefined)
 *     T  touches memory without a ModRM byte
 *     ?  not valid, or a prefix
 */
static const char one_byte[] =
    "MMMM..??MMMM..??"      /* 00 */
    "MMMM..??MMMM..??"
    "MMMM..??MMMM..??"      /* 20 */
    "MMMM..??MMMM..??"
    "????????????????"      /* 40 */
    "................"
    "???M????.M.MTTTT"      /* 60 */
    "................"
    "MM?MMMMMMMMMMNMM"      /* 80 */
    "..........?....."
    "TTTTTTTT..TTTTTT"      /* a0 */
    "................"
    "MM..??MM......?."      /* c0 */
    "MMMM???TMMMMMMMM"
    "..........?....."      /* e0 */
    "?.??..MM......MM";

/* Opcodes after 0f. */
static const char two_byte[] =
    "MMMM?.....?.?N.?"      /* 00 */
    "MMMMMMMMNNMMNNNN"
    "....????MMMMMMMM"      /* 20 */
    "......?.????????"
    "MMMMMMMMMMMMMMMM"      /* 40 */
    "MMMMMMMMMMMMMMMM"
    "MMMMMMMMMMMMMMMM"      /* 60 */
    "MMMMMMM.MM??MMMM"
    "................"      /* 80 */
    "MMMMMMMMMMMMMMMM"
    "...MMM??...MMMMM"      /* a0 */
    "MMMMMMMMMNMMMMMM"
    "MMMMMMMM........"      /* c0 */
    "MMMMMMMMMMMMMMMM"
    "MMMMMMMMMMMMMMMM"      /* e0 */
    "MMMMMMMTMMMMMMMN";

G_STATIC_ASSERT(sizeof(one_byte) == 257);
G_STATIC_ASSERT(sizeof(two_byte) == 257);

/* Read a byte. If there is none, the caller gives up: true. */
static bool next(Insn *i, uint8_t *byte)
{
    if (i->at == i->end) {
        return false;
    }
    *byte = *i->at++;
    return true;
}

/* Decide by ModRM and SIB. */
static bool modrm_touches(Insn *i)
{
    uint8_t modrm, sib, mod, base;

    if (!next(i, &modrm)) {
        return true;
    }
    mod = modrm >> 6;
    base = modrm & 7;
    if (mod == 3) {
        return false;
    }
    if (i->by_gs || i->short_address) {
        return !i->by_gs;
    }
    if (base != REG_SP) {
        return mod != 0 || base != REG_BP;      /* else relative to rip */
    }
    if (!next(i, &sib)) {
        return true;
    }
    base = sib & 7;
    if (mod == 0 && base == REG_BP) {
        return (sib & 0x38) != 0x20 || i->index_high;   /* has an index */
    }
    return base != REG_SP || i->base_high;
}

/* 0f 01: with a register operand, most of these have no operand at all. */
static bool group_7_touches(Insn *i)
{
    uint8_t modrm;

    if (i->at == i->end) {
        return true;
    }
    modrm = *i->at;
    if (modrm == 0xfc) {                /* clzero: the cache line of rax */
        return true;
    }
    return (modrm & 0x38) != 0x38 && modrm_touches(i);  /* invlpg */
}

/* 0f ae: clflush and clflushopt (/7) access no memory. clwb has the same
 * opcode as xsaveopt (/6), which does. */
static bool group_15_touches(Insn *i)
{
    return i->at == i->end ||
           ((*i->at & 0x38) != 0x38 && modrm_touches(i));
}

static bool two_byte_touches(Insn *i)
{
    switch (i->opcode) {
    case 0x01:
        return group_7_touches(i);
    case 0xae:
        return group_15_touches(i);
    case 0x38:
        /* movdir64b, enqcmd: memory at a register operand, too */
        return !next(i, &i->opcode) || i->opcode == 0xf8 || modrm_touches(i);
    case 0x3a:
        return !next(i, &i->opcode) || modrm_touches(i);
    }
    switch (two_byte[i->opcode]) {
    case 'M':
        return modrm_touches(i);
    case '.': case 'N':
        return false;
    default:
        return true;
    }
}

static bool one_byte_touches(Insn *i)
{
    switch (one_byte[i->opcode]) {
    case 'M':
        return (i->opcode == 0x8f && i->at != i->end && (*i->at & 0x38)) ||
               modrm_touches(i);        /* 8f: pop, or a prefix of AMD's */
    case '.': case 'N':
        return false;
    default:
        /* an absolute address (a0 to a3) may be relative to gs */
        return !(i->by_gs && (i->opcode & 0xfc) == 0xa0);
    }
}

/* Opcodes behind a VEX or EVEX prefix, by their map: 1 is 0f, 2 is 0f 38, 3 is
 * 0f 3a, 5 and 6 exist with EVEX only. All indices count as present: index 4 is
 * a register if it is one of vectors. */
static bool vector_touches(Insn *i, unsigned map)
{
    if (!next(i, &i->opcode) || map == 0 || map == 4 || map > 6) {
        return true;
    }
    if (map == 1 && i->opcode == 0x77) {        /* vzeroupper */
        return false;
    }
    if (map == 1 && i->opcode == 0xf7) {        /* vmaskmovdqu: rdi */
        return true;
    }
    return modrm_touches(i);
}

static bool vex_touches(Insn *i)
{
    bool has_3_bytes = i->opcode == 0xc4;
    uint8_t first, second;

    i->index_high = true;
    if (!next(i, &first)) {
        return true;
    }
    if (!has_3_bytes) {
        i->base_high = false;
        return vector_touches(i, 1);
    }
    i->base_high = !(first & 0x20);
    return !next(i, &second) || (first & 0x1f) > 3 ||
           vector_touches(i, first & 0x1f);
}

static bool evex_touches(Insn *i)
{
    uint8_t first;

    if (!next(i, &first) || (first & 0x08) || i->end - i->at < 2) {
        return true;
    }
    i->base_high = !(first & 0x20);
    i->index_high = true;
    i->at += 2;
    return vector_touches(i, first & 7);
}

static bool is_prefix(uint8_t byte)
{
    switch (byte) {
    case 0x26: case 0x2e: case 0x36: case 0x3e: case 0x64: case 0x65:
    case 0x66: case 0x67: case 0xf0: case 0xf2: case 0xf3:
        return true;
    default:
        return false;
    }
}

/* Read the prefixes and the first byte of the opcode. */
static bool read_prefixes(Insn *i)
{
    uint8_t byte;

    while (next(i, &byte)) {
        if (is_prefix(byte)) {
            i->by_gs = byte == 0x65 || (i->by_gs && byte != 0x64);
            i->short_address |= byte == 0x67;
            /* a REX before it has no effect */
            i->base_high = i->index_high = false;
        } else if ((byte & 0xf0) == 0x40) {
            i->base_high = byte & 1;
            i->index_high = byte & 2;
        } else {
            i->opcode = byte;
            return true;
        }
    }
    return false;
}

bool gs_operand_x86_64(const uint8_t *insn, size_t len)
{
    Insn i = { .at = insn, .end = insn + len };

    if (!read_prefixes(&i)) {
        return true;
    }
    switch (i.opcode) {
    case 0x0f:
        return !next(&i, &i.opcode) || two_byte_touches(&i);
    case 0xc4: case 0xc5:
        return vex_touches(&i);
    case 0x62:
        return evex_touches(&i);
    default:
        return one_byte_touches(&i);
    }
}

/* ---- reads and writes the same memory ------------------------------------ */

/* Bit n: /n of the group modifies its operand. */
#define ALL_OF_GROUP 0xffu

static unsigned one_byte_modifies(uint8_t opcode)
{
    switch (opcode) {
    case 0x80: case 0x81: case 0x83:
        return ALL_OF_GROUP & ~(1u << 7);                /* cmp */
    case 0x86: case 0x87: case 0xc0: case 0xc1:
    case 0xd0: case 0xd1: case 0xd2: case 0xd3:
        return ALL_OF_GROUP;
    case 0xf6: case 0xf7:
        return 1u << 2 | 1u << 3;               /* not, neg */
    case 0xfe: case 0xff:
        return 1u << 0 | 1u << 1;               /* inc, dec */
    default:
        /* add, or, adc, sbb, and, sub, xor with a register */
        return opcode < 0x38 && (opcode & 7) < 2 ? ALL_OF_GROUP : 0;
    }
}

static unsigned two_byte_modifies(uint8_t opcode)
{
    switch (opcode) {
    case 0xa4: case 0xa5: case 0xac: case 0xad: /* shld, shrd */
    case 0xab: case 0xb3: case 0xbb:            /* bts, btr, btc */
    case 0xb0: case 0xb1: case 0xc0: case 0xc1: /* cmpxchg, xadd */
        return ALL_OF_GROUP;
    case 0xba:
        return 1u << 5 | 1u << 6 | 1u << 7;
    case 0xc7:
        return 1u << 1;                         /* cmpxchg8b, cmpxchg16b */
    default:
        return 0;
    }
}

bool gs_modifies_x86_64(const uint8_t *insn, size_t len)
{
    size_t i = 0;
    unsigned group;

    while (i < len && (is_prefix(insn[i]) || (insn[i] & 0xf0) == 0x40)) {
        i++;
    }
    if (i + 2 > len) {
        return false;
    }
    if (insn[i] == 0x0f) {
        i++;
        group = two_byte_modifies(insn[i]);
    } else {
        group = one_byte_modifies(insn[i]);
    }
    return i + 1 < len && insn[i + 1] < 0xc0 &&
           (group >> (insn[i + 1] >> 3 & 7) & 1);
}
