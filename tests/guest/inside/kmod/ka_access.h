/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka_access: what the files of the module share.
 *
 * A case is a function that allocates a block, prints what it is about to do,
 * and does it. The function that accesses the block is a site of its own. Its
 * name is the case's name behind "ka_case_".
 */
#ifndef KA_ACCESS_H
#define KA_ACCESS_H

#include "ka_kmod.h"

#define KA_UAF "use-after-free"
#define KA_OOB "out-of-bounds"

/* The cache of most cases: nobody else uses it, so that nobody else gets a
 * freed object of it. */
#define KA_OBJECT 192
/* An offset in a freed object at which a store does no harm: SLUB's link is in
 * the middle of the object, KASAN's data are in the first 16 bytes. */
#define KA_SAFE 40

struct ka_case {
    const char *name;
    int (*run)(void);
};

#define KA_CASE(name) static KA_SITE int ka_case_##name(void)
#define KA_ROW(name) { #name, ka_case_##name }

/* Each ends with an empty row. */
extern const struct ka_case ka_block_cases[], ka_live_cases[], ka_call_cases[];
extern const struct ka_case ka_context_cases[], ka_table_cases[],
    ka_narrow_cases[];

extern struct kmem_cache *ka_own;       /* objects of KA_OBJECT bytes */

/* The sites of allocations and frees. */
void *ka_access_alloc(size_t size);
void ka_access_free(const void *p);
void *ka_access_take(struct kmem_cache *cache);
void ka_access_give(struct kmem_cache *cache, void *p);

/* Return @n. The compiler does not know that. */
size_t ka_hidden(size_t n);

/**
 * ka_truth() - print what follows
 * @site: function of this module that will access the block, or call what does
 * @kind: name of the error
 * @how: "r" or "w", and the bytes of the access
 * @at: first byte of the access
 * @block: the block
 * @bytes: bytes that were asked for
 */
void ka_truth(const char *site, const char *kind, const char *how,
              const void *at, const void *block, size_t bytes);

/* Print what follows, then free an object with @text at SAFE. Return the
 * address of the text; NULL without memory. */
char *ka_freed_text(const char *site, const char *how, const char *text);

#endif /* KA_ACCESS_H */
