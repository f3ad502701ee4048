/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames of riscv64 kernels: arch/riscv/kernel/{entry.S,stacktrace.c}.
 *
 * Owns gs_riscv64_frames; called by frame-records.c on vCPU threads.
 *
 * s0 points behind {caller's s0, return address}. handle_exception() makes no
 * record. A return address in its code says that the frame pointer is the end
 * of its struct pt_regs. In the outermost functions of a task the frame pointer
 * is undefined.
 */
#include "guest-symbols/arch/arch-internal.h"
#include "guest-symbols/kernel/kernel.h"

/* struct pt_regs begins with epc, ra, sp, gp, tp, t0-t2, s0, ... t6, status
 * (asm/ptrace.h) */
enum {
    PT_EPC = 0,
    PT_RA = 8,
    PT_S0 = 64,
    PT_STATUS = 256,
};

/* {caller's s0, return address} end where s0 points */
#define RECORD_AT (-16)

#define STATUS_SPP 0x100ull     /* it came from the kernel */

/* Outermost are the functions that a task begins in, and the code in front of
 * _stext, which starts a CPU. */
static void find_outermost(GsFrameRecords *f, const GsKernel *k)
{
    static const char *const names[] = {
        "ret_from_fork", "ret_from_fork_kernel_asm", "ret_from_fork_user_asm"
    };
    GsSymbol sym, text;

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        if (gs_kernel_lookup(k, names[i], &sym)) {
            gs_frame_records_add_outermost(f, sym.va, sym.va + sym.size);
        }
    }
    if (gs_kernel_lookup(k, "_start", &sym) &&
        gs_kernel_lookup(k, "_stext", &text)) {
        gs_frame_records_add_outermost(f, sym.va, text.va);
    }
}

static void prepare(GsFrameRecords *f, const GsKernel *k)
{
    GsSymbol from, to;

    find_outermost(f, k);
    if (!gs_kernel_lookup(k, "handle_exception", &from)) {
        return;
    }
    f->entry = (GsRange) { from.va, from.va + from.size };
    if (gs_kernel_lookup(k, "ret_from_exception_end", &to) ||
        gs_kernel_lookup(k, "handle_user_exception", &to)) {
        f->entry.end = to.va;
    } else if (gs_kernel_lookup(k, "ret_from_exception", &to)) {
        f->entry.end = to.va + to.size;
    }
}

/* Continues from the struct pt_regs at @w->sp. */
static GsStop take_regs(Walk *w)
{
    uint64_t regs = w->sp, status;

    if (!read_word(w, regs + PT_EPC, &w->ip) ||
        !read_word(w, regs + PT_S0, &w->bp) ||
        !read_word(w, regs + PT_STATUS, &status)) {
        return GS_STOP_BAD_FRAME;
    }
    gs_trail_pc(w->trail, regs + PT_EPC, w->ip);
    gs_trail_fp(w->trail, regs + PT_S0);
    gs_trail_bits(w->trail, regs + PT_STATUS, status, PATH_BITS_STATUS);
    w->regs = regs;
    if (!w->ip) {
        return GS_STOP_END;
    }
    if (!(status & STATUS_SPP)) {
        return GS_STOP_USER;
    }
    w->exact = 1;
    return GS_GO_ON;
}

/*
 * Was a leaf function interrupted? A function that calls nothing keeps its
 * return address in the register. Its record has the caller's s0 in place of
 * the return address.
 */
static bool interrupted_leaf(const GsFrameRecords *f, Walk *w, uint64_t regs,
                             uint64_t word)
{
    if (!regs || gs_frame_records_is_text(f, word)) {
        return false;
    }
    w->trail->plain = false;
    if (word <= w->sp || word - w->sp >= MAX_STACK ||
        !read_word(w, regs + PT_RA, &w->ip)) {
        return false;
    }
    w->bp = word;
    return true;
}

/*
 * Did an outermost function call the interrupted one, which has no record yet,
 * or no more? Then s0 is no frame pointer: copy_thread() (process.c) begins a
 * task with its function in s0, or 0.
 */
static bool called_by_outermost(const GsFrameRecords *f, Walk *w)
{
    bool on_stack = w->bp > w->sp && w->bp - w->sp < MAX_STACK;
    uint64_t ra;

    if (on_stack || !w->regs || !read_word(w, w->regs + PT_RA, &ra) ||
        !gs_frame_records_is_outermost(f, ra)) {
        return false;
    }
    w->trail->plain = false;
    w->ip = ra;
    w->regs = 0;
    w->exact = 0;
    return true;
}

static GsStop step(const GsFrameRecords *f, Walk *w)
{
    uint64_t behind = w->bp, record = behind + RECORD_AT, regs = w->regs;
    uint64_t ra, s0;

    if (!w->exact && gs_range_has(f->entry, w->ip)) {
        return take_regs(w);
    }
    if (gs_frame_records_is_outermost(f, w->ip + w->exact)) {
        return GS_STOP_END;
    }
    if (called_by_outermost(f, w)) {
        return GS_GO_ON;
    }
    if (!gs_frame_records_move(w, behind) || !read_word(w, record, &s0) ||
        !read_word(w, record + 8, &ra)) {
        return GS_STOP_BAD_FRAME;
    }
    gs_trail_frame(w->trail, record, ra);
    w->regs = 0;
    w->exact = 0;
    if (interrupted_leaf(f, w, regs, ra)) {
        return GS_GO_ON;
    }
    w->ip = ra;
    w->bp = s0;
    return gs_frame_records_is_outermost(f, ra) &&
                   !gs_frame_records_is_text(f, ra) ?
               GS_STOP_END :
               GS_GO_ON;
}

const GsFrameRules gs_riscv64_frames = { prepare, step, RECORD_AT };
