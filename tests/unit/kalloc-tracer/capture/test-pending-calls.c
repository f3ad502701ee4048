/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Entries and returns of calls are paired by stack pointer and return address.
 */
#include "tests/lib/test-main.h"
#include "kalloc-tracer/capture/pending-calls.h"
#include "tests/lib/empty-snapshot.h"

G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtPendingCalls, kt_pending_calls_free)

static KtPendingCall call_at(uint64_t sp, uint64_t ra, uint8_t hook)
{
    return (KtPendingCall) { .sp = sp, .ra = ra, .hook = { hook } };
}

static void push(KtPendingCalls *c, KtPendingCall call, unsigned want_stale)
{
    unsigned stale;

    g_assert_true(kt_pending_calls_push(c, &call, &stale));
    g_assert_cmpuint(stale, ==, want_stale);
}

/* A case with an empty table @c. */
#define CALLS_TEST(fn, path) \
    TEST_IN(g_autoptr(KtPendingCalls), KtPendingCalls *c, \
            kt_pending_calls_new(), fn, path)

CALLS_TEST(returns_match_out_of_order, "/calls/returns-match-out-of-order")
{
    KtPendingCall out;

    push(c, call_at(0x1000, 0xa, 1), 0);
    push(c, call_at(0x9000, 0xa, 2), 0);
    g_assert_true(kt_pending_calls_pop(c, 0x1000, 0xa, &out));
    g_assert_cmpuint(out.hook.v, ==, 1);
    g_assert_true(kt_pending_calls_pop(c, 0x9000, 0xa, &out));
    g_assert_cmpuint(out.hook.v, ==, 2);
    g_assert_cmpuint(kt_pending_calls_pending(c), ==, 0);
}

CALLS_TEST(tail_called_share_a_return, "/calls/tail-called-share-a-return")
{
    KtPendingCall out;

    push(c, call_at(0x1000, 0xa, 1), 0);
    push(c, call_at(0x1000, 0xa, 2), 0);
    g_assert_cmpuint(kt_pending_calls_pop(c, 0x1000, 0xa, &out), ==, 2);
    g_assert_cmpuint(out.hook.v, ==, 2);
    g_assert_cmpuint(kt_pending_calls_pop(c, 0x1000, 0xa, &out), ==, 1);
    g_assert_cmpuint(out.hook.v, ==, 1);
    g_assert_cmpuint(kt_pending_calls_pop(c, 0x1000, 0xa, &out), ==, 0);
}

CALLS_TEST(other_return_address_is_foreign,
           "/calls/other-return-address-is-foreign")
{
    KtPendingCall out;

    push(c, call_at(0x1000, 0xa, 1), 0);
    g_assert_false(kt_pending_calls_pop(c, 0x1000, 0xb, &out));
    g_assert_false(kt_pending_calls_pop(c, 0x1008, 0xa, &out));
    g_assert_cmpuint(kt_pending_calls_pending(c), ==, 1);
}

CALLS_TEST(reused_stack_drops_the_stale_call,
           "/calls/reused-stack-drops-the-stale-call")
{
    KtPendingCall out;

    push(c, call_at(0x1000, 0xa, 1), 0);
    push(c, call_at(0x1000, 0xb, 1), 1);
    g_assert_false(kt_pending_calls_pop(c, 0x1000, 0xa, &out));
    push(c, call_at(0x1000, 0xb, 1), 1);
    g_assert_true(kt_pending_calls_pop(c, 0x1000, 0xb, &out));
    g_assert_cmpuint(kt_pending_calls_pending(c), ==, 0);
}

CALLS_TEST(a_full_bucket_gives_up_its_oldest,
           "/calls/full-bucket-gives-up-its-oldest")
{
    unsigned kept = 0, stale, pushed = 0;
    KtPendingCall out;

    /* far more than there is room for: nothing but counts may suffer */
    for (uint64_t i = 0; i < 100000; i++) {
        KtPendingCall call = call_at(0x1000 + 8 * i, 0xa, 1);

        pushed += kt_pending_calls_push(c, &call, &stale);
    }
    g_assert_cmpuint(kt_pending_calls_pending(c), ==, pushed);
    for (uint64_t i = 0; i < 100000; i++) {
        kept += kt_pending_calls_pop(c, 0x1000 + 8 * i, 0xa, &out);
    }
    g_assert_cmpuint(kept, ==, pushed);
}

CALLS_TEST(clear_forgets, "/calls/clear-forgets")
{
    push(c, call_at(0x1000, 0xa, 1), 0);
    kt_pending_calls_clear(c);
    g_assert_cmpuint(kt_pending_calls_pending(c), ==, 0);
}

/* ---- states ------------------------------------------------------------- */

static GByteArray *packed(KtPendingCalls *c)
{
    GByteArray *bytes = g_byte_array_new();
    GsStreamOut *writer = gs_stream_out_new(gs_stream_to_array, bytes);
    GsOut *p = gs_stream_out(writer);

    kt_pending_calls_pack(c, p);
    gs_stream_out_end(writer);
    return bytes;
}

static void unpack(void *c, GsBytes *u, const KtIdMap *ids)
{
    g_assert_cmpuint(kt_pending_calls_unpack(c, u, ids), ==, 0);
}

