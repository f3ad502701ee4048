/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Selects the decoder of an architecture: see gs-operand.h. */
#include "guest-symbols/arch/operand-internal.h"

static bool (*const decoders[GS_ARCH__COUNT])(const uint8_t *, size_t) = {
    [GS_ARCH_X86_64] = gs_operand_x86_64,
    [GS_ARCH_ARM64] = gs_operand_arm64,
    [GS_ARCH_RISCV64] = gs_operand_riscv64,
};

bool gs_arch_may_touch_objects(const GsArch *arch, const uint8_t *insn,
                               size_t len)
{
    return decoders[arch->id](insn, len);
}
