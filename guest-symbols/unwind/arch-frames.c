/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table of frame rules: one row for each architecture whose stacks are
 * walked by frame records. Constant data, any thread.
 *
 * x86-64 has no row: its stacks are walked with ORC (unwind.c).
 */
#include "guest-symbols/kernel/kernel.h"
#include "guest-symbols/unwind/frame-records.h"

static const GsFrameRules *const rules[GS_ARCH__COUNT] = {
    [GS_ARCH_ARM64] = &gs_arm64_frames,
    [GS_ARCH_RISCV64] = &gs_riscv64_frames,
};

const GsFrameRules *gs_frame_rules_find(const GsKernel *k)
{
    return k->plain ? &gs_plain_frames : rules[k->arch->id];
}
