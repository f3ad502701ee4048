/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Instructions of riscv64 are decoded as the assembler made them. Oracle: the
 * bytes and the text above them are from listings of GNU as and objdump.
 */
#include "guest-symbols/arch/riscv64/riscv64-internal.h"
#include "tests/lib/test-main.h"

#include <glib.h>

typedef struct Row {
    uint32_t bytes;
    GsRvInsn want;
} Row;

static void check(const Row *row)
{
    const uint8_t bytes[] = { row->bytes, row->bytes >> 8, row->bytes >> 16,
                              row->bytes >> 24 };
    GsRvInsn got = gs_rv_decode(bytes, sizeof(bytes));

    g_test_message("%08x", row->bytes);
    g_assert_cmpuint(got.kind, ==, row->want.kind);
    g_assert_cmpuint(got.len, ==, (row->bytes & 3) == 3 ? 4 : 2);
    g_assert_cmpuint(got.rd, ==, row->want.rd);
    g_assert_cmpuint(got.rs1, ==, row->want.rs1);
    g_assert_cmpuint(got.rs2, ==, row->want.rs2);
    g_assert_cmpint(got.imm, ==, row->want.imm);
}

static void check_all(const Row *row, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        check(&row[i]);
    }
}

TEST(four_bytes, "/riscv64-insn/four-bytes")
{
    static const Row rows[] = {
        /* addi sp, sp, -2032; addi s0, sp, 2032; addi sp, s0, -80 */
        { 0x81010113, { GS_RV_ADDI, .rd = 2, .rs1 = 2, .imm = -2032 } },
        { 0x7f010413, { GS_RV_ADDI, .rd = 8, .rs1 = 2, .imm = 2032 } },
        { 0xfb040113, { GS_RV_ADDI, .rd = 2, .rs1 = 8, .imm = -80 } },
        /* sub sp, sp, a5; add sp, t0, t1 */
        { 0x40f10133, { GS_RV_ADD, .rd = 2, .rs1 = 2, .rs2 = 15 } },
        { 0x00628133, { GS_RV_ADD, .rd = 2, .rs1 = 5, .rs2 = 6 } },
        /* sd ra, 2024(sp); sd a4, -72(s0); ld ra, 2024(sp); ld s0, 392(a4) */
        { 0x7e113423, { GS_RV_STORE, .rs1 = 2, .rs2 = 1, .imm = 2024 } },
        { 0xfae43c23, { GS_RV_STORE, .rs1 = 8, .rs2 = 14, .imm = -72 } },
        { 0x7e813083, { GS_RV_LOAD, .rd = 1, .rs1 = 2, .imm = 2024 } },
        { 0x18873403, { GS_RV_LOAD, .rd = 8, .rs1 = 14, .imm = 392 } },
        /* csrrw tp, sscratch, tp; csrrs s0, sstatus, zero */
        { 0x14021273, { GS_RV_CSR, .rd = 4 } },
        { 0x10002473, { GS_RV_CSR, .rd = 8 } },
        /* bne a5, a4, +14; bgeu a5, a4, -18; beq s3, zero, +690 */
        { 0x00e79763, { GS_RV_BRANCH, .imm = 14 } },
        { 0xfee7f7e3, { GS_RV_BRANCH, .imm = -18 } },
        { 0x2a098963, { GS_RV_BRANCH, .imm = 690 } },
        /* j . + 0x100, . - 0x100, . + 0x2345e */
        { 0x1000006f, { GS_RV_JUMP, .imm = 0x100 } },
        { 0xf01ff06f, { GS_RV_JUMP, .imm = -0x100 } },
        { 0x45e2306f, { GS_RV_JUMP, .imm = 0x2345e } },
        /* jal ra, . + 0x100; jalr ra, 0(a1); jalr t0, 0(t0) */
        { 0x100000ef, { GS_RV_CALL, .rd = 1, .imm = 0x100 } },
        { 0x000580e7, { GS_RV_CALL, .rd = 1 } },
        { 0x000282e7, { GS_RV_CALL, .rd = 5 } },
        /* ret; sret; mret; ebreak; wfi; lw a5, 32(tp); srli sp, sp, 14 */
        { 0x00008067, { GS_RV_LEAVE } },
        { 0x10200073, { GS_RV_LEAVE } },
        { 0x30200073, { GS_RV_LEAVE } },
        { 0x00100073, { GS_RV_TRAP } },
        { 0x10500073, { GS_RV_OTHER } },
        { 0x02022783, { GS_RV_OTHER } },
        { 0x00e15113, { GS_RV_OTHER } },
    };

    check_all(rows, G_N_ELEMENTS(rows));
}

