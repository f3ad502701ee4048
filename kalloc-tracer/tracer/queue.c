/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Queue of events: see queue.h.
 *
 * Numbers begin at 1. Number s has slot s % KT_QUEUE_SLOTS. To publish a slot,
 * the producer stores s as the event's seq, as the last store and with release
 * semantics. A slot may be written again when the number of one round before
 * (s - KT_QUEUE_SLOTS) is consumed.
 */
#include "kalloc-tracer/tracer/queue.h"

#include <inttypes.h>

#define MASK (KT_QUEUE_SLOTS - 1)

KtQueue *kt_queue_new(void)
{
    KtQueue *q = g_new0(KtQueue, 1);

    q->memory = g_malloc0((KT_QUEUE_SLOTS + 1) * sizeof(KtEvent));
    q->slot = (KtEvent *)(((uintptr_t)q->memory + 63) & -(uintptr_t)64);
    return q;
}

void kt_queue_free(KtQueue *q)
{
    if (q) {
        g_free(q->memory);
        g_free(q);
    }
}

uint64_t kt_queue_reserved(const KtQueue *q)
{
    return __atomic_load_n(&q->taken, __ATOMIC_SEQ_CST);
}

const KtEvent *kt_queue_peek(const KtQueue *q, unsigned max, unsigned *n)
{
    uint64_t seq = q->done + 1;
    const KtEvent *first = &q->slot[seq & MASK];
    unsigned room = KT_QUEUE_SLOTS - (seq & MASK);

    *n = 0;
    while (*n < MIN(max, room) &&
           __atomic_load_n(&first[*n].seq, __ATOMIC_ACQUIRE) == seq + *n) {
        ++*n;
    }
    return first;
}

void kt_queue_consume(KtQueue *q, unsigned n)
{
    __atomic_store_n(&q->done, q->done + n, __ATOMIC_RELEASE);
}

/* A slot contains the number that was written last: of a place that is not
 * consumed yet, or of the place one round before. Producers may publish more
 * slots during the check. */
char *kt_queue_check(const KtQueue *q)
{
    uint64_t done = q->done;
    uint64_t taken;

    for (unsigned i = 0; i < KT_QUEUE_SLOTS; i++) {
        uint64_t seq = __atomic_load_n(&q->slot[i].seq, __ATOMIC_ACQUIRE);
        uint64_t newest = done - ((done - i) & MASK);

        if (seq != 0 && ((seq & MASK) != i || seq > done + KT_QUEUE_SLOTS)) {
            return g_strdup_printf("slot %u has number %" PRIu64 ", applied "
                                   "are %" PRIu64, i, seq, done);
        }
        if (done >= i && newest && seq < newest) {
            return g_strdup_printf("slot %u has number %" PRIu64 ", but %"
                                   PRIu64 " was applied", i, seq, newest);
        }
    }
    taken = kt_queue_reserved(q);
    return taken >= done ? NULL :
           g_strdup_printf("%" PRIu64 " events were applied, %" PRIu64
                           " pushed", done, taken);
}
