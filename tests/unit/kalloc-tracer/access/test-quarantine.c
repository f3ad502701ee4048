/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The quarantine: each call frees one block or none, in the order in which the
 * blocks were freed; never more bytes wait than the limit; each block waits or
 * was freed, however many there are; a snapshot has all that waits; wrong bytes
 * of a snapshot are an error.
 */
#include "tests/lib/test-main.h"
#include "kalloc-tracer/access/quarantine.h"
#include "kalloc-tracer/tracer/tracer.h"

#define CACHE 0xffff888000100000ull
#define OTHER 0xffff888000200000ull

/* The call that is running: what it frees in place of its own block. */
typedef struct Call {
    bool refuses, changed;
    uint64_t frees, cache, stale;
} Call;

static KtInstead instead(void *opaque, const KtDelayedFree *block)
{
    Call *call = opaque;

    if (call->refuses) {
        return KT_INSTEAD_REFUSED;
    }
    if (block && block->ptr == call->stale) {
        return KT_INSTEAD_STALE;
    }
    g_assert_false(call->changed);
    call->changed = true;
    call->frees = block ? block->ptr : 0;
    call->cache = block ? block->cache : 0;
    return KT_INSTEAD_DONE;
}

static KtTracer *new_tracer(uint64_t limit)
{
    KtConfig config = KT_CONFIG_DEFAULT;
    KtTracer *t = kt_tracer_new(&config, NULL);

    g_assert_nonnull(t);
    kt_quarantine_set(t, limit);
    return t;
}

static uint64_t waiting(KtTracer *t, uint64_t *bytes)
{
    KtQuarantineInfo info;

    kt_quarantine_info(t, &info);
    g_assert_cmpuint(info.bytes, <=, info.limit);
    if (bytes) {
        *bytes = info.bytes;
    }
    return info.blocks;
}

/* Free a block; return what the call frees. */
static uint64_t run_free(KtTracer *t, uint64_t ptr, uint32_t size,
                         bool may_none)
{
    const KtDelayedFree block = { ptr, CACHE, size };
    Call call = { 0 };
    KtDelay done = kt_quarantine_delay(kt_quarantine_of(t), &block, may_none,
                                       instead, &call);

    g_assert_cmpint(done, !=, KT_DELAY_REFUSED);
    g_assert_cmpint(call.changed, ==, done != KT_DELAY_NO_ROOM);
    g_assert_cmpint(!call.frees, ==, done != KT_DELAY_SWAPPED &&
                                         done != KT_DELAY_TWICE_SWAPPED);
    return done == KT_DELAY_NO_ROOM ? ptr : call.frees;
}

TEST(oldest_is_freed_first, "/quarantine/oldest-first")
{
    g_autoptr(KtTracer) t = new_tracer(5 * 64);

    for (uint64_t i = 1; i <= 4; i++) {
        g_assert_cmphex(run_free(t, i, 64, true), ==, 0);
    }
    for (uint64_t i = 5; i <= 5000; i++) {
        g_assert_cmphex(run_free(t, i, 64, i % 2), ==, i - 4);
        g_assert_cmpuint(waiting(t, NULL), ==, 4);
    }
}

TEST(kmem_cache_free_frees_always, "/quarantine/kmem-cache-free")
{
    g_autoptr(KtTracer) t = new_tracer(1024);

    g_assert_cmphex(run_free(t, 1, 64, false), ==, 1);
    g_assert_cmpuint(waiting(t, NULL), ==, 0);
    g_assert_cmphex(run_free(t, 2, 64, true), ==, 0);
    g_assert_cmphex(run_free(t, 3, 64, false), ==, 2);
    g_assert_cmpuint(waiting(t, NULL), ==, 1);
}

/* 1000 bytes may wait; above 875 blocks wait only in place of others. */
TEST(large_blocks_make_no_excess, "/quarantine/large-blocks")
{
    g_autoptr(KtTracer) t = new_tracer(1000);
    uint64_t bytes;

    for (uint64_t i = 1; i <= 8; i++) {
        run_free(t, i, 100, true);
    }
    g_assert_cmphex(run_free(t, 9, 75, true), ==, 0);
    g_assert_cmphex(run_free(t, 11, 226, true), ==, 11);
    g_assert_cmphex(run_free(t, 12, 2000, true), ==, 12);
    g_assert_cmphex(run_free(t, 13, 225, true), ==, 1);
    waiting(t, &bytes);
    g_assert_cmpuint(bytes, ==, 1000);
    g_assert_cmphex(run_free(t, 14, 101, true), ==, 14);
    g_assert_cmphex(run_free(t, 15, 10, true), ==, 2);
    waiting(t, &bytes);
    g_assert_cmpuint(bytes, ==, 910);
}

