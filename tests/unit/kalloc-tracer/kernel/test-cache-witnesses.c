/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * KtCacheWitnesses, with structs made by hand: the members are found wherever
 * they are, and calls that show nothing do not count.
 */
#include "tests/lib/test-main.h"
#include "kalloc-tracer/kernel/witnesses.h"

#include <stdio.h>
#include <string.h>

#define BASE    0xffff888000000000ull
#define NAMES   0x40000
#define OBJECTS 0x80000
#define CACHE   1024            /* bytes from cache to cache */
#define N       24
#define CACHES  60              /* number of the cache of all caches */

/* Offsets of a made-up struct kmem_cache. */
typedef struct Layout {
    uint32_t name, object_size, size, inuse;
} Layout;

static const Layout layouts[] = {
    { 96, 28, 24, 88 },
    { 0, 500, 8, 12 },
    { 504, 4, 508 - 16, 0 },
};

static uint8_t memory[0x100000];

static const void *view(uint64_t va, size_t *avail)
{
    *avail = 4096 - (va & 4095);
    return va >= BASE && va - BASE < sizeof(memory) ? &memory[va - BASE] : NULL;
}

static void put32(uint64_t at, uint32_t value)
{
    memcpy(&memory[at], &value, sizeof(value));
}

static void put64(uint64_t at, uint64_t value)
{
    memcpy(&memory[at], &value, sizeof(value));
}

static KtCacheWitnesses *begin(void)
{
    KtCacheWitnesses *w = g_new0(KtCacheWitnesses, 1);

    memset(memory, 0, sizeof(memory));
    w->view = view;
    w->page_shift = 12;
    return w;
}

static uint32_t object_size_of(unsigned i)
{
    return i % 3 ? 40 + 8 * i : 256;
}

/* What the kernel makes of cache @i. Odd caches are aligned to 64 bytes. */
static uint32_t size_of(unsigned i)
{
    return i & 1 ? (object_size_of(i) + 63) & ~63u : object_size_of(i);
}

/* Tag of the pointers to names */
static uint64_t tag = 0xff;

static void fill_cache(const Layout *at, unsigned i, uint32_t object_size,
                       uint32_t size)
{
    uint64_t cache = i * CACHE;

    snprintf((char *)&memory[NAMES + i * 64], 64, "cache-%u", i);
    put64(cache + at->name,
          (BASE + NAMES + i * 64) ^ (0xff ^ tag) << 56);
    put32(cache + at->object_size, object_size);
    put32(cache + at->inuse, (object_size + 7) & ~7u);
    put32(cache + at->size, size);
}

/* Make cache @i as a call does: its memory is allocated, then the call
 * returns. The argument has the name at another place. */
static void make(KtCacheWitnesses *w, const Layout *at, unsigned i)
{
    KtCacheMade made = {
        .cache = BASE + i * CACHE, .name = BASE + NAMES + 0x20000,
        .size = object_size_of(i), .since = w->clock,
    };

    snprintf((char *)&memory[NAMES + 0x20000], 64, "cache-%u", i);
    fill_cache(at, CACHES, 1000, CACHE);
    fill_cache(at, i, object_size_of(i), size_of(i));
    kt_cache_witnesses_object(w, BASE + CACHES * CACHE, made.cache);
    kt_cache_witnesses_made(w, &made);
}

/* Allocate two objects of cache @i, slots @a and @b of a page. */
static void allocate_pair(KtCacheWitnesses *w, unsigned i, unsigned a,
                          unsigned b)
{
    uint64_t page = BASE + OBJECTS + i * 4096;

    kt_cache_witnesses_object(w, BASE + i * CACHE, page + a * size_of(i));
    kt_cache_witnesses_object(w, BASE + i * CACHE, page + b * size_of(i));
}

static void learn(KtCacheWitnesses *w, const Layout *at)
{
    for (unsigned i = 0; i < N; i++) {
        make(w, at, i);
        allocate_pair(w, i, 1, 2);
        allocate_pair(w, i, 5, 3);
    }
}

TEST(members_are_found_anywhere, "/cache-witnesses/anywhere")
{
    for (unsigned i = 0; i < G_N_ELEMENTS(layouts); i++) {
        g_autofree KtCacheWitnesses *w = begin();

        learn(w, &layouts[i]);
        g_assert_true(w->learned);
        g_assert_cmpuint(w->name.at[0], ==, layouts[i].name);
        g_assert_cmpuint(w->size.at[0], ==, layouts[i].size);
        /* inuse always has the same value so far: either is right */
        g_assert_cmpuint(w->object_size.n, ==, 2);
    }
}

TEST(names_behind_pointers_with_tags, "/cache-witnesses/tags")
{
    g_autofree KtCacheWitnesses *w = begin();

    w->tag_bits = 0xffull << 56;
    tag = 0x3c;
    learn(w, &layouts[0]);
    tag = 0xff;
    g_assert_true(w->learned);
    g_assert_cmpuint(w->name.at[0], ==, layouts[0].name);
}

