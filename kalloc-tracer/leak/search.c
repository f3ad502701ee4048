/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Search: see leak-internal.h. What a leak scan would skip in free lists has
 * the place KT_PLACE_FREELIST.
 */
#include "kalloc-tracer/leak/leak-internal.h"

static bool tick(void *opaque)
{
    const KtSearch *s = opaque;

    return kt_live_set_progress(s->w, s->reader.bytes);
}

/* Compare words of struct pages. Freelist pointers into the page's own slab are
 * compared alone, and the words between them together. */
static void compare_struct(void *opaque, uint64_t va, const uint64_t *word,
                           size_t n)
{
    KtSearch *s = opaque;
    size_t from = 0;

    for (size_t i = 0; i <= n; i++) {
        bool list = i < n && kt_page_use_own_freelist(s->w->pages, va + i * 8,
                                                      word[i]);

        if (i > from && (list || i == n)) {
            s->here.place = KT_PLACE_STRUCT_PAGE;
            s->compare(s, va + from * 8, word + from, i - from);
        }
        if (list) {
            s->here.place = KT_PLACE_FREELIST;
            s->compare(s, va + i * 8, &word[i], 1);
            from = i + 1;
        }
    }
}

static bool compare_gap(void *opaque, uint64_t va, uint64_t len)
{
    KtSearch *s = opaque;

    kt_reader_each(&s->reader, va, len, s->compare, s);
    return !s->reader.stopped;
}

/* Return the offset in the block @s->block of a word at @va. Per-CPU memory has
 * an address for each CPU. */
static uint64_t offset_in_block(const KtSearch *s, uint64_t va)
{
    const KtLiveBlock *b = kt_live_set_block(s->w, s->block);

    for (unsigned cpu = 0; b->layer == KT_LAYER_PERCPU &&
         cpu < s->w->offset->len; cpu++) {
        uint64_t off = va - kt_live_set_of_cpu(s->w, b->va, cpu);

        if (off < b->len) {
            return off;
        }
    }
    return va - b->va;
}

/* Compare words of a sheaf: its array has free objects, and stale entries. */
static void compare_sheaf(void *opaque, uint64_t va, const uint64_t *word,
                          size_t n)
{
    KtSearch *s = opaque;

    for (size_t i = 0; i < n; i++) {
        s->here.place = offset_in_block(s, va + i * 8) >= s->free_objects ?
                            KT_PLACE_FREELIST : KT_PLACE_BLOCK;
        s->compare(s, va + i * 8, &word[i], 1);
    }
}

static void search_blocks(KtSearch *s)
{
    const GArray *sheaf = s->w->sheaf;
    unsigned next = 0;

    for (uint32_t i = 0; i < s->w->live->len && !s->reader.stopped; i++) {
        const KtLiveSheaf *f = next < sheaf->len ?
                               &g_array_index(sheaf, KtLiveSheaf, next) : NULL;
        bool is_sheaf = f && f->block == i;

        s->here = (KtRef) {
            .place = KT_PLACE_BLOCK, .owner.va = kt_live_set_block(s->w, i)->va,
        };
        s->free_objects = is_sheaf ? f->objects : 0;
        next += is_sheaf;
        s->block = i;
        kt_marker_each(s->w->scan, i, &s->reader, s->whole,
                       is_sheaf ? compare_sheaf : s->compare, s);
    }
    s->block = KT_MARKER_NONE;
}

static void search_regions(KtSearch *s)
{
    for (unsigned i = 0; i < s->w->region->len && !s->reader.stopped; i++) {
        const KtRegion *r = &g_array_index(s->w->region, KtRegion, i);

        s->here = (KtRef) { .place = r->place, .number = r->number };
        switch (r->place) {
        case KT_PLACE_STACK:
            kt_reader_each(&s->reader, r->va, r->len, s->compare, s);
            break;
        case KT_PLACE_STRUCT_PAGE:
            kt_reader_each(&s->reader, r->va, r->len, compare_struct, s);
            break;
        default:
            kt_marker_gaps(s->w->scan, r->va, r->len, compare_gap, s);
        }
    }
}

static void search_registers(KtSearch *s)
{
    for (unsigned i = 0; i < s->w->registers->len; i++) {
        const KtRegister *r = &g_array_index(s->w->registers, KtRegister, i);

        s->here = (KtRef) {
            .place = KT_PLACE_REGISTER, .name = r->name,
            .number = g_array_index(s->w->vcpu_of, unsigned, i),
        };
        s->compare(s, 0, &r->value, 1);
    }
}

static void search_code(KtSearch *s)
{
    s->here = (KtRef) { .place = KT_PLACE_CODE };
    for (unsigned i = 0; i < s->w->code->len; i++) {
        const KtCodeWord *c = &g_array_index(s->w->code, KtCodeWord, i);

        s->compare(s, c->va, &c->value, 1);
    }
}

void kt_search_roots(KtSearch *s)
{
    s->block = KT_MARKER_NONE;
    s->reader = (KtReader) {
        .mem = s->w->mem, .tag_bits = s->w->tag_bits, .tick = tick,
        .opaque = s,
    };
    kt_reader_init(&s->reader);
    search_registers(s);
    search_code(s);
    search_regions(s);
}

bool kt_search_run(KtSearch *s)
{
    kt_search_roots(s);
    search_blocks(s);
    kt_reader_deinit(&s->reader);
    return !s->w->ended;
}

void kt_search_name_owners(const KtSearch *s, KtRef *ref, unsigned n,
                           size_t size)
{
    KtTracer *t = s->w->tracer;

    kt_query_begin(t);
    for (; n--; ref = (KtRef *)((char *)ref + size)) {
        uint64_t va = ref->owner.va;

        if (ref->place == KT_PLACE_BLOCK) {
            kt_query_find(t, va, &ref->owner);
        }
    }
    kt_query_end(t);
}
