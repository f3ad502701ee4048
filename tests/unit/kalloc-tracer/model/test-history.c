/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Past lives are found by any address inside the block, newest first. The
 * oldest are dropped first.
 */
#include "tests/lib/test-main.h"
#include "kalloc-tracer/model/history.h"

G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtHistory, kt_history_free)

typedef struct Found {
    uint64_t us[64];
    unsigned n;
    unsigned stop_after;
} Found;

static bool note(const KtBlock *b, void *opaque)
{
    Found *f = opaque;

    g_assert_true(b->past);
    f->us[f->n++] = b->free_us;
    return f->n != f->stop_after && f->n < G_N_ELEMENTS(f->us);
}

static Found find(const KtHistory *h, uint64_t va)
{
    Found f = { { 0 } };

    kt_history_find(h, va, note, &f);
    return f;
}

static bool add(KtHistory *h, uint64_t va, uint64_t len, uint64_t us)
{
    const KtBlock b = {
        .va = va,
        .requested = len,
        .actual = len,
        .free_us = us,
        .state = KT_BLOCK_FREED,
        .layer = KT_LAYER_KMALLOC,
    };

    return kt_history_add(h, &b);
}

static bool keep(const KtBlock *b, void *opaque)
{
    *(KtBlock *)opaque = *b;
    return false;
}

static const KtBlock full = {
    .va = 0xffff888012345678,
    .requested = 0xfffffffe,
    .actual = 0xffffffff,
    .alloc_us = 0xfedcba987654,
    .free_us = 0xffffffffffff,
    .alloc_stack = { 0xabcdef },
    .free_stack = { 0x123456 },
    .alloc_task = { 0x3fffff },
    .free_task = { 0x2aaaaa },
    .cache = { 0xfffe },
    .state = KT_BLOCK_FREED,
    .layer = KT_LAYER_PAGES,
};

static void check_kept(const KtBlock *in)
{
    g_autoptr(KtHistory) h = kt_history_new(1 << 20, NULL);
    KtBlock out;

    /* A row on each side, that none may touch the other. */
    add(h, 1, 1, 1);
    g_assert_true(kt_history_add(h, in));
    add(h, 2, 1, 1);
    kt_history_find(h, in->va, keep, &out);
    g_assert_cmphex(out.va, ==, in->va);
    g_assert_cmphex(out.requested, ==, in->requested);
    g_assert_cmphex(out.actual, ==, in->actual);
    g_assert_cmphex(out.alloc_us, ==, in->alloc_us);
    g_assert_cmphex(out.free_us, ==, in->free_us);
    g_assert_cmphex(out.alloc_stack.v, ==, in->alloc_stack.v);
    g_assert_cmphex(out.free_stack.v, ==, in->free_stack.v);
    g_assert_cmphex(out.alloc_task.v, ==, in->alloc_task.v);
    g_assert_cmphex(out.cache.v, ==, in->cache.v);
    g_assert_cmphex(out.free_task.v, ==, in->rcu_queued ? 0 :
                    in->free_task.v);
    g_assert_cmphex(out.rcu_stack.v, ==, in->rcu_queued ? in->rcu_stack.v : 0);
    g_assert_cmpint(out.rcu_queued, ==, in->rcu_queued);
    g_assert_cmpint(out.state, ==, in->state);
    g_assert_cmpint(out.removed, ==, in->removed);
    g_assert_cmpint(out.layer, ==, in->layer);
    g_assert_cmpuint(find(h, 1).n, ==, 1);
    g_assert_cmpuint(find(h, 2).n, ==, 1);
}

TEST(test_fields, "/history/fields")
{
    KtBlock b = full;

    check_kept(&b);
    b.rcu_queued = true;
    b.rcu_stack.v = 0xfedcba;
    check_kept(&b);
    b = full;
    b.removed = true;
    check_kept(&b);
    b = full;
    b.state = KT_BLOCK_ALLOCATED;
    b.free_us = 0;
    check_kept(&b);
    b.requested = (uint64_t)1 << 40;
    check_kept(&b);
}

/* Every size from a byte to all there is, at both of its ends. */
TEST(test_sizes, "/history/sizes")
{
    g_autoptr(KtHistory) h = kt_history_new(1 << 20, NULL);

    for (unsigned bit = 0; bit < 64; bit++) {
        uint64_t len = (uint64_t)1 << bit;
        uint64_t va = UINT64_MAX - len - 12345 * (bit < 40);

        add(h, va, len, bit + 1);
        for (unsigned i = 0; i < 3; i++) {
            uint64_t at = va + (len - 1) / 2 * i;

            g_assert_cmpuint(find(h, at).us[0], ==, bit + 1);
        }
    }
    g_assert_cmpuint(find(h, 0).n, ==, 0);
}

TEST(test_bounds, "/history/bounds")
{
    g_autoptr(KtHistory) h = kt_history_new(1 << 20, NULL);

    add(h, 0x1000, 0x40, 1);
    add(h, 0x2000, 0, 2);
    add(h, UINT64_MAX - 15, 100, 3);
    add(h, 0, UINT64_MAX, 4);
    g_assert_cmpuint(find(h, 0xfff).us[0], ==, 4);
    g_assert_cmpuint(find(h, 0x1000).us[1], ==, 1);
    g_assert_cmpuint(find(h, 0x103f).us[1], ==, 1);
    g_assert_cmpuint(find(h, 0x1040).n, ==, 1);
    g_assert_cmpuint(find(h, 0x2000).n, ==, 2);
    g_assert_cmpuint(find(h, 0x2001).n, ==, 1);
    g_assert_cmpuint(find(h, UINT64_MAX).us[0], ==, 3);
}

