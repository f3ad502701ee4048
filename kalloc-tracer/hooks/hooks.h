/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The functions of the hook table in one kernel: their addresses and the
 * positions of their arguments. QEMU-free.
 */
#ifndef KT_HOOKS_H
#define KT_HOOKS_H

#include "kalloc-tracer/hooks/hook-table.h"

/**
 * struct KtHookRow - a row as it is in one kernel, for the hot path; argument
 * numbers or KT_NO_ARG
 * @pages: it is about the page allocator
 * @list: of a bulk call
 * @undo_at, @undo_len: code of the KtHook's @undone_by; 0: there is none
 */
typedef struct KtHookRow {
    uint16_t flags;
    uint8_t role, layer, family;
    int8_t size, ptr, cache, gfp, array, count, list;
    bool pages;
    uint32_t undo_len;
    uint64_t undo_at;
    const KtReserveRule *sizes;
} KtHookRow;

/** kt_hook_row_undoes() - is it called from inside its KtHook's @undone_by,
 *  at @va? */
static inline bool kt_hook_row_undoes(const KtHookRow *row, uint64_t va)
{
    return va - row->undo_at < row->undo_len;
}

typedef struct KtHooks KtHooks;

/**
 * kt_hooks_resolve() - find the table's functions in a kernel
 * @table: (borrowed) must not change while the result exists
 * @k: (borrowed for the call) with its slide set
 * @pages: those of the page allocator, too
 *
 * Returns: (owned) immutable afterwards: any thread may read it.
 */
KtHooks *kt_hooks_resolve(const KtHookTable *table, const GsKernel *k,
                          bool pages);
void kt_hooks_free(KtHooks *h);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtHooks, kt_hooks_free)

/** kt_hooks_va() - run-time entry of @id, 0 when the kernel lacks it. */
uint64_t kt_hooks_va(const KtHooks *h, KtHookId id);
/** kt_hooks_symbol() - (borrowed) the symbol whose address @id has: the row's
 *  own, or of the part that it was split into; NULL when it is missing. */
const char *kt_hooks_symbol(const KtHooks *h, KtHookId id);
/** kt_hooks_args_by_btf() - did BTF tell where an argument of @id is? */
bool kt_hooks_args_by_btf(const KtHooks *h, KtHookId id);
/** kt_hooks_n_found() - hooked functions found (wrappers not counted). */
unsigned kt_hooks_n_found(const KtHooks *h);
/** kt_hooks_at() - the hooked function that begins at @va; hot path. */
KtHookId kt_hooks_at(const KtHooks *h, uint64_t va);
/** kt_hooks_page() - can a block that begins at @va hold an entry? Looks at
 *  its page and the next; hot path. */
bool kt_hooks_page(const KtHooks *h, uint64_t va);
/** kt_hooks_wrapper() - the wrapper whose code contains @va, or 0; @pages:
 *  a wrapper of the page allocator. */
KtHookId kt_hooks_wrapper(const KtHooks *h, uint64_t va, bool pages);

/** struct KtReturnSiteWrapper - what kt_hooks_wrapper() said of @ra and @pages
 * */
typedef struct KtReturnSiteWrapper {
    uint64_t ra;
    KtHookId wrapper;
    bool pages;
} KtReturnSiteWrapper;

/** kt_hooks_wrapper_by() - the same, remembered; hot path. */
static inline KtHookId kt_hooks_wrapper_by(const KtHooks *h,
                                           KtReturnSiteWrapper *seen,
                                           uint64_t ra, bool pages)
{
    if (seen->ra != ra || seen->pages != pages) {
        *seen = (KtReturnSiteWrapper) { ra, kt_hooks_wrapper(h, ra, pages),
                                        pages };
    }
    return seen->wrapper;
}

/** kt_hooks_in_role() - is @va inside a hooked function of that role, but a
 *  KT_HOOK_OUTER one? */
GS_HOT bool kt_hooks_in_role(const KtHooks *h, uint64_t va, KtRole role);
/** kt_hooks_is_inner() - is a call of @row from @va no event, since another
 *  function's work? As its KT_HOOK_INNER, _SETUP and _UNDO say. */
GS_HOT bool kt_hooks_is_inner(const KtHooks *h, const KtHookRow *row,
                              uint64_t va);
/** kt_hooks_row() - the row @id in this kernel; all 0 when there is none. */
KtHookRow kt_hooks_row(const KtHooks *h, KtHookId id);
/** kt_hooks_vfree_called_again() - are deferred vfrees worked off by calling
 *  vfree()? (Since 6.3, commit 208162f42f95; __vunmap() before.) */
GS_HOT bool kt_hooks_vfree_called_again(const KtHooks *h);

#endif /* KT_HOOKS_H */
