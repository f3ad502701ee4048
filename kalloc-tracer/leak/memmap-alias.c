/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Find the alias of the memory map in the direct map: see
 * kt_page_use_find_memmap_alias().
 *
 *     vmemmap             direct map (all physical memory)
 *     +-------------+
 *     | page  0..63 | -------.   +--------------+
 *     | page 64..   | ---.    '->| same bytes   |  KT_PAGE_ALIASED
 *     | ...         |     '----->| same bytes   |  KT_PAGE_ALIASED
 *     +-------------+            +--------------+
 *
 * Without this, every struct page would be scanned twice, and pointers in the
 * struct pages of free pages would keep blocks alive.
 *
 * No variable of the kernel says which pages these are, so contents decide. All
 * pages of the memory map are put in a hash table by their first eight words.
 * A page of the kernel with equal words is compared as a whole. The alias is in
 * long runs, so a match is extended to both sides. A page that is equal by
 * chance has no pointer that the memory map lacks.
 */
#include "kalloc-tracer/leak/page-use.h"

#include <string.h>

#define WORDS   8               /* at the start of a page: the hash key */

typedef struct MemmapAlias {
    KtPageUses *p;
    const GsMem *mem;
    uint64_t page;              /* bytes */
    uint8_t *one, *other;       /* buffers of a page */
    GHashTable *by_words;       /* hash of WORDS words -> address */
} MemmapAlias;

static bool hash_words(const MemmapAlias *m, uint64_t va, uint64_t *hash)
{
    uint64_t word[WORDS], any = 0;

    if (!m->mem->read(m->mem->opaque, va, word, sizeof(word))) {
        return false;
    }
    *hash = 0;
    for (unsigned i = 0; i < WORDS; i++) {
        any |= word[i];
        *hash = (*hash ^ word[i]) * 0x9e3779b97f4a7c15ull;
        *hash ^= *hash >> 29;
    }
    return any;
}

static bool same(const MemmapAlias *m, uint64_t a, uint64_t b)
{
    return m->mem->read(m->mem->opaque, a, m->one, m->page) &&
           m->mem->read(m->mem->opaque, b, m->other, m->page) &&
           !memcmp(m->one, m->other, m->page);
}

/* Fill @by_words. The memory map may end at the end of the address space, so
 * the loop counts bytes, not addresses. */
static void index_memmap(MemmapAlias *m)
{
    uint64_t first = kt_page_use_struct(m->p, 0), va = first & -m->page;
    uint64_t len = first - va + m->p->n * m->p->struct_page, hash;

    for (uint64_t at = 0; at < len; at += m->page) {
        if (hash_words(m, va + at, &hash)) {
            g_hash_table_insert(m->by_words, GSIZE_TO_POINTER(hash),
                                GSIZE_TO_POINTER(va + at));
        }
    }
}

/* Set pages from @va on to KT_PAGE_ALIASED, in steps of @step, as long as they
 * are equal to the memory map from @structs on. */
static void set_run(const MemmapAlias *m, uint64_t va, uint64_t structs,
                     uint64_t step)
{
    uint8_t *use;

    while ((use = kt_page_use_kernel(m->p, va)) && same(m, va, structs)) {
        *use = KT_PAGE_ALIASED;
        va += step;
        structs += step;
    }
}

static void find(MemmapAlias *m, uint64_t va)
{
    uint64_t hash, structs;

    if (!kt_page_use_kernel(m->p, va) || !hash_words(m, va, &hash)) {
        return;
    }
    structs = GPOINTER_TO_SIZE(g_hash_table_lookup(m->by_words,
                                                   GSIZE_TO_POINTER(hash)));
    if (structs && same(m, va, structs)) {
        set_run(m, va, structs, m->page);
        set_run(m, va - m->page, structs - m->page, -m->page);
    }
}

void kt_page_use_find_memmap_alias(KtPageUses *p, const GsMem *mem)
{
    g_autoptr(GHashTable) by_words = g_hash_table_new(gs_number_hash_direct,
                                                      NULL);
    uint64_t page = 1ull << p->page_shift;
    g_autofree uint8_t *one = g_malloc(page), *other = g_malloc(page);
    MemmapAlias m = { p, mem, page, one, other, by_words };

    index_memmap(&m);
    for (uint64_t i = 0; i < p->n; i++) {
        find(&m, kt_page_use_va(p, i));
    }
}
