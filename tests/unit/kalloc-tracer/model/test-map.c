/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The B+tree of the map: lists of operations for its special cases, then a
 * million random operations compared with a sorted array.
 */
#include <string.h>

#include "tests/lib/test-main.h"
#include "kalloc-tracer/model/map.h"

typedef enum OpKind { END, INSERT, REMOVE, FLOOR, ABOVE, SEEK } OpKind;

/* What is expected: of INSERT nothing, of REMOVE whether it was there, of
 * the others the key found (value 0: none). */
typedef struct Op {
    OpKind kind;
    uint64_t key;
    uint32_t val;
    uint64_t found;
} Op;

static void check_entry(KtMapEntry e, const Op *op)
{
    g_assert_cmpuint(e.val, ==, op->val);
    if (op->val) {
        g_assert_cmphex(e.key, ==, op->found);
    }
}

static void run_op(KtMap *m, const Op *op)
{
    KtMapIter it;

    switch (op->kind) {
    case INSERT:
        g_assert_true(kt_map_insert(m, op->key, op->val));
        break;
    case REMOVE:
        g_assert_cmpint(kt_map_remove(m, op->key), ==, op->val);
        break;
    case FLOOR:
        check_entry(kt_map_floor(m, op->key), op);
        break;
    case ABOVE:
        check_entry(kt_map_above(m, op->key), op);
        break;
    case SEEK:
        it = kt_map_seek(m, op->key);
        check_entry(kt_map_next(m, &it), op);
        break;
    default:
        g_assert_not_reached();
    }
}

static void run_ops(const Op *ops)
{
    KtMap m;

    kt_map_init(&m);
    for (; ops->kind != END; ops++) {
        run_op(&m, ops);
    }
    kt_map_deinit(&m);
}

TEST(test_empty, "/map/empty")
{
    static const Op ops[] = {
        { FLOOR, 5 }, { ABOVE, 5 }, { SEEK, 5 }, { REMOVE, 5, false },
        { INSERT, 5, 1 }, { REMOVE, 5, true }, { REMOVE, 5, false },
        { FLOOR, 5 }, { ABOVE, 0 }, { SEEK, 0 },
        { INSERT, 7, 2 }, { FLOOR, 7, 2, 7 }, { FLOOR, 6 },
        { END },
    };

    run_ops(ops);
}

TEST(test_neighbours, "/map/neighbours")
{
    static const Op ops[] = {
        { INSERT, 10, 1 }, { INSERT, 30, 3 }, { INSERT, 20, 2 },
        { FLOOR, 9 }, { FLOOR, 10, 1, 10 }, { FLOOR, 29, 2, 20 },
        { ABOVE, 9, 1, 10 }, { ABOVE, 10, 2, 20 }, { ABOVE, 30 },
        { SEEK, 20, 2, 20 }, { SEEK, 21, 3, 30 }, { SEEK, 31 },
        { INSERT, 20, 9 }, { FLOOR, 25, 9, 20 },
        { END },
    };

    run_ops(ops);
}

/* Keys farther apart than a leaf can hold, and both ends. */
TEST(test_far_apart, "/map/far-apart")
{
    static const Op ops[] = {
        { INSERT, 0x8000000000000000, 1 },
        { INSERT, UINT64_MAX, 2 },
        { INSERT, 0, 3 },
        { INSERT, 0x8000000100000000, 4 },
        { INSERT, 0x80000000ffffffff, 5 },
        { INSERT, 0x7fffffff00000000, 6 },
        { FLOOR, 0x7fffffffffffffff, 6, 0x7fffffff00000000 },
        { FLOOR, UINT64_MAX, 2, UINT64_MAX },
        { FLOOR, UINT64_MAX - 1, 4, 0x8000000100000000 },
        { ABOVE, 0x8000000000000000, 5, 0x80000000ffffffff },
        { ABOVE, UINT64_MAX },
        { REMOVE, 0x80000000ffffffff, true },
        { ABOVE, 0x8000000000000000, 4, 0x8000000100000000 },
        { REMOVE, 0, true }, { FLOOR, 0x7fffffff00000000 - 1 },
        { REMOVE, UINT64_MAX, true }, { ABOVE, 0x8000000100000000 },
        { END },
    };

    run_ops(ops);
}

