/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Instructions as text, for reports. Needs capstone; a build without it knows
 * no instruction. Pure functions: any thread.
 */
#ifndef GS_API_INSTRUCTION_H
#define GS_API_INSTRUCTION_H

#include "guest-symbols/api/gs-arch.h"

/* No instruction is longer. */
#define GS_INSTRUCTION_MAX 16

/**
 * struct GsInstruction - an instruction
 * @len: its bytes
 * @text: as the kernel's own tools print it: AT&T syntax on x86-64
 * @operand: the operand that is in memory, without blanks; "" if there is
 *           none
 */
typedef struct GsInstruction {
    unsigned len;
    char text[96];
    char operand[48];
} GsInstruction;

/**
 * gs_arch_disassemble() - decode one instruction
 * @va: its address
 * @bytes: untrusted; @len: bytes there, GS_INSTRUCTION_MAX are enough
 * @write: if two operands are in memory, @operand is the one that is written,
 *         else the one that is read
 *
 * Returns: false if the bytes are no known instruction, or the build cannot
 * decode those of this architecture.
 */
bool gs_arch_disassemble(const GsArch *arch, uint64_t va, const uint8_t *bytes,
                         size_t len, bool write, GsInstruction *out);

/* ---- operands in memory -------------------------------------------------- */

/*
 * Memory operands of kernel instructions. Pure functions: any thread.
 */

/**
 * GsArch.may_touch_objects() - may an instruction of kernel code access an
 * allocated object?
 * @insn: the instruction; @len: bytes there, not less than it has
 *
 * Tells from the encoding alone, and is cheap enough to be called for each
 * instruction that is translated. The answer is no if the instruction accesses
 * no memory, or only
 *
 *  * the stack: operands based on the stack pointer, push, pop, call, ret;
 *    arm64: based on x29 too; riscv64: below s0 too, which are the frame
 *    pointers of these kernels
 *  * percpu variables of x86-64, through gs
 *  * the kernel's image: x86-64 relative to rip or at a fixed address, arm64
 *    literals, riscv64 relative to gp
 *  * the current task of riscv64, through tp
 *
 * Prefetches, hints and operations on cache lines access no memory here, unless
 * they write zeros. Returns: true if in doubt: an unknown encoding, or too few
 * bytes.
 *
 * GsArch.modifies_memory() - does an instruction read memory and write the same
 * memory?
 *
 * True for atomic instructions, and for those of x86-64 as add to memory.
 * Returns: false if in doubt.
 */

/**
 * struct GsString - a string instruction that repeats: rep movs, rep stos
 * @unit: bytes of an element: 1, 2, 4 or 8
 * @loads: reads elements at rsi, too
 *
 * It writes rcx elements at rdi. Addresses go up from there, unless std was
 * executed.
 */
typedef struct GsString {
    unsigned unit;
    bool loads;
} GsString;

/**
 * struct GsStringRules - string instructions of an architecture
 * @repeats: is an instruction a string instruction that repeats? @out: set if
 *           it is. Returns: false if in doubt, and if a prefix changes its
 *           addresses
 * @counts_down: true for std: addresses of string instructions behind it go
 *               down
 * @may_count_down: may addresses of string instructions behind this code go
 *                  down? @code: instructions of one function, from its entry
 *                  on; at the entry they go up: so says the ABI. Returns: true
 *                  for std in @code, and if in doubt: an unknown instruction
 */
typedef struct GsStringRules {
    bool (*repeats)(const uint8_t *insn, size_t len, GsString *out);
    bool (*counts_down)(const uint8_t *insn, size_t len);
    bool (*may_count_down)(const uint8_t *code, size_t len);
} GsStringRules;

/* ---- calls --------------------------------------------------------------- */

/**
 * struct GsBranch - an instruction that can leave the straight path
 * @len: its bytes; riscv64: those of auipc and the jalr behind it, if both are
 *       one jump
 * @direct: it calls, jumps or branches to @to, which the instruction contains
 * @call: it is a call, which returns behind the instruction
 * @maybe: a condition decides
 */
struct GsBranch {
    unsigned len;
    bool direct, call, maybe;
    uint64_t to;
};

/*
 * GsArch.branch() - decode the instruction at @va for its length and where it
 * leads. @insn: untrusted; @len: bytes there. Returns: false if it is cut off
 * or its length is not known; then @out is undefined.
 */

/* ---- breakpoints --------------------------------------------------------- */

/*
 * GsArch.breakpoint() - classify an instruction. @insn: untrusted; @len: bytes
 * there. NULL: no breakpoint can be planted.
 */

#endif /* GS_API_INSTRUCTION_H */
