/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lengths of x86-64 instructions (Intel SDM, volume 2, chapter 2 and appendix
 * A). Pure functions, any thread.
 *
 *     prefixes | REX, VEX or EVEX | opcode | ModRM | SIB | displacement |
 *     immediate
 *
 * The tables say which opcodes have a ModRM byte and an immediate.
 */
#include "guest-symbols/arch/x86-64/length-x86_64.h"

#include <string.h>

#define INSN_MAX    15

/* What follows an opcode. */
enum {
    M = 1,          /* ModRM */
    B = 2,          /* an immediate of one byte */
    Z = 4,          /* one of four bytes; of two, if there is prefix 66 */
    X = 8,          /* no opcode, or one with a rule of its own */
};

/* The opcodes of one byte, sixteen a row. */
static const uint8_t one_byte[256] = {
    M, M, M, M, B, Z, X, X, M, M, M, M, B, Z, X, X,
    M, M, M, M, B, Z, X, X, M, M, M, M, B, Z, X, X,
    M, M, M, M, B, Z, X, X, M, M, M, M, B, Z, X, X,
    M, M, M, M, B, Z, X, X, M, M, M, M, B, Z, X, X,
    X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    X, X, X, M, X, X, X, X, Z, M | Z, B, M | B, 0, 0, 0, 0,
    B, B, B, B, B, B, B, B, B, B, B, B, B, B, B, B,
    M | B, M | Z, X, M | B, M, M, M, M, M, M, M, M, M, M, M, M,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, X, 0, 0, 0, 0, 0,
    X, X, X, X, 0, 0, 0, 0, B, Z, 0, 0, 0, 0, 0, 0,
    B, B, B, B, B, B, B, B, X, X, X, X, X, X, X, X,
    M | B, M | B, X, 0, X, X, M | B, M | Z, X, 0, X, 0, 0, B, X, 0,
    M, M, M, M, X, X, X, 0, M, M, M, M, M, M, M, M,
    B, B, B, B, B, B, B, B, X, X, X, B, 0, 0, 0, 0,
    X, 0, X, X, 0, 0, X, X, 0, 0, 0, 0, 0, 0, M, M,
};

/* Those behind 0f. */
static const uint8_t two_bytes[256] = {
    M, M, M, M, X, 0, 0, 0, 0, 0, X, 0, X, M, 0, M | B,
    M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M,
    M, M, M, M, X, X, X, X, M, M, M, M, M, M, M, M,
    0, 0, 0, 0, 0, 0, X, 0, X, X, X, X, X, X, X, X,
    M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M,
    M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M,
    M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M,
    M | B, M | B, M | B, M | B, M, M, M, 0, M, M, X, X, M, M, M, M,
    X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X,
    M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M,
    0, 0, 0, M, M | B, M, X, X, 0, 0, 0, M, M | B, M, M, M,
    M, M, M, M, M, M, M, M, M, M, M | B, M, M, M, M, M,
    M, M, M | B, M, M | B, M | B, M | B, M, 0, 0, 0, 0, 0, 0, 0, 0,
    M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M,
    M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M,
    M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M,
};

/* @p: what comes next. @word, @address: prefixes 66, 67; @wide: REX.W. */
typedef struct Insn {
    const uint8_t *p;
    bool word, address, wide;
} Insn;

static size_t immediate(const Insn *in, uint8_t what)
{
    return (what & B ? 1 : 0) + (what & Z ? in->word ? 2 : 4 : 0);
}

/* Skip ModRM, SIB and displacement. */
static void skip_modrm(Insn *in)
{
    uint8_t modrm = *in->p++, mod = modrm >> 6;
    bool sib = mod != 3 && (modrm & 7) == 4;
    uint8_t base = sib ? *in->p++ & 7 : modrm & 7;

    in->p += mod == 1 ? 1 : mod == 2 || (mod == 0 && base == 5) ? 4 : 0;
}

static void skip(Insn *in, uint8_t what)
{
    if (what & M) {
        skip_modrm(in);
    }
    in->p += immediate(in, what);
}

/* Skip what follows the opcode of @map, which is the number of VEX: 1 is 0f, 2
 * is 0f 38, 3 is 0f 3a. */
static bool skip_map(Insn *in, unsigned map, uint8_t op)
{
    uint8_t what = map == 1 ? two_bytes[op] : map == 3 ? M | B : M;

    if (map == 1 && (op & 0xf0) == 0x80) {
        in->p += 4;             /* jcc: 66 changes nothing */
        return true;
    }
    skip(in, what & ~X);
    return !(what & X);
}

static bool skip_two_bytes(Insn *in)
{
    uint8_t op = *in->p++;

    if (op == 0x38 || op == 0x3a) {
        in->p++;
        return skip_map(in, op == 0x38 ? 2 : 3, 0);
    }
    return skip_map(in, 1, op);
}

/* Skip a VEX or EVEX prefix of @n more bytes, and what follows. */
static bool skip_vex(Insn *in, unsigned n, uint8_t map_bits)
{
    unsigned map = map_bits ? *in->p & map_bits : 1;
    uint8_t op = in->p[n];

    in->p += n + 1;
    return skip_map(in, map, op);
}

/* Opcodes of one byte that the table does not describe. */
static bool skip_other(Insn *in, uint8_t op)
{
    switch (op) {
    case 0x0f:
        return skip_two_bytes(in);
    case 0x62:
        return skip_vex(in, 3, 7);
    case 0xa0 ... 0xa3:
        in->p += in->address ? 4 : 8;
        return true;
    case 0xb8 ... 0xbf:
        in->p += in->wide ? 8 : in->word ? 2 : 4;
        return true;
    case 0xc2: case 0xca:
        in->p += 2;
        return true;
    case 0xc4:
        return skip_vex(in, 2, 31);
    case 0xc5:
        return skip_vex(in, 1, 0);
    case 0xc8:
        in->p += 3;
        return true;
    case 0xe8: case 0xe9:
        in->p += 4;             /* 66 changes nothing */
        return true;
    case 0xf6: case 0xf7:
        skip(in, *in->p & 0x30 ? M : op == 0xf6 ? M | B : M | Z);
        return true;
    default:
        return false;
    }
}

static void skip_prefixes(Insn *in)
{
    static const uint8_t prefixes[] = {
        0x66, 0x67, 0xf0, 0xf2, 0xf3, 0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65,
    };

    while (memchr(prefixes, *in->p, sizeof(prefixes))) {
        in->word |= *in->p == 0x66;
        in->address |= *in->p == 0x67;
        in->p++;
    }
    if ((*in->p & 0xf0) == 0x40) {
        in->wide = *in->p++ & 8;
        in->word &= !in->wide;
    }
}

size_t gs_x86_64_length(const uint8_t *insn, size_t len)
{
    uint8_t bytes[3 * INSN_MAX] = { 0 };
    Insn in = { .p = bytes };
    uint8_t op;

    memcpy(bytes, insn, MIN(len, INSN_MAX));
    skip_prefixes(&in);
    op = *in.p++;
    if (one_byte[op] & X) {
        if (!skip_other(&in, op)) {
            return 0;
        }
    } else {
        skip(&in, one_byte[op]);
    }
    return (size_t)(in.p - bytes) <= MIN(len, INSN_MAX) ? in.p - bytes : 0;
}
