/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table of frame rules: one row for each architecture whose stacks are
 * walked by frame records. Constant data, any thread.
 *
 * x86-64 has no row: its stacks are walked with ORC (unwind.c). If a kernel
 * has no ORC tables, @k->unwind_by selects the rules.
 */
#include "guest-symbols/kernel/kernel.h"
#include "guest-symbols/unwind/frame-records.h"

static const GsFrameRules *const rules[GS_ARCH__COUNT] = {
    [GS_ARCH_ARM64] = &gs_arm64_frames,
    [GS_ARCH_RISCV64] = &gs_riscv64_frames,
};

const GsFrameRules *gs_frame_rules_find(const GsKernel *k)
{
    if (k->plain) {
        return &gs_plain_frames;
    }
    if (k->unwind_by == GS_UNWIND_BY_NOTHING) {
        return &gs_no_frames;
    }
    return k->unwind_by == GS_UNWIND_BY_FRAMES ? &gs_x86_64_frames :
                                                 rules[k->arch->id];
}
