/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The mark phase: each kind of pointer, block and root, in a small memory. Then
 * random memories: the results must equal those of a naive marker, which
 * repeats a pass over a list of blocks until nothing changes.
 */
#include <string.h>

#include "tests/lib/test-main.h"
#include "kalloc-tracer/leak/mark.h"

#define BASE    0xffff888000000000ull
#define WORDS   (1u << 17)          /* 1 MiB */

typedef struct World {
    uint64_t word[WORDS];
    bool hole[WORDS / 512];
    unsigned ticks;
    KtMarker *scan;
    KtReader reader;
} World;

static bool read_world(void *opaque, uint64_t va, void *buf, size_t len)
{
    World *w = opaque;
    uint64_t off = va - BASE;

    if (off >= sizeof(w->word) || len > sizeof(w->word) - off ||
        w->hole[off / 4096]) {
        return false;
    }
    memcpy(buf, (char *)w->word + off, len);
    return true;
}

static World *world_new(void)
{
    World *w = g_new0(World, 1);

    w->scan = kt_marker_new();
    w->reader.mem = (GsMem) { .read = read_world, .opaque = w };
    kt_reader_init(&w->reader);
    return w;
}

static void world_free(World *w)
{
    kt_marker_free(w->scan);
    kt_reader_deinit(&w->reader);
    g_free(w);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(World, world_free)

static uint64_t *at(World *w, uint64_t va)
{
    return &w->word[(va - BASE) / 8];
}

/* The root is the first page. */
static void run(World *w)
{
    kt_reader_each(&w->reader, BASE, 4096, kt_marker_span, w->scan);
    kt_marker_run(w->scan, &w->reader);
    kt_marker_scan_unreached(w->scan, &w->reader);
}

static void check(World *w, uint32_t block, bool reached, KtHold hold)
{
    g_assert_cmpint(kt_marker_reached(w->scan, block), ==, reached);
    g_assert_cmpint(kt_marker_hold(w->scan, block), ==, hold);
}

/* A case with an empty world @w. */
#define WORLD_TEST(fn, path) \
    TEST_IN(g_autoptr(World), World *w, world_new(), fn, path)

WORLD_TEST(test_pointers, "/scan/pointers")
{
    for (unsigned i = 0; i < 8; i++) {
        kt_marker_add(w->scan, BASE + 0x1000 + i * 0x100, 0x80, 0);
    }
    *at(w, BASE) = BASE + 0x1000;               /* start */
    *at(w, BASE + 8) = BASE + 0x1100 + 0x7f;    /* last byte */
    *at(w, BASE + 16) = BASE + 0x1200 + 0x80;   /* after the last byte */
    *at(w, BASE + 24) = BASE + 0x1300 + 2;      /* tagged */
    *at(w, BASE + 0x1010) = BASE + 0x1400;      /* by a block */
    *at(w, BASE + 0x1510) = BASE + 0x1600;      /* by an unreached block */
    *at(w, BASE + 0x1710) = BASE + 0x1700;      /* by itself */
    g_assert_cmpuint(kt_marker_seal(w->scan), ==, 0);
    run(w);
    check(w, 0, true, KT_HOLD_START);
    check(w, 1, true, KT_HOLD_INTERIOR);
    check(w, 2, false, KT_HOLD_NONE);
    check(w, 3, true, KT_HOLD_START);
    check(w, 4, true, KT_HOLD_START);
    check(w, 5, false, KT_HOLD_NONE);
    check(w, 6, false, KT_HOLD_START);
    check(w, 7, false, KT_HOLD_NONE);
}

/* A reached block's pointers into itself count for its KtHold. Pointers to
 * memory next to it do not. */
TEST(test_own_words, "/scan/own-words")
{
    static const struct {
        unsigned from, at;          /* offsets: block in page, word */
        uint64_t to;                /* offset in the page that it points to */
        KtHold hold;
    } row[] = {
        { 0x40, 0x10, 0, KT_HOLD_START },
        { 0x40, 0x00, 7, KT_HOLD_START },
        { 0x40, 0x38, 8, KT_HOLD_INTERIOR },
        { 0x40, 0x10, 0x3f, KT_HOLD_INTERIOR },
        { 0x40, 0x10, 0x40, KT_HOLD_NONE },
        { 0x40, 0x10, -1ull, KT_HOLD_NONE },
        { 0x44, 0x14, 0, KT_HOLD_INTERIOR },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(row) * 2; i++) {
        g_autoptr(World) w = world_new();
        uint64_t va = BASE + 0x1000 + row[i / 2].from;
        bool reached = i & 1;

        kt_marker_add(w->scan, va, 0x40, reached ? KT_MARKERF_STACK_VM : 0);
        *at(w, va + row[i / 2].at) = va + row[i / 2].to;
        kt_marker_seal(w->scan);
        run(w);
        check(w, 0, reached, reached ? row[i / 2].hold : KT_HOLD_NONE);
    }
}

/* A word that was seen in an unreached block counts when it is seen again. */
WORLD_TEST(test_words_again, "/scan/words-again")
{
    kt_marker_add(w->scan, 0x90000, 0x40, KT_MARKERF_HANDLE);
    kt_marker_alias(w->scan, BASE + 0x2000);
    kt_marker_add(w->scan, BASE + 0x1000, 0x40, 0);
    *at(w, BASE + 0x1000) = *at(w, BASE + 0x2000) = BASE + 0x2000;
    kt_marker_seal(w->scan);
    run(w);
    check(w, 0, false, KT_HOLD_START);
    check(w, 1, false, KT_HOLD_NONE);
}

WORLD_TEST(test_cycles, "/scan/cycles")
{
    for (unsigned i = 0; i < 4; i++) {
        kt_marker_add(w->scan, BASE + 0x1000 + i * 0x40, 0x40, 0);
        *at(w, BASE + 0x1000 + i * 0x40) = BASE + 0x1000 + (i ^ 1) * 0x40;
    }
    *at(w, BASE) = BASE + 0x1080;
    kt_marker_seal(w->scan);
    run(w);
    check(w, 0, false, KT_HOLD_START);
    check(w, 1, false, KT_HOLD_START);
    check(w, 2, true, KT_HOLD_START);
    check(w, 3, true, KT_HOLD_START);
}

WORLD_TEST(test_flags, "/scan/flags")
{
    const unsigned flags[] = { KT_MARKERF_ROOT,
                               0,
                               KT_MARKERF_NO_SCAN,
                               0,
                               KT_MARKERF_ROOT | KT_MARKERF_NO_SCAN,
                               0 };

    for (unsigned i = 0; i < 6; i++) {
        kt_marker_add(w->scan, BASE + 0x1000 + i * 0x40, 0x40, flags[i]);
    }
    *at(w, BASE) = BASE + 0x1080;
    *at(w, BASE + 0x1000) = BASE + 0x1040;
    *at(w, BASE + 0x1080) = BASE + 0x10c0;
    *at(w, BASE + 0x1100) = BASE + 0x1140;
    kt_marker_seal(w->scan);
    run(w);
    check(w, 0, true, KT_HOLD_NONE);
    check(w, 1, true, KT_HOLD_START);
    check(w, 2, true, KT_HOLD_START);
    check(w, 3, false, KT_HOLD_NONE);
    check(w, 4, true, KT_HOLD_NONE);
    check(w, 5, false, KT_HOLD_NONE);
}

/* Per-CPU memory: a handle, and one alias for each CPU. */
WORLD_TEST(test_aliases, "/scan/aliases")
{
    uint32_t cookie = kt_marker_add(w->scan, 0x30000, 0x40, KT_MARKERF_HANDLE);
    uint32_t by_instance;

    kt_marker_alias(w->scan, BASE + 0x2000);
    kt_marker_alias(w->scan, BASE + 0x3000);
    by_instance = kt_marker_add(w->scan, BASE + 0x4000, 0x40, 0);
    kt_marker_add(w->scan, 0x40000, 0x40,
                  KT_MARKERF_HANDLE | KT_MARKERF_EXACT);
    kt_marker_add(w->scan, 0x5000000000, 0x40, KT_MARKERF_HANDLE);
    kt_marker_add(w->scan, 0x60000, 0x40,
                  KT_MARKERF_HANDLE | KT_MARKERF_EXACT);
    kt_marker_add(w->scan, 0x70004, 4, KT_MARKERF_HANDLE | KT_MARKERF_EXACT);
    *at(w, BASE) = 0x30000;
    *at(w, BASE + 8) = 0x40010;     /* no exact address */
    *at(w, BASE + 16) = 0x5000000010;
    *at(w, BASE + 24) = 0x60001;    /* tagged: not exact */
    *at(w, BASE + 32) = 0x70004;
    *at(w, BASE + 0x3010) = BASE + 0x4000;
    kt_marker_seal(w->scan);
    g_assert_cmpuint(kt_marker_find(w->scan, BASE + 0x3020), ==, cookie);
    run(w);
    check(w, cookie, true, KT_HOLD_START);
    check(w, by_instance, true, KT_HOLD_START);
    check(w, 2, false, KT_HOLD_NONE);
    check(w, 3, true, KT_HOLD_INTERIOR);
    check(w, 4, false, KT_HOLD_NONE);
    check(w, 5, true, KT_HOLD_INTERIOR);    /* no multiple of 8 */
}

/* The vm_struct of a stack counts as a pointer only if it is reached itself. */
WORLD_TEST(test_areas_and_books, "/scan/areas-and-books")
{
    for (unsigned i = 0; i < 7; i++) {
        kt_marker_add(w->scan, BASE + 0x1000 + i * 0x40, 0x40,
                      i == 1 || i == 2 ? KT_MARKERF_STACK_VM : 0);
    }
    for (unsigned i = 0; i < 3; i++) {
        kt_marker_area(w->scan, (KtMarkerArea) { 2 - i, 0x10, 0x20 });
        *at(w, BASE + 0x1008 + i * 0x40) = BASE + 0x10c0 + i * 0x40;
        *at(w, BASE + 0x1010 + i * 0x40) = BASE + 0x1180;
    }
    *at(w, BASE) = BASE + 0x1000;
    *at(w, BASE + 8) = BASE + 0x1040;
    kt_marker_seal(w->scan);
    run(w);
    check(w, 2, true, KT_HOLD_NONE);    /* after the first pass */
    check(w, 3, false, KT_HOLD_NONE);   /* outside the area */
    check(w, 4, true, KT_HOLD_START);   /* by a reached vm_struct */
    check(w, 5, false, KT_HOLD_NONE);
    check(w, 6, true, KT_HOLD_START);
}

/* Skip words of areas, of a whole block, and more than the block has. */
TEST(test_cuts, "/scan/cuts")
{
    static const struct {
        uint64_t lo, hi;
        unsigned cut;               /* a bit for each of 8 words */
    } row[] = {
        { 0, 8, 0x01 }, { 8, 12, 0x02 }, { 12, 24, 0x06 }, { 0, 64, 0xff },
        { 56, 1000, 0x80 }, { 64, 72, 0 },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(row) * 2; i++) {
        g_autoptr(World) w = world_new();
        unsigned area = i & 1 ? 0x3c : 0xff;

        for (unsigned j = 0; j < 9; j++) {
            kt_marker_add(w->scan, BASE + 0x1000 + j * 0x40, 0x40, 0);
        }
        for (unsigned j = 0; j < 8; j++) {
            *at(w, BASE + 0x1000 + j * 8) = BASE + 0x1040 + j * 0x40;
        }
        if (i & 1) {
            kt_marker_area(w->scan, (KtMarkerArea) { 0, 0x10, 0x30 });
        }
        kt_marker_skip(w->scan, 0, 0x28, 0x30);
        kt_marker_skip(w->scan, 0, row[i / 2].lo, row[i / 2].hi);
        *at(w, BASE) = BASE + 0x1000;
        kt_marker_seal(w->scan);
        run(w);
        for (unsigned j = 0; j < 8; j++) {
            bool looked = (area & ~row[i / 2].cut & ~0x20) >> j & 1;

            check(w, j + 1, looked, looked ? KT_HOLD_START : KT_HOLD_NONE);
        }
    }
}

/* A guest that claims 512 CPUs and very many per-CPU blocks. */
WORLD_TEST(test_too_many_aliases, "/scan/too-many-aliases")
{
    const unsigned cpus = 512, n = KT_MARKER_ALIASES_MAX / cpus;

    for (unsigned i = 0; i < n + 3; i++) {
        kt_marker_add(w->scan, 0x80000000ull + i * 64, 64, KT_MARKERF_HANDLE);
        for (unsigned cpu = 0; cpu < cpus; cpu++) {
            kt_marker_alias(w->scan, BASE + ((uint64_t)i * cpus + cpu) * 64);
        }
    }
    g_assert_cmpuint(kt_marker_seal(w->scan), ==, 3);
    run(w);
    check(w, n - 1, false, KT_HOLD_NONE);
    check(w, n, true, KT_HOLD_NONE);
}

static void test_struct_pages(gconstpointer blocks_among)
{
    g_autoptr(World) w = world_new();
    const uint64_t vmemmap = 0xffffea0000000000ull;

    kt_marker_add(w->scan, BASE + 0x4000, 0x2000, KT_MARKERF_BY_PAGE);
    kt_marker_add(w->scan, BASE + 0x8000, 0x40, 0);
    kt_marker_pages(w->scan, vmemmap, vmemmap + 0x40 * 256, 0x40, BASE, 4096);
    *at(w, BASE) = vmemmap + 4 * 0x40;
    *at(w, BASE + 8) = vmemmap + 8 * 0x40;
    kt_marker_add(w->scan, blocks_among ? vmemmap + 0x200 : BASE, 0x40, 0);
    kt_marker_seal(w->scan);
    kt_marker_follow_pages(w->scan, false);
    kt_reader_each(&w->reader, BASE, 4096, kt_marker_span, w->scan);
    kt_marker_follow_pages(w->scan, true);
    check(w, 0, false, KT_HOLD_NONE);
    run(w);
    check(w, 0, true, KT_HOLD_INTERIOR);
    check(w, 1, false, KT_HOLD_NONE);
    check(w, 2, blocks_among, blocks_among ? KT_HOLD_START : KT_HOLD_NONE);
}

TEST_WITH(test_struct_pages, "/scan/struct-pages", NULL)
TEST_WITH(test_struct_pages, "/scan/blocks-among-them", "")

/* Blocks that overlap, or are very long: a hostile guest can cause both. */
WORLD_TEST(test_absurd_blocks, "/scan/absurd-blocks")
{
    uint32_t first = kt_marker_add(w->scan, BASE + 0x1000, 0x100, 0);
    uint32_t over = kt_marker_add(w->scan, BASE + 0x1080, 0x100, 0);
    uint32_t huge = kt_marker_add(w->scan, 1ull << 50, 1ull << 49, 0);

    kt_marker_add(w->scan, UINT64_MAX - 15, UINT64_MAX, 0);
    *at(w, BASE) = UINT64_MAX - 8;
    *at(w, BASE + 8) = BASE + 0x10c0;
    g_assert_cmpuint(kt_marker_seal(w->scan), ==, 2);
    run(w);
    check(w, first, true, KT_HOLD_INTERIOR);
    check(w, over, true, KT_HOLD_NONE);
    g_assert_true(kt_marker_reached(w->scan, huge));
}

static bool count_tick(void *opaque)
{
    World *w = opaque;

    return ++w->ticks < 2;
}

WORLD_TEST(test_holes_and_end, "/scan/holes-and-end")
{
    w->reader.tick = count_tick;
    w->reader.opaque = w;
    w->hole[3] = true;
    kt_marker_seal(w->scan);
    kt_reader_each(&w->reader, BASE, sizeof(w->word), kt_marker_span, w->scan);
    g_assert_cmpuint(w->reader.unreadable, ==, 1);
    g_assert_cmpuint(w->reader.bytes, ==, sizeof(w->word) - 4096);
    kt_reader_each(&w->reader, UINT64_MAX - 100, UINT64_MAX, kt_marker_span,
                    w->scan);
    g_assert_false(w->reader.stopped);
    kt_reader_each(&w->reader, 1ull << 40, 1ull << 50, kt_marker_span, w->scan);
    g_assert_true(w->reader.stopped);
    g_assert_cmpuint(w->ticks, ==, 2);
}

/* A guest may claim the same per-CPU offset for all CPUs. */
WORLD_TEST(test_looks_at_one_page_end, "/scan/looks-at-one-page-end")
{
    w->reader.tick = count_tick;
    w->reader.opaque = w;
    kt_marker_add(w->scan, 0x30000, 0x40, KT_MARKERF_HANDLE | KT_MARKERF_ROOT);
    for (unsigned i = 0; i < 5000; i++) {
        kt_marker_alias(w->scan, BASE + 0x1000);
    }
    g_assert_cmpuint(kt_marker_seal(w->scan), ==, 4999);
    kt_marker_run(w->scan, &w->reader);
    g_assert_true(w->reader.stopped);
    g_assert_cmpuint(w->reader.bytes, ==, 4096);
}

static bool sum_gap(void *opaque, uint64_t va, uint64_t len)
{
    *(uint64_t *)opaque += len;
    return true;
}

/* A guest may claim memory up to the last address: loops must end there. */
WORLD_TEST(test_ends_with_the_last_address, "/scan/ends-with-the-last-address")
{
    uint32_t last = kt_marker_add(w->scan, UINT64_MAX - 0xff, 0x80, 0);
    uint64_t sum = 0;

    kt_marker_add(w->scan, UINT64_MAX - 0x3f, 0x40, 0);
    kt_marker_pages(w->scan, -0x800000ull, UINT64_MAX - 63, 64, BASE, 4096);
    g_assert_cmpuint(kt_marker_seal(w->scan), ==, 0);
    g_assert_cmpuint(kt_marker_find(w->scan, UINT64_MAX - 0xf0), ==, last);
    kt_marker_gaps(w->scan, UINT64_MAX - 0x17ff, UINT64_MAX, sum_gap, &sum);
    g_assert_cmphex(sum, ==, 0x1700 + 0x40);
    kt_reader_each(&w->reader, UINT64_MAX - 2, 2, kt_marker_span, w->scan);
    g_assert_cmpuint(w->reader.bytes + w->reader.unreadable, ==, 0);
}

/* ---- against a naive marker --------------------------------------------- */

typedef struct Naive {
    unsigned n;
    uint64_t va[512], len[512];
    bool reached[512];
    KtHold hold[512];
} Naive;

static unsigned naive_find(const Naive *v, uint64_t word)
{
    for (unsigned i = 0; i < v->n; i++) {
        if (word >= v->va[i] && word < v->va[i] + v->len[i]) {
            return i;
        }
    }
    return v->n;
}

/* Make random blocks: of one size or many, sorted or not, near or far. */
static void fill_anywhere(Naive *v, GRand *r)
{
    unsigned n = g_rand_int_range(r, 1, G_N_ELEMENTS(v->va));
    uint64_t most = 1ull << g_rand_int_range(r, 1, 16);
    bool alike = g_rand_boolean(r);
    uint64_t va = BASE;

    for (v->n = 0; v->n < n; v->n++) {
        va += g_rand_int_range(r, 0, 64) ? g_rand_int(r) % most :
                                           g_rand_int(r);
        v->va[v->n] = va;
        v->len[v->n] = alike ? most : 1 + g_rand_int(r) % most;
        va += v->len[v->n];
    }
    for (unsigned i = g_rand_boolean(r) ? n : 1; --i;) {
        unsigned j = g_rand_int_range(r, 0, i + 1);
        uint64_t at = v->va[i], len = v->len[i];

        v->va[i] = v->va[j];
        v->len[i] = v->len[j];
        v->va[j] = at;
        v->len[j] = len;
    }
}

TEST(test_finds_as_a_naive_list, "/scan/finds-as-a-naive-list")
{
    for (unsigned seed = 0; seed < 200; seed++) {
        g_autoptr(GRand) r = g_rand_new_with_seed(seed);
        g_autoptr(KtMarker) s = kt_marker_new();
        g_autofree Naive *v = g_new0(Naive, 1);

        fill_anywhere(v, r);
        for (unsigned i = 0; i < v->n; i++) {
            kt_marker_add(s, v->va[i], v->len[i], 0);
        }
        g_assert_cmpuint(kt_marker_seal(s), ==, 0);
        for (unsigned i = 0; i < v->n; i++) {
            for (int off = -2; off < 3; off++) {
                uint64_t near = v->va[i] + off, end = near + v->len[i];
                unsigned a = naive_find(v, near), b = naive_find(v, end);

                g_assert_cmpuint(kt_marker_find(s, near), ==,
                                 a < v->n ? a : KT_MARKER_NONE);
                g_assert_cmpuint(kt_marker_find(s, end), ==,
                                 b < v->n ? b : KT_MARKER_NONE);
            }
        }
    }
}

/* Mark by the words of @self. Words of an unreached block count for other
 * unreached blocks only. */
static bool naive_words(Naive *v, World *w, uint64_t va, uint64_t len,
                        bool white, unsigned self)
{
    bool changed = false;

    for (uint64_t p = (va + 7) & ~7ull; p + 8 <= va + len; p += 8) {
        uint64_t word = *at(w, p);
        unsigned i = naive_find(v, word);
        KtHold how = (word & ~7ull) == v->va[MIN(i, v->n - 1)] ?
                     KT_HOLD_START : KT_HOLD_INTERIOR;

        if (i == v->n || (white && (v->reached[i] || i == self))) {
            continue;
        }
        changed |= !white && !v->reached[i];
        v->reached[i] |= !white;
        v->hold[i] = MAX(v->hold[i], how);
    }
    return changed;
}

static void naive_run(Naive *v, World *w)
{
    bool changed = naive_words(v, w, BASE, 4096, false, v->n);

    while (changed) {
        changed = false;
        for (unsigned i = 0; i < v->n; i++) {
            changed |= v->reached[i] &&
                       naive_words(v, w, v->va[i], v->len[i], false, i);
        }
    }
    for (unsigned i = 0; i < v->n; i++) {
        if (!v->reached[i]) {
            naive_words(v, w, v->va[i], v->len[i], true, i);
        }
    }
}

static void fill(Naive *v, World *w, GRand *r)
{
    uint64_t va = BASE + 4096, word = va;
    uint64_t end = BASE + 0x10000;

    while (v->n < G_N_ELEMENTS(v->va)) {
        uint64_t len = g_rand_int_range(r, 1, g_rand_boolean(r) ? 200 : 9000);

        va += g_rand_int_range(r, 0, 300);
        if (va + len > end) {
            break;
        }
        v->va[v->n] = va;
        v->len[v->n++] = len;
        va += len;
    }
    for (unsigned i = 0; i < v->n * 2; i++) {
        unsigned to = g_rand_int_range(r, 0, v->n);
        unsigned from = g_rand_int_range(r, 0, v->n);
        uint64_t where = i % 32 ? v->va[from] + g_rand_int_range(
            r, 0, v->len[from]) : BASE + g_rand_int_range(r, 0, 4088);

        to = g_rand_int_range(r, 0, 4) ? to : from;     /* itself */
        word = g_rand_int_range(r, 0, 4) ? v->va[to] +
               g_rand_int_range(r, -2, v->len[to] + 2) : word;
        *at(w, where & ~7ull) = word;
    }
}

TEST(test_agrees_with_naive_marking, "/scan/agrees-with-naive-marking")
{
    for (unsigned seed = 0; seed < 60; seed++) {
        g_autoptr(GRand) r = g_rand_new_with_seed(seed);
        g_autoptr(World) w = world_new();
        g_autofree Naive *v = g_new0(Naive, 1);

        fill(v, w, r);
        for (unsigned i = 0; i < v->n; i++) {
            kt_marker_add(w->scan, v->va[i], v->len[i], 0);
        }
        g_assert_cmpuint(kt_marker_seal(w->scan), ==, 0);
        run(w);
        naive_run(v, w);
        for (unsigned i = 0; i < v->n; i++) {
            check(w, i, v->reached[i], v->hold[i]);
        }
    }
}
