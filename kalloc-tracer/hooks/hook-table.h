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

#include "kalloc-tracer/api/kt-event.h"
#include <stdint.h>

/* ---- reserved sizes ------------------------------------------------------ */
/*
 * How much memory an allocator reserves for a request, as a profile describes
 * it. For Linux, capture/ reads this from the guest instead. Rules are
 * constant after the profile was read; any thread may use them.
 *
 * Example: buckets 16 48 384 and rounding 4096. A request of 17 bytes gets 48,
 * one of 385 bytes gets 4096.
 */

#define KT_BUCKETS_MAX 64

/**
 * struct KtReserveRule - the rule of one allocator
 * @fixed: all blocks have this size, and the function has no size argument;
 *         0: not so
 * @bucket, @n_buckets: sizes of blocks, ascending; a request gets the first
 *         one that is large enough
 * @rounding: a request that is larger than all buckets is rounded up to a
 *         multiple of this, and to at least one; 0: it is not rounded
 */
typedef struct KtReserveRule {
    uint64_t fixed, rounding;
    unsigned n_buckets;
    uint64_t bucket[KT_BUCKETS_MAX];
} KtReserveRule;

/** kt_reserve_rule_bytes() - Return the bytes that are reserved for a request
 *  of @size bytes. */
uint64_t kt_reserve_rule_bytes(const KtReserveRule *s, uint64_t size);

/* ---- roles --------------------------------------------------------------- */
/*
 * Roles: what hooked functions do. roles.def has a row for each role, and
 * hooks.def gives each function its role. What an entry and a return do is in
 * the table of capture/record.c. Immutable, any thread.
 */

/** KtRole - what a hooked function does: KT_ROLE_* for each row of
 *  roles.def */
typedef enum KtRole {
#define KT_ROLE(id, ...) KT_ROLE_##id,
#include "kalloc-tracer/hooks/roles.def"
    KT_ROLE__COUNT
} KtRole;

/** Properties of a role. */
typedef enum KtDoes {
    /** Hands memory to its caller, so that its return is an event. */
    KT_DOES_ALLOCATE = 1 << 0,
    /** What it hands out are new blocks of the row's .layer. */
    KT_DOES_MAKE = 1 << 1,
    /** Frees blocks of the row's .family. */
    KT_DOES_FREE = 1 << 2,
    /** Is a wrapper: backtraces that begin in it begin at its caller. */
    KT_DOES_WRAP = 1 << 3,
    /** Is only recognised as a caller: its entry is not hooked. */
    KT_DOES_UNHOOKED = 1 << 4,
    /** Shows where a struct of the kernel has a member. */
    KT_DOES_WITNESS = 1 << 5,
    /** Is followed while recording is off, too: later backtraces need the
     *  symbols of code that is loaded, and the log is no event. */
    KT_DOES_FOLLOW = 1 << 6,
    /** An entry that repeats the one before, which trapped, is the same
     *  call. */
    KT_DOES_RETRY = 1 << 7,
} KtDoes;

/** Rows that are found only on request, for kt_hooks_resolve(). */
typedef enum KtHookSets {
    KT_HOOKS_PAGES = 1 << 0,    /* those of the page allocator */
    KT_HOOKS_LOG = 1 << 1,      /* KT_ROLE_LOG */
    KT_HOOKS_UNTYPED = 1 << 2,  /* set by kt_hooks_resolve() itself: those of a
                                 * kernel without types */
} KtHookSets;

#define KT_LAYERS_SLAB (1u << KT_LAYER_KMALLOC | 1u << KT_LAYER_LARGE | \
                        1u << KT_LAYER_CACHE)
#define KT_LAYERS_VMALLOC (1u << KT_LAYER_VMALLOC)

/** struct KtRoleRow - a row of roles.def, which describes the members
 *  @does: KtDoes bits
 *  @set: KtHookSets bits; 0: always hooked
 *  @word: NULL: a profile cannot have the role */
typedef struct KtRoleRow {
    unsigned does, set;
    unsigned needs_allocs, needs_frees;
    const char *missing, *word;
} KtRoleRow;

/** kt_roles - the rows by KtRole */
extern const KtRoleRow kt_roles[KT_ROLE__COUNT];

/** kt_role_does() - Return true if functions of that role do one of @what,
 *  KtDoes bits. */
static inline bool kt_role_does(KtRole role, unsigned what)
{
    return kt_roles[role].does & what;
}

/** kt_role_is_pages() - Return true if the role is of the page allocator. */
static inline bool kt_role_is_pages(KtRole role)
{
    return kt_roles[role].set & KT_HOOKS_PAGES;
}

/* ---- the table ----------------------------------------------------------- */

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

/** A function inside the allocator. Its entry is not hooked, but instructions
 *  that call it are: those of rows that lean on others, where the compiler
 *  inlined the hooked function between. See hooks-calls.c. */
#define KT_HOOK_SITES           (1 << 15)

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
