/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The types that every part of the tracer shares: ids, enums with their names,
 * the event, the block.
 */
#ifndef KT_TYPES_API_H
#define KT_TYPES_API_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "guest-symbols/gs.h"

#define KT_MAX_FRAMES 64
/* Blocks keep the ids of stacks and tasks in 24 bits. */
#define KT_MAX_STACKS ((1u << 24) - 1)
#define KT_MAX_TASKS  (1u << 22)

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

typedef struct KtTracer KtTracer;

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
static inline uint64_t kt_block_len(const KtBlock *b)
{
    return MAX(b->actual, b->requested);
}

/** Callback of the iterations; false stops. */
typedef bool (*KtBlockFn)(const KtBlock *b, void *opaque);

#endif /* KT_TYPES_API_H */
