/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What new objects say of struct page: see witnesses.h.
 *
 * A layout has a number: place of the direct map, size of struct page, word of
 * the head, word of the cache. In most slabs the object lies in the first page,
 * whose head is not read; so some witnesses must lie in a later one. With pages
 * of 64 KiB such slabs are rare, so a layout is used before its head is known.
 */
#include "kalloc-tracer/kernel/witnesses.h"

#include <string.h>

#define WORDS           8       /* of a struct page that are searched */
#define OBJECTS_LEAST   16
#define TAILS_LEAST     2
#define VARIABLES       10      /* words of riscv64's struct kernel_mapping */
#define MAPS            (GS_DIRECT_MAP_MAX * VARIABLES)

#define SIZES           KT_PAGE_SIZES

static bool read_word(KtView view, uint64_t va, uint64_t *out)
{
    if (!kt_view_read(view, va, out, sizeof(*out))) {
        return false;
    }
    *out = GUINT64_FROM_LE(*out);
    return true;
}

uint64_t kt_page_layout_cache(const KtPageLayout *at, KtView view,
                              uint64_t object, bool *is_tail)
{
    uint64_t page, head, cache;

    if (object < at->map.page_offset) {
        return 0;
    }
    page = at->map.vmemmap +
           ((object - at->map.page_offset) >> at->page_shift) *
               at->struct_page;
    if (!read_word(view, page + at->page_head, &head)) {
        return 0;
    }
    if (is_tail) {
        *is_tail = head & 1;
    }
    if (head & 1) {
        /* compound_info has a mask if sizeof(struct page) is a power of 2 */
        head &= ~1ull;
        page = (-head & (-head - 1)) ? head : page & head;
    }
    return read_word(view, page + at->slab_cache, &cache) ?
               gs_untag(at->tag_bits, cache) :
               0;
}

/*
 * struct Witness - an object, and its cache
 * @map: possible places of the direct map, by the index of the page size
 * @n: how many
 */
typedef struct Witness {
    KtView view;
    uint64_t tag_bits;
    unsigned page_shift;
    uint64_t object, cache;
    GsDirectMap map[SIZES][MAPS];
    unsigned n;
} Witness;

static bool read_mem(void *opaque, uint64_t va, void *buf, size_t len)
{
    const KtPageWitnesses *w = opaque;

    return kt_view_read(w->view, va, buf, len);
}

/*
 * Find the places of the direct map for one size of struct page. Types say
 * which word of riscv64's kernel_map is va_pa_offset; without them each may be.
 */
static unsigned find_maps(KtPageWitnesses *w, uint32_t struct_page,
                          GsDirectMap out[MAPS])
{
    const GsMem mem = { .read = read_mem, .opaque = w };
    bool search = w->at.arch->direct_maps->in_struct;
    GsDirectMapAt at = w->at;
    unsigned n = 0;

    at.struct_page = struct_page;
    for (unsigned i = 0; i < (search ? VARIABLES : 1); i++) {
        bool certain;

        at.va_pa_offset = w->at.va_pa_offset + i * 8;
        n += gs_direct_map_guess(&at, &mem, &out[n], &certain);
    }
    return n;
}

/* Struct page of page frame 0, as if the direct map began at address 0. */
static uint64_t base_of(const Witness *w, unsigned size, unsigned i)
{
    const GsDirectMap *map = &w->map[size][i];

    return map->vmemmap -
           (map->page_offset >> w->page_shift) * kt_page_sizes[size];
}

/* Has an earlier place the same struct pages? On arm64, the layouts for 48 and
 * for 52 bits have. The object lies above both, or in the latter only. */
static bool is_double(const Witness *w, unsigned size, unsigned i)
{
    for (unsigned j = 0; j < i; j++) {
        if (w->map[size][j].page_offset <= w->object &&
            base_of(w, size, i) == base_of(w, size, j)) {
            return true;
        }
    }
    return false;
}

static void remove_doubles(Witness *w, unsigned size)
{
    for (unsigned i = w->n; i-- > 1;) {
        if (is_double(w, size, i)) {
            w->map[size][i].page_offset = UINT64_MAX;
        }
    }
}

static KtPageLayout layout_of(const Witness *w, uint32_t number)
{
    unsigned size = number / (WORDS * WORDS) % SIZES;

    return (KtPageLayout) {
        .map = w->map[size][number / (WORDS * WORDS * SIZES)],
        .tag_bits = w->tag_bits,
        .page_shift = w->page_shift,
        .struct_page = kt_page_sizes[size],
        .page_head = number / WORDS % WORDS * 8,
        .slab_cache = number % WORDS * 8,
    };
}

static bool leads_to_cache(const void *witness, uint32_t number)
{
    const Witness *w = witness;
    const KtPageLayout at = layout_of(w, number);

    return kt_page_layout_cache(&at, w->view, w->object, NULL) == w->cache;
}

/* Return the words that can be the head if the layouts that are left differ in
 * nothing else, otherwise 0. */
static uint8_t heads_left(const KtVotes *votes)
{
    uint8_t heads = 0;

    for (unsigned i = 0; i < votes->n; i++) {
        uint32_t one = votes->at[i], first = votes->at[0];

        if (one / (WORDS * WORDS) != first / (WORDS * WORDS) ||
            one % WORDS != first % WORDS) {
            return 0;
        }
        heads |= 1u << (one / WORDS % WORDS);
    }
    return votes->seen >= OBJECTS_LEAST ? heads : 0;
}

static void decide(KtPageWitnesses *w, const Witness *now)
{
    uint32_t only = kt_votes_only(&w->votes, OBJECTS_LEAST);
    bool is_tail = false;

    if (w->votes.n) {
        const KtPageLayout at = layout_of(now, w->votes.at[0]);

        kt_page_layout_cache(&at, w->view, now->object, &is_tail);
        w->tails += is_tail;
    }
    w->heads = heads_left(&w->votes);
    if (w->heads) {
        w->layout = layout_of(now, w->votes.at[0]);
    }
    if (only != KT_NO_MEMBER && w->tails >= TAILS_LEAST) {
        w->heads = 0;
        w->learned = true;
    }
}

void kt_page_witnesses_resume(KtPageWitnesses *w)
{
    G_STATIC_ASSERT(KT_PAGE_LAYOUTS == MAPS * SIZES * WORDS * WORDS);
    w->votes.seen = OBJECTS_LEAST;
}

void kt_page_witnesses_object(KtPageWitnesses *w, uint64_t cache,
                              uint64_t object)
{
    uint64_t page = object >> w->at.page_shift;
    g_autofree Witness *now = NULL;

    if (w->learned || w->votes.contradicted || page == w->last_page) {
        return;
    }
    now = g_new0(Witness, 1);
    now->view = w->view;
    now->tag_bits = w->layout.tag_bits;
    now->page_shift = w->at.page_shift;
    now->object = object;
    now->cache = cache;
    for (unsigned i = 0; i < SIZES; i++) {
        now->n = find_maps(w, kt_page_sizes[i], now->map[i]);
        remove_doubles(now, i);
    }
    if (now->n) {
        w->last_page = page;
        kt_votes_cast(&w->votes, leads_to_cache, now,
                      now->n * SIZES * WORDS * WORDS, 1);
        decide(w, now);
    }
}