/* A block that is freed twice waits once and is freed once. */
TEST(a_double_free_is_ignored, "/quarantine/double-free")
{
    const KtDelayedFree block = { 1, CACHE, 64 };
    g_autoptr(KtTracer) t = new_tracer(1024);
    KtQuarantine *q = kt_quarantine_of(t);
    Call call = { .refuses = true };

    run_free(t, 1, 64, true);
    run_free(t, 2, 64, true);
    g_assert_cmphex(run_free(t, 1, 64, true), ==, 0);
    g_assert_cmpuint(waiting(t, NULL), ==, 2);
    g_assert_cmphex(run_free(t, 2, 64, false), ==, 1);
    g_assert_cmphex(run_free(t, 2, 64, false), ==, 2);
    g_assert_cmpuint(waiting(t, NULL), ==, 0);
    run_free(t, 1, 64, true);
    g_assert_cmpint(kt_quarantine_delay(q, &block, true, instead, &call), ==,
                    KT_DELAY_REFUSED);
}

/* Another function frees a block that waits. */
TEST(a_block_freed_otherwise_waits_no_more, "/quarantine/freed-otherwise")
{
    g_autoptr(KtTracer) t = new_tracer(1024);
    KtQuarantine *q = kt_quarantine_of(t);
    uint64_t bytes;

    for (uint64_t i = 1; i <= 5; i++) {
        run_free(t, i, 64, true);
    }
    g_assert_true(kt_quarantine_drop(q, 1));
    g_assert_true(kt_quarantine_drop(q, 3));
    g_assert_false(kt_quarantine_drop(q, 3));
    g_assert_false(kt_quarantine_drop(q, 6));
    g_assert_cmpuint(waiting(t, &bytes), ==, 3);
    g_assert_cmpuint(bytes, ==, 3 * 64);
    g_assert_cmphex(run_free(t, 3, 64, false), ==, 2);
    g_assert_cmphex(run_free(t, 6, 64, false), ==, 4);
    g_assert_cmphex(run_free(t, 7, 64, false), ==, 5);
    g_assert_cmphex(run_free(t, 8, 64, false), ==, 3);
}

static uint64_t used(KtTracer *t)
{
    return kt_budget_used(kt_tracer_budget(t), KT_MEM_QUARANTINE);
}

/* A guest can free all that waits by another function, in any order. That each
 * drop takes a walk of all blocks would need minutes here. */
TEST(drops_are_cheap, "/quarantine/drops-are-cheap")
{
    enum { N = 1 << 18 };
    g_autoptr(KtTracer) t = new_tracer(N * 16);
    KtQuarantine *q = kt_quarantine_of(t);

    for (uint64_t i = 1; i <= N; i++) {
        run_free(t, i, 8, true);
    }
    for (uint64_t i = N; i > 1; i--) {
        g_assert_true(kt_quarantine_drop(q, i));
    }
    g_assert_cmpuint(waiting(t, NULL), ==, 1);
    g_assert_cmphex(run_free(t, 7, 8, false), ==, 1);
    g_assert_cmphex(run_free(t, 8, 8, false), ==, 7);
}

/* A block that waits long has newer ones behind it, which do not. */
TEST(drops_leave_no_memory, "/quarantine/drops-leave-no-memory")
{
    g_autoptr(KtTracer) t = new_tracer(1 << 20);
    KtQuarantine *q = kt_quarantine_of(t);
    uint64_t before;

    run_free(t, 1, 8, true);
    before = used(t);
    for (uint64_t i = 0; i < 100000; i++) {
        run_free(t, 2 + i % 5, 8, true);
        g_assert_true(kt_quarantine_drop(q, 2 + i % 5));
    }
    g_assert_cmpuint(used(t), ==, before);
    g_assert_cmpuint(waiting(t, NULL), ==, 1);
    g_assert_cmphex(run_free(t, 9, 8, false), ==, 1);
}

/* Remove a block from a list of those that wait. Return false if it is none. */
static bool list_remove(GArray *list, uint64_t ptr)
{
    for (unsigned i = 0; i < list->len; i++) {
        if (g_array_index(list, uint64_t, i) == ptr) {
            g_array_remove_index(list, i);
            return true;
        }
    }
    return false;
}

