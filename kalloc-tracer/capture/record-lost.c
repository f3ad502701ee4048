/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Record: what could not be recorded. Each drop is counted.
 *
 * An allocating call can be dropped between entry and return. The guest then
 * owns memory that is not in the map; it may be freed, or overlap a block that
 * the map has as freed. So every drop pushes a KT_EV_GAP event: from then on a
 * free of an unknown address is no error. If the call hands out memory the gap
 * carries KT_EVF_UNSEEN: double frees of freed blocks are not reported either.
 *
 * Calls are followed while recording is off, because they may return after it
 * is switched on. The first one dropped in that time pushes a gap; later ones
 * are not counted.
 */
#include "kalloc-tracer/capture/record-internal.h"

static void push_gap(KtHookCall *m, KtCounter why, uint8_t flags)
{
    const KtEvent gap = {
        .kind = KT_EV_GAP, .cpu = m->v->index, .flags = flags,
    };

    kt_vcpu_count(m->v, why, 1);
    if (m->c->access && flags & KT_EVF_UNSEEN) {
        kt_access_watch_missed(m->c->access);
    }
    kt_tracer_push(m->c->tracer, m->v->index, &gap);
}

void kt_record_drop(KtHookCall *m, KtCounter why)
{
    push_gap(m, why, 0);
}

void kt_record_drop_call(KtHookCall *m, KtCounter why, bool hands_out)
{
    bool pushed = hands_out && __atomic_exchange_n(&m->boot->unseen, true,
                                                   __ATOMIC_RELAXED);

    if (!pushed || kt_tracer_enabled(m->c->tracer)) {
        push_gap(m, why, hands_out ? KT_EVF_UNSEEN : 0);
    }
}
