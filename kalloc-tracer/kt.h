/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kalloc-tracer: events of the guest's allocators, and the map made of them.
 *
 * Producers (vCPU threads) push fixed-size events into one queue, which makes
 * their global order; whoever holds the tracer's lock applies them in that
 * order to the model: live and freed blocks, past lives, errors. Queries run
 * under that lock after draining the queue, so that they see every event that
 * happened before them.
 *
 * This is the only header of the folder that other folders include. It does
 * not know QEMU: tests, fuzzers, benchmarks and offline tools link it alone.
 */
#ifndef KT_H
#define KT_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "guest-symbols/gs.h"

#define KT_MAX_FRAMES 64

/* Distinct id types: one cannot be passed for another. 0 is always "none". */
typedef struct KtStackId { uint32_t v; } KtStackId;
typedef struct KtTaskId { uint32_t v; } KtTaskId;
typedef struct KtCacheId { uint16_t v; } KtCacheId;
typedef struct KtHookId { uint8_t v; } KtHookId;

/* ---- tables (X-macro files, each included by its owner only) ----------- */

/** Allocator layers; a block belongs to exactly one. */
typedef enum KtLayer {
    KT_LAYER_NONE,
    KT_LAYER_KMALLOC,       /* kmalloc family served from a slab */
    KT_LAYER_LARGE,         /* kmalloc family served from pages */
    KT_LAYER_CACHE,         /* kmem_cache_alloc family */
    KT_LAYER_VMALLOC,
    KT_LAYER_PERCPU,
    KT_LAYER_PAGES,
    KT_LAYER__COUNT
} KtLayer;
const char *kt_layer_name(KtLayer layer);
bool kt_layer_parse(const char *name, KtLayer *out);

/** What an event says. */
typedef enum KtEventKind {
    KT_EV_NONE,
    KT_EV_ALLOC,        /* va, size, actual, cache: memory now owned */
    KT_EV_FREE,         /* va is about to be released */
    KT_EV_RESIZE,       /* krealloc in place: va keeps, size is new */
    KT_EV_RCU_QUEUE,    /* kfree_rcu: va will be freed after a grace period */
    KT_EV_GAP,          /* events were not recorded before this one */
    KT_EV__COUNT
} KtEventKind;

/** Which frees may release which layers; a free event carries its family. */
typedef enum KtFamily {
    KT_FAMILY_ANY,      /* kvfree-like: checks nothing */
    KT_FAMILY_KFREE,    /* kfree: kmalloc, large, and cache objects */
    KT_FAMILY_CACHE,    /* kmem_cache_free: cache objects of event.cache */
    KT_FAMILY_VFREE,
    KT_FAMILY_PERCPU,
    KT_FAMILY_PAGES,
    /* Of kernels other than Linux: what their profile says, and no more. */
    KT_FAMILY_KMALLOC,  /* kmalloc, large */
    KT_FAMILY_ZONE,     /* cache objects of event.cache */
    KT_FAMILY__COUNT
} KtFamily;

/** Error kinds; names, severities and texts come from errors.def. */
typedef enum KtErrorKind {
#define KT_ERROR_KIND(id, name, text) KT_ERR_##id,
#include "kalloc-tracer/api/errors.def"
    KT_ERR__COUNT
} KtErrorKind;
const char *kt_error_name(KtErrorKind kind);
const char *kt_error_text(KtErrorKind kind);
bool kt_error_parse(const char *name, KtErrorKind *out);

/** Counters of `ka stat`; every drop, eviction or unknown is one of them. */
typedef enum KtCounter {
#define KT_COUNTER(id, name, help) KT_CNT_##id,
#include "kalloc-tracer/api/counters.def"
    KT_CNT__COUNT
} KtCounter;
const char *kt_counter_name(KtCounter c);
const char *kt_counter_help(KtCounter c);

/** Parts of the tracer's memory, see memory-parts.def. */
typedef enum KtMemoryPart {
#define KT_MEMORY_PART(id, name, share, last, help) KT_MEM_##id,
#include "kalloc-tracer/api/memory-parts.def"
    KT_MEM__COUNT
} KtMemoryPart;
const char *kt_memory_part_name(KtMemoryPart part);
const char *kt_memory_part_help(KtMemoryPart part);

/** Hook rows of hooks.def, for display: name of the hooked function. */
const char *kt_hook_name(KtHookId id);
/** kt_hook_tells_gfp() - is gfp known of what it allocated? */
bool kt_hook_tells_gfp(KtHookId hook);

