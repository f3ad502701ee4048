/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The inside of a replay: replay.c reads frames, replay-records.c applies what
 * they contain to the tracer. The replay's thread.
 */
#ifndef KT_REPLAY_INTERNAL_H
#define KT_REPLAY_INTERNAL_H

#include "kalloc-tracer/journal/frame-reader.h"
#include "kalloc-tracer/modules/module-events.h"
#include "kalloc-tracer/replay/replay-ids.h"

struct KtReplay {
    KtFrameReader *reader;
    KtReplayIds *ids;
    KtSections sections;
    KtEvent *ev;
    KtTracer *tracer;
    GsKernel *kernel;
    bool kernel_found;
    bool kernel_given;              /* as a file, not by the guest's memory */
    KtStoredStatus *status;         /* NULL before the first */
    GByteArray *checkpoint;         /* its parts so far */
    uint64_t unpacked;              /* see may_unpack() */
    uint64_t last_seq;
    KtReplayInfo info;
    const KtReplayPlan *plan;
    uint64_t pause_us;              /* see KtReplayPlan.pause */
    bool stopped;
};

/** kt_replay_apply() - Apply the first @n events of @r->ev, with the pauses for
 *  which the plan asks. */
void kt_replay_apply(KtReplay *r, unsigned n);
/** kt_replay_records_read() - Read a frame of records: lines of the kernel's
 *  log, calls of watched functions, faults, aliases. The bytes are untrusted.
 *  Returns: false if they make no sense. */
bool kt_replay_records_read(KtReplay *r, KtFrameKind kind, GsBytes *in);
/** kt_replay_report_module() - Tell the plan of a load or unload. @va: of the
 *  struct module; the kernel has the module. */
void kt_replay_report_module(const KtReplay *r, KtModuleEventKind kind,
                             uint64_t va);

#endif /* KT_REPLAY_INTERNAL_H */
