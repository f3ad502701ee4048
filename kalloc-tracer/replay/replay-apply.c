/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Apply events of a journal in pieces: see replay-apply.h. */
#include "kalloc-tracer/replay/replay-apply.h"

#include "kalloc-tracer/tracer/tracer.h"

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
