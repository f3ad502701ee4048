/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Queries of blocks, past lives, errors and sizes.
 *
 * Call them between kt_query_begin() and kt_query_end(), on one thread at a
 * time. Begin applies all pushed events, so a query sees every event that
 * happened before it; then it holds the tracer's lock, so nothing changes
 * until the end. Example: the block that contains an address, and its caller.
 *
 *     KtBlock b;
 *
 *     kt_query_begin(t);
 *     if (kt_query_find(t, va, &b)) {
 *         frames = kt_tracer_stack(t, b.alloc_stack, &n, &stop);
 *     }
 *     kt_query_end(t);
 *
 * Callbacks get blocks that are valid for the call, and end the query by
 * returning false. Ranges [lo, hi] include both ends.
 */
#ifndef KT_API_QUERY_H
#define KT_API_QUERY_H

#include "kalloc-tracer/api/kt-types.h"

/* ---- an error ------------------------------------------------------------ */
/*
 * An error: what the guest did wrong with memory, as queries return it. Plain
 * data: any thread.
 */

/** struct KtNeighbour - a live block beside an access. An access far behind the
 *  end of this block, or in front of it, looks like one to the memory there. */
typedef struct KtNeighbour {
    uint64_t va;
    uint64_t requested;
    uint64_t us;            /* of the allocation */
    KtStackId stack;
    KtTaskId task;
    KtCacheId cache;
} KtNeighbour;

/**
 * struct KtErrorAccess - what an error of an access has besides
 * @pc: the instruction; 0: unknown
 * @offset: from the block's first byte (without a block: from KtError.va) to
 *          the first bad byte; the largest of all repeats
 * @count: accesses by this instruction to blocks with the same stacks of
 *         allocation and free
 * @last_us: guest time of the last of them
 * @flags: KT_EVF_WRITE, KT_EVF_RANGE, of the first
 * @has_neighbour: @neighbour is live, and ends at most 256 bytes in front of
 *                 the first bad byte of the first access
 * @behind: it begins so far behind this byte instead: only of free slots, which
 *          an access in front of a block meets
 * @distance: bytes between its end, or its start, and this byte
 */
typedef struct KtErrorAccess {
    uint64_t pc;
    uint64_t offset;
    uint64_t count;
    uint64_t last_us;
    uint8_t flags;
    bool has_neighbour;
    bool behind;
    uint16_t distance;
    KtNeighbour neighbour;
} KtErrorAccess;

/**
 * struct KtError - an error that the guest made
 * @id: 1, 2, ... in the order of detection
 * @va: the address that was freed, allocated or accessed
 * @has_block: @block is the block that had @va at that time; else none did
 * @stack, @task, @cpu, @hook: the call that made the error
 * @cache: the cache that this call named; 0: none or unknown
 * @size: the size that this call passed (KT_ERR_WRONG_SIZE); objects left; the
 *        bytes that were accessed
 * @access: only if kt_error_is_access()
 */
typedef struct KtError {
    uint64_t id;
    KtErrorKind kind;
    uint64_t va;
    bool has_block;
    KtBlock block;
    KtStackId stack;
    KtTaskId task;
    uint16_t cpu;
    KtHookId hook;
    KtCacheId cache;
    uint64_t us;
    uint64_t size;
    KtErrorAccess access;
} KtError;

/** kt_error_is_access() - return true if an access of the guest is the error.
 *  The first frame of KtError.stack is an instruction then, and no return
 *  address. */
static inline bool kt_error_is_access(KtErrorKind kind)
{
    return kind == KT_ERR_USE_AFTER_FREE || kind == KT_ERR_OUT_OF_BOUNDS ||
           kind == KT_ERR_FREE_SLOT;
}

/* ---- queries ------------------------------------------------------------- */

/** kt_query_begin() - take the tracer's lock, after all pushed events were
 *  applied. Never on a vCPU thread. */
