/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The types that all rooms share: ids, enums with their names, the block.
 *
 * A block is a piece of memory that an allocator handed out. The map has at
 * most one block at an address. If memory is allocated anew, the block that
 * was there before becomes a past life and moves to the history.
 *
 * Plain data and pure functions: any thread.
 */
#ifndef KT_API_TYPES_H
#define KT_API_TYPES_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "guest-symbols/gs.h"

/* Frames of a stack, at most. */
#define KT_MAX_FRAMES 64
/* Ids of stacks and tasks, at most: a block keeps each in 24 bits. */
#define KT_MAX_STACKS ((1u << 24) - 1)
#define KT_MAX_TASKS  (1u << 22)

/* Each kind of id is a type of its own, so the compiler finds mix-ups. The id
 * 0 means "none". */
typedef struct KtStackId { uint32_t v; } KtStackId;
typedef struct KtTaskId { uint32_t v; } KtTaskId;
typedef struct KtCacheId { uint16_t v; } KtCacheId;
typedef struct KtHookId { uint8_t v; } KtHookId;

/** KtAnswer - an answer about the guest. What cannot be read is unknown, and
 *  who asks must not take that for no. */
typedef enum KtAnswer { KT_NO, KT_YES, KT_UNKNOWN } KtAnswer;

/* ---- enums and their names ---------------------------------------------- */

/** The allocator that handed out a block. */
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
/** kt_layer_name() - return the layer's name, as in the options of ka. */
const char *kt_layer_name(KtLayer layer);
/** kt_layer_parse() - find a layer by its name; return false if none has it. */
bool kt_layer_parse(const char *name, KtLayer *out);

/** Kinds of errors: the rows of errors.def. */
typedef enum KtErrorKind {
#define KT_ERROR_KIND(id, name, text) KT_ERR_##id,
#include "kalloc-tracer/api/errors.def"
    KT_ERR__COUNT
} KtErrorKind;
const char *kt_error_name(KtErrorKind kind);
/** kt_error_text() - return one line that explains the kind of error. */
const char *kt_error_text(KtErrorKind kind);
bool kt_error_parse(const char *name, KtErrorKind *out);

/** Counters of `ka stat`: the rows of counters.def. Whatever is dropped,
 *  evicted or unknown is counted in one of them. */
typedef enum KtCounter {
#define KT_COUNTER(id, name, help) KT_CNT_##id,
#include "kalloc-tracer/api/counters.def"
    KT_CNT__COUNT
} KtCounter;
const char *kt_counter_name(KtCounter c);
const char *kt_counter_help(KtCounter c);

/** What uses the tracer's memory: the rows of memory-parts.def. */
typedef enum KtMemoryPart {
#define KT_MEMORY_PART(id, name, share, last, help) KT_MEM_##id,
#include "kalloc-tracer/api/memory-parts.def"
    KT_MEM__COUNT
} KtMemoryPart;
const char *kt_memory_part_name(KtMemoryPart part);
const char *kt_memory_part_help(KtMemoryPart part);

/** struct KtCodeRange - addresses of code, both inclusive */
typedef struct KtCodeRange {
    uint64_t lo, hi;
} KtCodeRange;

/** kt_name_matches() - return true if @pattern matches all of @name: * any
 *  bytes, ? one byte. Needs time of at most the product of both lengths. */
bool kt_name_matches(const char *pattern, const char *name);
/** kt_add_part() - append a part to a list in words: ", " is between two
 *  parts. */
void kt_add_part(GString *s, const char *format, ...) G_GNUC_PRINTF(2, 3);

typedef struct KtTracer KtTracer;

/* ---- blocks ------------------------------------------------------------- */

typedef enum KtBlockState {
    KT_BLOCK_ALLOCATED, /* 'A' */
    KT_BLOCK_FREED,     /* 'F': freed, and its memory is not reused */
} KtBlockState;

/**
 * struct KtBlock - a block or a past life, as queries return it
 *
 * The fields free_* are 0 while the block is live, and rcu_* unless
 * kfree_rcu() queued it. The history does not keep all fields of a past life;
 * those are 0.
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
    bool removed;           /* not freed: its memory was removed, free_* say
                             * when and by whom; see KT_EVF_REMOVED */
    bool past;              /* a past life, from history */
} KtBlock;

/** kt_block_len() - return the bytes that the block has in the map: the
 *  reserved ones or, if more, the requested ones. May be 0. */
static inline uint64_t kt_block_len(const KtBlock *b)
{
    return MAX(b->actual, b->requested);
}

/** Called for each block of a query; false ends the query. */
typedef bool (*KtBlockFn)(const KtBlock *b, void *opaque);

#endif /* KT_API_TYPES_H */