TEST(two_bytes, "/riscv64-insn/two-bytes")
{
    static const Row rows[] = {
        /* addi sp, sp, -16; addi sp, sp, 48; addi sp, sp, -288 */
        { 0x1141, { GS_RV_ADDI, .rd = 2, .rs1 = 2, .imm = -16 } },
        { 0x6145, { GS_RV_ADDI, .rd = 2, .rs1 = 2, .imm = 48 } },
        { 0x712d, { GS_RV_ADDI, .rd = 2, .rs1 = 2, .imm = -288 } },
        /* addi s0, sp, 48; addi s0, sp, 288 */
        { 0x1800, { GS_RV_ADDI, .rd = 8, .rs1 = 2, .imm = 48 } },
        { 0x1200, { GS_RV_ADDI, .rd = 8, .rs1 = 2, .imm = 288 } },
        /* sd ra, 40(sp); sd s0, 144(sp); ld ra, 40(sp); ld s0, 256(sp) */
        { 0xf406, { GS_RV_STORE, .rs1 = 2, .rs2 = 1, .imm = 40 } },
        { 0xe922, { GS_RV_STORE, .rs1 = 2, .rs2 = 8, .imm = 144 } },
        { 0x70a2, { GS_RV_LOAD, .rd = 1, .rs1 = 2, .imm = 40 } },
        { 0x6412, { GS_RV_LOAD, .rd = 8, .rs1 = 2, .imm = 256 } },
        /* sd s0, 16(a3); ld s0, 16(a4) */
        { 0xea80, { GS_RV_STORE, .rs1 = 13, .rs2 = 8, .imm = 16 } },
        { 0x6b00, { GS_RV_LOAD, .rd = 8, .rs1 = 14, .imm = 16 } },
        /* beqz a2, +30; bnez s0, +12; j -278; j +62 */
        { 0xce19, { GS_RV_BRANCH, .imm = 30 } },
        { 0xe411, { GS_RV_BRANCH, .imm = 12 } },
        { 0xb5ed, { GS_RV_JUMP, .imm = -278 } },
        { 0xa83d, { GS_RV_JUMP, .imm = 62 } },
        /* ret; jr a5; jalr s0; mv tp, a1; add sp, sp, t6; ebreak; all zeros */
        { 0x8082, { GS_RV_LEAVE } },
        { 0x8782, { GS_RV_LEAVE } },
        { 0x9402, { GS_RV_CALL, .rd = 1 } },
        { 0x822e, { GS_RV_ADD, .rd = 4, .rs2 = 11 } },
        { 0x917e, { GS_RV_ADD, .rd = 2, .rs1 = 2, .rs2 = 31 } },
        { 0x9002, { GS_RV_TRAP } },
        { 0x0000, { GS_RV_LEAVE } },
        /* li a0, -22; lw a5, 12(a0); lui a4, 1; and s0, s0, s1 */
        { 0x5529, { GS_RV_OTHER } },
        { 0x455c, { GS_RV_OTHER } },
        { 0x6705, { GS_RV_OTHER } },
        { 0x8c65, { GS_RV_OTHER } },
    };

    check_all(rows, G_N_ELEMENTS(rows));
}

TEST(cut_off, "/riscv64-insn/cut-off")
{
    static const uint8_t bytes[] = { 0x13, 0x01, 0x01 };

    for (size_t len = 0; len <= sizeof(bytes); len++) {
        g_assert_cmpuint(gs_rv_decode(bytes, len).kind, ==, GS_RV_LEAVE);
        g_assert_cmpuint(gs_rv_decode(bytes, len).len, ==, 2);
    }
}
