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
#ifndef KT_LEAK_INTERNAL_H
#define KT_LEAK_INTERNAL_H

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

/** struct KtLiveSheaf - number of a block that is a struct slab_sheaf, or an
 *  array of SLAB, and the offset of its free objects */
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
/** kt_by_address() - the order of structs that begin with an address, for
 *  bsearch() and g_array_sort(). */
static inline int kt_by_address(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

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
/** kt_live_set_u32() - read a number of 4 bytes; 0 if it cannot be read. */
uint32_t kt_live_set_u32(const KtLiveSet *w, uint64_t va);
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

/* ---- collect ------------------------------------------------------------- */
/*
 * Collect: the first phase of a leak scan (leak-scan.c) and of a search for
 * references (refs.c). See README.md for the other phases.
 */

/**
 * kt_leak_collect() - collect live blocks and roots of a stopped VM
 * @plan: (borrowed) must live as long as the result
 * @errp: the VM runs, no kernel is known, no vCPU maps the kernel's memory, or
 *        @plan->progress or the time limit ended the search
 *
 * Call in the thread of monitor commands, without the tracer's lock.
 *
 * Returns: (owned) the live set, NULL on error.
 */
KtLiveSet *kt_leak_collect(KtTracer *t, const KtLeakPlan *plan, GError **errp);

/* ---- search -------------------------------------------------------------- */
/*
 * Search: call a function for every word of a live set, with the place of the
 * word: registers, then regions, then blocks. refs.c compares the words with
 * one range of addresses, holders.c with many blocks.
 *
 * Runs in the thread of the monitor command, while the VM is stopped. No locks.
 */

/**
 * struct KtSearch - state of a search; the first member of its user's struct
 * @w: (borrowed) its marker is sealed
 * @whole: also call @compare for words that a leak scan skips
 * @compare: called for the words; @opaque is the KtSearch
 * @here: place and owner of the words that are compared now. Of an owner only
 *        the address is set
 * @block: number of the block that has these words, or KT_MARKER_NONE
 * @free_objects: private: offset of the free objects of a sheaf
 */
typedef struct KtSearch {
    KtLiveSet *w;
    bool whole;
    KtSpanFn *compare;
    KtRef here;
    uint32_t block;
    KtReader reader;
    uint64_t free_objects;
} KtSearch;

/** kt_search_run() - search all memory of @s->w. Returns: false if the search
 *  had to end: see kt_live_set_fail(). */
bool kt_search_run(KtSearch *s);
/** kt_search_roots() - search all but blocks. The caller calls
 *  kt_reader_deinit() for @s->reader, which it may use before. */
void kt_search_roots(KtSearch *s);
/** kt_search_name_owners() - replace the address of the block that refers, in
 *  each of @n @ref, by the block itself. @size: bytes from one to the next.
 *  Takes the tracer's lock. */
void kt_search_name_owners(const KtSearch *s, KtRef *ref, unsigned n,
                           size_t size);

/* ---- holders ------------------------------------------------------------- */
/*
 * Holders: for each of several blocks in use, the word that refers to it most
 * surely. `ka leak module` says by this why a block is no leak.
 *
 * Called by kt_leak_classify(), in the thread of the monitor command.
 */

/**
 * kt_holders_find() - set holder and among of the blocks that are kept
 * @w: its blocks are marked
 * @blocks: (inout) KtReached, sorted by address
 *
 * Takes the tracer's lock to copy the blocks that refer. Returns: false if the
 * search had to end; all blocks are unknown then.
 */
bool kt_holders_find(KtLiveSet *w, GArray *blocks);

/* ---- owners -------------------------------------------------------------- */
/*
 * Owners: which lost blocks are lost only because another one is. A report
 * shows the owner, and counts what it holds.
 *
 *     A --> B --> C      A owns all three: nothing but A leads to B and C
 *     A --> B --> A      a ring: the block at the lowest address owns both
 *
 * Called by leak-scan.c, in the thread of the monitor command.
 */

/**
 * kt_owners_find() - find the owner of each lost block
 * @w: its blocks are marked, the unreached ones scanned
 * @r: reads the guest's memory
 *
 * Returns: (owned) by block, the number of its owner: of itself if no other
 * block owns it, or if it is reached.
 */
uint32_t *kt_owners_find(KtLiveSet *w, KtReader *r);

/* ---- roots --------------------------------------------------------------- */
/*
 * Roots of a leak scan: memory in use that belongs to no block. Functions
 * kt_roots_*() add such memory to a KtLiveSet. Functions kt_skip_*() exclude
 * words that look like pointers but keep no block alive.
 *
 * Called by collect.c, in the thread of the monitor command, while the VM is
 * stopped. No locks. What a kernel's types or symbols do not describe is not
 * added; if it may refer to blocks, it is listed in KtLiveSet.missing.
 */

/** kt_roots_find_percpu() - read __per_cpu_offset into @w->offset, one entry a
 *  CPU. Call before blocks of per-CPU memory are added to @w->scan. */
void kt_roots_find_percpu(KtLiveSet *w);
/** kt_roots_find() - find all roots: fill @w->region, @w->registers,
 *  @w->code and @w->pages. Calls all functions below. */
void kt_roots_find(KtLiveSet *w);
/** kt_roots_find_stacks() - add the used part of each task's stack, and of
 *  each CPU's interrupt stack. Blocks that are stacks become opaque. */
void kt_roots_find_stacks(KtLiveSet *w);
/** kt_roots_find_percpu_chunks() - add allocated per-CPU memory that is no
 *  known block, and alias the pages of all per-CPU memory. */
void kt_roots_find_percpu_chunks(KtLiveSet *w);
/** kt_roots_find_code() - fill @w->code: pointers to blocks in the kernel's
 *  instructions. Without the symbols of its code there are none. */
void kt_roots_find_code(KtLiveSet *w);
/** kt_roots_find_percpu_refs() - let words of struct percpu_ref refer to their
 *  block, though they have flag bits. */
void kt_roots_find_percpu_refs(KtLiveSet *w);

/** kt_skip_big_pages() - skip hugetlb pages and the memory of crashkernel=.
 *  @w->pages must not be NULL. */
void kt_skip_big_pages(KtLiveSet *w);
/** kt_skip_kmemleak() - skip the records of the kernel's own leak detector
 *  (CONFIG_DEBUG_KMEMLEAK): each has the address of a block. */
void kt_skip_kmemleak(KtLiveSet *w);
/** kt_skip_members() - skip the members that skip-members.def lists. */
void kt_skip_members(KtLiveSet *w);
/** kt_skip_sheaves() - skip the arrays of free objects in struct slab_sheaf,
 *  and list them in @w->sheaf. */
void kt_skip_sheaves(KtLiveSet *w);
/** kt_skip_arrays() - skip the arrays of free objects of SLAB (struct
 *  array_cache), and list them in @w->sheaf. Call after kt_skip_sheaves(). */
void kt_skip_arrays(KtLiveSet *w);
/** kt_skip_kfree_rcu() - skip the pages that kfree_rcu() keeps in reserve.
 *  @w->pages must not be NULL. */
void kt_skip_kfree_rcu(KtLiveSet *w);

/* ---- scanner and rules --------------------------------------------------- */
/*
 * KtLeakScanner: what the leak room keeps between two scans of a tracer: the
 * rules, the findings of the last scan, the blocks that the user dismissed,
 * when the next periodic scan is due. Only the thread of monitor commands uses
 * it.
 */

/** What a rule does with a block, see leak-rules.def. */
typedef enum KtLeakRuleKind {
    KT_LEAK_RULE_NOT_LEAK,
    KT_LEAK_RULE_IGNORE,
    KT_LEAK_RULE_NO_SCAN,
    KT_LEAK_RULE_SCAN_AREA,
    KT_LEAK_RULE__COUNT
} KtLeakRuleKind;

/** What a rule matches: a function of the allocation's stack, or a cache. */
typedef enum KtLeakRuleBy {
    KT_LEAK_BY_FUNC,
    KT_LEAK_BY_CACHE,
    KT_LEAK_BY__COUNT
} KtLeakRuleBy;

/** struct KtLeakRule - one rule; @name (owned) of the function or cache;
 *  [@lo, @hi): offsets of a scan area */
typedef struct KtLeakRule {
    KtLeakRuleKind kind;
    KtLeakRuleBy by;
    char *name;
    uint64_t lo, hi;
} KtLeakRule;

/** struct KtLeakFinding - a block that a scan reported; it is the same block if
 *  both address and time of allocation are equal. @owner: as in KtLeak */
typedef struct KtLeakFinding {
    uint64_t va, alloc_us;
    KtLeakHold hold;
    uint64_t owner;
} KtLeakFinding;

/**
 * struct KtLeakScanner - of a tracer; the thread of monitor commands
 * @rules: KtLeakRule, those that are built in first
 * @dismissed: KtLeakFinding by va: not to be reported again
 * @last: KtLeakFinding by address: what the last scan reported, at @last_us
 * @every: seconds from one scan to the next while the VM runs, 0: none by
 *         itself; @waited: of them; @tries: of the one that is due
 * @why_not: (owned, nullable) could not be made, the last time
 * @epoch: of the boot that @dismissed and @last are of, see kt_tracer_epoch()
 */
typedef struct KtLeakScanner {
    GArray *rules;
    GHashTable *dismissed;
    GArray *last;
    uint64_t last_us;
    bool scanned;
    unsigned every, waited, tries;
    char *why_not;
    uint64_t epoch;
} KtLeakScanner;

struct KtBudget;
void *kt_leak_scanner_new(struct KtBudget *unused);
void kt_leak_scanner_free(void *scanner);
/** kt_leak_scanner_of() - (borrowed) Return the scanner of a tracer; the first
 *  call makes it. */
KtLeakScanner *kt_leak_scanner_of(KtTracer *t);
/** kt_leak_scanner_now() - (borrowed) Return the scanner of a tracer. Findings
 *  of another epoch are dropped first: their blocks are of another boot. */
KtLeakScanner *kt_leak_scanner_now(KtTracer *t);
/** kt_leaks_parse() - add the rules of a file; none is added on error. @name:
 *  of the file, for @errp */
bool kt_leaks_parse(KtLeakScanner *l, const char *text, const char *name,
                    GError **errp);

/** kt_leak_apply_rules() - set the flags and areas of blocks that a rule
 *  matches. @excused: (out) by block: true if a rule says it is no leak. Stops
 *  early if @w->ended. */
void kt_leak_apply_rules(const KtLeakScanner *l, KtLiveSet *w,
                         uint8_t *excused);

#endif /* KT_LEAK_INTERNAL_H */
