/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames of arm64 kernels: arch/arm64/kernel/{entry.S,stacktrace.c}.
 *
 * Owns gs_arm64_frames; called by frame-records.c on vCPU threads.
 *
 * x29 points to {caller's x29, return address}. An exception stores such a
 * record in its struct pt_regs. If it came from the kernel, the record holds
 * the interrupted x29 and pc; if it came from user mode, zeros. The record in
 * a task's first registers holds zeros as well. Since 6.13 (commit
 * c2c6b27b5aa1) the record always holds zeros, and a word behind it says which
 * of them it is.
 */
#include "guest-symbols/arch/arch-internal.h"
#include "guest-symbols/kernel/kernel.h"

/* struct pt_regs begins with x0-x30, sp, pc, pstate (uapi/asm/ptrace.h) */
enum {
    PT_X29 = 29 * 8,
    PT_PC = 32 * 8,
    PT_PSTATE = 33 * 8,
};

#define PSTATE_MODE 0xfull      /* 0: EL0 */

/* asm/stacktrace/frame.h */
#define META_PT_REGS 2

/*
 * Returns the upper bits, which are ones in every address of code; signatures
 * are in these bits. KASLR places code at most three eighths above the middle
 * of the kernel's address space (arch/arm64/kernel/pi/kaslr_early.c). So the
 * number of leading ones gives the width of that space. 47 and 48 bits cannot
 * be distinguished; the smaller is right for both.
 */
static uint64_t canonical_bits(uint64_t text)
{
    static const struct {
        unsigned ones;
        unsigned bits;
    } width[] = { { 29, 36 }, { 26, 39 }, { 23, 42 }, { 0, 48 } };
    unsigned ones = ~text ? __builtin_clzll(~text) : 64;
    unsigned i = 0;

    while (ones < width[i].ones) {
        i++;
    }
    return ~0ull << (width[i].bits - 1);
}

static void prepare(GsFrameRecords *f, const GsKernel *k)
{
    uint32_t size;

    f->canonical = canonical_bits(f->text[0].start);
    f->has_regs_at = gs_kernel_member(k, "pt_regs", "stackframe", &f->regs_at,
                                      NULL);
    f->has_meta = gs_kernel_type_size(k, "frame_record_meta", &size);
}

/* Does the stack end in user mode or in the task's first registers? Those of
 * user mode have a user address as pc. */
static GsStop end_at(Walk *w, uint64_t regs)
{
    uint64_t pc, pstate;

    if (!read_word(w, regs + PT_PC, &pc) ||
        !read_word(w, regs + PT_PSTATE, &pstate)) {
        w->trail->plain = false;
        return GS_STOP_END;
    }
    gs_trail_sign(w->trail, regs + PT_PC, pc);
    gs_trail_bits(w->trail, regs + PT_PSTATE, pstate, PATH_BITS_PSTATE);
    w->regs = regs;
    return pc && (int64_t)pc >= 0 && !(pstate & PSTATE_MODE) ? GS_STOP_USER
                                                             : GS_STOP_END;
}

static GsStop take_regs(Walk *w, uint64_t regs)
{
    if (!read_word(w, regs + PT_PC, &w->ip) ||
        !read_word(w, regs + PT_X29, &w->bp)) {
        return GS_STOP_BAD_FRAME;
    }
    gs_trail_pc(w->trail, regs + PT_PC, w->ip);
    gs_trail_fp(w->trail, regs + PT_X29);
    w->regs = regs;
    w->exact = 1;
    return GS_GO_ON;
}

static GsStop at_regs(const GsFrameRecords *f, Walk *w, uint64_t record)
{
    uint64_t regs = record - f->regs_at, type;

    if (!f->has_regs_at) {
        return GS_STOP_END;
    }
    if (f->has_meta) {
        if (!read_word(w, record + 16, &type)) {
            w->trail->plain = false;
            return end_at(w, regs);
        }
        gs_trail_pc(w->trail, record + 16, type);
        if (type == META_PT_REGS) {
            return take_regs(w, regs);
        }
    }
    return end_at(w, regs);
}

static GsStop step(const GsFrameRecords *f, Walk *w)
{
    uint64_t record = w->bp, lr;

    if (!gs_frame_records_move(w, record) || !read_word(w, record, &w->bp) ||
        !read_word(w, record + 8, &lr)) {
        return GS_STOP_BAD_FRAME;
    }
    w->ip = lr | f->canonical;
    w->exact = 0;
    if (lr) {
        gs_trail_frame(w->trail, record, w->ip);
        return GS_GO_ON;
    }
    gs_trail_record(w->trail, record);
    gs_trail_pc(w->trail, record, w->bp);
    gs_trail_pc(w->trail, record + 8, lr);
    return w->bp ? GS_STOP_BAD_FRAME : at_regs(f, w, record);
}

const GsFrameRules gs_arm64_frames = { prepare, step };