static void run_one(KtTracer *t, GArray *list, uint64_t ptr, unsigned what)
{
    uint64_t oldest = list->len ? g_array_index(list, uint64_t, 0) : ptr;

    if (what == 0) {
        g_assert_cmpint(kt_quarantine_drop(kt_quarantine_of(t), ptr), ==,
                        list_remove(list, ptr));
    } else if (!kt_quarantine_has(kt_quarantine_of(t), ptr)) {
        g_assert_cmphex(run_free(t, ptr, 8, what > 2), ==,
                        what > 2 ? 0 : oldest);
        if (what > 2 || list->len) {
            list_remove(list, what > 2 ? 0 : oldest);
            g_array_append_val(list, ptr);
        }
    }
}

/* Frees and drops in any order, against a list. */
TEST(as_a_list, "/quarantine/list")
{
    g_autoptr(KtTracer) t = new_tracer(1 << 20);
    g_autoptr(GArray) list = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    g_autoptr(GRand) r = g_rand_new_with_seed(36);

    for (unsigned i = 0; i < 20000; i++) {
        run_one(t, list, (uint64_t)g_rand_int_range(r, 1, 4000),
                (unsigned)g_rand_int_range(r, 0, i < 10000 ? 6 : 3));
        g_assert_cmpuint(waiting(t, NULL), ==, list->len);
    }
    g_assert_cmpuint(used(t), >, 0);
    for (unsigned i = 0; i < list->len; i++) {
        g_assert_cmphex(run_free(t, 5000 + i, 8, false), ==,
                        g_array_index(list, uint64_t, i));
    }
}

TEST(stale_blocks_are_dropped, "/quarantine/stale")
{
    const KtDelayedFree block = { 9, CACHE, 64 };
    g_autoptr(KtTracer) t = new_tracer(1024);
    Call call = { .stale = 1 };

    run_free(t, 1, 64, true);
    run_free(t, 2, 64, true);
    g_assert_cmpint(kt_quarantine_delay(kt_quarantine_of(t), &block, false,
                                        instead, &call), ==, KT_DELAY_SWAPPED);
    g_assert_cmphex(call.frees, ==, 2);
    g_assert_cmpuint(waiting(t, NULL), ==, 1);
    call = (Call) { .stale = 9 };
    g_assert_cmpint(kt_quarantine_delay(kt_quarantine_of(t), &block, false,
                                        instead, &call), ==, KT_DELAY_NO_ROOM);
    g_assert_false(call.changed);
    g_assert_cmpuint(waiting(t, NULL), ==, 0);
}

/* No slab has such blocks, but a guest can say so. */
TEST(impossible_sizes_do_not_wait, "/quarantine/impossible-sizes")
{
    g_autoptr(KtTracer) t = new_tracer(1ull << 40);

    g_assert_cmphex(run_free(t, 1, 0, true), ==, 1);
    g_assert_cmphex(run_free(t, 2, 7, true), ==, 2);
    g_assert_cmphex(run_free(t, 3, UINT32_MAX, true), ==, 3);
    g_assert_cmphex(run_free(t, 4, 8, true), ==, 0);
}

TEST(off_delays_nothing, "/quarantine/off")
{
    g_autoptr(KtTracer) t = new_tracer(0);

    g_assert_false(kt_quarantine_is_wanted(kt_quarantine_of(t)));
    g_assert_cmphex(run_free(t, 1, 8, true), ==, 1);
    g_assert_cmphex(run_free(t, 2, 8, false), ==, 2);
}

TEST(a_refused_change_changes_nothing, "/quarantine/refused")
{
    const KtDelayedFree block = { 2, CACHE, 64 };
    g_autoptr(KtTracer) t = new_tracer(74);
    KtQuarantine *q = kt_quarantine_of(t);
    Call call = { .refuses = true };

    g_assert_cmpint(kt_quarantine_delay(q, &block, true, instead, &call), ==,
                    KT_DELAY_REFUSED);
    g_assert_cmpuint(waiting(t, NULL), ==, 0);
    run_free(t, 1, 64, true);
    g_assert_cmpint(kt_quarantine_delay(q, &block, true, instead, &call), ==,
                    KT_DELAY_REFUSED);
    kt_quarantine_set(t, 0);
    g_assert_false(kt_quarantine_drain(q, instead, &call));
    call.refuses = false;
    g_assert_true(kt_quarantine_drain(q, instead, &call));
    g_assert_cmphex(call.frees, ==, 1);
    g_assert_cmphex(call.cache, ==, CACHE);
}

TEST(kfree_of_null_makes_room, "/quarantine/kfree-null")
{
    g_autoptr(KtTracer) t = new_tracer(1000);
    KtQuarantine *q = kt_quarantine_of(t);
    Call none = { 0 };

    for (uint64_t i = 1; i <= 8; i++) {
        run_free(t, i, 100, true);
    }
    kt_quarantine_set(t, 800);
    g_assert_false(kt_quarantine_drain(q, instead, &none));
    kt_quarantine_set(t, 700);
    g_assert_true(kt_quarantine_drain(q, instead, &none));
    g_assert_cmphex(none.frees, ==, 1);
    g_assert_cmpuint(waiting(t, NULL), ==, 7);
    g_assert_false(kt_quarantine_drain(q, instead, &none));
}

