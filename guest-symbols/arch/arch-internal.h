/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the rows of the table of architectures refer to, if it has a file of its
 * own. */
#ifndef GS_ARCH_INTERNAL_H
#define GS_ARCH_INTERNAL_H

#include "guest-symbols/api/gs-direct-map.h"
#include "guest-symbols/api/gs-instruction.h"
#include "guest-symbols/arch/arch.h"
#include "guest-symbols/export/cfi-maker.h"
#include "guest-symbols/types/arg-places.h"
#include "guest-symbols/unwind/code-frames.h"

#define GS_ARCH(name) \
    bool gs_operand_##name(const uint8_t *insn, size_t len); \
    bool gs_modifies_##name(const uint8_t *insn, size_t len); \
    bool gs_branch_##name(uint64_t va, const uint8_t *insn, size_t len, \
                          GsBranch *out); \
    extern const GsDirectMapRules gs_direct_maps_##name; \
    extern const GsFrameRules gs_##name##_frames;
#include "guest-symbols/api/archs.def"

GsBreakpoint gs_breakpoint_x86_64(const uint8_t *insn, size_t len);
extern const GsStringRules gs_strings_x86_64;
extern const GsCodeRules gs_arm64_code, gs_riscv64_code;
/** gs_frame_pointer_cfi_maker - for x86-64 kernels without ORC */
extern const GsCfiMaker gs_frame_pointer_cfi_maker, gs_arm64_cfi_maker,
                        gs_riscv64_cfi_maker;

#endif /* GS_ARCH_INTERNAL_H */
