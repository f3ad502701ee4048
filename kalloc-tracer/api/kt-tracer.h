/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The tracer: producers (vCPU threads) push fixed-size events into one queue,
 * which makes their global order; whoever holds the tracer's lock applies them
 * in that order to the model: live and freed blocks, past lives, errors.
 */
#ifndef KT_TRACER_API_H
#define KT_TRACER_API_H

#include "kalloc-tracer/api/kt-event.h"

/**
 * struct KtConfig - limits of a tracer
 * @n_cpus: producers; kt_tracer_push() takes cpu < n_cpus
 * @history_bytes: memory for past lives; oldest go first, counted
 * @max_stacks: cap of the stack depot; beyond it stacks are none, counted
 * @map_bytes: memory for allocated and freed blocks, 0 = 8 GiB, which is the
 *             most; beyond it new blocks are not kept, counted, and a gap
 * @mem_bytes: host memory for everything, 0 = no bound. The two limits above
 *             hold within it. See docs/limits.md for what goes first.
 * @warn: (nullable) told one line, once, when blocks are not kept any more;
 *        from any thread, under the tracer's lock
 * @journal: path of the event log, NULL for none
 */
typedef struct KtConfig {
    unsigned n_cpus;
    uint64_t history_bytes;
    uint32_t max_stacks;
    uint64_t map_bytes;
    uint64_t mem_bytes;
    void (*warn)(const char *line);
    const char *journal;
} KtConfig;
#define KT_CONFIG_DEFAULT \
    { .n_cpus = 1, .history_bytes = 256 * 1024 * 1024, .max_stacks = 1 << 22 }

KtTracer *kt_tracer_new(const KtConfig *config, GError **errp);
void kt_tracer_free(KtTracer *t);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtTracer, kt_tracer_free)

/**
 * kt_tracer_start() - a thread of the tracer's own applies events from now on
 *
 * Once, and not before the process has forked for the last time. Without it,
 * or without a host thread to be had, those who push apply them.
 */
void kt_tracer_start(KtTracer *t);
/** kt_tracer_stop() - end that thread; who calls holds no query. */
void kt_tracer_stop(KtTracer *t);

/**
 * kt_tracer_push() - record one event; any vCPU thread, hot path
 * @cpu: the producer; one thread at a time for each cpu
 * @ev: (copied) @ev->seq is ignored and assigned here
 *
 * Never drops: a queue that is half full is drained into the model by the
 * caller when the model's lock is free, a full one at any rate. Lock order:
 * BQL -> tracer lock; a vCPU thread calls this holding neither.
 */
GS_HOT void kt_tracer_push(KtTracer *t, unsigned cpu, const KtEvent *ev);

/** kt_tracer_hook_name() - (borrowed) Return the name of a hooked function, "?"
 *  for none. Valid until a replay of @t reads other names. */
const char *kt_tracer_hook_name(const KtTracer *t, KtHookId id);
/** kt_tracer_hook_has_gfp() - Return true if the GFP flags of blocks that @id
 *  allocated are known. */
bool kt_tracer_hook_has_gfp(const KtTracer *t, KtHookId id);

/** kt_tracer_count() - add to a counter; any thread, any time. */
void kt_tracer_count(KtTracer *t, KtCounter c, uint64_t n);
uint64_t kt_tracer_counter(KtTracer *t, KtCounter c);

/** kt_tracer_intern_stack() - id of a backtrace; any thread, lock free when
 *  the stack is known already. Returns id 0 when the depot is full. */
KtStackId kt_tracer_intern_stack(KtTracer *t, const uint64_t *frames,
                                 unsigned n, GsStop stop);
/** kt_tracer_stack() - (borrowed, for the tracer's life) frames of @id. */
const uint64_t *kt_tracer_stack(KtTracer *t, KtStackId id, unsigned *n,
                                GsStop *stop);

/** kt_tracer_intern_task() - id of (pid, comm); any thread; a new id when
 *  either differs. @comm may be any 16 guest bytes. */
KtTaskId kt_tracer_intern_task(KtTracer *t, uint32_t pid,
                               const char comm[16]);
bool kt_tracer_task(KtTracer *t, KtTaskId id, uint32_t *pid, char comm[17]);

/** kt_tracer_add_cache() - a kmem_cache seen for the first time; any thread.
 *  @name: guest bytes, NUL-terminated; kept escaped. Returns 0 when full. */
KtCacheId kt_tracer_add_cache(KtTracer *t, uint64_t cache_va,
                              const char *name, uint32_t object_size,
                              uint32_t size);
