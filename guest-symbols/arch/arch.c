/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table of architectures: registers by their role, the addresses to which
 * Linux maps its image, and how a kernel of the architecture is recognised.
 * Constant data, any thread.
 */
#include "guest-symbols/kernel/arch.h"
#include "guest-symbols/kernel/kernel.h"
#include "guest-symbols/symbols/symtab.h"

#include <elf.h>
#include <string.h>

/*
 * @machine: e_machine of an ELF file
 * @marker: a symbol that only kernels of this architecture have
 * @page_shift: (nullable) returns log2 of the page size; NULL: 12
 * @image_start: (nullable) the symbol at which the image begins; NULL: _text
 */
typedef struct Inside {
    unsigned machine;
    const char *marker;
    unsigned (*page_shift)(const GsKernel *k);
    const char *image_start;
} Inside;

static const GsArch archs[GS_ARCH__COUNT] = {
    /* System V ABI; __START_KERNEL_map and MODULES_VADDR of
     * arch/x86/include/asm/{page_64_types,pgtable_64_types}.h; mapped in
     * huge pages; text is patched by way of int3 */
    [GS_ARCH_X86_64] = {
        .id = GS_ARCH_X86_64, .name = "x86_64",
        .reg = {
            [GS_REG_SP] = "rsp", [GS_REG_ARG0] = "rdi",
            [GS_REG_ARG1] = "rsi", [GS_REG_ARG2] = "rdx",
            [GS_REG_ARG3] = "rcx", [GS_REG_ARG4] = "r8",
            [GS_REG_ARG5] = "r9", [GS_REG_RESULT] = "rax",
            [GS_REG_FP] = "rbp", [GS_REG_BASE] = "gs_base",
        },
        .text_start = 0xffffffff80000000ull,
        .text_end = 0xffffffffc0000000ull,
        .slide_align = 2u << 20, .map_step = 2u << 20,
        .patch_byte = 0xcc,
    },
    /* AAPCS64; the kernel is in the upper half of its address space, which
     * begins there with 48 bits (Documentation/arch/arm64/memory.rst), its
     * segments are aligned to SEGMENT_ALIGN of arch/arm64/include/asm/
     * memory.h; a BRK at an entry is a kprobe, which runs the instruction
     * elsewhere */
    [GS_ARCH_ARM64] = {
        .id = GS_ARCH_ARM64, .name = "aarch64",
        .reg = {
            [GS_REG_SP] = "sp", [GS_REG_ARG0] = "x0",
            [GS_REG_ARG1] = "x1", [GS_REG_ARG2] = "x2",
            [GS_REG_ARG3] = "x3", [GS_REG_ARG4] = "x4",
            [GS_REG_ARG5] = "x5", [GS_REG_RESULT] = "x0",
            [GS_REG_FP] = "x29", [GS_REG_BASE] = "SP_EL0",
            [GS_REG_LINK] = "x30", [GS_REG_ARG6] = "x6",
            [GS_REG_ARG7] = "x7",
        },
        .base_is_task = true,
        .text_start = 0xffff800000000000ull,
        .text_end = 0xffffffffffe00000ull,
        .slide_align = 64u << 10, .map_step = 64u << 10,
        .patch_byte = -1,
    },
    /* RISC-V psABI; KERNEL_LINK_ADDR of arch/riscv/include/asm/pgtable.h,
     * mapped in huge pages (create_kernel_page_table() in mm/init.c) */
    [GS_ARCH_RISCV64] = {
        .id = GS_ARCH_RISCV64, .name = "riscv64",
        .reg = {
            [GS_REG_SP] = "sp", [GS_REG_ARG0] = "a0",
            [GS_REG_ARG1] = "a1", [GS_REG_ARG2] = "a2",
            [GS_REG_ARG3] = "a3", [GS_REG_ARG4] = "a4",
            [GS_REG_ARG5] = "a5", [GS_REG_RESULT] = "a0",
            [GS_REG_FP] = "fp", [GS_REG_BASE] = "tp",
            [GS_REG_LINK] = "ra", [GS_REG_ARG6] = "a6",
            [GS_REG_ARG7] = "a7",
        },
        .base_is_task = true,
        .text_start = 0xffffffff80000000ull,
        .text_end = 0xffffffffffe00000ull,
        .slide_align = 2u << 20, .map_step = 2u << 20,
        .patch_byte = -1,
    },
};

/* Return log2 of the page size. arch/arm64/kernel/vmlinux.lds.S places page
 * tables of one page each side by side, so the page size is the distance from
 * swapper_pg_dir to the table before it. */
static unsigned arm64_page_shift(const GsKernel *k)
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

static const Inside insides[GS_ARCH__COUNT] = {
    [GS_ARCH_X86_64] = { EM_X86_64, "x86_64_start_kernel" },
    [GS_ARCH_ARM64] = {
        EM_AARCH64, "__primary_switched", arm64_page_shift
    },
    /* the header is in front of _text (arch/riscv/kernel/vmlinux.lds.S) */
    [GS_ARCH_RISCV64] = {
        EM_RISCV, "_start_kernel", NULL, "_start"
    },
};

const GsArch *gs_arch_nth(unsigned i)
{
    return i < GS_ARCH__COUNT ? &archs[i] : NULL;
}

const GsArch *gs_arch_find(const char *name)
{
    for (unsigned i = 0; i < GS_ARCH__COUNT; i++) {
        if (!strcmp(archs[i].name, name)) {
            return &archs[i];
        }
    }
    return NULL;
}

const GsArch *gs_arch_of_machine(unsigned machine)
{
    for (unsigned i = 0; i < GS_ARCH__COUNT; i++) {
        if (insides[i].machine == machine) {
            return &archs[i];
        }
    }
    return NULL;
}

const GsArch *gs_arch_of_symbols(const GsSymtab *tab)
{
    GsSymbol sym;

    for (unsigned i = 0; i < GS_ARCH__COUNT; i++) {
        if (gs_symtab_lookup(tab, insides[i].marker, &sym)) {
            return &archs[i];
        }
    }
    return &archs[GS_ARCH_X86_64];
}

unsigned gs_arch_page_shift(const GsKernel *k)
{
    const Inside *in = &insides[k->arch->id];

    return in->page_shift ? in->page_shift(k) : 12;
}

const char *gs_arch_image_start(const GsArch *arch)
{
    return insides[arch->id].image_start;
}
