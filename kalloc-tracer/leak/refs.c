/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Search for references, for `ka refs`: compare every word of the live set, in
 * blocks and roots, with a range of addresses. Nothing is skipped, except
 * memory that is not scanned at all. What a leak scan would skip in free lists
 * has the place KT_PLACE_FREELIST.
 *
 * Runs in the thread of the monitor command, while the VM is stopped. The
 * tracer's lock is held only to copy the blocks that refer.
 */
#include "kalloc-tracer/leak/collect.h"

#include <stdlib.h>

/* clang-format off */
static const char *const place_names[] = {
    [KT_PLACE_BLOCK] = "block",
    [KT_PLACE_DATA] = "data",
    [KT_PLACE_PERCPU] = "percpu",
    [KT_PLACE_STACK] = "stack",
    [KT_PLACE_REGISTER] = "register",
    [KT_PLACE_STRUCT_PAGE] = "struct-page",
    [KT_PLACE_PAGE] = "page",
    [KT_PLACE_FREELIST] = "freelist",
};
/* clang-format on */

const char *kt_place_name(KtPlace place)
{
    return place < KT_PLACE__COUNT ? place_names[place] : "?";
}

/*
 * struct Search - state of one search
 * @lo, @len: the addresses that are searched for
 * @out: KtRef, what was found
 * @more: number of references above KT_REFS_MAX
 * @here: place and owner of the words that are compared now
 * @free_objects: if they are in a sheaf, the address of its array
 */
typedef struct Search {
    KtLiveSet *w;
    KtReader reader;
    uint64_t lo, len;
    GArray *out;
    uint64_t more;
    KtRef here;
    uint64_t free_objects;
} Search;

static bool tick(void *opaque)
{
    const Search *s = opaque;

    return kt_live_set_progress(s->w, s->reader.bytes);
}

static void found(Search *s, uint64_t va, uint64_t value)
{
    KtRef ref = s->here;

    ref.va = va;
    ref.value = value;
    if (s->out->len < KT_REFS_MAX) {
        g_array_append_val(s->out, ref);
    } else {
        s->more++;
    }
}

static void compare(void *opaque, uint64_t va, const uint64_t *word, size_t n)
{
    Search *s = opaque;

    for (size_t i = 0; i < n; i++) {
        if (G_UNLIKELY(word[i] - s->lo < s->len)) {
            found(s, va + i * 8, word[i]);
        }
    }
}

static void compare_struct(void *opaque, uint64_t va, const uint64_t *word,
                           size_t n)
{
    Search *s = opaque;

    for (size_t i = 0; i < n; i++) {
        bool list = kt_page_use_own_freelist(s->w->pages, va + i * 8, word[i]);

        s->here.place = list ? KT_PLACE_FREELIST : KT_PLACE_STRUCT_PAGE;
        compare(s, va + i * 8, &word[i], 1);
    }
}

static bool compare_gap(void *opaque, uint64_t va, uint64_t len)
{
    Search *s = opaque;

    kt_reader_each(&s->reader, va, len, compare, s);
    return !s->reader.stopped;
}

/* Compare words of a sheaf: its array has free objects, and stale entries. */
static void compare_sheaf(void *opaque, uint64_t va, const uint64_t *word,
                          size_t n)
{
    Search *s = opaque;

    for (size_t i = 0; i < n; i++) {
        s->here.place = va + i * 8 >= s->free_objects ? KT_PLACE_FREELIST :
                                                        KT_PLACE_BLOCK;
        compare(s, va + i * 8, &word[i], 1);
    }
}

static void search_blocks(Search *s)
{
    const GArray *sheaf = s->w->sheaf;
    unsigned next = 0;

    for (uint32_t i = 0; i < s->w->live->len && !s->reader.stopped; i++) {
        const KtLiveSheaf *f = next < sheaf->len ?
                               &g_array_index(sheaf, KtLiveSheaf, next) : NULL;
        uint64_t va = kt_live_set_block(s->w, i)->va;
        bool is_sheaf = f && f->block == i;

        s->here = (KtRef) { .place = KT_PLACE_BLOCK, .owner.va = va };
        s->free_objects = is_sheaf ? va + f->objects : 0;
        next += is_sheaf;
        kt_marker_each(s->w->scan, i, &s->reader, true,
                       is_sheaf ? compare_sheaf : compare, s);
    }
}

static void search_regions(Search *s)
{
    for (unsigned i = 0; i < s->w->region->len && !s->reader.stopped; i++) {
        const KtRegion *r = &g_array_index(s->w->region, KtRegion, i);

        s->here = (KtRef) { .place = r->place, .number = r->number };
        switch (r->place) {
        case KT_PLACE_STACK:
            kt_reader_each(&s->reader, r->va, r->len, compare, s);
            break;
        case KT_PLACE_STRUCT_PAGE:
            kt_reader_each(&s->reader, r->va, r->len, compare_struct, s);
            break;
        default:
            kt_marker_gaps(s->w->scan, r->va, r->len, compare_gap, s);
        }
    }
}

static void search_registers(Search *s)
{
    for (unsigned i = 0; i < s->w->registers->len; i++) {
        const KtRegister *r = &g_array_index(s->w->registers, KtRegister, i);

        s->here = (KtRef) {
            .place = KT_PLACE_REGISTER, .name = r->name,
            .number = g_array_index(s->w->vcpu_of, unsigned, i),
        };
        compare(s, 0, &r->value, 1);
    }
}

/* Order: pointers to the start first, then by place, then by address. */
static int by_certainty(const void *a, const void *b, void *opaque)
{
    const KtRef *x = a, *y = b;
    uint64_t lo = *(const uint64_t *)opaque;
    int start = (y->value == lo) - (x->value == lo);
    int place = (int)x->place - (int)y->place;

    return start ? start : place ? place : (x->va > y->va) - (x->va < y->va);
}

/* Replace the addresses of referring blocks by the blocks themselves. */
static void name_owners(Search *s)
{
    kt_query_begin(s->w->tracer);
    for (unsigned i = 0; i < s->out->len; i++) {
        KtRef *r = &g_array_index(s->out, KtRef, i);
        uint64_t va = r->owner.va;

        if (r->place == KT_PLACE_BLOCK) {
            kt_query_find(s->w->tracer, va, &r->owner);
        }
    }
    kt_query_end(s->w->tracer);
}

bool kt_refs(KtTracer *t, const KtLeakPlan *plan, uint64_t lo, uint64_t hi,
             GArray **out, uint64_t *more, uint64_t *bytes, GError **errp)
{
    g_autoptr(KtLiveSet) w = kt_leak_collect(t, plan, errp);
    g_autoptr(GArray) list = g_array_new(FALSE, FALSE, sizeof(KtRef));
    Search s = { .w = w, .lo = lo, .len = hi - lo + 1, .out = list,
                 .reader = { .tick = tick, .opaque = &s } };

    if (!w) {
        return false;
    }
    s.reader.mem = w->mem;
    kt_marker_seal(w->scan);
    kt_reader_init(&s.reader);
    search_registers(&s);
    search_regions(&s);
    search_blocks(&s);
    kt_reader_deinit(&s.reader);
    if (w->ended) {
        return kt_live_set_fail(w, errp);
    }
    name_owners(&s);
    g_array_sort_with_data(list, by_certainty, &lo);
    *more = s.more;
    *bytes = s.reader.bytes;
    *out = g_steal_pointer(&list);
    return true;
}