TEST(alias_is_no_witness, "/cache-witnesses/alias")
{
    g_autofree KtCacheWitnesses *w = begin();
    KtCacheMade alias = {
        .cache = BASE + CACHE, .name = BASE + NAMES, .size = 8,
    };

    learn(w, &layouts[0]);
    w->learned = false;
    alias.since = w->clock;
    kt_cache_witnesses_made(w, &alias);
    g_assert_false(w->name.contradicted);
    g_assert_cmpuint(w->name.seen, ==, 16);
}

/* A merge that raises object_size to no multiple of 8 shows which is inuse. */
TEST(object_size_is_decided_when_it_matters, "/cache-witnesses/inuse")
{
    g_autofree KtCacheWitnesses *w = begin();
    KtCacheMade made = { .cache = BASE + 5 * CACHE, .size = 93 };

    learn(w, &layouts[0]);
    fill_cache(&layouts[0], 5, 93, 128);
    kt_cache_witnesses_made(w, &made);
    g_assert_true(w->learned);
    g_assert_cmpuint(w->object_size.n, ==, 1);
    g_assert_cmpuint(w->object_size.at[0], ==, layouts[0].object_size);
}

TEST(freed_object_is_no_pair, "/cache-witnesses/freed-object")
{
    g_autofree KtCacheWitnesses *w = begin();
    uint64_t page = BASE + OBJECTS;

    make(w, &layouts[0], 0);
    kt_cache_witnesses_object(w, BASE, page);
    kt_cache_witnesses_freed(w, page);
    /* the page may be a slab of another cache meanwhile, and then come back */
    kt_cache_witnesses_object(w, BASE, page + 24);
    g_assert_cmpuint(w->pairs, ==, 0);
    kt_cache_witnesses_object(w, BASE, page + 24 + size_of(0));
    g_assert_cmpuint(w->pairs, ==, 1);
    g_assert_false(w->size.contradicted);
}

TEST(boot_cache_needs_no_allocation, "/cache-witnesses/boot-cache")
{
    g_autofree KtCacheWitnesses *w = begin();
    KtCacheMade made = {
        .cache = BASE, .name = BASE + NAMES, .size = 232, .in_place = true,
    };

    fill_cache(&layouts[0], 0, 232, 256);
    kt_cache_witnesses_made(w, &made);
    g_assert_cmpuint(w->name.seen, ==, 1);
    g_assert_cmpuint(w->name.at[0], ==, layouts[0].name);
}

TEST(contradicting_call_ends_it, "/cache-witnesses/contradiction")
{
    g_autofree KtCacheWitnesses *w = begin();

    for (unsigned i = 0; i < 8; i++) {
        make(w, &layouts[0], i);
    }
    memset(memory, 0, NAMES);
    for (unsigned i = 8; i < N; i++) {
        make(w, &layouts[1], i);
        allocate_pair(w, i, 1, 2);
    }
    g_assert_true(w->name.contradicted);
    g_assert_false(w->learned);
}

/* ---- calls of kmalloc() -------------------------------------------------- */

static const struct {
    const char *name;
    uint32_t bytes;
} kmalloc_caches[] = {
    { "kmalloc-8", 8 }, { "kmalloc-rcl-96", 96 }, { "dma-kmalloc-1k", 1024 },
    { "kmalloc-cg-192", 192 }, { "kmalloc-rnd-05-2k", 2048 },
    { "kmalloc-8M", 8 << 20 }, { "kmalloc-1024", 1024 },
};

#define FIRST_KMALLOC 32        /* numbers of their structs */

/* In such a cache, other members have the same value. */
static void fill_kmalloc(const Layout *at, unsigned i)
{
    uint32_t bytes = kmalloc_caches[i].bytes;

    i += FIRST_KMALLOC;
    fill_cache(at, i, bytes, bytes);
    put32(i * CACHE + 300, bytes);              /* usersize */
    g_strlcpy((char *)&memory[NAMES + i * 64],
              kmalloc_caches[i - FIRST_KMALLOC].name, 64);
}

static uint64_t kmalloc_cache(unsigned i)
{
    return BASE + (FIRST_KMALLOC + i) * CACHE;
}

/* Two rounds of calls for all caches; each but the first is a witness. */
static void call_kmalloc(KtCacheWitnesses *w, const Layout *at)
{
    for (unsigned i = 0; i < 2 * G_N_ELEMENTS(kmalloc_caches); i++) {
        unsigned cache = i % G_N_ELEMENTS(kmalloc_caches);

        fill_kmalloc(at, cache);
        kt_cache_witnesses_kmalloc(w, kmalloc_cache(cache),
                                   kmalloc_caches[cache].bytes - i / 7);
    }
}

static void make_some(KtCacheWitnesses *w, const Layout *at, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        make(w, at, i);
        for (unsigned pair = 0; pair < 6; pair++) {
            allocate_pair(w, i, 2 * pair % 7, 2 * pair % 7 + 1);
        }
    }
}

