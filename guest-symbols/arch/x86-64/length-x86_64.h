/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lengths of x86-64 instructions. Pure functions, any thread. */
#ifndef GS_LENGTH_X86_64_H
#define GS_LENGTH_X86_64_H

#include "guest-symbols/gs.h"

/** gs_x86_64_length() - return the bytes of the instruction at @insn, of which
 *  @len can be read; 0: it is longer, or its opcode is not known. */
size_t gs_x86_64_length(const uint8_t *insn, size_t len);

#endif /* GS_LENGTH_X86_64_H */