/* Fill in an order, look everything up, take it out in another order. */
static void fill_and_drain(uint64_t (*nth)(unsigned i), unsigned n)
{
    KtMap m;
    KtMapIter it;
    uint64_t last = 0;

    kt_map_init(&m);
    for (unsigned i = 0; i < n; i++) {
        g_assert_true(kt_map_insert(&m, nth(i), i + 1));
    }
    g_assert_cmpuint(m.n, ==, n);
    for (unsigned i = 0; i < n; i++) {
        g_assert_cmpuint(kt_map_floor(&m, nth(i)).val, ==, i + 1);
    }
    it = kt_map_seek(&m, 0);
    for (unsigned i = 0; i < n; i++) {
        KtMapEntry e = kt_map_next(&m, &it);

        g_assert_true(e.val && (i == 0 || e.key > last));
        last = e.key;
    }
    g_assert_cmpuint(kt_map_next(&m, &it).val, ==, 0);
    for (unsigned i = 0; i < n; i++) {
        g_assert_true(kt_map_remove(&m, nth(n - 1 - i)));
    }
    g_assert_cmpuint(m.n, ==, 0);
    g_assert_cmpuint(m.height, ==, 0);
    kt_map_deinit(&m);
}

static uint64_t ascending(unsigned i)
{
    return 0xffff888000000000 + i * 64ull;
}

static uint64_t descending(unsigned i)
{
    return 0xffff888000000000 - i * 64ull;
}

static uint64_t scattered(unsigned i)
{
    return 0xffff888000000000 + (i * 2654435761u) / 8 * 8ull;
}

static uint64_t one_a_leaf(unsigned i)
{
    return (uint64_t)i << 33;
}

TEST(test_ascending, "/map/ascending")
{
    fill_and_drain(ascending, 200000);
}

TEST(test_descending, "/map/descending")
{
    fill_and_drain(descending, 200000);
}

TEST(test_scattered, "/map/scattered")
{
    fill_and_drain(scattered, 200000);
}

TEST(test_one_a_leaf, "/map/one-a-leaf")
{
    fill_and_drain(one_a_leaf, 20000);
}

/* Entries cost at most 11 bytes when they come in random order. */
TEST(test_fill_factor, "/map/fill-factor")
{
    KtMap m;

    kt_map_init(&m);
    for (unsigned i = 0; i < 1000000; i++) {
        kt_map_insert(&m, scattered(i), i + 1);
    }
    g_assert_cmpuint((m.nodes.used - m.nodes.n_free) * 512 / m.n, <, 11);
    kt_map_deinit(&m);
}

/* ---- against a sorted array --------------------------------------------- */

typedef struct Naive {
    KtMapEntry *e;
    unsigned n;
} Naive;