void kt_query_begin(KtTracer *t);
/** kt_query_end() - release the tracer's lock. */
void kt_query_end(KtTracer *t);

/* ---- blocks ------------------------------------------------------------- */

/** kt_query_find() - find the live or freed block that contains @va. Pages that
 *  were handed out after an object there was freed come before the object. */
bool kt_query_find(KtTracer *t, uint64_t va, KtBlock *out);
/** kt_query_earlier() - find this freed object; false if there is none. */
bool kt_query_earlier(KtTracer *t, uint64_t va, KtBlock *out);
/** kt_query_next() - find the nearest block that starts above @va. */
bool kt_query_next(KtTracer *t, uint64_t va, KtBlock *out);
/** kt_query_prev() - find the nearest block that starts below @va and does not
 *  contain it. */
bool kt_query_prev(KtTracer *t, uint64_t va, KtBlock *out);
/** kt_query_range() - call @fn for blocks that overlap [@lo, @hi], by
 *  address. */
void kt_query_range(KtTracer *t, uint64_t lo, uint64_t hi, KtBlockFn fn,
                    void *opaque);
/** kt_query_alloc_pc() - call @fn for blocks whose allocation stack has a frame
 *  in [@lo, @hi], by address. */
void kt_query_alloc_pc(KtTracer *t, uint64_t lo, uint64_t hi, KtBlockFn fn,
                       void *opaque);
/** kt_query_free_pc() - call @fn for blocks whose free stack, or the stack that
 *  queued them with kfree_rcu(), has a frame in [@lo, @hi], by address. */
void kt_query_free_pc(KtTracer *t, uint64_t lo, uint64_t hi, KtBlockFn fn,
                      void *opaque);
/** kt_query_history() - call @fn for the past lives that contained @va, the
 *  newest first: lives of pages, and of objects in them, in one order. */
void kt_query_history(KtTracer *t, uint64_t va, KtBlockFn fn, void *opaque);

/* ---- errors -------------------------------------------------------------- */

/** Called for each error of a query; false ends the query. */
typedef bool (*KtErrorFn)(const KtError *e, void *opaque);
/** kt_query_errors() - call @fn for errors whose address or block overlaps
 *  [@lo, @hi], the oldest first. */
void kt_query_errors(KtTracer *t, uint64_t lo, uint64_t hi, KtErrorFn fn,
                     void *opaque);

/* ---- sizes --------------------------------------------------------------- */

/** struct KtStats - sizes and counters for `ka stat`, all of one moment */
typedef struct KtStats {
    uint64_t live_blocks, live_bytes;       /* bytes: reserved ones */
    uint64_t freed_blocks, history_rows;
    uint64_t errors;
    uint64_t stacks, tasks, caches;
    uint64_t map_bytes, history_bytes, depot_bytes;     /* host memory */
    uint64_t events;                        /* applied */
    uint64_t previous_live_blocks;          /* of the boot before this one */
    uint64_t last_us;                       /* time of the newest event */
    uint64_t part_bytes[KT_MEM__COUNT];     /* host memory by use */
    uint64_t mem_bytes;                     /* sum of @part_bytes */
    uint64_t mem_bound;                     /* limit of it; 0: none */
    uint64_t counter[KT_CNT__COUNT];
    bool full;                              /* new blocks are not kept */
    bool complete;                          /* recorded from the first
                                             * allocation on */
    bool gap;                               /* events were not recorded */
    bool unseen;                            /* a dropped call handed out
                                             * memory: no double frees of
                                             * freed blocks are reported */
    bool blind;                             /* most allocators may be hooked,
                                             * not all: no error is certain */
    uint64_t errors_dropped;                /* since the reset or ka clear */
} KtStats;
/** kt_query_stats() - read all sizes and counters. */
void kt_query_stats(KtTracer *t, KtStats *out);

#endif /* KT_API_QUERY_H */
