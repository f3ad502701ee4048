/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The tracer: takes events of all vCPUs, and keeps the map that they make.
 *
 *     vCPU threads --push--> queue --apply--> model: blocks, history, errors
 *                                        \--> journal, if there is one
 *
 * Producers are vCPU threads. The consumer is the thread of kt_tracer_start();
 * without it, producers and queries apply events. Applying takes the tracer's
 * lock. Lock order: QEMU's BQL, then the tracer's lock. docs/concurrency.md
 * has the whole table.
 */
#ifndef KT_API_TRACER_H
#define KT_API_TRACER_H

#include "kalloc-tracer/api/kt-event.h"

/**
 * struct KtConfig - limits of a tracer
 * @n_cpus: producers; kt_tracer_push() accepts cpu < @n_cpus
 * @history_bytes: memory for past lives. At the limit the oldest are evicted,
 *                 which is counted
 * @max_stacks: backtraces, at most. At the limit events have stack 0, which is
 *              counted
 * @map_bytes: memory for live and freed blocks; 0: 8 GiB, which is the maximum.
 *             At the limit new blocks are not kept, which is counted and makes
 *             a gap
 * @mem_bytes: host memory for everything, the limits above included; 0: no
 *             limit. docs/limits.md says what is evicted first
 * @warn: (nullable) called once, with one line, when the first block is not
 *        kept; on any thread, with the tracer's lock held
 * @journal: (nullable) path of the file that gets all events
 * @repeatable: QEMU records or replays this run. What the journal has then
 *              depends on the guest alone, so the journal of a replay is that
 *              of the recorded run, byte for byte
 */
typedef struct KtConfig {
    unsigned n_cpus;
    uint64_t history_bytes;
    uint32_t max_stacks;
    uint64_t map_bytes;
    uint64_t mem_bytes;
    void (*warn)(const char *line);
    const char *journal;
    bool repeatable;
} KtConfig;
#define KT_CONFIG_DEFAULT \
    { .n_cpus = 1, .history_bytes = 256 * 1024 * 1024, .max_stacks = 1 << 22 }

/**
 * kt_tracer_new() - make a tracer
 * @config: (borrowed for the call)
 * @errp: the journal cannot be written
 *
 * Returns: (owned) NULL on error.
 */
KtTracer *kt_tracer_new(const KtConfig *config, GError **errp);
/** kt_tracer_free() - stop the consumer and free everything; NULL is fine. */
void kt_tracer_free(KtTracer *t);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtTracer, kt_tracer_free)

/**
 * kt_tracer_start() - start the consumer thread
 *
 * Call at most once, after the process's last fork (QEMU's -daemonize forks).
 * If it is never called, or the thread cannot be created, each producer
 * applies events itself in kt_tracer_push().
 */
void kt_tracer_start(KtTracer *t);
/** kt_tracer_stop() - stop and join the consumer thread. Do not call it
 *  between kt_query_begin() and kt_query_end(): the thread may wait for that
 *  lock. */
void kt_tracer_stop(KtTracer *t);

/**
 * kt_tracer_push() - record an event
 * @cpu: the producer
 * @ev: (copied) its seq is assigned here
 *
 * Hot path. One thread at a time for each @cpu; that thread holds neither the
 * BQL nor the tracer's lock. No event is dropped: if the queue is half full
 * and the tracer's lock is free, the caller applies events; if the queue is
 * full, the caller waits for the lock and applies events.
 */
GS_HOT void kt_tracer_push(KtTracer *t, unsigned cpu, const KtEvent *ev);

/** kt_tracer_hook_name() - return the name of a hooked function (borrowed), "?"
 *  if there is no such hook. Valid until a replay of @t reads other names. */
const char *kt_tracer_hook_name(const KtTracer *t, KtHookId id);
/** kt_tracer_hook_has_gfp() - return true if the gfp flags are known of blocks
 *  that the hooked function allocates. */
bool kt_tracer_hook_has_gfp(const KtTracer *t, KtHookId id);

/** kt_tracer_count() - add @n to a counter. Any thread, no lock. */
void kt_tracer_count(KtTracer *t, KtCounter c, uint64_t n);
/** kt_tracer_counter() - return a counter's value. Any thread, no lock. */
uint64_t kt_tracer_counter(KtTracer *t, KtCounter c);