/** What an event says beyond its kind; bits of KtEvent.flags. */
typedef enum KtEventFlag {
    /** ALLOC: nothing if the address is in a live block (bulk calls tell of
     *  pages that their caller had before). */
    KT_EVF_IF_NEW = 1 << 0,
    /** ALLOC: taken out of what is live there, which is no error (pages
     *  pass from hand to hand inside the page allocator). */
    KT_EVF_TAKE = 1 << 1,
    /** FREE of pages: memory that may come to the allocator for the first
     *  time (boot, hotplug): never an error. */
    KT_EVF_FRESH = 1 << 2,
    /** FREE of pages: may tell once more what the same call told before. */
    KT_EVF_AGAIN = 1 << 3,
    /** FREE by kfree(): @cache is that of the slab which the address lies in
     *  now, 0 when that page is no slab of a known cache. */
    KT_EVF_SLAB_READ = 1 << 4,
    /** FREE: the call tells @size, which is to be what was asked for. */
    KT_EVF_SIZED = 1 << 5,
    /** GAP: a call under way, whose return will not be seen, hands out
     *  memory. */
    KT_EVF_UNSEEN = 1 << 6,
} KtEventFlag;

/**
 * struct KtEvent - one allocator event, 64 bytes
 * @seq: global order, assigned by kt_tracer_push()
 * @va: block start, or the pointer that is freed
 * @size: requested bytes (ALLOC, RESIZE); bytes freed (FREE of pages; 0 =
 *        to the end of the block); what a KT_EVF_SIZED FREE passes
 * @actual: bytes the allocator reserved (ALLOC); 0 = unknown, then = @size
 * @us: guest microseconds since the VM's clock started (48 bits)
 * @cpu: vCPU index
 * @stack: backtrace, leaf first, first frame the caller
 * @task: interned task, 0 unknown
 * @gfp: guest gfp flags, as the caller passed them
 * @cache: kmem_cache, 0 unknown
 * @kind: KtEventKind
 * @hook: the row of hooks.def that saw it
 * @layer: KtLayer (ALLOC)
 * @family: KtFamily (FREE)
 * @flags: KtEventFlag bits
 */
typedef struct KtEvent {
    uint64_t seq;
    uint64_t va;
    uint64_t size;
    uint64_t actual;
    uint64_t us:48;
    uint64_t cpu:16;
    KtStackId stack;
    KtTaskId task;
    uint32_t gfp;
    KtCacheId cache;
    uint8_t kind;
    KtHookId hook;
    uint8_t layer;
    uint8_t family;
    uint8_t flags;
    uint8_t pad[5];
} KtEvent;
G_STATIC_ASSERT(sizeof(KtEvent) == 64);

/* ---- tracer: queue + model + depot + lock ----------------------------- */

typedef struct KtTracer KtTracer;

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

/** kt_tracer_budget() - (borrowed) where all of its memory is accounted for,
 *  and what others hold for it; see budget.h. */
typedef struct KtBudget KtBudget;
KtBudget *kt_tracer_budget(KtTracer *t);

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

/* ---- queries: between begin and end only, one thread at a time --------- */

void kt_query_begin(KtTracer *t);   /* drains the queue, takes the lock */
void kt_query_end(KtTracer *t);

typedef enum KtBlockState {
    KT_BLOCK_ALLOCATED, /* 'A' */
    KT_BLOCK_FREED,     /* 'F': freed and not reused */
} KtBlockState;

/**
 * struct KtBlock - a block as queries see it, by value
 *
 * Of a freed block or past life @free_stack and @free_us tell its end. When
 * kfree_rcu() queued it, @rcu_stack/@rcu_us tell that. Fields of a past life
 * that history does not keep are 0.
 */
typedef struct KtBlock {
    uint64_t va;
    uint64_t requested;
    uint64_t actual;
    uint64_t alloc_us;
    uint64_t free_us;
    uint64_t rcu_us;
    KtStackId alloc_stack;
    KtStackId free_stack;
    KtStackId rcu_stack;
    KtTaskId alloc_task;
    KtTaskId free_task;
    uint32_t gfp;
    KtCacheId cache;
    KtHookId hook;
    KtHookId free_hook;
    uint16_t alloc_cpu;
    uint16_t free_cpu;
    KtBlockState state;
    KtLayer layer;
    bool rcu_queued;
    bool past;              /* a past life, from history */
} KtBlock;

/** kt_block_len() - bytes the block spans in the map: actual, at least the
 *  requested. A zero-size block spans 0. */
uint64_t kt_block_len(const KtBlock *b);

/** Callback of the iterations; false stops. */
typedef bool (*KtBlockFn)(const KtBlock *b, void *opaque);

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

/* ---- checker ------------------------------------------------------------ */

/** What must hold of the tracer's state, the rows of checks.def. */
typedef enum KtCheckRule {
#define KT_CHECK(id, name, text) KT_CHECK_##id,
#include "kalloc-tracer/api/checks.def"
    KT_CHECK__COUNT
} KtCheckRule;
const char *kt_check_name(KtCheckRule rule);
/** kt_check_text() - what is wrong when it does not hold. */
const char *kt_check_text(KtCheckRule rule);

/** Told of a rule that does not hold, and where; under the tracer's lock. */
typedef void (*KtCheckFn)(KtCheckRule rule, const char *where, void *opaque);

/** struct KtCheckFns - who is told: @violation of the first of each rule,
 *  @progress now and then (nullable both) */
typedef struct KtCheckFns {
    KtCheckFn violation;
    void (*progress)(uint64_t done, uint64_t total, void *opaque);
    void *opaque;
} KtCheckFns;

