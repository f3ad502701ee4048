/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Record: what could not be recorded. It is counted, and an event says so:
 * the model takes no free of an unknown address for an error from then on.
 *
 * A call that is lost before its return hands out what may be freed until
 * then, by others, and is recorded. So it has an event of its own kind. Calls
 * are followed while nothing is recorded, too, as they may return when it is:
 * the first that is lost then has to be told of, and the rest is no loss.
 */
#include "kalloc-tracer/capture/record-internal.h"

static void lose(KtHookCall *m, KtCounter why, uint8_t flags)
{
    const KtEvent gap = {
        .kind = KT_EV_GAP, .cpu = m->v->index, .flags = flags,
    };

    kt_vcpu_count(m->v, why, 1);
    kt_tracer_push(m->c->tracer, m->v->index, &gap);
}

void kt_record_lose(KtHookCall *m, KtCounter why)
{
    lose(m, why, 0);
}

void kt_record_lose_call(KtHookCall *m, KtCounter why, bool hands_out)
{
    bool told = hands_out && __atomic_exchange_n(&m->boot->unseen, true,
                                                 __ATOMIC_RELAXED);

    if (!told || kt_tracer_enabled(m->c->tracer)) {
        lose(m, why, hands_out ? KT_EVF_UNSEEN : 0);
    }
}
