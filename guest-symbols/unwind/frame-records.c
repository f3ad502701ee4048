/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Walks stacks by frame records, see frame-records.h. vCPU threads call it for
 * each recorded event.
 *
 * Every walk ends, whatever the stack contains: each frame takes one of @max,
 * and only aligned 8-byte words in the kernel's part of the address space are
 * read.
 */
#include "guest-symbols/unwind/frame-records.h"
#include "guest-symbols/kernel/kernel.h"

/* Task, irq and overflow stacks, and SDEI's. */
#define MAX_SWITCHES 8

static bool in_range(const GsRange *r, uint64_t pc)
{
    /* @pc may be right behind a call that ends the range; an empty range
     * contains nothing */
    return pc >= r->start && pc <= r->end && r->end;
}

bool gs_frame_records_is_text(const GsFrameRecords *f, uint64_t pc)
{
    GsOrcRule unused;

    return in_range(&f->text[0], pc) || in_range(&f->text[1], pc) ||
           gs_orc_reader_find(f->reader, pc - 1, &unused) != GS_ORC_NOT_TEXT;
}

bool gs_frame_records_move(Walk *w, uint64_t va)
{
    uint64_t before = w->sp;

    if (va & 7 || !gs_walk_in_kernel(w, va)) {
        return false;
    }
    w->sp = va;
    return (va > before && va - before < MAX_STACK) ||
           ++w->switches <= MAX_SWITCHES;
}

bool gs_frame_records_is_outermost(const GsFrameRecords *f, uint64_t pc)
{
    for (size_t i = 0; i < f->n_outermost; i++) {
        if (pc > f->outermost[i].start && pc <= f->outermost[i].end) {
            return true;
        }
    }
    return false;
}

void gs_frame_records_add_outermost(GsFrameRecords *f, uint64_t start,
                                    uint64_t end)
{
    if (f->n_outermost < G_N_ELEMENTS(f->outermost)) {
        f->outermost[f->n_outermost++] = (GsRange) { start, end };
    }
}

/* A return address may be right behind known code, an interrupted instruction
 * may not. */
static bool in_text(const GsFrameRecords *f, const Walk *w)
{
    return gs_frame_records_is_text(f, w->ip + w->exact);
}

/*
 * Is the frame in @w code? BPF programs and trampolines are in no table but
 * keep frame records: an unknown address counts as code if its caller is code,
 * or if the stack ends there.
 */
static bool is_code(const GsFrameRecords *f, const Walk *w)
{
    Walk ahead = *w;
    GsStop stop;

    if (G_LIKELY(in_text(f, w))) {
        return true;
    }
    w->trail->plain = false;
    if (w->exact || !gs_walk_in_kernel(w, w->ip)) {
        return false;
    }
    stop = f->rules->step(f, &ahead);
    return stop == GS_STOP_END || stop == GS_STOP_USER ||
           (stop == GS_GO_ON && in_text(f, &ahead));
}

/*
 * If a tracer replaced the return address in @w, find the true one. @slot:
 * where it is on the stack, on x86-64. Elsewhere the caller's frame pointer
 * says whose it is. Returns: false if no record has it.
 */
static bool true_return(const GsFrameRecords *f, Walk *w, uint64_t slot)
{
    const GsReturnRecords *r = f->returns;

    if (G_LIKELY(!gs_return_records_replaced(r, w->ip))) {
        return true;
    }
    w->trail->plain = false;
    if (!gs_return_records_find(r, f->cursor, w, r->by_slot ? slot : w->bp,
                                &w->ip)) {
        return false;
    }
    w->ip = (w->ip | f->canonical) & ~f->signature;
    return true;
}

GsStop gs_frame_records_walk(const GsFrameRecords *f, Walk *w, uint64_t *frames,
                             unsigned max, unsigned *n)
{
    unsigned count = 0;

    w->sp -= 8;             /* the first record may be right there */
    if (!true_return(f, w, w->sp)) {
        *n = 0;
        return GS_STOP_REPLACED;
    }
    do {
        GsStop stop;

        frames[count++] = w->ip;
        *n = count;
        if (count == 1 && !is_code(f, w)) {
            return GS_STOP_UNKNOWN_PC;
        }
        stop = f->rules->step(f, w);
        if (stop != GS_GO_ON) {
            w->trail->done = stop == GS_STOP_END || stop == GS_STOP_USER;
            return stop;
        }
        if (!true_return(f, w, w->sp + 8)) {
            return GS_STOP_REPLACED;
        }
        if (!is_code(f, w)) {
            return GS_STOP_UNKNOWN_PC;
        }
    } while (count < max);
    return GS_STOP_DEPTH;
}

void gs_frame_records_prepare(GsFrameRecords *f, const GsFrameRules *rules,
                              const GsKernel *k, GsOrcReader *reader)
{
    *f = (GsFrameRecords) {
        .rules = rules, .reader = reader, .record_at = rules->record_at,
    };
    for (size_t i = 0; i < G_N_ELEMENTS(f->text); i++) {
        if (k->text[i].end) {
            f->text[i] = (GsRange) {
                k->text[i].start + k->slide, k->text[i].end + k->slide
            };
        }
    }
    rules->prepare(f, k);
}

/* ---- names --------------------------------------------------------------- */

static const char *const stop_names[GS_STOP__COUNT] = {
    [GS_STOP_END] = "end",
    [GS_STOP_USER] = "user",
    [GS_STOP_UNKNOWN_PC] = "unknown-pc",
    [GS_STOP_BAD_FRAME] = "bad-frame",
    [GS_STOP_DEPTH] = "depth",
    [GS_STOP_NO_UNWINDER] = "no-unwinder",
    [GS_STOP_REPLACED] = "replaced",
};

const char *gs_stop_name(GsStop stop)
{
    return (unsigned)stop < GS_STOP__COUNT ? stop_names[stop] : "?";
}
