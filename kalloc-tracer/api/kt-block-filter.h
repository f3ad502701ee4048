/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Block filter: does a block meet conditions? Used by listings, the live trace
 * and access checks.
 *
 * Names of tasks and caches, and frames of stacks, are compared once for each
 * id, because ids never change their meaning. Example: --cache kmalloc-64
 *
 *     block of cache 9    first time: name of 9 is "kmalloc-64": yes, stored
 *     block of cache 9    yes
 *
 * Threads: any, several at once, without a lock: two that ask for the same new
 * id both find the same answer.
 */
#ifndef KT_API_BLOCK_FILTER_H
#define KT_API_BLOCK_FILTER_H

#include "kalloc-tracer/api/kt-types.h"

typedef struct KtTracer KtTracer;

/**
 * struct KtBlockSpec - conditions; what is not set, any block meets
 * @task: (nullable) a pattern for a task's name; unused if @has_pid
 * @cache: (nullable) a pattern for the cache's name
 * @layer: KT_LAYER_NONE: any
 * @state: 'A' allocated, 'F' freed, 0: any
 * @size_lo, @size_hi: requested bytes, both inclusive
 * @since, @until: microseconds, both inclusive
 * @code, @n_code: (nullable) a frame of the allocation's stack is there
 */
typedef struct KtBlockSpec {
    bool has_pid, has_size, has_time;
    char state;
    KtLayer layer;
    uint64_t pid;
    const char *task;
    const char *cache;
    uint64_t size_lo, size_hi;
    uint64_t since, until;
    const KtCodeRange *code;
    unsigned n_code;
} KtBlockSpec;

/** kt_block_spec_copy() - copy a spec, with what it points to. */
KtBlockSpec kt_block_spec_copy(const KtBlockSpec *spec);
/** kt_block_spec_deinit() - free what a copy points to. */
void kt_block_spec_deinit(KtBlockSpec *spec);
/** kt_block_spec_is_set() - return true if a block may fail. */
bool kt_block_spec_is_set(const KtBlockSpec *spec);

static inline bool kt_block_spec_layer(const KtBlockSpec *s, unsigned layer)
{
    return s->layer == KT_LAYER_NONE || s->layer == layer;
}

static inline bool kt_block_spec_size(const KtBlockSpec *s, uint64_t size)
{
    return !s->has_size || (size >= s->size_lo && size <= s->size_hi);
}

static inline bool kt_block_spec_time(const KtBlockSpec *s, uint64_t us)
{
    return !s->has_time || (us >= s->since && us <= s->until);
}

/** kt_block_spec_state() - is a block in the state? It does not apply to past
 *  lives. */
bool kt_block_spec_state(const KtBlockSpec *spec, const KtBlock *b);
/** kt_block_spec_knows_cache() - return true if a known cache has the name, or
 *  any may. */
bool kt_block_spec_knows_cache(const KtBlockSpec *spec, KtTracer *t);
/** kt_block_spec_knows_task() - return true if a known task meets the spec, or
 *  any may. */
bool kt_block_spec_knows_task(const KtBlockSpec *spec, KtTracer *t);

typedef struct KtBlockFilter KtBlockFilter;

/** kt_block_filter_new() - (owned) make a filter. @t: (borrowed) has the names
 *  and stacks of ids; @spec: (copied) */
KtBlockFilter *kt_block_filter_new(KtTracer *t, const KtBlockSpec *spec);
void kt_block_filter_free(KtBlockFilter *f);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtBlockFilter, kt_block_filter_free)
/** kt_block_filter_bytes() - return the memory that the filter of @spec
 *  needs. */
uint64_t kt_block_filter_bytes(const KtBlockSpec *spec);
/** kt_block_filter_spec() - (borrowed) return its conditions. */
const KtBlockSpec *kt_block_filter_spec(const KtBlockFilter *f);

bool kt_block_filter_task(KtBlockFilter *f, KtTaskId task);
bool kt_block_filter_cache(KtBlockFilter *f, KtCacheId cache);
bool kt_block_filter_stack(KtBlockFilter *f, KtStackId stack);
/** kt_block_filter_time() - as kt_block_spec_time(); 0: unknown. */
bool kt_block_filter_time(const KtBlockFilter *f, uint64_t us);
/** kt_block_filter_block() - does a block meet all conditions, but for its
 *  stack? @by_free: compare the time and the task of the free. */
bool kt_block_filter_block(KtBlockFilter *f, const KtBlock *b, bool by_free);

#endif /* KT_API_BLOCK_FILTER_H */
