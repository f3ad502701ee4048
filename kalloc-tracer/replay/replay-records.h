/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What frames contain is applied to a tracer: events, with the pauses for which
 * the plan asks, lines of the kernel's log, calls of watched functions, and
 * faults. For replay.c; the replay's thread.
 */
#ifndef KT_REPLAY_RECORDS_H
#define KT_REPLAY_RECORDS_H

#include "guest-symbols/base/bytes.h"
#include "kalloc-tracer/journal/journal-format.h"
#include "kalloc-tracer/modules/module-events.h"

/**
 * struct KtReplayTarget - where records go; all borrowed
 * @kernel: (nullable) that of the moment
 * @bytes: of the file
 * @stopped: (out) set if the plan wants no more
 */
typedef struct KtReplayTarget {
    KtTracer *tracer;
    const GsKernel *kernel;
    const KtReplayPlan *plan;
    uint64_t bytes;
    bool *stopped;
} KtReplayTarget;

/** kt_replay_records_read() - Read a frame of records. The bytes are untrusted.
 *  Returns: false if they make no sense. */
bool kt_replay_records_read(const KtReplayTarget *to, KtFrameKind kind,
                            GsBytes *in);

/** kt_replay_report_module() - Tell the plan of a load or unload. @va: of the
 *  struct module; the kernel has the module. */
void kt_replay_report_module(const KtReplayTarget *to, KtModuleEventKind kind,
                             uint64_t va);

/** kt_replay_records_end_boot() - Drop what belongs to the boot that ends, by a
 *  reset or because a VM state is loaded. */
void kt_replay_records_end_boot(const KtReplayTarget *to);

/** kt_replay_apply() - Apply @n events. @pause_us: (in, out) time of the next
 *  pause; 0: before the next event */
void kt_replay_apply(KtTracer *t, const KtReplayPlan *plan, uint64_t *pause_us,
                     const KtEvent *ev, unsigned n);

#endif /* KT_REPLAY_RECORDS_H */
