/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Events and other records of frames: see replay-internal.h. */
#include "kalloc-tracer/replay/replay-internal.h"

#include "kalloc-tracer/calls/calls.h"
#include "kalloc-tracer/faults/fault-journal.h"
#include "kalloc-tracer/log/log-lines.h"
#include "kalloc-tracer/tracer/alias-frame.h"
#include "kalloc-tracer/tracer/tracer.h"

static void read_line(KtReplay *r, const KtLogLine *line,
                      const void *text)
{
    const KtReplayPlan *plan = r->plan;

    if (line->us > plan->until_us) {
        return;
    }
    if (plan->log && !plan->log(plan->opaque, line, text)) {
        r->stopped = true;
    } else if (plan->apply) {
        kt_log_add(r->tracer, line, text);
    }
}

/* Return the text from @at on. If no line has text, the array has no bytes. */
static const void *text_at(const KtLogBatch *b, size_t at)
{
    return b->text->len ? b->text->data + at : (const void *)"";
}

static bool read_log(KtReplay *r, GsBytes *in)
{
    size_t at = 0;
    KtLogBatch b;
    bool ok;

    if (!r->plan->apply && !r->plan->log) {
        return true;
    }
    kt_log_batch_init(&b);
    ok = kt_log_frame_read(r->tracer, r->kernel, in, &b);
    for (unsigned i = 0; ok && i < b.line->len && !r->stopped; i++) {
        const KtLogLine *line = &g_array_index(b.line, KtLogLine, i);

        read_line(r, line, text_at(&b, at));
        at += line->len;
    }
    kt_log_batch_deinit(&b);
    return ok;
}

/* BPF programs are kept as modules of this name. */
void kt_replay_report_module(const KtReplay *r, KtModuleEventKind kind,
                             uint64_t va)
{
    KtReplayModule what = kind == KT_MODULE_EVENT_GONE ? KT_REPLAY_UNLOADED :
                          kind == KT_MODULE_EVENT_INHERITED ?
                          KT_REPLAY_INHERITED : KT_REPLAY_LOADED;
    GsModule m;

    if (r->plan->module && gs_kernel_module(r->kernel, va, &m) &&
        strcmp(m.name, "bpf")) {
        r->plan->module(r->plan->opaque, what, va, m.name);
    }
}

bool kt_replay_records_read(KtReplay *r, KtFrameKind kind,
                            GsBytes *in)
{
    switch (kind) {
    case KT_FRAME_LOG:
        return read_log(r, in);
    case KT_FRAME_CALLS:
        return !r->plan->apply ||
               kt_calls_replay(r->tracer, r->kernel, in, r->plan->until_us,
                               r->info.bytes);
    case KT_FRAME_FAULTS:
        return !r->plan->apply ||
               kt_faults_replay(r->tracer, r->kernel, in,
                                r->plan->until_us);
    case KT_FRAME_ALIAS:
        return !r->plan->apply ||
               kt_alias_frame_replay(r->tracer, r->kernel, in,
                                     r->plan->until_us);
    default:
        return true;
    }
}

/* ---- events -------------------------------------------------------------- */

#define PIECE 64            /* events that are applied at once */

/* Return how many of @n events are applied at once. */
static unsigned piece(const KtEvent *ev, unsigned n, uint64_t pause_us)
{
    unsigned i = 1;

    while (i < MIN(n, PIECE) && ev[i].us < pause_us) {
        i++;
    }
    return i;
}

void kt_replay_apply(KtReplay *r, unsigned n)
{
    const KtReplayPlan *plan = r->plan;

    for (unsigned at = 0, size; at < n; at += size) {
        const KtEvent *ev = r->ev + at;

        if (plan->pause && ev->us >= r->pause_us) {
            r->pause_us = plan->pause(plan->opaque, ev->us);
        }
        size = piece(ev, n - at, plan->pause ? r->pause_us : UINT64_MAX);
        kt_tracer_replay(r->tracer, ev, size);
    }
}