static unsigned naive_upper(const Naive *v, uint64_t key)
{
    unsigned lo = 0;
    unsigned hi = v->n;

    while (lo < hi) {
        unsigned mid = (lo + hi) / 2;

        if (v->e[mid].key <= key) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

static void naive_insert(Naive *v, uint64_t key, uint32_t val)
{
    unsigned i = naive_upper(v, key);

    if (i && v->e[i - 1].key == key) {
        v->e[i - 1].val = val;
        return;
    }
    memmove(&v->e[i + 1], &v->e[i], (v->n - i) * sizeof(*v->e));
    v->e[i] = (KtMapEntry) { key, val };
    v->n++;
}

static bool naive_remove(Naive *v, uint64_t key)
{
    unsigned i = naive_upper(v, key);

    if (!i || v->e[i - 1].key != key) {
        return false;
    }
    v->n--;
    memmove(&v->e[i - 1], &v->e[i], (v->n + 1 - i) * sizeof(*v->e));
    return true;
}

static void compare(const KtMap *m, const Naive *v, uint64_t key)
{
    unsigned i = naive_upper(v, key);
    KtMapEntry floor, above;

    kt_map_around(m, key, &floor, &above);
    g_assert_cmpuint(floor.val, ==, i ? v->e[i - 1].val : 0);
    g_assert_cmpuint(above.val, ==, i < v->n ? v->e[i].val : 0);
    if (floor.val) {
        g_assert_cmphex(floor.key, ==, v->e[i - 1].key);
    }
    if (above.val) {
        g_assert_cmphex(above.key, ==, v->e[i].key);
    }
}

static void compare_all(const KtMap *m, const Naive *v)
{
    KtMapIter it = kt_map_seek(m, 0);

    g_assert_cmpuint(m->n, ==, v->n);
    for (unsigned i = 0; i < v->n; i++) {
        KtMapEntry e = kt_map_next(m, &it);

        g_assert_cmphex(e.key, ==, v->e[i].key);
        g_assert_cmpuint(e.val, ==, v->e[i].val);
    }
    g_assert_cmpuint(kt_map_next(m, &it).val, ==, 0);
}

/* Mostly dense areas, some keys anywhere, so that leaves of every kind come
 * and go; the areas grow and shrink in turns. */
static uint64_t random_key(GRand *rand)
{
    uint64_t wide = (uint64_t)g_rand_int(rand) << 32 | g_rand_int(rand);

    switch (g_rand_int_range(rand, 0, 16)) {
    case 0:
        return wide;
    case 1:
        return wide & 0xffffffff0000003f;
    case 2:
        return wide | 0xffffffffffff0000;
    default:
        return 0xffff888000000000 + (wide & 0x3fff) * 8;
    }
}

TEST(test_random, "/map/random-against-sorted-array")
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(g_test_rand_int());
    const unsigned ops = 1000000;
    Naive v = { g_new(KtMapEntry, ops), 0 };
    KtMap m;

    kt_map_init(&m);
    for (unsigned i = 0; i < ops; i++) {
        uint64_t key = random_key(rand);
        bool growing = i / 50000 % 2 == 0;

        if (g_rand_int_range(rand, 0, 10) < (growing ? 6 : 3)) {
            g_assert_true(kt_map_insert(&m, key, i + 1));
            naive_insert(&v, key, i + 1);
        } else {
            if (v.n && g_rand_boolean(rand)) {
                key = v.e[g_rand_int_range(rand, 0, v.n)].key;
            }
            g_assert_cmpint(kt_map_remove(&m, key), ==,
                            naive_remove(&v, key));
        }
        compare(&m, &v, random_key(rand));
        if (i % 25000 == 0) {
            compare_all(&m, &v);
        }
    }
    compare_all(&m, &v);
    while (v.n) {
        g_assert_true(kt_map_remove(&m, v.e[v.n / 2].key));
        naive_remove(&v, v.e[v.n / 2].key);
    }
    g_assert_cmpuint(m.n, ==, 0);
    kt_map_deinit(&m);
    g_free(v.e);
}

/* Hints answer the same, whatever happened to the map since. */
static void check_hints(KtMapHint *h, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        KtMapEntry floor, above, floor2, above2;

        kt_map_around_hint(&h[i], &floor, &above);
        kt_map_around(h[i].map, h[i].key, &floor2, &above2);
        g_assert_cmpuint(floor.val, ==, floor2.val);
        g_assert_cmpuint(above.val, ==, above2.val);
    }
}

TEST(test_stale_hints, "/map/stale-hints")
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(g_test_rand_int());
    KtMap m;
    KtMapHint h[64];

    kt_map_init(&m);
    for (unsigned round = 0; round < 4000; round++) {
        for (unsigned i = 0; i < G_N_ELEMENTS(h); i++) {
            h[i] = (KtMapHint) { &m, random_key(rand) };
        }
        kt_map_touch(h, G_N_ELEMENTS(h));
        for (unsigned i = 0; i < G_N_ELEMENTS(h); i++) {
            uint32_t val = kt_map_peek(&h[i]);

            g_assert_true(!val ||
                          val == kt_map_floor(&m, h[i].key).val);
        }
        for (unsigned i = 0; i < G_N_ELEMENTS(h); i++) {
            if (round / 500 % 2 == 0) {
                g_assert_true(kt_map_insert_hint(&h[i], round + 1));
                g_assert_cmpuint(kt_map_floor(&m, h[i].key).val, ==,
                                 round + 1);
            } else {
                kt_map_remove(&m, kt_map_above(&m, h[i].key).key);
            }
        }
        check_hints(h, G_N_ELEMENTS(h));
    }
    kt_map_deinit(&m);
}
