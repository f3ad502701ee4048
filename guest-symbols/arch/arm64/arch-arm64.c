/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The row of arm64, and what is too small for files of its own. */
#include "guest-symbols/arch/arch-internal.h"
#include "guest-symbols/base/bytes.h"
#include "guest-symbols/kernel/kernel.h"
#include "guest-symbols/symbols/symtab.h"

#include <elf.h>
#ifdef GS_HAVE_CAPSTONE
#include <capstone/capstone.h>
#endif

/* AAPCS64 */
static const GsAbi abi = {
    .n_regs = 8, .second = GS_REG_ARG1, .by_address = true, .closes = true,
    .even = true, .floats = true, .uniform = true,
};

/* arch/arm64/kernel/vmlinux.lds.S places page tables of one page each side by
 * side, so the page size is the distance from swapper_pg_dir to the table
 * before it. */
static unsigned page_shift(const GsKernel *k)
{
    static const char *const before[] = {
        "reserved_pg_dir", "reserved_ttbr0"
    };
    GsSymbol dir, other;

    if (!gs_symtab_lookup(k->symtab, "swapper_pg_dir", &dir)) {
        return 12;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(before); i++) {
        if (gs_symtab_lookup(k->symtab, before[i], &other)) {
            return dir.va - other.va == 1u << 14 ? 14 :
                   dir.va - other.va == 1u << 16 ? 16 : 12;
        }
    }
    return 12;
}

/* movz, movk, movk, movk of one register, 16 bits each, shifted by 16 * @i */
static bool code_constant(const uint8_t *code, uint64_t *out)
{
    uint32_t reg = gs_u32_at(code) & 31;
    uint64_t value = 0;

    for (unsigned i = 0; i < 4; i++) {
        uint32_t insn = gs_u32_at(code + 4 * i);
        uint32_t opcode = i ? 0xf2800000 | i << 21 : 0xd2800000;

        if ((insn & 0xffe0001f) != (opcode | reg)) {
            return false;
        }
        value |= (uint64_t)(insn >> 5 & 0xffff) << 16 * i;
    }
    *out = value;
    return true;
}

/* The kernel is in the upper half of its address space, which begins there with
 * 48 bits (Documentation/arch/arm64/memory.rst), its segments are aligned to
 * SEGMENT_ALIGN of arch/arm64/include/asm/memory.h; a BRK at an entry is a
 * kprobe, which runs the instruction elsewhere. KASAN's tag is the top byte. */
static const char *const saved[] = {
    "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11",
    "x12", "x13", "x14", "x15", "x16", "x17", "x18", "x19", "x20", "x21", "x22",
    "x23", "x24", "x25", "x26", "x27", "x28", "x29", "x30", "sp", "pc", NULL
};

const GsArch gs_arch_arm64 = {
    .name = "aarch64", .machine = EM_AARCH64,
    .marker = "__primary_switched",
    .reg = {
        [GS_REG_SP] = "sp", [GS_REG_ARG0] = "x0",
        [GS_REG_ARG1] = "x1", [GS_REG_ARG2] = "x2",
        [GS_REG_ARG3] = "x3", [GS_REG_ARG4] = "x4",
        [GS_REG_ARG5] = "x5", [GS_REG_RESULT] = "x0",
        [GS_REG_FP] = "x29", [GS_REG_BASE] = "SP_EL0",
        [GS_REG_LINK] = "x30", [GS_REG_ARG6] = "x6",
        [GS_REG_ARG7] = "x7",
    },
    .pc = "pc",
    .dwarf = { .sp = 31, .fp = 29, .link = 30 },
    .base = GS_BASE_TASK,
    .abi = &abi,
    .user_bits = 52,
    .text_start = 0xffff800000000000ull,
    .text_end = 0xffffffffffe00000ull,
    .slide_align = 64u << 10, .map_step = 64u << 10,
    .page_shift = page_shift,
    .tag_bits = 0xffull << 56,
    .direct_maps = &gs_direct_maps_arm64,
    .code_align = 4,
    .patch_byte = -1,
    .may_touch_objects = gs_operand_arm64,
    .modifies_memory = gs_modifies_arm64,
    .branch = gs_branch_arm64,
#ifdef GS_HAVE_CAPSTONE
    .disassembler = { CS_ARCH_ARM64, CS_MODE_ARM, 0 },
#endif
    .code_constant = code_constant,
    .spinlock = GS_SPINLOCK_WORD,
    .return_key = GS_RETURN_BY_FP,
    .frames = &gs_arm64_frames,
    .code_frames = &gs_arm64_code,
    .cfi = &gs_arm64_cfi_maker,
    .saved = saved,
};
GS_CHECK_ARCH(arm64)
