/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Queue: events of all vCPUs in one global order.
 *
 * The queue is one ring for all producers. A producer reserves the next number
 * of a global counter. The number is the event's place in the order, and
 * determines its slot. The producer writes the slot and publishes it by a
 * release store of the number. A slot is one cache line. Example, with events 5
 * to 8:
 *
 *     slot      5         6         7         8
 *             +---------+---------+---------+---------+
 *             | seq 5   | seq 6   | seq of  | seq 8   |
 *             |         |         | a round |         |
 *             |         |         | before  |         |
 *             +---------+---------+---------+---------+
 *
 * Numbers 5, 6 and 8 are published; 7 is reserved. The consumer finds 5 and 6,
 * and 8 only after 7 is published.
 *
 * A ring for each vCPU would need the same global counter for the order, and a
 * merge in addition.
 *
 * Threads: any number of producers; one consumer at a time, which holds the
 * tracer's lock.
 */
#ifndef KT_QUEUE_H
#define KT_QUEUE_H

#include <string.h>

#include "kalloc-tracer/kt.h"

/* A busy guest fills the queue in an eighth of a second, twice the time that
 * the consumer thread sleeps (NAP_MS of tracer.c). */
#define KT_QUEUE_SLOTS 16384

/* Only the functions of this header and of queue.c use the members. The
 * struct is here because each event runs the inline functions below. */
typedef struct KtQueue {
    KtEvent *slot;          /* aligned to cache lines; inside @memory */
    void *memory;
    char pad0[64];
    uint64_t taken;         /* atomic, written by producers */
    char pad1[64];
    uint64_t done;          /* atomic, written by the consumer */
    char pad2[64];
} KtQueue;

KtQueue *kt_queue_new(void);
void kt_queue_free(KtQueue *q);

/** kt_queue_done() - Return the number of the last place that was consumed. Any
 *  thread. */
static inline uint64_t kt_queue_done(const KtQueue *q)
{
    return __atomic_load_n(&q->done, __ATOMIC_ACQUIRE);
}

/** kt_queue_reserve() - Reserve the next place in the order. The caller must
 *  publish it: the consumer does not go past it. Any producer. */
static inline uint64_t kt_queue_reserve(KtQueue *q)
{
    return __atomic_add_fetch(&q->taken, 1, __ATOMIC_SEQ_CST);
}

/** kt_queue_ready() - Return true if the slot of place @seq may be written:
 *  the event that it held one round before is consumed. Any thread. */
static inline bool kt_queue_ready(const KtQueue *q, uint64_t seq)
{
    return seq - kt_queue_done(q) <= KT_QUEUE_SLOTS;
}

/** kt_queue_publish() - Copy @ev to the reserved place @seq, whose slot is
 *  ready, and make it visible to the consumer. */
static inline void kt_queue_publish(KtQueue *q, uint64_t seq,
                                    const KtEvent *ev)
{
    KtEvent *slot = &q->slot[seq % KT_QUEUE_SLOTS];

    memcpy((char *)slot + sizeof(slot->seq), (const char *)ev + sizeof(ev->seq),
           sizeof(*slot) - sizeof(slot->seq));
    __atomic_store_n(&slot->seq, seq, __ATOMIC_RELEASE);
}

/** kt_queue_reserved() - Return the number of the last place that was reserved.
 *  Any thread. */
uint64_t kt_queue_reserved(const KtQueue *q);

/**
 * kt_queue_peek() - Find the next events in order, as far as they are published
 * @max: return at most so many
 * @n: (out) how many there are, 0 if the next one is not published
 *
 * Consumer only. @n may be less than is published at the end of the ring.
 * Returns: (borrowed until kt_queue_consume()) the first event.
 */
const KtEvent *kt_queue_peek(const KtQueue *q, unsigned max, unsigned *n);
/** kt_queue_consume() - Make the slots of the next @n events free again.
 *  Consumer only. */
void kt_queue_consume(KtQueue *q, unsigned n);

/** kt_queue_check() - Check the numbers in the slots. Consumer only; producers
 *  may run. Returns: (owned, nullable) what is wrong. */
char *kt_queue_check(const KtQueue *q);

#endif /* KT_QUEUE_H */
