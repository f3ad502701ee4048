/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Events are the same after they were written as columns and read back, with
 * the least and the greatest number in each field. Columns that are too short
 * or too long, or have a number that is too large, are refused.
 */
#include "tests/lib/test-main.h"
#include "kalloc-tracer/journal/journal-format.h"

#define N 1000

typedef struct Columns {
    GByteArray *col[KT_COL__COUNT];
} Columns;

static void columns_init(Columns *c)
{
    for (unsigned i = 0; i < KT_COL__COUNT; i++) {
        c->col[i] = g_byte_array_new();
    }
}

static void columns_deinit(Columns *c)
{
    for (unsigned i = 0; i < KT_COL__COUNT; i++) {
        g_byte_array_unref(c->col[i]);
    }
}

static bool decode(const Columns *c, unsigned n, KtEvent *ev)
{
    GsBytes col[KT_COL__COUNT];

    for (unsigned i = 0; i < KT_COL__COUNT; i++) {
        col[i] = gs_bytes(c->col[i]->data, c->col[i]->len);
    }
    return kt_event_codec_decode(col, n, ev);
}

static void expect_same(const KtEvent *ev, unsigned n)
{
    g_autofree KtEvent *back = g_new(KtEvent, n + 1);
    Columns c;

    columns_init(&c);
    kt_event_codec_encode(ev, n, c.col);
    g_assert_true(decode(&c, n, back));
    g_assert_cmpmem(back, n * sizeof(*ev), ev, n * sizeof(*ev));
    g_assert_false(decode(&c, n + 1, back));
    g_assert_true(!n || !decode(&c, n - 1, back));
    columns_deinit(&c);
}

/* ---- tests -------------------------------------------------------------- */

static const KtEvent least;
static const KtEvent greatest = {
    .seq = UINT64_MAX, .va = UINT64_MAX, .size = UINT64_MAX,
    .actual = UINT64_MAX, .us = (1ull << 48) - 1, .cpu = UINT16_MAX,
    .stack = { UINT32_MAX }, .task = { UINT32_MAX }, .gfp = UINT32_MAX,
    .cache = { UINT16_MAX }, .kind = UINT8_MAX, .hook = { UINT8_MAX },
    .layer = UINT8_MAX, .family = UINT8_MAX, .flags = UINT8_MAX,
    .tag = UINT8_MAX,
};

TEST(test_limits, "/event-codec/limits")
{
    const KtEvent ev[] = { least, greatest, least, least, greatest, greatest };

    for (unsigned n = 0; n <= G_N_ELEMENTS(ev); n++) {
        expect_same(ev, n);
    }
}

static uint64_t any(GRand *r)
{
    uint64_t v = (uint64_t)g_rand_int(r) << 32 | g_rand_int(r);

    return v >> g_rand_int_range(r, 0, 64);
}

TEST(test_any_events, "/event-codec/any-events")
{
    GRand *r = g_rand_new_with_seed(1);
    g_autofree KtEvent *ev = g_new(KtEvent, N);

    for (unsigned i = 0; i < N; i++) {
        ev[i] = (KtEvent) {
            .seq = any(r), .va = any(r), .size = any(r), .actual = any(r),
            .us = any(r), .cpu = any(r), .stack = { any(r) },
            .task = { any(r) }, .gfp = any(r), .cache = { any(r) },
            .kind = any(r), .hook = { any(r) }, .layer = any(r),
            .family = any(r), .flags = any(r),
        };
    }
    expect_same(ev, N);
    g_rand_free(r);
}

/* Of each column but that of calls one number, one more than its field can
 * have; times, sequence numbers and stacks are differences. */
TEST(test_too_large, "/event-codec/too-large")
{
    static const struct {
        KtColumn col;
        uint64_t number;
    } rows[] = {
        { KT_COL_US, 1ull << 49 }, { KT_COL_US, 1 },
        { KT_COL_CPU, 1 << 16 },
        { KT_COL_STACK, 1ull << 33 }, { KT_COL_STACK, 1 },
        { KT_COL_TASK, 1ull << 32 },
    };
    KtEvent back;

    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        Columns c;

        columns_init(&c);
        kt_event_codec_encode(&least, 1, c.col);
        g_assert_true(decode(&c, 1, &back));
        g_byte_array_set_size(c.col[rows[i].col], 0);
        gs_out_varint(&GS_OUT(c.col[rows[i].col]), rows[i].number);
        g_assert_false(decode(&c, 1, &back));
        columns_deinit(&c);
    }
}

TEST(test_torn, "/event-codec/torn")
{
    KtEvent back[2];

    for (unsigned i = 0; i < KT_COL__COUNT; i++) {
        Columns c;

        columns_init(&c);
        kt_event_codec_encode((KtEvent[]) { least, greatest }, 2, c.col);
        g_byte_array_set_size(c.col[i], c.col[i]->len - 1);
        g_assert_false(decode(&c, 2, back));
        columns_deinit(&c);
    }
}
