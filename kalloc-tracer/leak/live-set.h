/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The live set: live blocks of the map, and roots, which are memory in use
 * that belongs to no block. kt_leak_collect() fills a set; kt_leak_scan() and
 * kt_refs() search it and free it. It lives as long as one search.
 *
 *     live[]     0xffff888004a10000  64 bytes   block 0  --+
 *                0xffff888004a10040  64 bytes   block 1    +-- scan (KtMarker)
 *                0xffffc90000004000  16 KiB     block 2  --+   has the same
 *                                                             numbers
 *     region[]   data, per-CPU data, stacks, struct pages, other pages
 *     registers[]
 *
 * Threads: only the thread of the monitor command uses a set, while the VM is
 * stopped. The tracer's lock is not held, so blocks are copied first.
 */
#ifndef KT_LIVE_SET_H
#define KT_LIVE_SET_H

#include "kalloc-tracer/layout/layout.h"
#include "kalloc-tracer/leak/page-use.h"
#include "kalloc-tracer/leak/mark.h"

/**
 * struct KtLiveBlock - copy of a live block
 * @va, @len, @requested, @alloc_us, @stack, @cache, @layer: as in KtBlock
 * @queued: kfree_rcu() was called: the kernel will free the block
 * @is_stack: the block is the stack of a task, or of a task that ended
 *
 * Its index in KtLiveSet.live is its number in KtLiveSet.scan.
 */
typedef struct KtLiveBlock {
    uint64_t va, len, requested, alloc_us;
    KtStackId stack;
    KtCacheId cache;
    uint8_t layer:6;
    bool queued:1;
    bool is_stack:1;
} KtLiveBlock;
G_STATIC_ASSERT(sizeof(KtLiveBlock) == 40);

/** struct KtLiveSheaf - number of a block that is a struct slab_sheaf, and the
 *  offset of its array of free objects */
typedef struct KtLiveSheaf {
    uint32_t block, objects;
} KtLiveSheaf;

/** struct KtCodeWord - instructions at @va have the pointer @value */
typedef struct KtCodeWord {
    uint64_t va, value;
} KtCodeWord;

/** KT_REGIONS_MAX - most regions of a set; bytes of others are counted in
 *  KtLiveSet.skipped */
#define KT_REGIONS_MAX (1u << 21)

/**
 * struct KtRegion - memory that is a root
 * @place: what kind of memory
 * @va, @len: [@va, @va + @len)
 * @number: pid of the task, or number of the CPU
 */
typedef struct KtRegion {
    KtPlace place;
    uint64_t va, len;
    uint32_t number;
} KtRegion;

/**
 * struct KtLiveSet - what one search of guest memory needs
 * @plan: (borrowed) the caller's wishes
 * @tracer: (borrowed)
 * @mem: guest memory as @vcpu maps it; fails if @ended
 * @layout: of the kernel's structs
 * @tag_bits: of pointers, see gs_untag(): all addresses of the set have no tags
 * @vcpu: a vCPU whose page tables map the kernel
 * @live: KtLiveBlock, sorted by address
 * @region: KtRegion
 * @sheaf: KtLiveSheaf, sorted by block
 * @code: KtCodeWord, sorted by address; values are starts of live blocks
 * @registers: KtRegister of all vCPUs; names are borrowed from the VM
 * @vcpu_of: unsigned; the vCPU of each of @registers
 * @pages: (owned, nullable) use of each page; NULL if the kernel's types do
 *         not describe its pages
 * @offset: uint64_t; __per_cpu_offset of each CPU
 * @missing: (owned) one text for each kind of memory that is unknown
 * @unknown_roots: (borrowed from @missing, nullable) roots that are not known:
 *                 no block can be called a leak
 * @scan: (owned) marker with the blocks of @live, not sealed yet
 * @stack_size: bytes of a task's stack
 * @tasks: tasks whose stack is in @region
 * @skipped: bytes of regions above KT_REGIONS_MAX
 * @deadline: g_get_monotonic_time() at which the search fails
 * @reads: reads of guest memory so far
 * @bytes: bytes scanned so far, for @plan->progress
 * @ended: the search must end: @deadline, or @plan->progress returned false
 */
typedef struct KtLiveSet {
    const KtLeakPlan *plan;
    KtTracer *tracer;
    GsMem mem;
    KtLayout layout;
    uint64_t tag_bits;
    unsigned vcpu;
    GArray *live;
    GArray *region;
    GArray *sheaf;
    GArray *code;
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

/** kt_live_set_new() - make an empty set; kt_leak_collect() fills it. Returns:
 *  (owned) the set. */
KtLiveSet *kt_live_set_new(KtTracer *t, const KtLeakPlan *plan);
void kt_live_set_free(KtLiveSet *w);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtLiveSet, kt_live_set_free)

/** kt_live_set_add() - add [@va, @end) to @region; an empty range is
 *  ignored. */
void kt_live_set_add(KtLiveSet *w, KtPlace place, uint64_t va, uint64_t end,
                     uint32_t number);
/** kt_live_set_add_missing() - add @what (owned), which may refer to blocks, to
 *  @missing: no block can be called a leak then. */
void kt_live_set_add_missing(KtLiveSet *w, char *what);
/** kt_live_set_symbol() - return the address of a symbol, 0 if there is
 *  none. */
uint64_t kt_live_set_symbol(const KtLiveSet *w, const char *name);
/** kt_live_set_find() - find the live block that starts at @va by binary
 *  search. Returns: (borrowed) NULL if there is none. */
const KtLiveBlock *kt_live_set_find(const KtLiveSet *w, uint64_t va);
/**
 * kt_live_set_is_exact() - does only its address itself refer to the per-CPU
 * block at @va, and no address inside it?
 *
 * In the first chunk, which also has the per-CPU variables, __percpu pointers
 * are small numbers (x86-64) or addresses in the image (arm64, riscv64). So
 * other numbers near them are no pointers to the block.
 */
bool kt_live_set_is_exact(const KtLiveSet *w, uint64_t va);
/** kt_live_set_load() - read the word at @va; false if it cannot be read. An
 *  address has no tag. */
bool kt_live_set_load(const KtLiveSet *w, uint64_t va, uint64_t *out);
/** kt_live_set_progress() - call @plan->progress and check the deadline; false
 *  if the search must end. @bytes: scanned so far, 0 if unchanged */
bool kt_live_set_progress(KtLiveSet *w, uint64_t bytes);
/** kt_live_set_fail() - set @errp to the reason why the search ended. Returns:
 *  false, for `return kt_live_set_fail(...)`. */
bool kt_live_set_fail(const KtLiveSet *w, GError **errp);

/** kt_live_set_of_cpu() - return the address of a CPU's part of the per-CPU
 *  memory at @va. @cpu: index in @w->offset */
static inline uint64_t kt_live_set_of_cpu(const KtLiveSet *w, uint64_t va,
                                          unsigned cpu)
{
    return gs_untag(w->tag_bits,
                    va + g_array_index(w->offset, uint64_t, cpu));
}

/** kt_live_set_block() - return block number @i. */
static inline const KtLiveBlock *kt_live_set_block(const KtLiveSet *w,
                                                   uint32_t i)
{
    return &((const KtLiveBlock *)w->live->data)[i];
}

/** kt_live_set_index() - return the number of @b, which is in @w->live. */
static inline uint32_t kt_live_set_index(const KtLiveSet *w,
                                         const KtLiveBlock *b)
{
    return b - kt_live_set_block(w, 0);
}

#endif /* KT_LIVE_SET_H */