/* Blocks of two caches, while the ring is full and does not begin at its
 * start. */
TEST(a_destroyed_cache_has_no_blocks, "/quarantine/destroyed-cache")
{
    g_autoptr(KtTracer) t = new_tracer(1024 * 8 * 8 / 7);
    KtQuarantine *q = kt_quarantine_of(t);
    uint64_t bytes;

    for (uint64_t i = 1; i <= 1500; i++) {
        const KtDelayedFree block = { i, i % 4 ? CACHE : OTHER, 8 };
        Call call = { 0 };

        kt_quarantine_delay(q, &block, true, instead, &call);
    }
    g_assert_cmpuint(waiting(t, NULL), ==, 1024);
    g_assert_cmpuint(kt_quarantine_drop_cache(q, OTHER), ==, 256);
    g_assert_cmpuint(waiting(t, &bytes), ==, 768);
    g_assert_cmpuint(bytes, ==, 768 * 8);
    kt_quarantine_set(t, 0);
    for (uint64_t i = 1500 - 1024 + 1; i <= 1500; i++) {
        Call call = { 0 };

        if (i % 4) {
            g_assert_true(kt_quarantine_drain(q, instead, &call));
            g_assert_cmphex(call.frees, ==, i);
        }
    }
    g_assert_cmpuint(waiting(t, NULL), ==, 0);
}

TEST(clear_keeps_and_reset_drops, "/quarantine/clear-and-reset")
{
    g_autoptr(KtTracer) t = new_tracer(1024);

    run_free(t, 1, 64, true);
    kt_tracer_clear(t);
    g_assert_cmpuint(waiting(t, NULL), ==, 1);
    kt_tracer_reset(t);
    g_assert_cmpuint(waiting(t, NULL), ==, 0);
    g_assert_cmphex(run_free(t, 2, 64, true), ==, 0);
}

/* ---- snapshots ----------------------------------------------------------- */

static GByteArray *pack(KtTracer *t)
{
    GByteArray *bytes = g_byte_array_new();

    kt_quarantine_pack(kt_quarantine_of(t), &GS_OUT(bytes));
    return bytes;
}

TEST(snapshots_have_all, "/quarantine/snapshot")
{
    g_autoptr(KtTracer) t = new_tracer(1 << 20);
    g_autoptr(KtTracer) loaded = new_tracer(1 << 20);
    g_autoptr(GByteArray) bytes = NULL;
    GsBytes in;

    for (uint64_t i = 1; i <= 3000; i++) {
        run_free(t, i << 40 | i, 8 + (uint32_t)i, true);
    }
    bytes = pack(t);
    run_free(loaded, 7, 64, true);
    gs_bytes_init(&in, bytes->data, bytes->len, "delayed frees");
    g_assert_cmpuint(kt_quarantine_unpack(kt_quarantine_of(loaded), &in), ==,
                     0);
    g_assert_true(gs_bytes_ok(&in));
    g_assert_cmpuint(gs_bytes_left(&in), ==, 0);
    g_assert_cmpuint(waiting(loaded, NULL), ==, waiting(t, NULL));
    for (uint64_t i = 1; i <= 100; i++) {
        g_assert_cmphex(run_free(loaded, i, 8, false), ==,
                        run_free(t, i, 8, false));
    }
}

/* Each prefix, and each wrong byte, is read to an end without harm. */
TEST(wrong_snapshots_fail, "/quarantine/wrong-snapshot")
{
    g_autoptr(KtTracer) t = new_tracer(1024);
    g_autoptr(GByteArray) bytes = NULL;
    KtQuarantine *q = kt_quarantine_of(t);
    GsBytes in;

    for (uint64_t i = 1; i <= 4; i++) {
        run_free(t, i << 50, 64, true);
    }
    bytes = pack(t);
    for (unsigned len = 0; len < bytes->len; len++) {
        gs_bytes_init(&in, bytes->data, len, "delayed frees");
        kt_quarantine_unpack(q, &in);
        g_assert_false(gs_bytes_ok(&in));
    }
    for (unsigned i = 0; i < bytes->len; i++) {
        bytes->data[i] ^= 0xff;
        gs_bytes_init(&in, bytes->data, bytes->len, "delayed frees");
        kt_quarantine_unpack(q, &in);
        bytes->data[i] ^= 0xff;
    }
}
