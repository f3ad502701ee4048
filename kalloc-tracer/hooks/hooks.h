/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The hook table and its addresses in one kernel. QEMU-free.
 */
#ifndef KT_HOOKS_H
#define KT_HOOKS_H

#include "kalloc-tracer/kt.h"
#include "kalloc-tracer/hooks/reserve-rule.h"

/** What a hooked function does; decides what its entry and return mean. */
typedef enum KtRole {
    KT_ROLE_ALLOC,          /* returns memory */
    KT_ROLE_ALLOC_BULK,     /* fills an array, returns how many */
    KT_ROLE_REALLOC,        /* returns its argument when resized in place */
    KT_ROLE_FREE,
    KT_ROLE_FREE_BULK,
    KT_ROLE_FREE_SHEAF,     /* the objects of a struct slab_sheaf */
    KT_ROLE_RCU_QUEUE,
    KT_ROLE_WRAPPER,        /* only named: not hooked */
    KT_ROLE_MODULE_ADD,     /* at return */
    KT_ROLE_MODULE_DROP,
    KT_ROLE_BPF_ADD,        /* a program or trampoline, at entry */
    KT_ROLE_KEXEC,          /* another kernel is about to run */
    KT_ROLE_SETUP,          /* works for the allocators: not hooked; what it
                             * calls is no event */
    /* The page allocator's, hooked with pages=on; see record-pages.c. */
    KT_ROLE_PAGE_ALLOC,     /* returns a struct page or folio */
    KT_ROLE_PAGE_BULK,      /* fills an array or a list, returns how many */
    KT_ROLE_PAGE_ISOLATE,   /* takes free pages away, returns not 0 if so */
    KT_ROLE_PAGE_MIGRATE,   /* returns a folio of those taken away */
    KT_ROLE_PAGE_CONTIG,    /* returns 0 when it got the range */
    KT_ROLE_PAGE_FREE,
    KT_ROLE_PAGE_FREE_BATCH,    /* a struct folio_batch */
    KT_ROLE_PAGE_FREE_LIST,     /* a list of single pages */
    KT_ROLE_PAGE_WRAPPER,
} KtRole;

/** kt_role_hands_out() - memory, which its return tells of. */
static inline bool kt_role_hands_out(KtRole role)
{
    return role <= KT_ROLE_REALLOC ||
           (role >= KT_ROLE_PAGE_ALLOC && role <= KT_ROLE_PAGE_CONTIG);
}

/** The position of .gfp is that of the parameter "flags" or "gfp_flags" in
 *  BTF. */
#define KT_HOOK_GFP_BY_NAME     (1 << 0)
/** In interrupt context the function only defers to a KT_HOOK_DEFERRED one,
 *  where the kernel works the deferred frees off by calling it again. */
#define KT_HOOK_NOT_IN_IRQ      (1 << 1)
/** Queues the pointer; the real free comes through another hook, where the
 *  kernel works that way, see kt_hooks_vfree_called_again(). */
#define KT_HOOK_DEFERRED        (1 << 2)

/** Called from inside another hook of its kind it is that one's work, which
 *  tells of it. */
#define KT_HOOK_INNER           (1 << 3)

/** Where the compiler split the function, its part ("symbol.part.0") is hooked
 *  instead: other code of the same file calls that directly. */
#define KT_HOOK_SPLIT           (1 << 4)

/** Frees pages that may be new to the page allocator. */
#define KT_HOOK_FRESH           (1 << 5)

/** Called from inside a KT_ROLE_SETUP function it is no event. */
#define KT_HOOK_SETUP           (1 << 6)

/** A wrapper, too: that calls other hooks for what it allocates, or has their
 *  code inside. */
#define KT_HOOK_OUTER           (1 << 7)

/** Called from inside a function that allocates what it frees (in bulk, if it
 *  frees in bulk), it takes back what never left that one: no event. */
#define KT_HOOK_UNDO            (1 << 8)

#define KT_NO_ARG (-1)

/** KT_HOOK_NAME_MAX - characters of a hooked function's name. */
#define KT_HOOK_NAME_MAX 255

/** struct KtHook - a row of the table; argument numbers or KT_NO_ARG
 *  @undone_by: calls from inside that function take back what nobody was
 *              handed: no events; NULL: none. As KT_HOOK_UNDO, for the hottest
 *  @sizes: what it reserves, of a profile's row; NULL: as Linux does */
typedef struct KtHook {
    const char *symbol;
    KtRole role;
    KtLayer layer;
    KtFamily family;
    int8_t size, ptr, cache, gfp, array, count;
    uint16_t flags;
    const char *undone_by;
    const KtReserveRule *sizes;
} KtHook;

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

/**
 * kt_hooks_use() - take another table than Linux's
 * @rows: (borrowed to the end) with ids from 1; NULL: Linux's
 * @n: their count, at most 254
 *
 * Once, before anything is traced.
 */
void kt_hooks_use(const KtHook *rows, unsigned n);
/** kt_hook_count() - rows; ids run from 1 to that. */
unsigned kt_hook_count(void);
/** kt_hook() - (static) the row of @id, NULL for none. */
const KtHook *kt_hook(KtHookId id);
/** kt_hook_returns() - must the return of that role be seen? */
bool kt_hook_returns(KtRole role);
/** kt_hook_is_pages() - is the row about the page allocator? */
bool kt_hook_is_pages(KtHookId id);
/** kt_hook_missing_note() - what it means that a kernel lacks the row. */
const char *kt_hook_missing_note(KtHookId id);

typedef struct KtHooks KtHooks;

/**
 * kt_hooks_resolve() - find the table's functions in a kernel
 * @k: (borrowed for the call) with its slide set
 * @pages: those of the page allocator, too
 *
 * Returns: (owned) immutable afterwards: any thread may read it.
 */
KtHooks *kt_hooks_resolve(const GsKernel *k, bool pages);
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
