/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A watched block: its pages are trapped only while it is watched, its bytes
 * only are recorded, what memset() does is one record, instructions that load
 * and store are stores, the allocator is named, other state of the VM.
 */
#include "tests/lib/fake-capture.h"
#include "tests/lib/test-main.h"

#include <string.h>

/* In not_hooked(). CALLER is in kfree(), which has the symbol before it. */
#define PC (TEXT + 0x6c8)
#define CODE 0x14u      /* bytes of code from there on */
#define PAGE 0x1000

static KtBlockWatchInfo info_of(const FakeCapture *w)
{
    KtBlockWatchInfo info;

    kt_block_watch_info(w->t, &info);
    return info;
}

static void watch(const FakeCapture *w)
{
    g_assert_true(kt_block_watch_start(
        w->t, &(KtBlockWatchSpec) { .va = BLOCK, .len = 64, .ring = 16 },
        NULL));
}

/* No access has a callback at translation. */
static void touch(uint64_t pc, uint64_t va, unsigned shift, bool store)
{
    g_assert_false(test_qemu_access(pc,
                                    &(TestQemuAccess) { va, shift, store }));
}

static KtBlockAccess nth(const FakeCapture *w, unsigned i)
{
    g_autoptr(GArray) got = kt_block_watch_read(w->t, UINT64_MAX);

    g_assert_cmpuint(i, <, got->len);
    return g_array_index(got, KtBlockAccess, i);
}

static uint64_t first_frame(const FakeCapture *w, KtStackId id)
{
    unsigned n;
    GsStop stop;
    const uint64_t *frame = kt_tracer_stack(w->t, id, &n, &stop);

    return frame && n ? frame[0] : 0;
}

static FakeCapture *begin(void)
{
    FakeCapture *w = fake_capture_new(NULL, false);

    test_qemu_run(START);
    run_kmalloc(w, BLOCK);
    /* No instruction here modifies memory. */
    memset(w->image + (PC - TEXT), 0x90, CODE);
    return w;
}

/* A case with a capture @w that has begun. */
#define BEGUN_TEST(fn, path) \
    TEST_IN(g_autoptr(FakeCapture), FakeCapture *w, begin(), fn, path)

BEGUN_TEST(test_bytes, "/watch-block/bytes")
{
    KtBlockAccess a;

    g_assert_false(test_qemu_traps(BLOCK));
    watch(w);
    g_assert_true(test_qemu_traps(BLOCK));
    g_assert_false(test_qemu_traps(BLOCK + PAGE));
    touch(PC, BLOCK + 64, 3, false);    /* behind it */
    touch(PC, BLOCK - 8, 3, false);     /* in front of it */
    g_assert_cmpuint(info_of(w).records, ==, 0);
    touch(PC, BLOCK + 8, 2, true);
    touch(PC + 1, BLOCK - 4, 3, false);
    touch(PC + 2, BLOCK + 60, 3, false);
    g_assert_cmpuint(info_of(w).records, ==, 3);
    a = nth(w, 0);
    g_assert_true(a.va == BLOCK + 8 && a.len == 4 && a.count == 1 &&
                  a.flags == KT_BLOCK_ACCESS_WRITE);
    g_assert_cmphex(first_frame(w, a.stack), ==, PC);
    a = nth(w, 1);
    g_assert_true(a.va == BLOCK && a.len == 4 && !a.flags);
    a = nth(w, 2);
    g_assert_true(a.va == BLOCK + 60 && a.len == 4);
}

BEGUN_TEST(test_stop, "/watch-block/stop")
{
    watch(w);
    touch(PC, BLOCK, 3, false);
    kt_tracer_set_enabled(w->t, false);
    touch(PC + 1, BLOCK, 3, false);
    kt_tracer_set_enabled(w->t, true);
    g_assert_true(kt_block_watch_stop(w->t));
    g_assert_false(test_qemu_traps(BLOCK));
    g_assert_cmpuint(test_qemu_page_updates(), ==, 2);
    g_assert_cmpuint(info_of(w).records, ==, 1);
    g_assert_cmpuint(counter_of(w, KT_CNT_ACCESS_WATCHED), ==, 1);
}

