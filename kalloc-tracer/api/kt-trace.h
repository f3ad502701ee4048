/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The live trace (`ka trace`): events that pass a filter, in a ring.
 *
 *     queue --apply--> filter --> ring of N entries --> readers
 *
 * The consumer filters events when it applies them, so vCPUs do nothing for
 * the trace. A free carries what the map knew of the block, so a filter by
 * cache, size, layer or caller holds for frees, too.
 *
 * Entries have numbers: 1, 2, 3 ... They go on when the VM is reset, and when
 * another trace begins. A reader asks for the entries after the last number
 * that it has. If the ring is full, the newest entry replaces the oldest.
 *
 * Threads: start and stop take the tracer's lock. kt_query_trace() and
 * kt_trace_set_place() are called between kt_query_begin() and kt_query_end().
 */
#ifndef KT_API_TRACE_H
#define KT_API_TRACE_H

#include "kalloc-tracer/api/kt-block-filter.h"
#include "kalloc-tracer/api/kt-event.h"

/* Entries of a ring without --ring, and at most. */
#define KT_TRACE_RING       65536u
#define KT_TRACE_RING_MAX   (1u << 24)

/**
 * struct KtTraceSpec - which events to keep
 * @block: (borrowed) conditions on the block, and on the task that did it or
 *         that allocated the block
 * @ring: entries, 1 to KT_TRACE_RING_MAX
 */
typedef struct KtTraceSpec {
    KtBlockSpec block;
    uint64_t ring;
} KtTraceSpec;

/** What an entry is. */
typedef enum KtTracedKind {
    KT_TRACED_EVENT,
    KT_TRACED_RESET,    /* the VM was reset */
    KT_TRACED_CLEAR,    /* `ka clear` */
    KT_TRACED_LOAD,     /* a snapshot was loaded: time may go back */
} KtTracedKind;

/**
 * struct KtTracedBlock - the block of a free, a resize or an RCU event, as it
 * was before the event
 * @known: a block contained the address; else the other members are 0
 * @size: requested bytes
 * @stack, @task: of its allocation
 */
typedef struct KtTracedBlock {
    uint64_t size;
    KtStackId stack;
    KtTaskId task;
    KtCacheId cache;
    uint8_t layer;
    bool known;
} KtTracedBlock;

/** struct KtTraced - an entry. @block: not of an allocation, which has all of
 *  it in @ev */
typedef struct KtTraced {
    KtEvent ev;
    KtTracedBlock block;
    uint8_t kind;
} KtTraced;

/**
 * kt_trace_start() - begin a trace
 * @spec: (borrowed for the call)
 * @errp: the memory limit has no room for the ring; then nothing changed
 *
 * A trace that is under way ends, and entries of it that were not read are
 * dropped. Any thread that does not hold the tracer's lock. Returns: false on
 * error.
 */
bool kt_trace_start(KtTracer *t, const KtTraceSpec *spec, GError **errp);
/** kt_trace_stop() - end the trace. Its entries can still be read, until
 *  another trace begins. Any thread that does not hold the tracer's lock.
 *  Returns: false if nothing was traced. */
bool kt_trace_stop(KtTracer *t);

/**
 * struct KtTraceInfo - state of the trace
 * @on: events are traced
 * @any: there was a trace
 * @ring: entries of the ring
 * @last: number of the newest entry, 0: there was none
 * @place: number of the last entry that plain `ka trace` printed
 * @boot: number of the first entry of the running boot: stacks of those before
 *        have addresses of another boot
 */
typedef struct KtTraceInfo {
    bool on, any;
    uint64_t ring;
    uint64_t last;
    uint64_t place;
    uint64_t boot;
} KtTraceInfo;

/** kt_query_trace_info() - read the state of the trace. */
void kt_query_trace_info(KtTracer *t, KtTraceInfo *out);

/**
 * kt_query_trace() - copy the first entries after number @after
 * @after: 0: from the beginning of this trace on
 * @max: entries, at most
 * @out: (out) of KtTraced; its old content is dropped
 * @missing: (out) entries after @after that are in the ring no more
 *
 * Returns: the number of the last entry that was copied or is missing; @after
 * if there is none.
 */
uint64_t kt_query_trace(KtTracer *t, uint64_t after, unsigned max, GArray *out,
                        uint64_t *missing);

/** kt_trace_set_place() - store the number of the last entry that plain
 *  `ka trace` printed. */
void kt_trace_set_place(KtTracer *t, uint64_t number);

#endif /* KT_API_TRACE_H */
