/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ring of call records: what is read is what was put, also where the ring
 * wraps; the oldest records make room, and are counted.
 */
#include "tests/lib/test-main.h"
#include "kalloc-tracer/calls/call-records.h"

G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtCallRing, kt_call_ring_free)

#define BYTES 4096u

/* Record @i has i % 9 arguments and i % 20 bytes, all made of @i. */
static unsigned put(KtCallRing *r, unsigned i)
{
    KtCall call = { .start_ns = i, .n_args = i % 9, .n_extra = i % 20 };
    uint64_t args[KT_CALL_ARGS_MAX];
    uint8_t extra[20];

    for (unsigned j = 0; j < G_N_ELEMENTS(args); j++) {
        args[j] = i * 100 + j;
    }
    memset(extra, (int)i, sizeof(extra));
    return kt_call_ring_put(r, &call, args, extra);
}

static void check(const KtCallView *v, unsigned i)
{
    g_assert_cmpuint(v->call->start_ns, ==, i);
    g_assert_cmpuint(v->call->seq, ==, i);
    g_assert_cmpuint(v->call->n_args, ==, i % 9);
    g_assert_cmpuint(v->call->n_extra, ==, i % 20);
    for (unsigned j = 0; j < v->call->n_args; j++) {
        g_assert_cmpuint(v->args[j], ==, i * 100 + j);
    }
    for (unsigned j = 0; j < v->call->n_extra; j++) {
        g_assert_cmpuint(v->extra[j], ==, i & 0xff);
    }
}

static GByteArray *read_all(KtCallRing *r, uint64_t *seq, uint64_t *lost)
{
    GByteArray *out = g_byte_array_new();

    while (kt_call_ring_read(r, seq, UINT64_MAX, out, lost)) {
    }
    return out;
}

/* Return the number of records, which are @first and those after it. */
static unsigned check_all(const GByteArray *bytes, unsigned first)
{
    unsigned n = 0;

    for (uint64_t at = 0; at < bytes->len; n++) {
        KtCallView v = kt_call_view(bytes->data + at);

        check(&v, first + n);
        at += kt_call_bytes(v.call);
    }
    return n;
}

TEST(wraps, "/call-ring/wraps")
{
    g_autoptr(KtCallRing) r = kt_call_ring_new(BYTES);
    unsigned dropped = 0;

    for (unsigned i = 0; i < 1000; i++) {
        g_autoptr(GByteArray) out = NULL;
        uint64_t seq = 0, lost = 0;

        dropped += put(r, i);
        out = read_all(r, &seq, &lost);
        g_assert_cmpuint(check_all(out, dropped), ==, i + 1 - dropped);
        g_assert_cmpuint(kt_call_ring_count(r), ==, i + 1 - dropped);
        g_assert_cmpuint(out->len, <=, BYTES);
        g_assert_cmpuint(lost, ==, dropped);
    }
    g_assert_cmpuint(dropped, >, 900);
}

/* A reader goes on where it was. What was overwritten meanwhile is skipped. */
TEST(a_reader_continues, "/call-ring/a-reader-continues")
{
    KtCallRing *r = kt_call_ring_new(BYTES);
    g_autoptr(GByteArray) first = NULL;
    g_autoptr(GByteArray) more = NULL;
    g_autoptr(GByteArray) late = NULL;
    unsigned i = 0, dropped = 0;
    uint64_t seq = 0, lost = 0;

    for (; i < 5; i++) {
        put(r, i);
    }
    first = read_all(r, &seq, &lost);
    g_assert_cmpuint(check_all(first, 0), ==, 5);
    for (; i < 8; i++) {
        put(r, i);
    }
    more = read_all(r, &seq, &lost);
    g_assert_cmpuint(check_all(more, 5), ==, 3);
    for (; i < 200; i++) {
        dropped += put(r, i);
    }
    late = read_all(r, &seq, &lost);
    g_assert_cmpuint(dropped, >, 8);
    g_assert_cmpuint(check_all(late, dropped), ==, 200 - dropped);
    g_assert_cmpuint(lost, ==, dropped - 8);
    kt_call_ring_free(r);
}

TEST(cleared, "/call-ring/cleared")
{
    KtCallRing *r = kt_call_ring_new(BYTES);
    g_autoptr(GByteArray) out = NULL;
    uint64_t seq = 0, lost = 0;

    put(r, 0);
    kt_call_ring_clear(r);
    g_assert_cmpuint(kt_call_ring_count(r), ==, 0);
    put(r, 1);
    out = read_all(r, &seq, &lost);
    g_assert_cmpuint(check_all(out, 1), ==, 1);
    g_assert_cmpuint(lost, ==, 0);
    kt_call_ring_free(r);
}
