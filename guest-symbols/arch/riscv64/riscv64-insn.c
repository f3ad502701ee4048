/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Decodes instructions of riscv64, see riscv64-internal.h. A table has the
 * fixed bits of each one, and where its number is (The RISC-V Instruction Set
 * Manual, volume I, chapters "RV32/64G instruction set listings" and "C").
 *
 * An instruction whose two lowest bits are ones has four bytes, all others have
 * two. Those of two bytes are short forms of those of four.
 */
#include "guest-symbols/arch/riscv64/riscv64-internal.h"
#include "guest-symbols/base/bytes.h"

#include <glib.h>
#include <stdbool.h>

/* A part of a number: @n bits of the instruction from bit @from up are its bits
 * from bit @to up. */
typedef struct Part {
    uint8_t from, n, to;
} Part;

/* How a number is stored; the highest part of a signed one comes last. */
typedef struct Number {
    uint8_t bits;
    bool is_signed;
    Part part[9];
} Number;

static const Number
    none = { 0 },
    i_type = { 12, true, { { 20, 12, 0 } } },
    s_type = { 12, true, { { 7, 5, 0 }, { 25, 7, 5 } } },
    b_type = { 13, true, { { 8, 4, 1 }, { 25, 6, 5 }, { 7, 1, 11 },
                           { 31, 1, 12 } } },
    j_type = { 21, true, { { 21, 10, 1 }, { 20, 1, 11 }, { 12, 8, 12 },
                           { 31, 1, 20 } } },
    c_addi = { 6, true, { { 2, 5, 0 }, { 12, 1, 5 } } },
    c_addi16sp = { 10, true, { { 6, 1, 4 }, { 2, 1, 5 }, { 5, 1, 6 },
                               { 3, 2, 7 }, { 12, 1, 9 } } },
    c_addi4spn = { 10, false, { { 6, 1, 2 }, { 5, 1, 3 }, { 11, 2, 4 },
                                { 7, 4, 6 } } },
    c_word = { 8, false, { { 10, 3, 3 }, { 5, 2, 6 } } },
    c_sdsp = { 9, false, { { 10, 3, 3 }, { 7, 3, 6 } } },
    c_ldsp = { 9, false, { { 5, 2, 3 }, { 12, 1, 5 }, { 2, 3, 6 } } },
    c_branch = { 9, true, { { 3, 2, 1 }, { 10, 2, 3 }, { 2, 1, 5 },
                            { 5, 2, 6 }, { 12, 1, 8 } } },
    c_jump = { 12, true, { { 3, 3, 1 }, { 11, 1, 4 }, { 2, 1, 5 }, { 7, 1, 6 },
                           { 6, 1, 7 }, { 9, 2, 8 }, { 8, 1, 10 },
                           { 12, 1, 11 } } };

/* Where a register's number is: @n bits from bit @at up, added to @base. */
typedef struct Reg {
    uint8_t at, n, base;
} Reg;

#define RD      { 7, 5, 0 }
#define RS1     { 15, 5, 0 }
#define RS2     { 20, 5, 0 }
#define C_RS2   { 2, 5, 0 }
#define C_RDQ   { 2, 3, 8 }     /* one of s0, s1, a0 to a5 */
#define C_RS1Q  { 7, 3, 8 }
#define IS(reg) { 0, 0, reg }

/* The first row that fits is the instruction. Those of four bytes come first.
 */