/* Rows of several sizes, all of which contain the address. */
TEST(test_newest_first, "/history/newest-first")
{
    g_autoptr(KtHistory) h = kt_history_new(1 << 20, NULL);
    Found f;

    for (unsigned i = 1; i <= 50; i++) {
        add(h, 0x10000 - i * 7 % 64, 0x80 << i % 11, i);
    }
    f = find(h, 0x10020);
    g_assert_cmpuint(f.n, ==, 50);
    for (unsigned i = 0; i < f.n; i++) {
        g_assert_cmpuint(f.us[i], ==, 50 - i);
    }
    f = (Found) { .stop_after = 3 };
    kt_history_find(h, 0x10020, note, &f);
    g_assert_cmpuint(f.n, ==, 3);
}

/* A neighbour in the same granule was handed out again and again. */
TEST(test_newest_of_a_few, "/history/newest-of-a-few")
{
    g_autoptr(KtHistory) h = kt_history_new(1 << 20, NULL);
    unsigned rows = 1000;
    KtBlock b;

    g_assert_false(kt_history_newest(h, 0x1000, &rows, &b));
    add(h, 0x1020, 16, 1);
    add(h, 0x1020, 16, 2);
    for (unsigned i = 3; i <= 100; i++) {
        add(h, 0x1000, 16, i);
    }
    g_assert_true(kt_history_newest(h, 0x1025, &rows, &b));
    g_assert_cmpuint(b.free_us, ==, 2);
    g_assert_cmpuint(rows, >, 0);
    g_assert_false(kt_history_newest(h, 0x1030, &rows, &b));
    g_assert_cmpuint(rows, >, 0);
    rows = 50;
    g_assert_false(kt_history_newest(h, 0x1025, &rows, &b));
    g_assert_cmpuint(rows, ==, 0);
}

TEST(test_oldest_dropped, "/history/oldest-dropped")
{
    g_autoptr(KtHistory) h = kt_history_new(48 * 10, NULL);

    for (unsigned i = 1; i <= 10; i++) {
        g_assert_true(add(h, i * 0x1000, 64, i));
    }
    g_assert_cmpuint(kt_history_rows(h), ==, 10);
    g_assert_cmpuint(kt_history_bytes(h), <=, 48 * 10);
    for (unsigned i = 11; i <= 25; i++) {
        g_assert_false(add(h, i * 0x1000, i == 12 ? UINT64_MAX : 64, i));
    }
    g_assert_cmpuint(kt_history_rows(h), ==, 10);
    g_assert_cmpuint(find(h, 0x5000).n, ==, 0);
    g_assert_cmpuint(find(h, 0xf000).n, ==, 0);
    for (unsigned i = 16; i <= 25; i++) {
        g_assert_cmpuint(find(h, i * 0x1000).us[0], ==, i);
    }
}

TEST(test_no_memory, "/history/no-memory")
{
    for (unsigned bytes = 0; bytes < 48; bytes++) {
        KtHistory *h = kt_history_new(bytes, NULL);

        g_assert_false(add(h, 0x1000, 64, 1));
        g_assert_cmpuint(find(h, 0x1000).n, ==, 0);
        kt_history_free(h);
    }
    kt_history_free(NULL);
}

/* Huge sizes are kept beside the rows, and not without end. */
TEST(test_many_huge, "/history/many-huge")
{
    g_autoptr(KtHistory) h = kt_history_new(48 * 200000, NULL);
    const unsigned max = 65536;

    for (unsigned i = 1; i <= max; i++) {
        g_assert_true(add(h, (uint64_t)i << 33, (uint64_t)1 << 32, i));
    }
    g_assert_false(add(h, 0, (uint64_t)1 << 32, 1));
    g_assert_true(add(h, 0, 64, 2));
    g_assert_cmpuint(find(h, 0).n, ==, 1);
    g_assert_cmpuint(kt_history_rows(h), ==, max + 1);
}

/* Against a list, through many times the ring's length. */
TEST(test_random, "/history/random-against-list")
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(g_test_rand_int());
    const unsigned cap = 500;
    const unsigned n = 20000;
    KtHistory *h = kt_history_new(cap * 48, NULL);
    g_autofree uint64_t *va = g_new(uint64_t, n);
    g_autofree uint64_t *len = g_new(uint64_t, n);

    for (unsigned i = 0; i < n; i++) {
        uint64_t at = g_rand_int_range(rand, 0, 1 << 16);
        unsigned k = i + 1;
        Found f;

        va[i] = at & ~63u;
        len[i] = 1u << g_rand_int_range(rand, 0, 14);
        add(h, va[i], len[i], i);
        f = find(h, at);
        for (unsigned j = 0; j < f.n; j++) {
            do {
                k--;
            } while (at < va[k] || at - va[k] >= len[k]);
            g_assert_cmpuint(f.us[j], ==, k);
        }
        while (f.n < G_N_ELEMENTS(f.us) && k-- > 0 && k + cap > i) {
            g_assert_false(at >= va[k] && at - va[k] < len[k]);
        }
    }
    kt_history_free(h);
}
