/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * KtHooks: the rows of a hook table in one kernel. It has the address of each
 * function, the positions of its arguments, and finds the function that an
 * address belongs to. QEMU-free.
 *
 * capture/ resolves the table once for each boot. The result is immutable, so
 * translation and the callbacks of all vCPUs read it without a lock.
 */
#ifndef KT_HOOKS_H
#define KT_HOOKS_H

#include "kalloc-tracer/hooks/hook-table.h"

/**
 * struct KtHookRow - a row in one kernel, for the hot path
 * @size, @ptr, @cache, @gfp, @array, @count: as in KtHook, for this kernel
 * @list: the argument with the list that a bulk call fills, or KT_NO_ARG
 * @pages: the role is of the page allocator
 * @self_allocs, @self_frees: the function calls no hook that records this, so
 *         its own entry or return does
 * @undo_at, @undo_len: the code of the KtHook's @undone_by; 0: none
 */
typedef struct KtHookRow {
    uint16_t flags;
    uint8_t role, layer, family;
    int8_t size, ptr, cache, gfp, array, count, list;
    bool pages, self_allocs, self_frees;
    uint32_t undo_len;
    uint64_t undo_at;
    const KtReserveRule *sizes;
} KtHookRow;

/** kt_hook_row_undoes() - Return true if @va is inside the KtHook's @undone_by,
 *  so that a call from there is no event. */
static inline bool kt_hook_row_undoes(const KtHookRow *row, uint64_t va)
{
    return va - row->undo_at < row->undo_len;
}

typedef struct KtHooks KtHooks;

/**
 * kt_hooks_resolve() - Find the table's functions in a kernel
 * @table: (borrowed) must not change while the result exists
 * @k: (borrowed for the call) its slide is set
 * @sets: KT_HOOKS_PAGES and KT_HOOKS_LOG, if wanted
 *
 * A function is hooked if the kernel has its symbol; the kernel's version does
 * not matter.
 *
 * Returns: (owned) never NULL; immutable, any thread may read it.
 */
KtHooks *kt_hooks_resolve(const KtHookTable *table, const GsKernel *k,
                          unsigned sets);
void kt_hooks_free(KtHooks *h);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtHooks, kt_hooks_free)

/** kt_hooks_va() - Return the run-time address of @id's entry, 0 if the kernel
 *  lacks the function. */
uint64_t kt_hooks_va(const KtHooks *h, KtHookId id);
/** kt_hooks_symbol() - (borrowed) Return the symbol that is hooked for @id: the
 *  row's own, or that of its part (KT_HOOK_SPLIT); NULL if the kernel lacks
 *  the function. */
const char *kt_hooks_symbol(const KtHooks *h, KtHookId id);
/** kt_hooks_args_by_btf() - Return true if the position of an argument of @id
 *  comes from BTF. */
bool kt_hooks_args_by_btf(const KtHooks *h, KtHookId id);
/** kt_hooks_n_found() - Return the number of functions that are hooked.
 *  Wrappers and KT_ROLE_SETUP functions do not count. */
unsigned kt_hooks_n_found(const KtHooks *h);
/** kt_hooks_at() - Return the hooked function that begins at @va, 0 for none.
 *  Called for each instruction of blocks that kt_hooks_page() selects. */
KtHookId kt_hooks_at(const KtHooks *h, uint64_t va);
/** kt_hooks_page() - Return true if a translated block that begins at @va can
 *  contain an entry: a hooked function begins in its page or in the next one.
 *  Called for each block that QEMU translates. */
bool kt_hooks_page(const KtHooks *h, uint64_t va);
/** kt_hooks_wrapper() - Return the wrapper whose code contains @va, 0 for none.
 *  @pages: look at wrappers of the page allocator only, else at the others. */
KtHookId kt_hooks_wrapper(const KtHooks *h, uint64_t va, bool pages);
/** kt_hooks_is_unsized() - Return true if @id is a wrapper and its last byte is
 *  not known: the symbols are the table of exported functions, which has no
 *  sizes. Then kt_hooks_wrapper() does not find it. */
bool kt_hooks_is_unsized(const KtHooks *h, KtHookId id);

/** struct KtWrapperCache - the last result of kt_hooks_wrapper() for @ra and
 *  @pages; zeroed for a new boot */
typedef struct KtWrapperCache {
    uint64_t ra;
    KtHookId wrapper;
    bool pages;
} KtWrapperCache;

/** kt_hooks_wrapper_cached() - As kt_hooks_wrapper(), with a cache of one
 *  result. The owner of @seen calls it; hot path. */
static inline KtHookId kt_hooks_wrapper_cached(const KtHooks *h,
                                           KtWrapperCache *seen,
                                           uint64_t ra, bool pages)
{
    if (seen->ra != ra || seen->pages != pages) {
        *seen = (KtWrapperCache) { ra, kt_hooks_wrapper(h, ra, pages),
                                        pages };
    }
    return seen->wrapper;
}

