/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Gaps between blocks: the index lists all, until the callback stops it. */
#include "tests/lib/test-main.h"
#include "kalloc-tracer/leak/mark-internal.h"

#define BASE 0xffff888000000000ull

typedef struct Gaps {
    uint64_t sum;
    unsigned n, enough;
} Gaps;

static bool see_gap(void *opaque, uint64_t va, uint64_t len)
{
    Gaps *g = opaque;

    g->sum += len;
    return ++g->n != g->enough;
}

static void never(void *opaque, uint32_t block)
{
    g_assert_not_reached();
}

/* Three blocks, and a handle of per-CPU memory, which covers no address. */
static KtMarkIndex *index_new(void)
{
    static const struct {
        uint64_t va, len;
    } row[] = {
        { BASE + 0x0f80, 0x100 }, { BASE + 0x1100, 0x20 },
        { BASE + 0x3000, 0x3000 }, { BASE + 0x8000, 1 },
    };
    KtMarkIndex *ix = kt_mark_index_new(G_N_ELEMENTS(row));
    KtMarkerFilter filter = { { 0 } };

    for (unsigned i = 0; i < G_N_ELEMENTS(row); i++) {
        g_assert_true(kt_mark_index_add(ix, row[i].va, row[i].len, i));
    }
    kt_mark_index_seal(ix, &filter, never, NULL);
    return ix;
}

TEST(test_gaps, "/scan-index/gaps")
{
    KtMarkIndex *ix = index_new();
    Gaps g = { 0 };

    kt_mark_index_gaps(ix, BASE, 0x10000, see_gap, &g);
    g_assert_cmphex(g.sum, ==, 0x10000 - 0x100 - 0x20 - 0x3000);
    kt_mark_index_free(ix);
}

/* The callback stops at the first, second, ... gap of the whole address space:
 * in one page or several, before a block or after it. */
TEST(test_enough, "/scan-index/enough")
{
    for (unsigned enough = 1; enough < 10; enough++) {
        KtMarkIndex *ix = index_new();
        Gaps g = { .enough = enough };

        kt_mark_index_gaps(ix, BASE, UINT64_MAX, see_gap, &g);
        g_assert_cmpuint(g.n, ==, enough);
        kt_mark_index_free(ix);
    }
}
