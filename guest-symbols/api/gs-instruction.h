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

#endif /* GS_API_INSTRUCTION_H */
