/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The way from an object to its cache, with struct pages made by hand. */
#include "tests/lib/test-main.h"
#include "kalloc-tracer/kernel/guest-internal.h"
#include "kalloc-tracer/kernel/witnesses.h"

#include <string.h>

G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtGuest, kt_guest_free)

#define BASE  0xffff888000000000ull
#define PAGES (BASE + 4096)         /* the struct pages */
#define CACHE (BASE + 0x100)

static uint8_t memory[2 * 4096];

static const void *view(uint64_t va, size_t *avail)
{
    *avail = 4096 - (va & 4095);
    return va >= BASE && va - BASE < sizeof(memory) ? &memory[va - BASE] : NULL;
}

static GsKernel *kernel_without_types(void)
{
    static const char map[] = "ffffffff81000000 T _stext\n"
                              "ffffffff81000010 T x86_64_start_kernel\n"
                              "ffffffff82000000 T _etext\n";

    return gs_kernel_new_from_data(map, strlen(map), "map", NULL);
}

static void put_word(unsigned page, unsigned word, uint64_t value)
{
    memcpy(memory + 4096 + page * 64 + word * 8, &value, sizeof(value));
}

/* Is @cache found for an object in @page, and @slab's cache if the page is a
 * slab? @heads: words that can be the head, 0: it is word 1 */
static void check_slab(unsigned heads, unsigned page, uint64_t cache,
                       uint64_t slab)
{
    KtConfig config = KT_CONFIG_DEFAULT;
    g_autoptr(KtTracer) t = kt_tracer_new(&config, NULL);
    g_autoptr(GsKernel) k = kernel_without_types();
    g_autoptr(KtGuest) g = kt_guest_new(k, t, view);

    g->at.slab_cache = 24;
    g->at.page_head = 8;
    g->at.page_heads = heads;
    g->at.direct_map.struct_page = 64;
    kt_guest_set_direct_map(g, &(GsDirectMap) { BASE, PAGES });
    g_assert_cmphex(kt_guest_cache_of(g, BASE + page * 4096 + 64), ==, cache);
    g_assert_cmphex(kt_guest_object_cache(g, BASE + page * 4096 + 64), ==,
                    slab);
    g_assert_cmpint(kt_guest_has_direct_map(g), ==, !heads);
}

static void check(unsigned heads, unsigned page, uint64_t cache)
{
    check_slab(heads, page, cache, cache);
}

/* A cache is known as soon as all words that can be the head lead to it. */
TEST(some_words_can_be_the_head, "/guest-slab/some-words-can-be-the-head")
{
    put_word(2, 3, CACHE);              /* a slab of two pages */
    put_word(3, 1, (PAGES + 2 * 64) | 1);
    put_word(4, 3, CACHE);              /* word 6 is no address: no head */
    put_word(4, 6, 0x00000001ffffffff);
    check(0, 2, CACHE);
    check(0, 3, CACHE);
    check(1 << 1 | 1 << 6, 2, CACHE);
    check_slab(1 << 1 | 1 << 6, 3, 0, CACHE);   /* they differ */
    check(1 << 1, 3, CACHE);
    check(1 << 1 | 1 << 6, 4, CACHE);
    check(1 << 6, 4, 0);
    check(1 << 1 | 1 << 6, 5, 0);       /* no slab */
}

/* An object is in a later page of a slab, and word 6 is not its head: what it
 * leads to is no kmem_cache. Two caches decide nothing. */
TEST(word_that_leads_to_no_cache_is_no_head,
     "/guest-slab/word-that-leads-to-no-cache-is-no-head")
{
    static const struct {
        uint64_t word, cache;
    } rows[] = {
        { (PAGES + 10 * 64) | 1, CACHE },       /* 6.12: the head itself */
        { 0, CACHE },
        { 0x00000000deadbee8, CACHE },
        { CACHE + 4, CACHE },
        { CACHE + 64, 0 },
    };

    put_word(10, 3, CACHE);
    put_word(11, 1, (PAGES + 10 * 64) | 1);
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        put_word(11, 3, rows[i].word);
        check_slab(1 << 1 | 1 << 6, 11, 0, rows[i].cache);
    }
    put_word(10, 3, 0);
    put_word(11, 3, 0);
    check_slab(1 << 1 | 1 << 6, 11, 0, 0);
}