TEST(kmalloc_needs_fewer_caches, "/cache-witnesses/kmalloc")
{
    for (unsigned i = 0; i < G_N_ELEMENTS(layouts); i++) {
        g_autofree KtCacheWitnesses *w = begin();

        call_kmalloc(w, &layouts[i]);
        g_assert_cmpuint(w->name.seen, ==, 14);
        make_some(w, &layouts[i], 3);
        g_assert_cmpuint(w->name.seen, >, 16);
        g_assert_false(w->learned);     /* fewer than four caches were made */
        make_some(w, &layouts[i], 5);
        g_assert_true(w->learned);
        g_assert_cmpuint(w->name.at[0], ==, layouts[i].name);
        g_assert_cmpuint(w->size.at[0], ==, layouts[i].size);
        g_assert_cmpuint(w->object_size.n, ==, 2);
        for (unsigned j = 0; j < 2; j++) {
            g_assert_true(w->object_size.at[j] == layouts[i].object_size ||
                          w->object_size.at[j] == layouts[i].inuse);
        }
    }
}

/* However many calls there are. */
TEST(kmalloc_alone_decides_nothing, "/cache-witnesses/kmalloc-alone")
{
    g_autofree KtCacheWitnesses *w = begin();

    for (unsigned i = 0; i < 4; i++) {
        call_kmalloc(w, &layouts[0]);
    }
    for (unsigned i = 0; i < 64; i++) {
        kt_cache_witnesses_object(w, kmalloc_cache(0), BASE + OBJECTS + 8 * i);
    }
    g_assert_cmpuint(w->pairs, >, 16);
    g_assert_cmpuint(w->object_size.seen, >, 16);
    g_assert_false(w->learned);
}

/* A call that names another cache than kmalloc() would use. */
TEST(wrong_call_is_no_witness, "/cache-witnesses/wrong-kmalloc")
{
    static const struct {
        const char *name;
        uint32_t size;
    } rows[] = {
        { "kmalloc-64", 65 }, { "kmalloc-512", 256 }, { "msg_msg-64", 64 },
        { "kmalloc-", 8 }, { "kmalloc-64(3:a)", 64 },
        { "kmalloc- 8", 8 }, { "kmalloc-99999999999M", 64 },
        { "kmalloc-64k1", 64 << 10 }, { "", 8 }, { "kmalloc-0", 1 },
    };
    g_autofree KtCacheWitnesses *w = begin();

    fill_kmalloc(&layouts[0], 0);
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_strlcpy((char *)&memory[NAMES + FIRST_KMALLOC * 64], rows[i].name,
                  64);
        w->last_kmalloc = 0;
        kt_cache_witnesses_kmalloc(w, kmalloc_cache(0), rows[i].size);
        g_assert_cmpuint(w->name.seen, ==, 0);
    }
    kt_cache_witnesses_kmalloc(w, BASE - 1, 64);
    g_assert_cmpuint(w->name.seen, ==, 0);
}

/* The same cache again says nothing new. */
TEST(same_cache_is_one_witness, "/cache-witnesses/same-kmalloc")
{
    g_autofree KtCacheWitnesses *w = begin();

    fill_kmalloc(&layouts[0], 1);
    for (unsigned i = 0; i < 32; i++) {
        kt_cache_witnesses_kmalloc(w, kmalloc_cache(1), 80);
    }
    g_assert_cmpuint(w->name.seen, ==, 1);
    g_assert_cmpuint(w->object_size.at[0], ==, layouts[0].size);
}

/* The name of this cache is at another offset. */
TEST(contradicting_kmalloc_ends_it, "/cache-witnesses/contradicting-kmalloc")
{
    g_autofree KtCacheWitnesses *w = begin();

    call_kmalloc(w, &layouts[0]);
    memset(memory, 0, NAMES);
    fill_kmalloc(&layouts[1], 2);
    kt_cache_witnesses_kmalloc(w, kmalloc_cache(2), 1024);
    g_assert_true(w->name.contradicted);
    make_some(w, &layouts[1], N);
    g_assert_false(w->learned);
}

/* ---- any bytes ----------------------------------------------------------- */

/* Arguments and pointers that lead nowhere, to the end of memory, or to names
 * without an end. */
TEST(hostile_bytes_are_bounded, "/cache-witnesses/hostile-bytes")
{
    static const uint64_t places[] = {
        0, 1, BASE - 1, BASE + sizeof(memory) - 8, BASE + sizeof(memory) - 511,
        UINT64_MAX, UINT64_MAX - 7, BASE, BASE + 4090,
    };
    g_autofree KtCacheWitnesses *w = begin();

    for (unsigned round = 0; round < 3; round++) {
        memset(memory, round == 0 ? 0 : round == 1 ? 0xff : 'a',
               sizeof(memory));
        for (unsigned i = 0; i < G_N_ELEMENTS(places); i++) {
            for (unsigned j = 0; j < G_N_ELEMENTS(places); j++) {
                kt_cache_witnesses_made(w, &(KtCacheMade) {
                    .cache = places[i], .name = places[j], .size = UINT32_MAX,
                    .in_place = true });
                kt_cache_witnesses_object(w, places[i], places[j]);
                kt_cache_witnesses_kmalloc(w, places[i], i + j);
                kt_cache_witnesses_freed(w, places[j]);
            }
        }
    }
    g_assert_false(w->learned);
}
