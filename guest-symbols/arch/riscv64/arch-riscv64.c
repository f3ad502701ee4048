/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The row of riscv64, and what is too small for files of its own. */
#include "guest-symbols/arch/arch-internal.h"
#include "guest-symbols/base/bytes.h"

#include <elf.h>
#ifdef GS_HAVE_CAPSTONE
#include <capstone/capstone.h>
#endif

/* RISC-V psABI, lp64: the kernel has no registers for floats in its ABI */
static const GsAbi abi = {
    .n_regs = 8, .second = GS_REG_ARG1, .by_address = true, .splits = true,
    .hidden = true,
};

/* Do functions begin with
 *
 *     addi sp,sp,-N  sd ra,(sp)  sd s0,(sp)  addi s0,sp,N
 *
 * where the last one may be c.addi4spn? 9 % of the functions set s0 so without
 * frame pointers: to the address of a variable. */
static bool makes_frame(const uint8_t code[GS_PROLOGUE_BYTES])
{
    for (unsigned i = 0; i + 4 <= GS_PROLOGUE_BYTES; i += 2) {
        uint32_t insn = gs_u32_at(code + i);
        uint32_t compressed = insn & 0xffff;

        if (((compressed & 0xe01f) == 0 && compressed) ||
            (insn & 0xfffff) == 0x10413) {
            return true;
        }
    }
    return false;
}

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

/* lui, lui, addiw, addiw: the lower 32 bits in one register, the upper ones in
 * another. A lui or addiw without bits is a nop */
static bool code_constant(const uint8_t *code, uint64_t *out)
{
    uint32_t low, high, reg, other;

    if (!riscv_half(gs_u32_at(code), gs_u32_at(code + 8), &reg, &low) ||
        !riscv_half(gs_u32_at(code + 4), gs_u32_at(code + 12), &other, &high) ||
        reg == other) {
        return false;
    }
    *out = (uint64_t)high << 32 | low;
    return true;
}

/* KERNEL_LINK_ADDR of arch/riscv/include/asm/pgtable.h, mapped in huge pages
 * (create_kernel_page_table() in mm/init.c); the header is in front of _text
 * (arch/riscv/kernel/vmlinux.lds.S) */
static const char *const saved[] = {
    "pc", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "fp", "s1", "a0", "a1",
    "a2", "a3", "a4", "a5", "a6", "a7", "s2", "s3", "s4", "s5", "s6", "s7",
    "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6", NULL
};

const GsArch gs_arch_riscv64 = {
    .name = "riscv64", .machine = EM_RISCV,
    .marker = "_start_kernel",
    .reg = {
        [GS_REG_SP] = "sp", [GS_REG_ARG0] = "a0",
        [GS_REG_ARG1] = "a1", [GS_REG_ARG2] = "a2",
        [GS_REG_ARG3] = "a3", [GS_REG_ARG4] = "a4",
        [GS_REG_ARG5] = "a5", [GS_REG_RESULT] = "a0",
        [GS_REG_FP] = "fp", [GS_REG_BASE] = "tp",
        [GS_REG_LINK] = "ra", [GS_REG_ARG6] = "a6",
        [GS_REG_ARG7] = "a7",
    },
    .pc = "pc",
    .dwarf = { .sp = 2, .fp = 8, .link = 1 },
    .base = GS_BASE_TASK,
    .abi = &abi,
    .user_bits = 56,
    .text_start = 0xffffffff80000000ull,
    .text_end = 0xffffffffffe00000ull,
    .slide_align = 2u << 20, .map_step = 2u << 20,
    .image_start = "_start",
    .direct_maps = &gs_direct_maps_riscv64,
    .code_align = 2,
    .patch_byte = -1,
    .may_touch_objects = gs_operand_riscv64,
    .modifies_memory = gs_modifies_riscv64,
    .branch = gs_branch_riscv64,
#if defined(GS_HAVE_CAPSTONE) && CS_API_MAJOR >= 5
    .disassembler = { CS_ARCH_RISCV, CS_MODE_RISCV64 | CS_MODE_RISCVC, 0 },
#endif
    .code_constant = code_constant,
    .spinlock = GS_SPINLOCK_TICKETS,
    .makes_frame = makes_frame,
    .return_key = GS_RETURN_BY_FP,
    .frames = &gs_riscv64_frames,
    .code_frames = &gs_riscv64_code,
    .cfi = &gs_riscv64_cfi_maker,
    .saved = saved,
};
GS_CHECK_ARCH(riscv64)