/* Page 9 is the first one, or a later one of page 8: words 1 and 6 can be its
 * head. It is no slab for certain if neither leads to a known cache. */
TEST(page_is_no_slab_by_any_head, "/guest-slab/page-is-no-slab-by-any-head")
{
    static const struct {
        uint64_t of_page, of_head;
        bool answers;
        uint32_t id;
    } rows[] = {
        { 0, 0, true, 0 },
        { 0x1234, 0x5678, true, 0 },            /* other members */
        { 0, CACHE, false, 0 },
        { CACHE, 0, false, 0 },
        { CACHE, CACHE, true, 7 },
    };
    const uint64_t cache = CACHE;
    KtConfig config = KT_CONFIG_DEFAULT;
    g_autoptr(KtTracer) t = kt_tracer_new(&config, NULL);
    g_autoptr(GsKernel) k = kernel_without_types();
    g_autoptr(KtGuest) g = kt_guest_new(k, t, view);

    g->at.slab_cache = 24;
    g->at.page_heads = 1 << 1 | 1 << 6;
    g->at.direct_map.struct_page = 64;
    kt_guest_set_direct_map(g, &(GsDirectMap) { BASE, PAGES });
    g_hash_table_insert(g->caches, g_memdup2(&cache, sizeof(cache)),
                        GUINT_TO_POINTER(7));
    put_word(9, 1, (PAGES + 8 * 64) | 1);
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        KtGuestCpu cpu = { 0 };
        KtCacheId id = { 99 };

        put_word(9, 3, rows[i].of_page);
        put_word(8, 3, rows[i].of_head);
        g_assert_cmpint(kt_guest_slab(g, &cpu, BASE + 9 * 4096 + 8, &id), ==,
                        rows[i].answers);
        g_assert_cmpuint(id.v, ==, rows[i].id);
    }
}

/* The layouts that are left are in a snapshot. @layout: the greatest number */
static GByteArray *pack_by_hand(uint64_t layout)
{
    const uint64_t words[] = {
        0,                      /* caches */
        UINT32_MAX, UINT32_MAX, 0,              /* tasks */
        2, 64, 0, 24, 0x42,     /* pages, but for the head: words 1 and 6 */
        2, layout - 40, layout,
    };
    GByteArray *bytes = g_byte_array_new();

    for (unsigned i = 0; i < G_N_ELEMENTS(words); i++) {
        gs_out_varint(&GS_OUT(bytes), words[i]);
    }
    return bytes;
}

static bool unpack(KtGuest *g, const GByteArray *bytes)
{
    GsBytes u = gs_bytes(bytes->data, bytes->len);

    kt_guest_set_direct_map(g, &(GsDirectMap) { BASE, PAGES });
    kt_guest_unpack_learned(g, &u);
    return gs_bytes_ok(&u);
}

TEST(snapshot_before_the_head_is_known,
     "/guest-slab/snapshot-before-the-head-is-known")
{
    const uint64_t last = KT_PAGE_LAYOUTS - 1;
    g_autoptr(GByteArray) good = pack_by_hand(last);
    g_autoptr(GByteArray) bad = pack_by_hand(last + 1);
    g_autoptr(GByteArray) again = g_byte_array_new();
    KtConfig config = KT_CONFIG_DEFAULT;
    KtTracer *t = kt_tracer_new(&config, NULL);
    GsKernel *k = kernel_without_types();
    KtGuest *g = kt_guest_new(k, t, view);
    g_autofree char *line = NULL;

    g_assert_true(unpack(g, good));
    line = kt_guest_learned(g);
    g_assert_nonnull(strstr(line, "page.slab_cache=24 page.bytes=64"));
    g_assert_cmphex(kt_guest_cache_of(g, BASE + 4 * 4096), ==, CACHE);
    kt_guest_pack_learned(g, &GS_OUT(again));
    g_assert_cmpmem(again->data, again->len, good->data, good->len);
    kt_guest_free(g);
    g = kt_guest_new(k, t, view);
    g_assert_false(unpack(g, bad));
    kt_guest_free(g);
    gs_kernel_free(k);
    kt_tracer_free(t);
}
