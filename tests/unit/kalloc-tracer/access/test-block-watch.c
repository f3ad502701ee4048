/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ring of a watched block: which accesses share a record, what is
 * overwritten, the memory limit, and the end of the boot.
 */
#include "kalloc-tracer/access/block-watch.h"

#include "kalloc-tracer/tracer/tracer.h"
#include "tests/lib/bare-tracer.h"
#include "tests/lib/test-main.h"

#define BLOCK 0xffff888000001000ull

static KtBlockWatchInfo info_of(KtTracer *t)
{
    KtBlockWatchInfo info;

    kt_block_watch_info(t, &info);
    return info;
}

static bool start(KtTracer *t, uint64_t ring)
{
    return kt_block_watch_start(
        t, &(KtBlockWatchSpec) { .va = BLOCK, .len = 64, .ring = ring }, NULL);
}

/* As capture/ does it. Return true if the access got a record of its own. */
static bool touch(KtTracer *t, uint64_t pc, uint64_t off, uint64_t us,
                  uint8_t flags)
{
    KtBlockWatch *w = kt_block_watch_of(t);
    const KtBlockPlace place = { pc, 0x10 };
    const KtBlockAccess a = {
        .us = us, .last_us = us, .va = BLOCK + off, .len = 8, .count = 1,
        .flags = flags,
    };
    bool own = !kt_block_watch_repeat(w, &place, &a);

    if (own) {
        kt_block_watch_add(w, &place, &a);
    }
    return own;
}

TEST(test_records, "/block-watch/records")
{
    g_autoptr(KtTracer) t = bare_tracer(0);
    g_autoptr(GArray) got = NULL;
    const KtBlockAccess *a;

    g_assert_true(start(t, 16));
    g_assert_true(touch(t, 1, 0, 10, 0));
    g_assert_false(touch(t, 1, 0, 11, 0));      /* the same bytes */
    g_assert_false(touch(t, 1, 8, 12, 0));      /* those behind */
    g_assert_true(touch(t, 1, 0, 13, 0));       /* others */
    g_assert_true(touch(t, 1, 0, 14, KT_BLOCK_ACCESS_WRITE));
    g_assert_true(touch(t, 2, 0, 15, KT_BLOCK_ACCESS_WRITE));
    got = kt_block_watch_read(t, UINT64_MAX);
    g_assert_cmpuint(got->len, ==, 4);
    a = &g_array_index(got, KtBlockAccess, 0);
    g_assert_true(a->us == 10 && a->last_us == 12 && a->count == 3 &&
                  a->len == 16 && a->va == BLOCK);
    g_assert_cmpuint(info_of(t).accesses, ==, 6);
    g_assert_cmpuint(kt_tracer_counter(t, KT_CNT_ACCESS_WATCHED), ==, 6);
}

TEST(test_ring, "/block-watch/ring")
{
    g_autoptr(KtTracer) t = bare_tracer(0);
    g_autoptr(GArray) got = NULL;
    KtBlockWatchInfo info;

    g_assert_true(start(t, 3));
    for (unsigned i = 1; i <= 5; i++) {
        g_assert_true(touch(t, i, 0, i, 0));
    }
    info = info_of(t);
    g_assert_true(info.records == 3 && info.overwritten == 2);
    g_assert_cmpuint(kt_tracer_counter(t, KT_CNT_ACCESS_WATCH_OVERWRITTEN), ==,
                     2);
    got = kt_block_watch_read(t, 2);
    g_assert_cmpuint(got->len, ==, 2);
    g_assert_cmpuint(g_array_index(got, KtBlockAccess, 0).us, ==, 4);
    g_assert_true(start(t, 3));
    g_assert_true(touch(t, 5, 0, 6, 0));        /* records were dropped */
    g_assert_cmpuint(info_of(t).records, ==, 1);
}

TEST(test_stop, "/block-watch/stop")
{
    g_autoptr(KtTracer) t = bare_tracer(0);

    g_assert_false(info_of(t).any);
    g_assert_false(kt_block_watch_stop(t));
    g_assert_true(start(t, 3));
    g_assert_true(touch(t, 1, 0, 1, 0));
    g_assert_true(kt_block_watch_stop(t));
    touch(t, 1, 0, 2, 0);
    touch(t, 2, 0, 2, 0);
    g_assert_true(info_of(t).any && !info_of(t).on && !info_of(t).why_ended);
    g_assert_cmpuint(info_of(t).accesses, ==, 1);
}

/* An access to the block that was watched before. */
TEST(test_other_block, "/block-watch/other-block")
{
    g_autoptr(KtTracer) t = bare_tracer(0);

    g_assert_true(start(t, 3));
    touch(t, 1, 64, 1, 0);
    g_assert_cmpuint(info_of(t).accesses, ==, 0);
    g_assert_true(touch(t, 1, 56, 2, 0));
    touch(t, 1, 64, 3, 0);
    g_assert_cmpuint(info_of(t).accesses, ==, 1);
    g_assert_cmpuint(kt_tracer_counter(t, KT_CNT_ACCESS_WATCHED), ==, 1);
}

TEST(test_boots, "/block-watch/boots")
{
    g_autoptr(KtTracer) t = bare_tracer(0);

    g_assert_true(start(t, 3));
    g_assert_true(touch(t, 1, 0, 1, 0));
    kt_tracer_clear(t);
    g_assert_true(info_of(t).on && !info_of(t).other_boot);
    kt_tracer_reset(t);
    g_assert_false(info_of(t).on);
    g_assert_true(info_of(t).other_boot);
    g_assert_nonnull(strstr(info_of(t).why_ended, "reset"));
    g_assert_cmpuint(info_of(t).records, ==, 1);
    g_assert_true(start(t, 3));
    g_assert_true(info_of(t).on && !info_of(t).other_boot);
}

TEST(test_no_memory, "/block-watch/no-memory")
{
    g_autoptr(KtTracer) t = bare_tracer(64 << 20);
    g_autoptr(GError) err = NULL;
    KtBlockWatchSpec spec = { .va = BLOCK, .len = 64,
                              .ring = KT_BLOCK_WATCH_RING_MAX };

    g_assert_true(start(t, 3));
    g_assert_true(touch(t, 1, 0, 1, 0));
    g_assert_false(kt_block_watch_start(t, &spec, &err));
    g_assert_nonnull(strstr(err->message, "--ring"));
    g_assert_true(info_of(t).on && info_of(t).records == 1);
}