typedef struct Some {
    KtPendingCalls *calls;
    unsigned lost;
} Some;

static void unpack_some(void *opaque, GsBytes *u, const KtIdMap *ids)
{
    Some *to = opaque;

    to->lost = kt_pending_calls_unpack(to->calls, u, ids);
}

/* More of them than have a place of their own, and one as large as can be. */
TEST(a_state_has_all, "/calls/state-has-all")
{
    const KtPendingCall large = {
        UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX,
        UINT64_MAX, UINT32_MAX, { 1 },
    };
    KtPendingCalls *c = kt_pending_calls_new(), *to = kt_pending_calls_new();
    g_autoptr(GByteArray) bytes = NULL, again = NULL;
    KtPendingCall out;

    for (uint64_t i = 0; i < 2000; i++) {
        push(c, call_at(0x1000 + 8 * i, 0xa, 1 + i % 3), 0);
    }
    push(c, large, 0);
    bytes = packed(c);
    g_assert_true(unpack_part(unpack, to, bytes, NULL));
    again = packed(to);
    g_assert_cmpmem(again->data, again->len, bytes->data, bytes->len);
    g_assert_true(kt_pending_calls_pop(to, large.sp, large.ra, &out));
    g_assert_cmphex(out.cache, ==, large.cache);
    g_assert_cmphex(out.gfp, ==, large.gfp);
    kt_pending_calls_free(c);
    kt_pending_calls_free(to);
}

/* Access checks ask which cache a call was given, until it returns. */
CALLS_TEST(a_call_is_found_until_it_returns, "/calls/found-until-it-returns")
{
    KtPendingCall call = call_at(0x1000, 0xa, 1), out = { 0 };

    g_assert_false(kt_pending_calls_find(c, 0x1000, 0xa, &out));
    call.cache = 0x77;
    push(c, call, 0);
    g_assert_true(kt_pending_calls_find(c, 0x1000, 0xa, &out));
    g_assert_cmphex(out.cache, ==, 0x77);
    g_assert_false(kt_pending_calls_find(c, 0x1000, 0xb, &out));
    g_assert_false(kt_pending_calls_find(c, 0x1008, 0xa, &out));
    call.cache = 0x78;
    call.hook.v++;
    push(c, call, 0);
    g_assert_true(kt_pending_calls_find(c, 0x1000, 0xa, &out));
    g_assert_cmphex(out.cache, ==, 0x78);
    while (kt_pending_calls_pop(c, 0x1000, 0xa, &out) > 1) {
        continue;
    }
    g_assert_false(kt_pending_calls_find(c, 0x1000, 0xa, &out));
}

/* A smaller bound than that of the VM which was saved. */
TEST(a_state_tells_what_it_lost, "/calls/state-tells-what-it-lost")
{
    KtBudget *b = kt_budget_new(KT_BUDGET_MIN);
    KtPendingCalls *c = kt_pending_calls_new();
    Some to = { .calls = kt_pending_calls_new() };
    g_autoptr(GByteArray) bytes = NULL;

    for (uint64_t i = 0; i < 2000; i++) {
        push(c, call_at(0x1000 + 8 * i, 0xa, 1), 0);
    }
    bytes = packed(c);
    kt_pending_calls_charge(to.calls, b);
    kt_budget_charge(b, KT_MEM_FIXED, KT_BUDGET_MIN);
    g_assert_true(unpack_part(unpack_some, &to, bytes, NULL));
    g_assert_cmpuint(to.lost, >, 0);
    g_assert_cmpuint(kt_pending_calls_pending(to.calls) + to.lost, ==, 2000);
    kt_pending_calls_free(c);
    kt_pending_calls_free(to.calls);
    kt_budget_free(b);
}

/* A table that is full has no more; to push what cannot stay takes long. */
CALLS_TEST(a_state_has_no_more_than_fit, "/calls/state-has-no-more-than-fit")
{
    check_most(unpack, c, 128 * (3 + 2048), "the number of calls is 262529, "
               "at most 262528 is possible");
}

static bool keep(void *opaque, KtHookId hook)
{
    return hook.v == *(const uint8_t *)opaque;
}

/* What is kept returns in its order, also out of a bucket's list. */
CALLS_TEST(filter, "/calls/filter")
{
    uint8_t kept = 2;
    KtPendingCall out;

    for (uint64_t i = 0; i < 64; i++) {
        push(c, call_at(0x1000 + 0x10000 * i, 0xa, 1 + i % 2), 0);
    }
    push(c, call_at(0x5000000, 0xa, 2), 0);
    push(c, call_at(0x5000000, 0xa, 3), 0);
    kt_pending_calls_filter(c, keep, &kept);
    g_assert_cmpuint(kt_pending_calls_pending(c), ==, 33);
    g_assert_cmpuint(kt_pending_calls_pop(c, 0x5000000, 0xa, &out), ==, 1);
    g_assert_cmpuint(out.hook.v, ==, 2);
    g_assert_false(kt_pending_calls_pop(c, 0x1000, 0xa, &out));
    g_assert_true(kt_pending_calls_pop(c, 0x11000, 0xa, &out));
}