static const struct {
    uint32_t mask, bits;
    GsRvKind kind;
    const Number *imm;
    Reg rd, rs1, rs2;
} known[] = {
    { 0x707f, 0x0013, GS_RV_ADDI, &i_type, RD, RS1, IS(0) },
    { 0xbe00707f, 0x0033, GS_RV_ADD, &none, RD, RS1, RS2 },
    { 0x707f, 0x3023, GS_RV_STORE, &s_type, IS(0), RS1, RS2 },
    { 0x707f, 0x3003, GS_RV_LOAD, &i_type, RD, RS1, IS(0) },
    { 0x007f, 0x0063, GS_RV_BRANCH, &b_type, IS(0), IS(0), IS(0) },
    { 0x0fff, 0x006f, GS_RV_JUMP, &j_type, IS(0), IS(0), IS(0) },
    { 0x007f, 0x006f, GS_RV_CALL, &j_type, RD, IS(0), IS(0) },
    { 0x7fff, 0x0067, GS_RV_LEAVE, &none, IS(0), IS(0), IS(0) },
    { 0x707f, 0x0067, GS_RV_CALL, &none, RD, IS(0), IS(0) },
    { 0xffffffff, 0x00100073, GS_RV_TRAP, &none, IS(0), IS(0), IS(0) },
    { 0xdfffffff, 0x10200073, GS_RV_LEAVE, &none, IS(0), IS(0), IS(0) },
    { 0x707f, 0x0073, GS_RV_OTHER, &none, IS(0), IS(0), IS(0) },
    { 0x007f, 0x0073, GS_RV_CSR, &none, RD, IS(0), IS(0) },
    { 0xffff, 0x0000, GS_RV_LEAVE, &none, IS(0), IS(0), IS(0) },
    { 0xe003, 0x0000, GS_RV_ADDI, &c_addi4spn, C_RDQ, IS(GS_RV_SP), IS(0) },
    { 0xe003, 0x6000, GS_RV_LOAD, &c_word, C_RDQ, C_RS1Q, IS(0) },
    { 0xe003, 0xe000, GS_RV_STORE, &c_word, IS(0), C_RS1Q, C_RDQ },
    { 0xe003, 0x0001, GS_RV_ADDI, &c_addi, RD, RD, IS(0) },
    { 0xef83, 0x6101, GS_RV_ADDI, &c_addi16sp, IS(GS_RV_SP), IS(GS_RV_SP),
      IS(0) },
    { 0xe003, 0xa001, GS_RV_JUMP, &c_jump, IS(0), IS(0), IS(0) },
    { 0xc003, 0xc001, GS_RV_BRANCH, &c_branch, IS(0), IS(0), IS(0) },
    { 0xe003, 0x6002, GS_RV_LOAD, &c_ldsp, RD, IS(GS_RV_SP), IS(0) },
    { 0xe003, 0xe002, GS_RV_STORE, &c_sdsp, IS(0), IS(GS_RV_SP), C_RS2 },
    { 0xffff, 0x9002, GS_RV_TRAP, &none, IS(0), IS(0), IS(0) },
    { 0xf07f, 0x8002, GS_RV_LEAVE, &none, IS(0), IS(0), IS(0) },
    { 0xf07f, 0x9002, GS_RV_CALL, &none, IS(GS_RV_RA), IS(0), IS(0) },
    { 0xf003, 0x8002, GS_RV_ADD, &none, RD, IS(0), C_RS2 },
    { 0xf003, 0x9002, GS_RV_ADD, &none, RD, RD, C_RS2 },
};

static int32_t number_of(const Number *number, uint32_t insn)
{
    uint32_t v = 0;

    for (const Part *p = number->part; p->n; p++) {
        v |= (insn >> p->from & ((1u << p->n) - 1)) << p->to;
    }
    if (number->is_signed && v >> (number->bits - 1)) {
        v -= 1u << number->bits;
    }
    return (int32_t)v;
}

static uint8_t reg_of(Reg reg, uint32_t insn)
{
    return (insn >> reg.at & ((1u << reg.n) - 1)) + reg.base;
}

/* The row of the first instruction of two bytes. */
#define FIRST_SHORT 13

/* Opcodes (bits 2 to 6) that instructions of four bytes in the table have. */
#define OPCODES (1u << 0x00 | 1u << 0x04 | 1u << 0x08 | 1u << 0x0c | \
                 1u << 0x18 | 1u << 0x19 | 1u << 0x1b | 1u << 0x1c)

/* Return the first row that fits, or G_N_ELEMENTS(known). */
static size_t row_of(uint32_t insn)
{
    bool wide = (insn & 3) == 3;
    size_t i = wide ? 0 : FIRST_SHORT;

    if (wide && !(OPCODES >> (insn >> 2 & 31) & 1)) {
        return G_N_ELEMENTS(known);
    }
    while (i < G_N_ELEMENTS(known) &&
           (insn & known[i].mask) != known[i].bits) {
        i++;
    }
    return i;
}

GsRvInsn gs_rv_decode(const uint8_t *code, size_t len)
{
    uint32_t insn;
    size_t i;
    GsRvInsn out = { .kind = GS_RV_LEAVE, .len = 2 };

    if (len < 2) {
        return out;
    }
    insn = gs_u16_at(code);
    if ((insn & 3) == 3) {
        if (len < 4) {
            return out;
        }
        out.len = 4;
        insn = gs_u32_at(code);
    }
    out.kind = GS_RV_OTHER;
    i = row_of(insn);
    if (i < G_N_ELEMENTS(known)) {
        out.kind = known[i].kind;
        out.imm = number_of(known[i].imm, insn);
        out.rd = reg_of(known[i].rd, insn);
        out.rs1 = reg_of(known[i].rs1, insn);
        out.rs2 = reg_of(known[i].rs2, insn);
    }
    return out;
}