/** struct KtCheckReport - what was examined, and how often a rule did not
 *  hold: blocks, nodes of maps, places in the lists of stacks, past lives,
 *  errors, calls under way */
typedef struct KtCheckReport {
    uint64_t blocks, nodes, index, history, errors, calls;
    uint64_t violations;
} KtCheckReport;

/** kt_query_check() - examine everything; between kt_query_begin() and
 *  kt_query_end(). Some 10 million blocks take seconds. */
void kt_query_check(KtTracer *t, const KtCheckFns *fns, KtCheckReport *out);
/** kt_query_checked() - tell what check=on found before, the first of each
 *  rule; between them, too. */
void kt_query_checked(KtTracer *t, KtCheckFn fn, void *opaque);
/** kt_tracer_set_check() - check=on; before kt_tracer_start(). @fn is told of
 *  the first violation of each rule, on the tracer's own thread. */
void kt_tracer_set_check(KtTracer *t, KtCheckFn fn, void *opaque);

/* ---- replay: a journal's file as a tracer ------------------------------- */

typedef struct KtReplay KtReplay;

/**
 * struct KtReplayInfo - what a file holds, and what it lacks
 * @begun: when it was, host's clock, seconds since 1970
 * @bytes: of the file
 * @frames, @events: that are whole, as far as their headers tell
 * @first_us, @last_us: of these events
 * @ended: the VM ended in order: nothing is missing
 * @damage: (nullable) why there is no more than that, one line
 * @lost_bytes: at the end of the file that cannot be read
 * @lost_known: @lost_events is known
 * @lost_least: but there may be more: the file was not ended
 * @lost_events: that were to be written, and cannot be read
 * @hole_events: not written when the disk was full, as far as was read;
 *               others follow them
 * @read_events: applied so far by kt_replay_run()
 * @read_us: time of the last of them, or of the VM state that was loaded
 *           behind it: it may go back
 * @reached: the time that was asked for was reached: what comes later does
 *           not matter
 */
typedef struct KtReplayInfo {
    uint64_t begun;
    uint64_t bytes;
    uint64_t frames, events;
    uint64_t first_us, last_us;
    bool ended;
    const char *damage;
    uint64_t lost_bytes;
    bool lost_known, lost_least;
    uint64_t lost_events;
    uint64_t hole_events;
    uint64_t read_events;
    uint64_t read_us;
    bool reached;
} KtReplayInfo;

/** What is told of a file beside events, in its place among them. */
typedef enum KtReplayControl {
    KT_REPLAY_RESET, /* a new boot */
    KT_REPLAY_CLEAR,
    KT_REPLAY_COMPLETE, /* with its value */
    KT_REPLAY_ENABLED,  /* likewise */
    KT_REPLAY_HOLE,     /* events that are missing: their number */
    KT_REPLAY_LOAD,     /* a VM state was loaded: another time begins */
} KtReplayControl;

/**
 * struct KtReplayPlan - what to read
 * @until_us: stop before the first event that is later; UINT64_MAX: all
 * @since_us: runs of events that are all earlier may be skipped; only without
 *            @apply
 * @apply: to the tracer: queries answer then
 * @load: VM states only: in @mark of one, queries answer as of that moment
 * @event, @mark: (nullable) are told of each in order, before it is applied;
 *                false stops. Ids are those of the replay's tracer
 * @progress: (nullable) called now and then: bytes done and in all
 */
typedef struct KtReplayPlan {
    uint64_t until_us;
    uint64_t since_us;
    bool apply, load;
    bool (*event)(void *opaque, const KtEvent *ev);
    bool (*mark)(void *opaque, KtReplayControl mark, uint64_t value);
    void (*progress)(void *opaque, uint64_t done, uint64_t total);
    void *opaque;
} KtReplayPlan;

/** kt_replay_open() - (owned) a journal; one thread. The hook table becomes
 *  the file's for the whole process. */
KtReplay *kt_replay_open(const char *path, GError **errp);
void kt_replay_free(KtReplay *r);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtReplay, kt_replay_free)

/** kt_replay_run() - read, once. Damage is no failure: it ends there, and
 *  kt_replay_info() says so. */
void kt_replay_run(KtReplay *r, const KtReplayPlan *plan);
/** kt_replay_info() - (borrowed) as of now. */
const KtReplayInfo *kt_replay_info(const KtReplay *r);
/** kt_replay_tracer() - (borrowed) made of what was read. */
KtTracer *kt_replay_tracer(KtReplay *r);
/** kt_replay_kernel() - (borrowed, nullable) the kernel found last. */
const GsKernel *kt_replay_kernel(const KtReplay *r);
/** kt_replay_status() - the last status that was read. */
void kt_replay_status(KtReplay *r, KtStatus *out);

#include "kalloc-tracer/api/kt-accounts.h"
#include "kalloc-tracer/api/kt-modules.h"
#include "kalloc-tracer/api/kt-vm.h"
#include "kalloc-tracer/api/kt-leak.h"
#include "kalloc-tracer/base/secret-hash.h"

#endif /* KT_H */