/** kt_hooks_in_role() - Return true if @va is inside a function of the table
 *  with that role. KT_HOOK_OUTER functions do not count. */
GS_HOT bool kt_hooks_in_role(const KtHooks *h, uint64_t va, KtRole role);
/** kt_hooks_is_inner() - Return true if a call of @row from @va is no event
 *  because of @row's KT_HOOK_INNER, KT_HOOK_SETUP or KT_HOOK_UNDO. */
GS_HOT bool kt_hooks_is_inner(const KtHooks *h, const KtHookRow *row,
                              uint64_t va);
/** kt_hooks_row() - Return row @id in this kernel; all 0 if there is none. */
KtHookRow kt_hooks_row(const KtHooks *h, KtHookId id);
/** kt_hooks_vfree_called_again() - Return KT_YES if the kernel calls vfree()
 *  for each pointer that vfree_atomic() queued. It does since 6.3 (commit
 *  208162f42f95), from delayed_vfree_work(); earlier kernels call __vunmap().
 *  KT_UNKNOWN if it has neither symbol. */
KtAnswer kt_hooks_vfree_called_again(const KtHooks *h);
/** kt_hooks_is_vfree_worker() - Return true if @va is inside
 *  delayed_vfree_work(). */
bool kt_hooks_is_vfree_worker(const KtHooks *h, uint64_t va);
/** kt_hooks_is_vfree() - Return true if @va is inside the hooked vfree(). */
bool kt_hooks_is_vfree(const KtHooks *h, uint64_t va);

/* ---- calls --------------------------------------------------------------- */
/*
 * Does the code do what the table assumes?
 *
 * A row can lean on others: that of krealloc() records no block that moves,
 * since krealloc() calls a kmalloc() and kfree(), which are hooked. Whether it
 * does is the compiler's choice: until 6.7, without tracepoints, both are so
 * small that they are inlined. The code of the function answers:
 *
 *     it calls hooks                 they record
 *     it calls KT_HOOK_SITES rows    these calls are hooked, and record
 *     it calls neither               the row records by itself, if it can
 *     the code cannot be read        as if it called hooks
 *
 * hooks-calls.c; once for each boot.
 */

/** struct KtCodeReader - read the guest's code at @va; false: it cannot be
 *  read */
typedef struct KtCodeReader {
    bool (*read)(void *opaque, uint64_t va, void *buf, size_t len);
    void *opaque;
} KtCodeReader;

/** struct KtHookSite - an instruction at @va that calls the function of row
 *  @id, and continues at @ra; 0: it jumps there, as the last one of its own
 *  function */
typedef struct KtHookSite {
    uint64_t va, ra;
    KtHookId id;
} KtHookSite;

/** kt_hooks_check_calls() - Read the code of functions that lean on others. If
 *  a hook was inlined into one, hook the calls that it makes there. @k: the
 *  kernel that @h was resolved for. Call it before other threads read @h. */
void kt_hooks_check_calls(KtHooks *h, const GsKernel *k,
                          const KtCodeReader *reader);
/** kt_hooks_keep_calls() - Copy what kt_hooks_check_calls() found in @from,
 *  which is of the same boot and table. */
void kt_hooks_keep_calls(KtHooks *h, const KtHooks *from);
/** kt_hooks_miss() - Say that not all calls of that hook are seen: events of
 *  memory of its kind carry KT_EVF_UNSURE. */
void kt_hooks_miss(KtHooks *h, KtHookId id);
/** kt_hooks_site() - (nullable) Return call @i that is hooked. */
const KtHookSite *kt_hooks_site(const KtHooks *h, unsigned i);
/** kt_hooks_calls() - (static, nullable) Describe whether the function of @id
 *  calls a hook; NULL if the row does not lean on others. */
const char *kt_hooks_calls(const KtHooks *h, KtHookId id);

/* ---- frames of wrappers -------------------------------------------------- */
/*
 * Which frames at the head of a backtrace are inside wrappers, or are those of
 * a BPF trampoline. QEMU-free; any thread may call it.
 */

/**
 * kt_wrapper_frames() - Return how many frames of a backtrace to drop, so that
 *                       it begins at the caller of the outermost wrapper
 * @k: the kernel that @h belongs to
 * @wrapper: (in, out) the wrapper that contains @frames[0], 0 for none; the
 *           outermost one of those that were dropped
 * @pages: as for kt_hooks_wrapper()
 * @frames: return addresses, the innermost first
 * @n: their count; one frame is kept
 */
unsigned kt_wrapper_frames(const KtHooks *h, const GsKernel *k,
                           KtHookId *wrapper, bool pages,
                           const uint64_t *frames, unsigned n);

#endif /* KT_HOOKS_H */
