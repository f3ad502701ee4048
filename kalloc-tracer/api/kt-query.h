/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Queries: between begin and end only, one thread at a time. They run under the
 * tracer's lock after draining the queue, so that they see every event that
 * happened before them.
 */
#ifndef KT_QUERY_API_H
#define KT_QUERY_API_H

#include "kalloc-tracer/api/kt-types.h"

void kt_query_begin(KtTracer *t);   /* drains the queue, takes the lock */
void kt_query_end(KtTracer *t);

/** kt_query_find() - the block (allocated or freed) that contains @va. */
bool kt_query_find(KtTracer *t, uint64_t va, KtBlock *out);
/** kt_query_next()/_prev() - nearest block that starts above / lies below
 *  @va (exclusive of a block that contains it). */
bool kt_query_next(KtTracer *t, uint64_t va, KtBlock *out);
bool kt_query_prev(KtTracer *t, uint64_t va, KtBlock *out);
/** kt_query_range() - blocks that overlap [lo, hi] (inclusive), by address. */
void kt_query_range(KtTracer *t, uint64_t lo, uint64_t hi, KtBlockFn fn,
                    void *opaque);
/** kt_query_alloc_pc() - blocks with a frame of their allocation stack in
 *  [lo, hi], by address. */
void kt_query_alloc_pc(KtTracer *t, uint64_t lo, uint64_t hi, KtBlockFn fn,
                       void *opaque);
/** kt_query_free_pc() - freed blocks, likewise by their free stack (or the
 *  stack that queued them with kfree_rcu). */
void kt_query_free_pc(KtTracer *t, uint64_t lo, uint64_t hi, KtBlockFn fn,
                      void *opaque);
/** kt_query_history() - past lives that contained @va, newest first. */
void kt_query_history(KtTracer *t, uint64_t va, KtBlockFn fn, void *opaque);

/**
 * struct KtError - a record of its own
 * @kind: what is wrong
 * @va: the address at fault
 * @has_block: @block is the block as it was then; else the address had none
 * @stack: the stack that caught it
 * @size: that the call passed (KT_ERR_WRONG_SIZE)
 */
typedef struct KtError {
    uint64_t id;            /* 1, 2, ... in order of detection */
    KtErrorKind kind;
    uint64_t va;
    bool has_block;
    KtBlock block;
    KtStackId stack;
    KtTaskId task;
    uint16_t cpu;
    KtHookId hook;
    KtCacheId cache;        /* of the call that was caught, 0 unknown */
    uint64_t us;
    uint64_t size;
} KtError;
typedef bool (*KtErrorFn)(const KtError *e, void *opaque);
/** kt_query_errors() - errors whose address or block touches [lo, hi],
 *  oldest first. */
void kt_query_errors(KtTracer *t, uint64_t lo, uint64_t hi, KtErrorFn fn,
                     void *opaque);

/** struct KtStats - sizes of the model for `ka stat` */
typedef struct KtStats {
    uint64_t live_blocks, live_bytes;       /* bytes: actual */
    uint64_t freed_blocks, history_rows;
    uint64_t errors;
    uint64_t stacks, tasks, caches;
    uint64_t map_bytes, history_bytes, depot_bytes;     /* host memory */
    uint64_t events;                        /* applied */
    uint64_t previous_live_blocks;          /* of the boot before a reset */
    uint64_t last_us;                       /* time of the newest event */
    uint64_t part_bytes[KT_MEM__COUNT];     /* host memory by part */
    uint64_t mem_bytes;                     /* of all parts */
    uint64_t mem_bound;                     /* 0: none */
    uint64_t counter[KT_CNT__COUNT];        /* of the same moment */
    bool full;                              /* new blocks are not kept */
    bool complete;                          /* traced from the first block on */
    bool gap;                               /* events went unrecorded since */
    bool unseen;                            /* double frees are not known */
    uint64_t errors_dropped;                /* since the reset or ka clear */
} KtStats;
void kt_query_stats(KtTracer *t, KtStats *out);

#endif /* KT_QUERY_API_H */