/* Both pages of a block that is on two are trapped. */
BEGUN_TEST(test_pages, "/watch-block/pages")
{
    g_assert_true(kt_block_watch_start(
        w->t, &(KtBlockWatchSpec) { .va = BLOCK + PAGE - 8, .len = 16,
                                    .ring = 16 }, NULL));
    g_assert_cmpuint(test_qemu_page_updates(), ==, 2);
    g_assert_true(test_qemu_traps(BLOCK));
    g_assert_true(test_qemu_traps(BLOCK + PAGE));
    touch(PC, BLOCK + PAGE - 1, 1, false);
    g_assert_cmpuint(nth(w, 0).len, ==, 2);
}

/* lock incl (%rax) is a load and a store where there is one vCPU. */
TEST(test_half, "/watch-block/half")
{
    static const uint8_t insn[] = { 0xf0, 0xff, 0x00 };
    g_autoptr(FakeCapture) w = begin();

    memcpy(w->image + (PC - TEXT), insn, sizeof(insn));
    watch(w);
    touch(PC, BLOCK, 2, false);
    touch(PC, BLOCK, 2, true);
    g_assert_cmpuint(info_of(w).records, ==, 1);
    g_assert_cmphex(nth(w, 0).flags, ==, KT_BLOCK_ACCESS_WRITE);
}

/* A frame of an exception, that no instruction pushed. */
BEGUN_TEST(test_unknown, "/watch-block/unknown")
{
    watch(w);
    touch(0, BLOCK, 3, true);
    g_assert_cmpuint(info_of(w).records, ==, 0);
    g_assert_cmpuint(counter_of(w, KT_CNT_ACCESS_WATCH_UNKNOWN), ==, 1);
}

/* The block is still watched after its free. */
BEGUN_TEST(test_allocator, "/watch-block/allocator")
{
    watch(w);
    run_kfree(w, BLOCK);
    touch(KFREE + 8, BLOCK + 32, 3, true);
    touch(PC, BLOCK + 32, 3, true);
    g_assert_cmphex(nth(w, 0).flags, ==, KT_BLOCK_ACCESS_WRITE |
                                         KT_BLOCK_ACCESS_ALLOCATOR);
    g_assert_cmphex(nth(w, 1).flags, ==, KT_BLOCK_ACCESS_WRITE);
}

/* memset(BLOCK - 16, 0, 48) stores its end first. */
BEGUN_TEST(test_range, "/watch-block/range")
{
    KtBlockAccess a;

    watch(w);
    touch(MEMSET + 4, BLOCK + 24, 3, true);
    touch(MEMSET + 8, BLOCK - 16, 3, true);
    touch(MEMSET + 8, BLOCK - 8, 3, true);
    touch(MEMSET + 8, BLOCK, 3, true);
    touch(MEMSET + 8, BLOCK + 8, 3, true);
    touch(MEMSET + 8, BLOCK + 16, 3, true);
    g_assert_cmpuint(info_of(w).records, ==, 1);
    a = nth(w, 0);
    g_assert_true(a.va == BLOCK && a.len == 32 && a.count == 4);
    g_assert_cmphex(a.flags, ==, KT_BLOCK_ACCESS_WRITE |
                                 KT_BLOCK_ACCESS_RANGE);
    g_assert_cmphex(first_frame(w, a.stack), ==, MEMSET);
}

BEGUN_TEST(test_boots, "/watch-block/boots")
{
    watch(w);
    test_qemu_reset();
    g_assert_false(info_of(w).on);
    g_assert_false(test_qemu_traps(BLOCK));
    /* The kernel is not known yet. */
    watch(w);
    g_assert_false(info_of(w).on);
    test_qemu_run(START);
    watch(w);
    touch(PC, BLOCK, 3, false);
    g_assert_cmpuint(info_of(w).records, ==, 1);
}
