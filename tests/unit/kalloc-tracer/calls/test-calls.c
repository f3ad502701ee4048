/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reading what is new: each call once, in parts if there is much, and what was
 * replaced unread is counted.
 */
#include "tests/lib/test-main.h"

#include "kalloc-tracer/calls/calls.h"

#define CPUS 3

typedef struct Reading {
    KtTracer *t;
    uint64_t seq[CPUS];
    uint64_t ns[CPUS];          /* of the last call that was read, by vCPU */
    unsigned n, parts;
    uint64_t lost;
    bool more;
} Reading;

static KtTracer *tracer_with(uint64_t bytes)
{
    KtConfig config = KT_CONFIG_DEFAULT;
    KtTracer *t = kt_tracer_new(&config, NULL);

    kt_calls_configure(t, bytes, CPUS);
    return t;
}

static void begin(KtTracer *t)
{
    g_assert_true(kt_call_records_open(kt_tracer_calls(t)->records, NULL));
}

static void put(KtTracer *t, uint64_t ns, unsigned cpu)
{
    const KtCall call = { .start_ns = ns, .cpu = cpu, .point = { 1 } };

    kt_call_records_put(kt_tracer_calls(t)->records, &call, NULL, NULL);
}

/* No call comes twice. */
static void read_part(Reading *r)
{
    g_auto(KtCallList) list = { 0 };

    r->lost += kt_query_calls_after(r->t, r->seq, CPUS, &r->more, &list);
    for (unsigned i = 0; i < list.calls->len; i++) {
        const KtCall *c = g_array_index(list.calls, KtCallView, i).call;

        g_assert_cmpuint(c->start_ns, >, r->ns[c->cpu]);
        r->ns[c->cpu] = c->start_ns;
        r->n++;
    }
    r->parts++;
}

TEST(test_new_ones, "/calls/new-ones")
{
    g_autoptr(KtTracer) t = tracer_with(1 << 20);
    Reading r = { .t = t, .more = true };

    read_part(&r);                      /* nothing was ever watched */
    g_assert_false(r.more);
    begin(t);
    read_part(&r);
    put(t, 10, 0);
    put(t, 20, 2);
    put(t, 30, 0);
    read_part(&r);
    g_assert_cmpuint(r.n, ==, 3);
    g_assert_cmpuint(r.seq[0], ==, 2);
    g_assert_cmpuint(r.seq[1], ==, 0);
    g_assert_cmpuint(r.seq[2], ==, 1);
    put(t, 40, 1);
    read_part(&r);
    read_part(&r);
    g_assert_cmpuint(r.n, ==, 4);
    g_assert_false(r.more);
    g_assert_cmpuint(r.lost, ==, 0);
}

/* A part is limited. The vCPUs share it, so that none has to wait. */
TEST(test_parts, "/calls/parts")
{
    g_autoptr(KtTracer) t = tracer_with(64 << 20);
    Reading r = { .t = t };
    unsigned n = (8 << 20) / sizeof(KtCall);

    begin(t);
    for (unsigned i = 1; i <= n; i++) {
        put(t, i, 0);
    }
    put(t, 5, 1);
    put(t, 5, 2);
    read_part(&r);
    g_assert_true(r.more);
    g_assert_cmpuint(r.n, <, n / 2);
    g_assert_cmpuint(r.ns[1], ==, 5);
    g_assert_cmpuint(r.ns[2], ==, 5);
    while (r.more) {
        read_part(&r);
    }
    g_assert_cmpuint(r.n, ==, n + 2);
    g_assert_cmpuint(r.parts, >, 2);
    g_assert_cmpuint(r.lost, ==, 0);
}

TEST(test_overwritten, "/calls/overwritten")
{
    g_autoptr(KtTracer) t = tracer_with(CPUS * 65536);
    Reading r = { .t = t };
    unsigned n = 10000, kept;
    KtCallsStats stats;

    begin(t);
    put(t, 1, 1);
    read_part(&r);
    for (unsigned i = 2; i <= n; i++) {
        put(t, i, 1);
    }
    kt_calls_stats(t, &stats);
    kept = stats.kept;
    read_part(&r);
    g_assert_cmpuint(r.n, ==, 1 + kept);
    g_assert_cmpuint(r.lost, ==, n - 1 - kept);
    kt_calls_clear(t);                  /* not replaced by newer ones */
    put(t, n + 1, 1);
    read_part(&r);
    g_assert_cmpuint(r.n, ==, 2 + kept);
    g_assert_cmpuint(r.lost, ==, n - 1 - kept);
}

TEST(test_entries_of_all_vcpus, "/calls/entries-of-all-vcpus")
{
    g_autoptr(KtTracer) t = tracer_with(1 << 16);
    KtCallRecords *r = kt_tracer_calls(t)->records;
    const KtPointId seen = { 1 }, other = { UINT16_MAX };
    uint64_t since;

    g_assert_cmpuint(kt_call_records_last_ns(r), ==, 0);
    begin(t);
    kt_call_records_enter(r, 2, seen, 100);
    kt_call_records_enter(r, 0, seen, 90);
    kt_call_records_enter(r, 2, seen, 110);
    g_assert_cmpuint(kt_call_records_entered(r, seen, &since), ==, 3);
    g_assert_cmpuint(since, ==, 100);
    g_assert_cmpuint(kt_call_records_entered(r, other, &since), ==, 0);
    g_assert_cmpuint(kt_call_records_last_ns(r), ==, 110);
    kt_call_records_end_boot(r);
    g_assert_cmpuint(kt_call_records_entered(r, seen, &since), ==, 0);
    g_assert_cmpuint(since, ==, 0);
}
