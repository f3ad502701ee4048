/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The inside of a KtHooks, for hooks*.c of this room only. */
#ifndef KT_HOOKS_INTERNAL_H
#define KT_HOOKS_INTERNAL_H

#include "kalloc-tracer/hooks/hooks.h"

#define KT_HOOK_ROWS_MAX    (KT_HOOKS_MAX + 1)
#define KT_HOOK_PAGE_SHIFT  12
/* Powers of two. About 60 pages are hooked. */
#define KT_HOOK_PAGE_SLOTS  1024
#define KT_HOOK_ENTRY_SLOTS 1024
#define KT_HOOK_SITES_MAX   64

typedef struct KtHookRange {
    uint64_t start, end;
} KtHookRange;

/* A range of code of row @id's function. */
typedef struct KtHookPiece {
    KtHookRange code;
    uint8_t id;
} KtHookPiece;

/* Wrappers, sorted by address. A function can have a part. */
typedef struct KtHookWrappers {
    unsigned n;
    struct {
        KtHookRange code;
        uint8_t id;
    } row[2 * KT_HOOK_ROWS_MAX];
} KtHookWrappers;

struct KtHooks {
    KtHookRow row[KT_HOOK_ROWS_MAX];
    uint64_t va[KT_HOOK_ROWS_MAX];
    KtHookWrappers wrappers, page_wrappers;
    GArray *pieces;                     /* of KtHookPiece */
    const KtHook *table;                /* (borrowed) its first is id 1 */
    unsigned n_rows;
    bool split[KT_HOOK_ROWS_MAX];       /* va is that of symbol.part.0 */
    bool unsized[KT_HOOK_ROWS_MAX];     /* a wrapper whose end is unknown */
    char *symbol[KT_HOOK_ROWS_MAX];     /* whose va it is; NULL: missing */
    bool by_btf[KT_HOOK_ROWS_MAX];      /* BTF has an argument's position */
    unsigned n_found;
    uint8_t calls[KT_HOOK_ROWS_MAX];    /* KtHookCalls */
    uint64_t inner_va[KT_HOOK_ROWS_MAX];        /* of KT_HOOK_SITES rows */
    unsigned n_sites;
    KtHookSite site[KT_HOOK_SITES_MAX];
    KtAnswer vfree_called_again;
    KtHookRange vfree_worker;           /* empty: unknown */
    uint64_t page[KT_HOOK_PAGE_SLOTS];  /* page numbers, open addressing */
    uint8_t entry[KT_HOOK_ENTRY_SLOTS]; /* ids, open addressing by va */
};

/** kt_hooks_slot() - Return the first of @slots slots to search for @key. */
static inline unsigned kt_hooks_slot(uint64_t key, unsigned slots)
{
    return (key * 0x9e3779b97f4a7c15ull) >> 40 & (slots - 1);
}

/** kt_hooks_add_page() - Select the blocks that can contain the instruction at
 *  @va. */
void kt_hooks_add_page(KtHooks *h, uint64_t va);
/** kt_hooks_doubt() - Events of @layers, as bits, are in doubt. */
void kt_hooks_doubt(KtHooks *h, unsigned layers);

/** How a row that leans on others records, by the code of its function. */
typedef enum KtHookCalls {
    KT_HOOK_CALLS_NOT_ASKED,    /* it leans on none, or nobody asked */
    KT_HOOK_CALLS_YES,          /* it calls a hook, which records */
    KT_HOOK_CALLS_SITES,        /* a hook was inlined: KtHooks.site records */
    KT_HOOK_CALLS_SELF,         /* it calls none: the row records */
    KT_HOOK_CALLS_NO,           /* it calls none, and the row cannot record */
    KT_HOOK_CALLS_UNKNOWN,      /* not all code could be read: as YES */
} KtHookCalls;

/* ---- coverage ------------------------------------------------------------ */
/*
 * Coverage: are all functions hooked that allocate, or free, memory of a kind?
 *
 * A kernel can lack the symbol of a function that it has: only exported symbols
 * are known, or the compiler inlined or cloned the function. Then blocks are
 * missing in the map, or stay live in it, and what looks like an error may be
 * right. kt_hooks_resolve() asks once for each boot. QEMU-free.
 */

/** struct KtHookCoverage - bits 1 << KtLayer of layers for which a function is
 *  missing that allocates (@allocs) or frees (@frees) */
typedef struct KtHookCoverage {
    unsigned allocs;
    unsigned frees;
} KtHookCoverage;

/** kt_hook_coverage() - Find what is missing. @h: rows are found. For tables
 *  other than Linux's nothing is missing. */
KtHookCoverage kt_hook_coverage(const KtHooks *h, const KtHookTable *table,
                                const GsKernel *k);
/** kt_hook_family_layers() - Return the layers, as bits, that functions of
 *  @family free. */
unsigned kt_hook_family_layers(KtFamily family);

#endif /* KT_HOOKS_INTERNAL_H */
