/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Chooses the rules by which the frame records of a kernel are walked. Constant
 * data, any thread.
 */
#include "guest-symbols/kernel/kernel.h"
#include "guest-symbols/unwind/frame-records.h"

static void prepare(GsFrameRecords *f, const GsKernel *k)
{
}

/* Nothing in the kernel says where the caller's frame is. A word on the stack
 * that looks like a return address may be an old one. */
static GsStop no_step(const GsFrameRecords *f, Walk *w)
{
    return GS_STOP_NO_UNWINDER;
}

const GsFrameRules gs_no_frames = { .prepare = prepare, .step = no_step };

const GsFrameRules *gs_frame_rules_find(const GsKernel *k)
{
    return k->plain ? &gs_plain_frames :
           k->unwind_by == GS_UNWIND_BY_NOTHING ? &gs_no_frames :
           k->unwind_by == GS_UNWIND_BY_FRAMES || !k->arch->has_orc ?
               k->arch->frames : NULL;
}
