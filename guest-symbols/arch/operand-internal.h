/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The decoder of each architecture: see gs-operand.h for what they answer. */
#ifndef GS_OPERAND_INTERNAL_H
#define GS_OPERAND_INTERNAL_H

#include "guest-symbols/api/gs-operand.h"

bool gs_operand_x86_64(const uint8_t *insn, size_t len);
bool gs_operand_arm64(const uint8_t *insn, size_t len);
bool gs_operand_riscv64(const uint8_t *insn, size_t len);

#endif /* GS_OPERAND_INTERNAL_H */
