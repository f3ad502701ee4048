/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The hook table: which functions of a kernel are hooked, and what their
 * arguments mean. Linux's rows come from hooks.def; a profile or a journal can
 * replace them. A tracer owns its table, so tracers and replays with different
 * tables can exist in one process. QEMU-free.
 *
 * Threads: a table is set before anything is traced, or by the one thread of a
 * replay. Between these times any thread may read it without a lock.
 */
#ifndef KT_HOOK_TABLE_H
#define KT_HOOK_TABLE_H

#include "kalloc-tracer/api/kt-types.h"
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

/** KT_HOOKS_MAX - rows of a table; an id is a byte, and 0 is no hook. */
#define KT_HOOKS_MAX 254

typedef struct KtHookTable KtHookTable;

/** kt_hook_table_new() - (owned) Create a table with Linux's rows. */
KtHookTable *kt_hook_table_new(void);
void kt_hook_table_free(KtHookTable *t);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtHookTable, kt_hook_table_free)

/**
 * kt_hook_table_set() - Replace all rows
 * @rows: (copied) the first one gets id 1; NULL: Linux's rows. Names are
 *        copied, too. The reserve rules are borrowed for the table's life.
 * @n: their count; rows after KT_HOOKS_MAX are ignored
 *
 * Rows and names that were borrowed from the table become invalid. No other
 * thread may use the table. Call before kt_hooks_resolve().
 */
void kt_hook_table_set(KtHookTable *t, const KtHook *rows, unsigned n);

/** kt_hook_table_count() - Return the number of rows; ids run from 1 to it. */
unsigned kt_hook_table_count(const KtHookTable *t);
/** kt_hook_table_row() - (borrowed) Return the row of @id, NULL for none. */
const KtHook *kt_hook_table_row(const KtHookTable *t, KtHookId id);
/** kt_hook_table_find() - Return the id of the row of @symbol, 0 for none. */
KtHookId kt_hook_table_find(const KtHookTable *t, const char *symbol);
/** kt_hook_table_name() - (borrowed) Return the function's name, "?" if there
 *  is no row. */
const char *kt_hook_table_name(const KtHookTable *t, KtHookId id);
/** kt_hook_table_has_gfp() - Return true if the GFP flags of blocks that @id
 *  allocated are known. */
bool kt_hook_table_has_gfp(const KtHookTable *t, KtHookId id);
/** kt_hook_table_is_pages() - Return true if @id is a row of the page
 *  allocator. */
bool kt_hook_table_is_pages(const KtHookTable *t, KtHookId id);
/** kt_hook_table_missing_note() - (static) Describe what is not recorded in a
 *  kernel that lacks the function of @id; "" if there is no row. */
const char *kt_hook_table_missing_note(const KtHookTable *t, KtHookId id);

/** kt_hook_returns() - Return true if the returns of functions of that role
 *  have to be instrumented. */
bool kt_hook_returns(KtRole role);

#endif /* KT_HOOK_TABLE_H */
