/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a search through a guest's memory has to know: the live blocks, and
 * the memory beside them that is in use. For kt_leak_scan() and kt_refs().
 */
#ifndef KT_LIVE_SET_H
#define KT_LIVE_SET_H

#include "kalloc-tracer/leak/page-use.h"
#include "kalloc-tracer/leak/mark.h"

/** struct KtLiveBlock - a live block; its number is that in the KtMarker */
typedef struct KtLiveBlock {
    uint64_t va, len, requested, alloc_us;
    KtStackId stack;
    KtCacheId cache;
    uint8_t layer:6;
    bool queued:1;              /* kfree_rcu() has it */
    bool is_stack:1;            /* of a task, or of none any more */
} KtLiveBlock;
G_STATIC_ASSERT(sizeof(KtLiveBlock) == 40);

/** struct KtLiveSheaf - block @block is an array of free objects from offset
 *  @objects on */
typedef struct KtLiveSheaf {
    uint32_t block, objects;
} KtLiveSheaf;

/** KT_REGIONS_MAX - so many are kept */
#define KT_REGIONS_MAX (1u << 21)

/** struct KtRegion - memory that is in use, and not of a block
 *  @number: the task's pid, or the CPU */
typedef struct KtRegion {
    KtPlace place;
    uint64_t va, len;
    uint32_t number;
} KtRegion;

/**
 * struct KtLiveSet - all of it, as of now
 * @plan: (borrowed) what was asked for
 * @mem: the guest's memory, by @vcpu, which maps the kernel
 * @live: KtLiveBlock, by address
 * @region: KtRegion
 * @sheaf: KtLiveSheaf, by block
 * @registers: KtRegister (names borrowed from the VM), those of one vCPU
 *             after the other; @vcpu_of: unsigned, which that is
 * @pages: NULL where the kernel does not tell
 * @offset: uint64_t, where each CPU's instances of per-CPU memory are
 * @missing: what is not known, one text each
 * @unknown_roots: (borrowed from @missing, nullable) roots that are not known:
 *                 no block can be called a leak
 * @scan: of @live, not sealed yet
 * @stack_size: bytes of a task's; @tasks: so many stacks are among @region
 * @skipped: bytes of pages that are in too many pieces
 * @deadline: g_get_monotonic_time() of when the search is given up
 * @reads: from the guest's memory so far; @bytes: looked at, as progress tells
 * @ended: it was given up: nothing can be read any more
 */
typedef struct KtLiveSet {
    const KtLeakPlan *plan;
    KtTracer *tracer;
    GsMem mem;
    unsigned vcpu;
    GArray *live;
    GArray *region;
    GArray *sheaf;
    GArray *registers;
    GArray *vcpu_of;
    KtPageUses *pages;
    GArray *offset;
    GPtrArray *missing;
    const char *unknown_roots;
    KtMarker *scan;
    uint64_t stack_size;
    unsigned tasks;
    uint64_t skipped;
    gint64 deadline;
    uint64_t reads, bytes;
    bool ended;
} KtLiveSet;

/** kt_live_set_new() - (owned) make an empty set; see kt_leak_collect(). */
KtLiveSet *kt_live_set_new(KtTracer *t, const KtLeakPlan *plan);
void kt_live_set_free(KtLiveSet *w);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtLiveSet, kt_live_set_free)

/** kt_live_set_add() - [@va, @end) to @region. */
void kt_live_set_add(KtLiveSet *w, KtPlace place, uint64_t va, uint64_t end,
                     uint32_t number);
/** kt_live_set_add_missing() - add @what (owned), which may refer to blocks, to
 *  @missing: no block can be called a leak then. */
void kt_live_set_add_missing(KtLiveSet *w, char *what);
/** kt_live_set_symbol() - its address, 0: there is none. */
uint64_t kt_live_set_symbol(const KtLiveSet *w, const char *name);
/** kt_live_set_find() - the live block that starts at @va, or NULL. */
const KtLiveBlock *kt_live_set_find(const KtLiveSet *w, uint64_t va);
/** kt_live_set_load() - the word at @va. */
bool kt_live_set_load(const KtLiveSet *w, uint64_t va, uint64_t *out);
/** kt_live_set_progress() - tell @plan->progress; false: it is to end, by
 *  that or by the clock. @bytes: that were looked at so far, 0 for no news */
bool kt_live_set_progress(KtLiveSet *w, uint64_t bytes);
/** kt_live_set_fail() - say why it ended. Returns: false. */
bool kt_live_set_fail(const KtLiveSet *w, GError **errp);

static inline const KtLiveBlock *kt_live_set_block(const KtLiveSet *w,
                                                   uint32_t i)
{
    return &((const KtLiveBlock *)w->live->data)[i];
}

/** kt_live_set_index() - the number of a block of @w->live. */
static inline uint32_t kt_live_set_index(const KtLiveSet *w,
                                         const KtLiveBlock *b)
{
    return b - kt_live_set_block(w, 0);
}

#endif /* KT_LIVE_SET_H */
