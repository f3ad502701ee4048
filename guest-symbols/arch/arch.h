/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rows of the table of architectures, and how one is found. Each row,
 * gs_arch_NAME, is in arch/NAME/arch-NAME.c. Constant data, any thread.
 */
#ifndef GS_ARCH_H
#define GS_ARCH_H

#include "guest-symbols/api/gs-arch.h"

typedef struct GsSymtab GsSymtab;

#define GS_ARCH(name) extern const GsArch gs_arch_##name;
#include "guest-symbols/api/archs.def"

enum {
    GS_N_ARCHS = 0
#define GS_ARCH(name) + 1
#include "guest-symbols/api/archs.def"
};

/** gs_arch_of_machine() - (static, nullable) find a row by ELF's e_machine. */
const GsArch *gs_arch_of_machine(unsigned machine);
/** gs_arch_of_symbols() - (static) find a row by a symbol that only kernels of
 *  this architecture have; the first row if there is none. */
const GsArch *gs_arch_of_symbols(const GsSymtab *tab);

/** GS_ARCH_MEMBERS() - what each architecture has: a name for the compiler, and
 *  the member of struct GsArch */
#define GS_ARCH_MEMBERS(X) \
    X(name, name) X(machine, machine) X(marker, marker) \
    X(sp, reg[GS_REG_SP]) X(fp, reg[GS_REG_FP]) X(result, reg[GS_REG_RESULT]) \
    X(arg0, reg[GS_REG_ARG0]) X(arg1, reg[GS_REG_ARG1]) \
    X(arg2, reg[GS_REG_ARG2]) X(arg3, reg[GS_REG_ARG3]) \
    X(arg4, reg[GS_REG_ARG4]) X(arg5, reg[GS_REG_ARG5]) \
    X(base_register, reg[GS_REG_BASE]) X(base, base) X(pc, pc) \
    X(dwarf_sp, dwarf.sp) X(dwarf_fp, dwarf.fp) X(abi, abi) \
    X(user_bits, user_bits) X(text_start, text_start) X(text_end, text_end) \
    X(slide_align, slide_align) X(map_step, map_step) \
    X(code_align, code_align) X(patch_byte, patch_byte) \
    X(may_touch_objects, may_touch_objects) \
    X(modifies_memory, modifies_memory) X(branch, branch) \
    X(spinlock, spinlock) \
    X(return_key, return_key) X(frames, frames) X(cfi, cfi) \
    X(direct_maps, direct_maps) X(code_constant, code_constant) \
    X(saved, saved)

#define GS_NO_MEMBER(id, member) \
    void gs_arch_without_##id(void) \
        __attribute__((error("struct GsArch without " #member)));
GS_ARCH_MEMBERS(GS_NO_MEMBER)
#undef GS_NO_MEMBER

#define GS_CHECK_MEMBER(id, member) \
    if (__builtin_constant_p(!row->member) && !row->member) { \
        gs_arch_without_##id(); \
    }

/**
 * GS_CHECK_ARCH() - do not compile a row that lacks a member
 *
 * If the compiler optimises, it knows the members of a constant row. A call
 * that remains is an error, which names the member.
 */
#define GS_CHECK_ARCH(name) \
    __attribute__((used)) static void check_row(void) \
    { \
        const GsArch *row = &gs_arch_##name; \
        GS_ARCH_MEMBERS(GS_CHECK_MEMBER) \
    }

#endif /* GS_ARCH_H */
