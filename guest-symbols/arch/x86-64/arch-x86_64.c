/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The row of x86-64, and what is too small for files of its own. */
#include "guest-symbols/arch/arch-internal.h"
#include "guest-symbols/base/bytes.h"

#include <elf.h>
#include <string.h>
#ifdef GS_HAVE_CAPSTONE
#include <capstone/capstone.h>
#endif

/* System V ABI */
static const GsAbi abi = {
    .n_regs = 6, .stack = 8, .second = GS_REG_ARG2, .floats = true,
    .packed = true, .hidden = true, .returned = true,
};

/* Do functions begin with
 *
 *     (endbr64)  (call __fentry__)  push %rbp  mov %rsp,%rbp
 *
 * gcc and clang encode the move in the same way, and may put other instructions
 * in between. */
static bool makes_frame(const uint8_t code[GS_PROLOGUE_BYTES])
{
    static const uint8_t push[] = { 0x55 }, move[] = { 0x48, 0x89, 0xe5 };
    const uint8_t *at = memmem(code, GS_PROLOGUE_BYTES, push, sizeof(push));

    return at && memmem(at, code + GS_PROLOGUE_BYTES - at, move, sizeof(move));
}

/* 48 b9 | 08 63 77 04 80 88 ff ff: mov $imm64, %rcx. REX.W, with REX.B for r8
 * to r15; then b8 plus the register's number. */
static bool code_constant(const uint8_t *code, uint64_t *out)
{
    if ((code[0] & 0xfe) != 0x48 || (code[1] & 0xf8) != 0xb8) {
        return false;
    }
    *out = gs_u64_at(code + 2);
    return true;
}

/* __START_KERNEL_map and MODULES_VADDR of arch/x86/include/asm/{page_64_types,
 * pgtable_64_types}.h; mapped in huge pages; text is patched by way of int3 */
static const char *const saved[] = {
    "r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax",
    "rcx", "rdx", "rsi", "rdi", "", "rip", "", "eflags", "rsp", NULL
};

const GsArch gs_arch_x86_64 = {
    .name = "x86_64", .machine = EM_X86_64,
    .marker = "x86_64_start_kernel",
    .reg = {
        [GS_REG_SP] = "rsp", [GS_REG_ARG0] = "rdi",
        [GS_REG_ARG1] = "rsi", [GS_REG_ARG2] = "rdx",
        [GS_REG_ARG3] = "rcx", [GS_REG_ARG4] = "r8",
        [GS_REG_ARG5] = "r9", [GS_REG_RESULT] = "rax",
        [GS_REG_FP] = "rbp", [GS_REG_BASE] = "gs_base",
    },
    .pc = "rip",
    .dwarf = { .sp = 7, .fp = 6 },
    .base = GS_BASE_PERCPU,
    .abi = &abi,
    .user_bits = 56,
    .text_start = 0xffffffff80000000ull,
    .text_end = 0xffffffffc0000000ull,
    .slide_align = 2u << 20, .map_step = 2u << 20,
    .direct_maps = &gs_direct_maps_x86_64,
    .code_align = 1,
    .patch_byte = 0xcc,
    .may_touch_objects = gs_operand_x86_64,
    .modifies_memory = gs_modifies_x86_64,
    .branch = gs_branch_x86_64,
    .breakpoint = gs_breakpoint_x86_64,
    .strings = &gs_strings_x86_64,
#ifdef GS_HAVE_CAPSTONE
    .disassembler = { CS_ARCH_X86, CS_MODE_64, CS_OPT_SYNTAX_ATT },
#endif
    .code_constant = code_constant,
    .spinlock = GS_SPINLOCK_WORD,
    .has_orc = true,
    .makes_frame = makes_frame,
    .return_key = GS_RETURN_BY_SLOT,
    .frames = &gs_x86_64_frames,
    .cfi = &gs_frame_pointer_cfi_maker,
    .saved = saved,
};
GS_CHECK_ARCH(x86_64)
