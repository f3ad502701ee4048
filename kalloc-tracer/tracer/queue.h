/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Queue: events of all vCPUs in one global order.
 *
 * One ring for all producers. A producer takes the next number of a global
 * count, which is both the event's place in the order and its slot, writes
 * the slot and publishes it. So the consumer finds the order made, whatever
 * the number of vCPUs; rings of their own would need the same global count
 * and a merge on top. Every slot is a cache line.
 *
 * One consumer at a time (the tracer's lock), any number of producers.
 */
#ifndef KT_QUEUE_H
#define KT_QUEUE_H

#include "kalloc-tracer/kt.h"

/* An eighth of a second of a busy guest, see NAP_MS of tracer.c. */
#define KT_QUEUE_SLOTS 16384

typedef struct KtQueue KtQueue;

KtQueue *kt_queue_new(void);
void kt_queue_free(KtQueue *q);

/** kt_queue_reserve() - the next place in the order; it must be filled. */
GS_HOT uint64_t kt_queue_reserve(KtQueue *q);
/** kt_queue_ready() - is the slot of that place free? */
GS_HOT bool kt_queue_ready(const KtQueue *q, uint64_t seq);
/** kt_queue_publish() - fill a place whose slot is ready: copies @ev. */
GS_HOT void kt_queue_publish(KtQueue *q, uint64_t seq, const KtEvent *ev);

/** kt_queue_reserved() - places taken so far: the number of the last one. */
uint64_t kt_queue_reserved(const KtQueue *q);
/** kt_queue_done() - the number of the last place consumed. */
GS_HOT uint64_t kt_queue_done(const KtQueue *q);

/**
 * kt_queue_peek() - the next events in order, as far as they are published;
 * consumer only
 * @max: how many at most
 * @n: (out) how many
 * Returns: (borrowed until kt_queue_consume()) the first of them.
 */
const KtEvent *kt_queue_peek(const KtQueue *q, unsigned max, unsigned *n);
void kt_queue_consume(KtQueue *q, unsigned n);

/** kt_queue_check() - (owned, nullable) what is wrong with the numbers of the
 *  events in it; consumer only, beside producers. */
char *kt_queue_check(const KtQueue *q);

#endif /* KT_QUEUE_H */
