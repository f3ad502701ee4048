/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The architectures of guests: all that depends on one is in its row, struct
 * GsArch, and in its folder, guest-symbols/arch/NAME/. Constant data and pure
 * functions: any thread.
 */
#ifndef GS_API_ARCH_H
#define GS_API_ARCH_H

#include "guest-symbols/api/gs-types.h"

typedef struct GsKernel GsKernel;
typedef struct GsBranch GsBranch;

/** enum GsReg - registers by purpose. @GS_REG_LINK: holds the return address
 *  at a function's entry, on architectures that do not push it;
 *  @GS_REG_BASE: leads to the current task, see struct GsArch; @GS_REG_ARG6,
 *  @GS_REG_ARG7: x86-64 has six registers for arguments, and none for these */
typedef enum GsReg {
    GS_REG_SP, GS_REG_ARG0, GS_REG_ARG1, GS_REG_ARG2, GS_REG_ARG3,
    GS_REG_RESULT, GS_REG_FP, GS_REG_BASE, GS_REG_ARG4, GS_REG_ARG5,
    GS_REG_LINK, GS_REG_ARG6, GS_REG_ARG7, GS_REG__COUNT
} GsReg;

/** enum GsBase - what the address in GS_REG_BASE is of */
typedef enum GsBase { GS_BASE_TASK = 1, GS_BASE_PERCPU } GsBase;

/** enum GsReturnKey - what finds the record of a return address that the
 *  guest's tracers replaced: its place on the stack, or the frame pointer */
typedef enum GsReturnKey { GS_RETURN_BY_SLOT = 1, GS_RETURN_BY_FP } GsReturnKey;

/** enum GsSpinlock - a spinlock that is free: a word that is 0, or two numbers
 *  that are equal */
typedef enum GsSpinlock {
    GS_SPINLOCK_WORD = 1, GS_SPINLOCK_TICKETS
} GsSpinlock;

/**
 * enum GsBreakpoint - what a breakpoint on an instruction costs
 * @GS_BREAKPOINT_NEVER: the instruction is not emulated: plant none
 * @GS_BREAKPOINT_NOTHING: it does nothing: a nop, or the landing pad of an
 *                         entry
 * @GS_BREAKPOINT_PLAIN: it is emulated
 * @GS_BREAKPOINT_RETURN: it is emulated, and returns from the function
 */
typedef enum GsBreakpoint {
    GS_BREAKPOINT_NEVER, GS_BREAKPOINT_NOTHING, GS_BREAKPOINT_PLAIN,
    GS_BREAKPOINT_RETURN,
} GsBreakpoint;

/** GS_CODE_CONSTANT_MAX - bytes of the longest code of one constant */
#define GS_CODE_CONSTANT_MAX 16

/**
 * struct GsArch - an architecture (static)
 *
 * Members are set in each row, unless they are nullable, or 0 or false is said
 * to have a meaning: GS_CHECK_ARCH() refuses to compile a row without them.
 *
 * What it is called
 * @name: QEMU's name of the target
 * @machine: e_machine of an ELF file
 * @marker: a symbol that only kernels of this architecture have
 *
 * Registers
 * @reg: gdb's names, NULL if the architecture has none for it: GS_REG_LINK,
 *       GS_REG_ARG6, GS_REG_ARG7
 * @pc: gdb's name of the program counter
 * @dwarf: DWARF's numbers of registers that code saves first; @link 0: none
 * @base: what GS_REG_BASE leads to
 * @abi: places of arguments, see types/arg-places.h
 *
 * Addresses
 * @user_bits: width of a user address, at most
 * @text_start, @text_end: the kernel's own code runs between these addresses
 * @slide_align: KASLR moves a kernel by multiples of this
 * @map_step: early in boot the image is mapped in steps of this
 * @image_start: (nullable) the symbol at which an Image begins; NULL: _text
 * @page_shift: (nullable) returns log2 of the page size; NULL: it is 12
 * @tag_bits: bits of a pointer that are KASAN's tag; 0: it has none there
 * @direct_maps: where the direct map can be, see gs-direct-map.h
 *
 * Code
 * @code_align: addresses of instructions are multiples of this
 * @patch_byte: first byte of the instruction that traps while the kernel
 *              patches or probes code; -1 if patching needs no trap
 * @may_touch_objects, @modifies_memory: see gs-instruction.h
 * @strings: (nullable) string instructions, see gs-instruction.h
 * @branch: where an instruction leads, see gs-instruction.h
 * @disassembler: capstone's numbers: architecture, mode, syntax; all 0: the
 *                build has none
 * @code_constant: decodes the 64-bit constant that an instruction of @code
 *                 loads (runtime_const_ptr(), since 6.11), of which there are
 *                 GS_CODE_CONSTANT_MAX bytes. Returns: false if there is none,
 *                 then @out is unchanged
 * @spinlock: how a spinlock of four bytes says that it is held
 *
 * Stacks
 * @has_orc: kernels can have ORC tables
 * @makes_frame: (nullable) does a function that begins with these
 *               GS_PROLOGUE_BYTES make a frame record? NULL: functions of all
 *               kernels do
 * @return_key: of the records of return addresses
 * @frames: how frame records are walked
 * @code_frames: (nullable) how callers are found by code, where no record is
 * @cfi: makes call frame information of code
 * @saved: registers in the words of struct pt_regs (uapi/asm/ptrace.h), by
 *         gdb's names; "": none that gdb has; NULL ends them
 */
typedef struct GsArch {
    const char *name;
    unsigned machine;
    const char *marker;

    const char *reg[GS_REG__COUNT];
    const char *pc;
    struct { uint8_t sp, fp, link; } dwarf;
    GsBase base;
    const struct GsAbi *abi;

    unsigned user_bits;
    uint64_t text_start, text_end;
    uint64_t slide_align, map_step;
    const char *image_start;
    unsigned (*page_shift)(const GsKernel *k);
    uint64_t tag_bits;
    const struct GsDirectMapRules *direct_maps;

    unsigned code_align;
    int patch_byte;
    bool (*may_touch_objects)(const uint8_t *insn, size_t len);
    bool (*modifies_memory)(const uint8_t *insn, size_t len);
    const struct GsStringRules *strings;
    bool (*branch)(uint64_t va, const uint8_t *insn, size_t len,
                   GsBranch *out);
    GsBreakpoint (*breakpoint)(const uint8_t *insn, size_t len);
    struct { int arch, mode, syntax; } disassembler;
    bool (*code_constant)(const uint8_t *code, uint64_t *out);
    GsSpinlock spinlock;

    bool has_orc;
#define GS_PROLOGUE_BYTES 32
    bool (*makes_frame)(const uint8_t code[GS_PROLOGUE_BYTES]);
    GsReturnKey return_key;
    const struct GsFrameRules *frames;
    const struct GsCodeRules *code_frames;
    const struct GsCfiMaker *cfi;
    const char *const *saved;
} GsArch;

/** gs_arch_find() - (static, nullable) find a row by QEMU's name. */
const GsArch *gs_arch_find(const char *name);
/** gs_arch_nth() - (static, nullable) return the @i-th row. Journals have these
 *  numbers. */
const GsArch *gs_arch_nth(unsigned i);
/** gs_arch_number() - return the number of @arch, as for gs_arch_nth(). */
unsigned gs_arch_number(const GsArch *arch);

#endif /* GS_API_ARCH_H */
