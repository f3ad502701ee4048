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

#include "kalloc-tracer/hooks/reserve-rule.h"
#include "kalloc-tracer/hooks/roles.h"

/* Flags of a row. */

/** The position of .gfp is that of the parameter "flags" or "gfp_flags" in the
 *  kernel's BTF; without BTF the row's own position counts. */
#define KT_HOOK_GFP_BY_NAME     (1 << 0)
/** In interrupt context the function only queues the pointer, and the kernel
 *  calls the function again later for the real free, if
 *  kt_hooks_vfree_called_again(). capture/record-frees.c has the rules. */
#define KT_HOOK_NOT_IN_IRQ      (1 << 1)
/** The function queues the pointer, and the real free comes through another
 *  hook, if kt_hooks_vfree_called_again(). */
#define KT_HOOK_DEFERRED        (1 << 2)

/** A call from inside another hook with the same role is no event: that hook's
 *  own event covers it. */
#define KT_HOOK_INNER           (1 << 3)

/** If the compiler split the function, hook its part "symbol.part.0" instead:
 *  code of the same source file calls the part directly. */
#define KT_HOOK_SPLIT           (1 << 4)

/** The function can free pages that the page allocator never had (boot, memory
 *  hotplug), so the free of an unknown page is no error. */
#define KT_HOOK_FRESH           (1 << 5)

/** A call from inside a KT_ROLE_SETUP function is no event. */
#define KT_HOOK_SETUP           (1 << 6)

/** The function allocates, and is a wrapper too: in some kernels it calls
 *  another hook for its blocks, in others the compiler inlined that hook. */
#define KT_HOOK_OUTER           (1 << 7)

/** A call from inside a function that allocates the same kind of memory (in
 *  bulk, if it frees in bulk) undoes a failed allocation. No caller ever got
 *  that memory, so the call is no event. */
#define KT_HOOK_UNDO            (1 << 8)

/** The function is vmap(): it allocates only if its flags, argument .ptr, have
 *  VM_MAP_PUT_PAGES. Then vfree() frees the area. .size counts pages. */
#define KT_HOOK_PUT_PAGES       (1 << 9)

/** Set by kt_hooks_resolve(): the kernel lacks functions that are needed to
 *  judge the row's events, so these carry KT_EVF_UNSURE. */
#define KT_HOOK_UNSURE          (1 << 10)

/** The function keeps an object of another kmem_cache than the one that it gets
 *  (since 7.0, if CONFIG_SLAB_FREELIST_HARDENED is set). kt_hooks_resolve()
 *  clears the flag if the kernel does not do so. */
#define KT_HOOK_STRICT          (1 << 11)

/** A function of the page allocator whose caller passes the order of a whole
 *  block of pages, or a wrapper that passes on the order of its caller. Other
 *  wrappers free pieces that they know of. */
#define KT_HOOK_ORDER           (1 << 12)

/** Hook the function only if the kernel lacks the function of the previous row.
 *  A call is an event only if argument .ptr is an offset in a block, less than
 *  a page. For call_rcu(), whose .ptr is mostly a callback. */
#define KT_HOOK_INSTEAD         (1 << 13)

/** The function frees one object of a slab, and may free another one in its
 *  place: with quarantine= the pointer is exchanged at its entry. */
#define KT_HOOK_DELAYABLE       (1 << 14)

/** KT_NO_ARG - the function has no such argument. */
#define KT_NO_ARG (-1)

/** KT_HOOK_NAME_MAX - longest name of a hooked function, in characters. */
#define KT_HOOK_NAME_MAX 255

/**
 * struct KtHook - a row of the table
 * @symbol: name of the function
 * @layer: what an allocating function hands out
 * @family: what a freeing function may free
 * @size, @ptr, @cache, @gfp, @array, @count: numbers of arguments, from 0, or
 *       KT_NO_ARG; hooks.def describes them
 * @flags: KT_HOOK_*
 * @undone_by: (nullable) calls from inside this function undo a failed
 *       allocation and are no events. It is KT_HOOK_UNDO for one known caller,
 *       cheap enough for the most frequent hooks
 * @sizes: (nullable) how much the allocator reserves, in a profile's row; NULL
 *       for Linux's rules
 */
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

#endif /* KT_HOOK_TABLE_H */