/**
 * kt_tracer_intern_stack() - get the id of a backtrace
 * @frames: (copied) @n addresses, the innermost first
 * @stop: why the walk ended
 *
 * Any thread; no lock if the backtrace is known already. Returns: 0 if there
 * is no room for another backtrace.
 */
KtStackId kt_tracer_intern_stack(KtTracer *t, const uint64_t *frames,
                                 unsigned n, GsStop stop);
/** kt_tracer_intern_stack_of() - the same, of a stack that was taken at @era;
 *  kt_tracer_intern_stack() does not know when its stack was taken. */
KtStackId kt_tracer_intern_stack_of(KtTracer *t, const uint64_t *frames,
                                    unsigned n, GsStop stop, GsStackEra era);
/** kt_tracer_stack() - return the frames of a backtrace. They are borrowed as
 *  long as the tracer lives. Any thread. NULL if there is no such id. */
const uint64_t *kt_tracer_stack(KtTracer *t, KtStackId id, unsigned *n,
                                GsStop *stop);
/** kt_tracer_stack_era() - return when a backtrace was taken, for the names of
 *  its frames. Any thread. No load has happened if there is no such id. */
GsStackEra kt_tracer_stack_era(KtTracer *t, KtStackId id);

/** kt_tracer_intern_task() - get the id of a task: of the pair of pid and
 *  name. Any thread. @comm: any 16 bytes of the guest. */
KtTaskId kt_tracer_intern_task(KtTracer *t, uint32_t pid,
                               const char comm[16]);
/** kt_tracer_task() - read a task; return false if there is no such id. Any
 *  thread. */
bool kt_tracer_task(KtTracer *t, KtTaskId id, uint32_t *pid, char comm[17]);

/** kt_tracer_add_cache() - get the id of a kmem_cache. Any thread. @name: bytes
 *  of the guest, with a NUL; they are stored escaped. Returns 0 if the table
 *  is full. */
KtCacheId kt_tracer_add_cache(KtTracer *t, uint64_t cache_va,
                              const char *name, uint32_t object_size,
                              uint32_t size);
/** struct KtCacheInfo - a kmem_cache; @name is borrowed as long as the tracer
 *  lives */
typedef struct KtCacheInfo {
    uint64_t va;
    const char *name;
    uint32_t object_size;
    uint32_t size;
    bool destroyed;
} KtCacheInfo;
/** kt_tracer_cache() - read a cache; return false if there is no such id. Any
 *  thread. */
bool kt_tracer_cache(KtTracer *t, KtCacheId id, KtCacheInfo *out);
/** kt_tracer_n_caches() - return the number of caches; ids run from 1 to it.
 *  Any thread. */
uint32_t kt_tracer_n_caches(const KtTracer *t);
/** kt_tracer_cache_destroyed() - note that the guest destroyed the cache: its
 *  address may become that of another one. Any thread. */
void kt_tracer_cache_destroyed(KtTracer *t, KtCacheId id);

/* ---- the boot ------------------------------------------------------------ */

/** kt_tracer_reset() - begin a new boot: the VM was reset. The map becomes the
 *  previous boot's, for queries of the live blocks that it had; the one before
 *  that is dropped. The new boot is not complete until
 *  kt_tracer_set_complete(). */
void kt_tracer_reset(KtTracer *t);
/** kt_tracer_clear() - drop all blocks, past lives and errors (`ka clear`).
 *  Blocks that the guest still has are unknown from now on, so this makes a
 *  gap. */
void kt_tracer_clear(KtTracer *t);
/** kt_tracer_set_complete() - say whether recording began before the guest's
 *  first allocation. If so, a free of an unknown address is an error. */
void kt_tracer_set_complete(KtTracer *t, bool complete);
/** kt_tracer_has_gap() - return true if events of this boot were not
 *  recorded. */
bool kt_tracer_has_gap(KtTracer *t);
/** kt_tracer_set_enabled() - switch recording on or off (`ka on`, `ka off`).
 *  Switching on again makes a gap. */
void kt_tracer_set_enabled(KtTracer *t, bool on);
/** kt_tracer_enabled() - return true if recording is on: a relaxed load. */
bool kt_tracer_enabled(const KtTracer *t);

#endif /* KT_API_TRACER_H */
