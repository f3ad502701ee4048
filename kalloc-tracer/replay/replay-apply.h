/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Events of a journal are applied to a tracer, with the pauses for which the
 * plan asks. replay.c calls it, on its thread. */
#ifndef KT_REPLAY_APPLY_H
#define KT_REPLAY_APPLY_H

#include "kalloc-tracer/api/kt-replay.h"

/** kt_replay_apply() - apply @n events. @pause_us: (in, out) time of the next
 *  pause; 0: before the next event */
void kt_replay_apply(KtTracer *t, const KtReplayPlan *plan, uint64_t *pause_us,
                     const KtEvent *ev, unsigned n);

#endif /* KT_REPLAY_APPLY_H */