typedef struct KtCacheInfo {
    uint64_t va;
    const char *name;       /* borrowed, for the tracer's life */
    uint32_t object_size;
    uint32_t size;
    bool destroyed;
} KtCacheInfo;
bool kt_tracer_cache(KtTracer *t, KtCacheId id, KtCacheInfo *out);
void kt_tracer_cache_destroyed(KtTracer *t, KtCacheId id);

/**
 * kt_tracer_reset() - the VM was reset: the map becomes the previous boot
 * and an empty one begins; the one before is dropped. Whether that one is
 * complete is to be told again.
 */
void kt_tracer_reset(KtTracer *t);
/** kt_tracer_clear() - `ka clear`: forget blocks, history and errors. Blocks
 *  allocated before are unknown from here on: a gap is noted. */
void kt_tracer_clear(KtTracer *t);
/** kt_tracer_set_complete() - tracing began before the first allocation:
 *  a free of an unknown address is an error, not merely unknown. */
void kt_tracer_set_complete(KtTracer *t, bool complete);
/** kt_tracer_has_gap() - did events go unrecorded since the boot began? */
bool kt_tracer_has_gap(KtTracer *t);
/** kt_tracer_set_enabled() - `ka on|off`; producers ask kt_tracer_enabled()
 *  (a relaxed load). Switching on again notes a gap. */
void kt_tracer_set_enabled(KtTracer *t, bool on);
GS_HOT bool kt_tracer_enabled(const KtTracer *t);

/* ---- journal: what answers from the file need beside events ------------- */

/**
 * struct KtHookStatus - one row of the hook table as `ka stat -v` shows it
 * @name: hooked function
 * @va: run-time address; 0 = not in this kernel
 * @symbol: (nullable) the symbol whose address that is
 * @from: (nullable) the table that has the symbol
 * @args_from: (nullable) what told where arguments are, if not the hook table
 * @note: (nullable) what a missing one means
 * @hits: events seen
 */
typedef struct KtHookStatus {
    const char *name;
    uint64_t va;
    const char *symbol, *from, *args_from;
    const char *note;
    uint64_t hits;
} KtHookStatus;

/**
 * struct KtStatus - what only the capturing side knows; borrowed for the call
 * @kernel_found: the running kernel was recognised
 * @why_no_kernel: (nullable) one line
 * @n_hooks, @hook, @opaque: rows of the hook table; false: there is none
 */
typedef struct KtStatus {
    bool kernel_found;
    const char *why_no_kernel;
    unsigned n_hooks;
    bool (*hook)(void *opaque, unsigned i, KtHookStatus *out);
    void *opaque;
} KtStatus;

/** kt_tracer_has_journal() - is there one? Without it what follows does
 *  nothing. */
bool kt_tracer_has_journal(const KtTracer *t);
/** kt_tracer_save_status() - apply what was pushed, have it all in the file,
 *  and with it @s and the counters. Lock order: as a query. */
void kt_tracer_save_status(KtTracer *t, const KtStatus *s);
/** kt_tracer_on_second() - @fn is called once a second while events come, on
 *  the tracer's own thread, which holds no lock; it may save the status.
 *  Before kt_tracer_start(). */
void kt_tracer_on_second(KtTracer *t, void (*fn)(void *opaque), void *opaque);
/** kt_tracer_save_kernel() - @k (borrowed for the call) was found, or with
 *  @found false given as a file; any thread that holds no lock of ours. */
void kt_tracer_save_kernel(KtTracer *t, const GsKernel *k, bool found);
/** kt_tracer_save_module() - the module or BPF program that @k knows as
 *  @module_va was loaded; any thread, takes no lock for long. Without a
 *  journal, too: what it does not free will be reported. */
void kt_tracer_save_module(KtTracer *t, const GsKernel *k,
                           uint64_t module_va);
/** kt_tracer_inherit_modules() - what @k knows of modules came with a VM's
 *  state; likewise. */
void kt_tracer_inherit_modules(KtTracer *t, const GsKernel *k);
/** kt_tracer_drop_module() - it is unloaded: @k is told, too; likewise. Does
 *  nothing if @k does not know it as loaded. */
void kt_tracer_drop_module(KtTracer *t, GsKernel *k, uint64_t module_va);
/** kt_tracer_end_journal() - the VM ends: write the index. Events from here
 *  on are not written. */
void kt_tracer_end_journal(KtTracer *t);

#endif /* KT_TRACER_API_H */
