/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the rows of the table of architectures refer to, in files of their
 * own. */
#ifndef GS_ARCH_INTERNAL_H
#define GS_ARCH_INTERNAL_H

#include "guest-symbols/api/gs-direct-map.h"
#include "guest-symbols/api/gs-operand.h"
#include "guest-symbols/arch/arch.h"

bool gs_operand_x86_64(const uint8_t *insn, size_t len);
bool gs_operand_arm64(const uint8_t *insn, size_t len);
bool gs_operand_riscv64(const uint8_t *insn, size_t len);

bool gs_modifies_x86_64(const uint8_t *insn, size_t len);
bool gs_modifies_arm64(const uint8_t *insn, size_t len);
bool gs_modifies_riscv64(const uint8_t *insn, size_t len);

extern const GsStringRules gs_strings_x86_64;
extern const GsDirectMapRules gs_direct_maps_x86_64, gs_direct_maps_arm64,
                              gs_direct_maps_riscv64;

#endif /* GS_ARCH_INTERNAL_H */
