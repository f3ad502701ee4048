/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What refers to a block, and which blocks are in use. The searches read the
 * memory of a stopped VM, as leak scans do (kt-leak.h).
 *
 * Call everything here on the thread of monitor commands, not between
 * kt_query_begin() and kt_query_end().
 */
#ifndef KT_API_REFS_H
#define KT_API_REFS_H

#include "kalloc-tracer/api/kt-leak.h"

/* ---- references to a block ---------------------------------------------- */

/** The kind of memory that has a word. */
typedef enum KtPlace {
    KT_PLACE_BLOCK,
    KT_PLACE_DATA,          /* variables of the kernel proper */
    KT_PLACE_PERCPU,        /* of one CPU */
    KT_PLACE_STACK,         /* of a task */
    KT_PLACE_REGISTER,
    KT_PLACE_STRUCT_PAGE,
    KT_PLACE_PAGE,          /* a page of the kernel that is no block */
    KT_PLACE_CODE,          /* instructions that load the start of a block */
    KT_PLACE_FREELIST,      /* a list of free objects, of a slab (in struct
                             * page), of a struct slab_sheaf or of a struct
                             * array_cache (SLAB); may be stale.
                             * It does not keep a block reached */
    KT_PLACE__COUNT
} KtPlace;
/** kt_place_name() - return "block", "data" and so on. */
const char *kt_place_name(KtPlace place);

/**
 * struct KtRef - a word that refers to a block
 * @place: the kind of memory that has the word
 * @va: address of the word; 0: a register
 * @value: the word
 * @owner: KT_PLACE_BLOCK: the block that has the word
 * @number: other places: pid of the task, CPU, or vCPU of the register
 * @name: the register's name (borrowed from the VM)
 */
typedef struct KtRef {
    KtPlace place;
    uint64_t va, value;
    KtBlock owner;
    uint32_t number;
    const char *name;
} KtRef;

/**
 * kt_refs() - find all words that refer to [@lo, @hi]
 * @out: (out, owned) KtRef: references to @lo first, then by place and address
 * @more: (out) references beyond KT_REFS_MAX, which are not in @out
 * @bytes: (out) memory that was read
 * @errp: as for kt_leak_scan()
 */
bool kt_refs(KtTracer *t, const KtLeakPlan *plan, uint64_t lo, uint64_t hi,
             GArray **out, uint64_t *more, uint64_t *bytes, GError **errp);
#define KT_REFS_MAX 65536

/* ---- what keeps blocks in use ------------------------------------------- */

/** What a search found out about a block. */
typedef enum KtReach {
    KT_REACH_UNKNOWN,       /* it was not searched, or is no live block */
    KT_REACH_LOST,          /* nothing in use refers to it: a leak */
    KT_REACH_KEPT,          /* it is in use */
} KtReach;

/**
 * struct KtReached - a block, for kt_leak_classify()
 * @va: its address
 * @layer: KT_LAYER_PAGES: a block of the page allocator
 * @reach: (out)
 * @hold, @owner: (out) if lost: as in KtLeak
 * @holder: (out) if kept: the word in use that refers to it most surely. The
 *          place is KT_PLACE__COUNT if there is none, because a rule says that
 *          the block is in use, or the kernel refers to it in another way
 * @among: (out) if kept: @holder is in another of these blocks
 */
typedef struct KtReached {
    uint64_t va;
    KtLayer layer;
    KtReach reach;
    KtLeakHold hold;
    uint64_t owner;
    KtRef holder;
    bool among;
} KtReached;

/**
 * kt_leak_classify() - find out which blocks are in use, and why
 * @blocks: (inout) KtReached; on return sorted by address, without doubles
 * @errp: as for kt_leak_scan(); all blocks are KT_REACH_UNKNOWN then
 */
bool kt_leak_classify(KtTracer *t, const KtLeakPlan *plan, GArray *blocks,
                      GError **errp);

#endif /* KT_API_REFS_H */
