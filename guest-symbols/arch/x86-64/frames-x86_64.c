/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames of x86-64 kernels without ORC: arch/x86/kernel/unwind_frame.c.
 *
 * Owns gs_x86_64_frames; called by frame-records.c on vCPU threads.
 *
 * rbp points to {caller's rbp, return address}. Exceptions and interrupts do
 * not make such a record: the entry code sets rbp to the address of its struct
 * pt_regs plus 1 (ENCODE_FRAME_POINTER), and the first C function saves that:
 *
 *     record of the C function            struct pt_regs
 *     { regs + 1, return address } -----> { ..., rbp, ..., rip, cs, ... }
 *
 * A kernel thread starts with such a pointer too (ret_from_fork()); its
 * registers are all zeros. A system call and the start of a CPU clear rbp.
 */
#include "guest-symbols/arch/arch-internal.h"
#include "guest-symbols/kernel/kernel.h"

static void prepare(GsFrameRecords *f, const GsKernel *k)
{
}

/* The walk ends because the frame pointer is 0. */
static GsStop end_here(Walk *w)
{
    if (w->trail->bp_at) {
        gs_trail_pc(w->trail, w->trail->bp_at, 0);
    } else {
        w->trail->plain = false;        /* it was 0 in the register */
    }
    return GS_STOP_END;
}

static GsStop take_regs(Walk *w, uint64_t regs)
{
    uint64_t ip, cs;

    if (!gs_frame_records_move(w, regs) || !read_word(w, regs + PT_IP, &ip) ||
        !read_word(w, regs + PT_CS, &cs) ||
        !read_word(w, regs + PT_BP, &w->bp)) {
        return GS_STOP_BAD_FRAME;
    }
    gs_trail_regs(w->trail, regs);
    gs_trail_bits(w->trail, regs + PT_CS, cs, PATH_BITS_CS);
    w->regs = regs;
    if (cs & 3) {
        return GS_STOP_USER;
    }
    gs_trail_pc(w->trail, regs + PT_IP, ip);
    if (!ip) {
        return GS_STOP_END;
    }
    gs_trail_fp(w->trail, regs + PT_BP);
    gs_trail_bp(w->trail, regs + PT_BP, false);
    w->ip = ip;
    w->exact = 1;
    return GS_GO_ON;
}

static GsStop step(const GsFrameRecords *f, Walk *w)
{
    uint64_t record = w->bp, ra;

    if (!record) {
        return end_here(w);
    }
    if (record & 1) {
        return take_regs(w, record - 1);
    }
    if (!gs_frame_records_move(w, record) || !read_word(w, record, &w->bp) ||
        !read_word(w, record + 8, &ra)) {
        return GS_STOP_BAD_FRAME;
    }
    gs_trail_frame(w->trail, record, ra);
    gs_trail_bp(w->trail, record, false);
    w->ip = ra;
    w->exact = 0;
    return GS_GO_ON;
}

const GsFrameRules gs_x86_64_frames = { prepare, step };
