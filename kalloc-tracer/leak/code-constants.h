/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pointers in instructions: Linux writes the addresses of some tables into the
 * code that uses them (runtime_const_ptr(), arch/.../asm/runtime-const.h, since
 * 6.11). If all uses are such, the compiler removes the variable, and the
 * instructions have the only pointers to the table.
 *
 *     x86-64    48 b9 | 08 63 77 04 80 88 ff ff     mov $imm64, %rcx
 *     arm64     movz, movk, movk, movk of one register, 16 bits each
 *     riscv64   lui, lui, addiw, addiw: the lower 32 bits in one register, the
 *               upper ones in another. A lui or addiw without bits is a nop
 *
 * A function here looks at one place of the code and knows no kernel. No state,
 * any thread.
 */
#ifndef KT_CODE_CONSTANTS_H
#define KT_CODE_CONSTANTS_H

#include "kalloc-tracer/kt.h"

/** KT_CODE_CONSTANT_MAX - bytes of the longest code of one constant */
#define KT_CODE_CONSTANT_MAX 16

/**
 * kt_code_constant() - decode the 64-bit constant that the code at @code loads
 * @arch: architecture of the code
 * @code: KT_CODE_CONSTANT_MAX readable bytes, at an address that is a multiple
 *        of kt_code_step()
 * @out: (out) the constant; unchanged if there is none
 *
 * Returns: false if the code does not load a constant in this way.
 */
bool kt_code_constant(GsArchId arch, const uint8_t *code, uint64_t *out);

/** kt_code_step() - return the alignment of instructions in bytes. */
unsigned kt_code_step(GsArchId arch);

#endif /* KT_CODE_CONSTANTS_H */
