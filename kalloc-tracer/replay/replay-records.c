/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Events and other records of frames: see replay-records.h. */
#include "kalloc-tracer/replay/replay-records.h"

#include "kalloc-tracer/calls/calls.h"
#include "kalloc-tracer/faults/fault-journal.h"
#include "kalloc-tracer/log/log-lines.h"
#include "kalloc-tracer/tracer/alias-frame.h"
#include "kalloc-tracer/tracer/tracer.h"

static void read_line(const KtReplayTarget *to, const KtLogLine *line,
                      const void *text)
{
    const KtReplayPlan *plan = to->plan;

    if (line->us > plan->until_us) {
        return;
    }
    if (plan->log && !plan->log(plan->opaque, line, text)) {
        *to->stopped = true;
    } else if (plan->apply) {
        kt_log_add(to->tracer, line, text);
    }
}

/* Return the text from @at on. If no line has text, the array has no bytes. */
static const void *text_at(const KtLogBatch *b, size_t at)
{
    return b->text->len ? b->text->data + at : (const void *)"";
}

static bool read_log(const KtReplayTarget *to, GsBytes *in)
{
    size_t at = 0;
    KtLogBatch b;
    bool ok;

    if (!to->plan->apply && !to->plan->log) {
        return true;
    }
    kt_log_batch_init(&b);
    ok = kt_log_frame_read(to->tracer, to->kernel, in, &b);
    for (unsigned i = 0; ok && i < b.line->len && !*to->stopped; i++) {
        const KtLogLine *line = &g_array_index(b.line, KtLogLine, i);

        read_line(to, line, text_at(&b, at));
        at += line->len;
    }
    kt_log_batch_deinit(&b);
    return ok;
}

/* BPF programs are kept as modules of this name. */
void kt_replay_report_module(const KtReplayTarget *to, KtModuleEventKind kind,
                             uint64_t va)
{
    KtReplayModule what = kind == KT_MODULE_EVENT_GONE ? KT_REPLAY_UNLOADED :
                          kind == KT_MODULE_EVENT_INHERITED ?
                          KT_REPLAY_INHERITED : KT_REPLAY_LOADED;
    GsModule m;

    if (to->plan->module && gs_kernel_module(to->kernel, va, &m) &&
        strcmp(m.name, "bpf")) {
        to->plan->module(to->plan->opaque, what, va, m.name);
    }
}

void kt_replay_records_end_boot(const KtReplayTarget *to)
{
    kt_calls_end_boot(kt_tracer_calls(to->tracer));
}

bool kt_replay_records_read(const KtReplayTarget *to, KtFrameKind kind,
                            GsBytes *in)
{
    switch (kind) {
    case KT_FRAME_LOG:
        return read_log(to, in);
    case KT_FRAME_CALLS:
        return !to->plan->apply ||
               kt_calls_replay(to->tracer, to->kernel, in, to->plan->until_us,
                               to->bytes);
    case KT_FRAME_FAULTS:
        return !to->plan->apply ||
               kt_faults_replay(to->tracer, to->kernel, in,
                                to->plan->until_us);
    case KT_FRAME_ALIAS:
        return !to->plan->apply ||
               kt_alias_frame_replay(to->tracer, to->kernel, in,
                                     to->plan->until_us);
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

void kt_replay_apply(KtTracer *t, const KtReplayPlan *plan, uint64_t *pause_us,
                     const KtEvent *ev, unsigned n)
{
    for (unsigned at = 0, size; at < n; at += size) {
        if (plan->pause && ev[at].us >= *pause_us) {
            *pause_us = plan->pause(plan->opaque, ev[at].us);
        }
        size = piece(ev + at, n - at, plan->pause ? *pause_us : UINT64_MAX);
        kt_tracer_replay(t, ev + at, size);
    }
}
