/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames of kernels whose architecture does not say how they are walked: of
 * those that were opened by gs_kernel_open_elf(), nothing but frame records and
 * the functions that the options name as outermost. And the choice of rules.
 * Called by the walk of frame-records.c, by the thread that unwinds.
 */
#include "guest-symbols/kernel/kernel.h"
#include "guest-symbols/unwind/frame-records.h"

/* A frame pointer points to the record {caller's frame pointer, return
 * address}, or behind it (RISC-V psABI). */
static void prepare_plain(GsFrameRecords *f, const GsKernel *k)
{
    uint64_t above = k->va_bits && k->va_bits < 64 ? ~0ull << k->va_bits : 0;

    f->canonical = k->low ? 0 : above;
    f->signature = k->low ? above : 0;
    f->record_at = k->arch->frames->record_at;
    for (char **name = k->outermost; name && *name; name++) {
        GsSymbol sym;

        if (gs_kernel_lookup(k, *name, &sym)) {
            gs_frame_records_add_outermost(f, sym.va, sym.va + sym.size);
        }
    }
}

static GsStop step_plain(const GsFrameRecords *f, Walk *w)
{
    uint64_t record = w->bp + f->record_at, ra;

    w->trail->plain = false;            /* such walks are not cached */
    if (!w->bp || gs_frame_records_is_outermost(f, w->ip)) {
        return GS_STOP_END;
    }
    if (!gs_frame_records_move(w, record) || !read_word(w, record, &w->bp) ||
        !read_word(w, record + 8, &ra)) {
        return GS_STOP_BAD_FRAME;
    }
    if (!ra) {
        return GS_STOP_END;
    }
    w->ip = (ra | f->canonical) & ~f->signature;
    return GS_GO_ON;
}

const GsFrameRules gs_plain_frames = { prepare_plain, step_plain };

/* ---- none ---------------------------------------------------------------- */

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

/* ---- the choice ---------------------------------------------------------- */

const GsFrameRules *gs_frame_rules_find(const GsKernel *k)
{
    return k->plain ? &gs_plain_frames :
           k->unwind_by == GS_UNWIND_BY_NOTHING ? &gs_no_frames :
           k->unwind_by == GS_UNWIND_BY_FRAMES || !k->arch->has_orc ?
               k->arch->frames : NULL;
}
