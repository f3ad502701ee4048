/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An independent reader, tests/lib/journal.py, reads what the tracer wrote.
 * Files that cannot be written, or are no journals, are in
 * test-journal-damage.c.
 */
#include "tests/lib/journal-files.h"
#include "tests/lib/test-main.h"
#include "kalloc-tracer/api/kt-aliases.h"
#include "kalloc-tracer/snapshot/snapshot.h"

/* ---- help --------------------------------------------------------------- */

static void expect(const char *path, const char *want)
{
    int rc;
    g_autofree char *got = read_back(path, &rc);

    if (!got) {
        g_test_skip("there is no python3");
        return;
    }
    g_assert_cmpstr(got, ==, want);
    g_assert_cmpint(rc, ==, 0);
}

/* But for the padding behind the last member. */
static void assert_same_stats(const KtStats *a, const KtStats *b)
{
    g_assert_cmpmem(a, offsetof(KtStats, full), b, offsetof(KtStats, full));
    g_assert_cmpint(a->full, ==, b->full);
}

/* ---- tests -------------------------------------------------------------- */

TEST(written_and_read, "/journal/written-and-read")
{
    g_autoptr(JournalPath) path = new_path();
    KtTracer *t = new_tracer(path, NULL);
    g_autofree char *hook = g_strdup(
        kt_tracer_hook_name(t, (KtHookId) { 0 }));
    g_autofree char *want = NULL;
    const char *twenty = "0,1,2,3,4,5,6,7,8,9,a,b,c,d,e,f,10,11,12,13";

    push_samples(t);
    kt_tracer_set_complete(t, true);
    kt_tracer_reset(t);
    kt_tracer_clear(t);
    kt_tracer_free(t);
    want = g_strdup_printf(
        "1 280223976814164us cpu4660 alloc ffff888000001000 60/64 cache "
        "a-name-of-more-than-one-cell-which-is-64-bytes-long-or-a-bit-more"
        "\\x0a %s in?it:42 cc0 user ffffffff81000010,ffffffff81000020\n"
        "2 2us cpu0 free ffff888000001000 0/0 vfree - %s - 0 end %s\n"
        "3 2us cpu0 free ffff888000001000 0/0 vfree - %s - 0 end %s\n"
        "4 0us cpu0 resize 0 1/0 - - %s - 0 - -\n"
        "5 0us cpu0 rcu 0 0/0 - - %s - 0 - -\n"
        "0 0us cpu0 complete 0 1/0 - - - - 0 - -\n"
        "0 0us cpu0 reset 0 0/0 - - - - 0 - -\n"
        "0 0us cpu0 clear 0 0/0 - - - - 0 - -\n"
        "0 280223976814164us cpu0 gap 0 0/0 - - %s - 0 - -\n",
        hook, hook, twenty, hook, twenty, hook, hook, hook);
    expect(path, want);
}

/* With each query all that was pushed before is in the file. */
TEST(flushed_by_queries, "/journal/flushed-by-queries")
{
    g_autoptr(JournalPath) path = new_path();
    g_autoptr(KtTracer) t = new_tracer(path, NULL);

    push_samples(t);
    tracer_stats(t);
    g_assert_cmpuint(events_in(path), ==, 5);
    kt_tracer_push(t, 0, &(KtEvent) { .kind = KT_EV_RESIZE });
    tracer_stats(t);
    g_assert_cmpuint(events_in(path), ==, 6);
}

/* More than a run holds, and many stacks. */
TEST(many_events, "/journal/many-events")
{
    g_autoptr(JournalPath) path = new_path();
    KtTracer *t = new_tracer(path, NULL);
    unsigned n = 40000;
    uint64_t pc[30] = { 0 };
    int rc;
    g_autofree char *out = NULL;
    unsigned lines = 0;

    for (unsigned i = 0; i < n; i++) {
        pc[7] = i;
        kt_tracer_push(t, 0, &(KtEvent) {
            .kind = KT_EV_ALLOC, .va = i * 64, .size = 64,
            .layer = KT_LAYER_KMALLOC,
            .stack = kt_tracer_intern_stack(t, pc, 9 + i % 20, GS_STOP_END),
        });
    }
    g_assert_cmpuint(kt_tracer_counter(t, KT_CNT_JOURNAL_LOST), ==, 0);
    kt_tracer_free(t);
    out = read_back(path, &rc);
    for (const char *at = out; at && (at = strchr(at, '\n')); at++) {
        lines++;
    }
    g_assert_true(!out || lines == n);
}

/* ---- a run that QEMU records or replays ---------------------------------- */

#define REPEATED 20000
#define MERGE_AT 1500
#define CACHE_VA 0xffff888000001000ull

static KtTracer *new_repeatable(const char *path)
{
    KtConfig config = KT_CONFIG_DEFAULT;

    config.journal = path;
    config.repeatable = true;
    return kt_tracer_new(&config, NULL);
}

static void count_call(void *opaque)
{
    ++*(unsigned *)opaque;
}

/* The objects of the cache are larger from now on. */
static void merge_cache(KtTracer *t)
{
    kt_cache_alias_add(t, &(KtCacheAlias) {
        .cache_va = CACHE_VA, .name = "other", .object_size = 64 });
}

/* Write a journal, with a query each @asked events; each event takes @us. */
static char *written(unsigned asked, unsigned us, gsize *len, unsigned *saved)
{
    g_autoptr(JournalPath) path = new_path();
    KtTracer *t = new_repeatable(path);
    KtCacheId cache = kt_tracer_add_cache(t, CACHE_VA, "cache", 48, 64);
    char *bytes;

    kt_tracer_on_second(t, count_call, saved);
    for (unsigned i = 1; i <= REPEATED; i++) {
        kt_tracer_push(t, 0, &(KtEvent) {
            .kind = KT_EV_ALLOC, .us = (uint64_t)i * us, .va = i * 64,
            .size = 48, .layer = KT_LAYER_CACHE, .cache = cache });
        if (i == MERGE_AT) {
            merge_cache(t);
        }
        if (i % asked == 0) {
            tracer_stats(t);
        }
    }
    kt_tracer_count(t, KT_CNT_CHECK_NS, asked);
    kt_tracer_save_status(t, &(KtStatus) { 0 });
    kt_tracer_free(t);
    g_assert_true(g_file_get_contents(path, &bytes, len, NULL));
    return bytes;
}

static unsigned frames_of(KtFrameKind kind, const char *bytes, gsize len)
{
    unsigned n = 0;

    for (gsize at = KT_HEAD_BYTES; at + KT_FRAME_BYTES <= len; ) {
        KtFrame f;

        if (!kt_part_unpack(KT_PART_FRAME, &f, (const uint8_t *)bytes + at)) {
            break;
        }
        n += f.kind == kind;
        at += KT_FRAME_BYTES + f.stored;
    }
    return n;
}

/* Whatever is asked meanwhile, and however long it takes. */
TEST(repeatable, "/journal/repeatable")
{
    for (unsigned us = 1; us <= 1000; us *= 1000) {
        unsigned saved[2] = { 0 };
        gsize len[2];
        g_autofree char *one = written(REPEATED + 1, us, &len[0], &saved[0]);
        g_autofree char *other = written(37, us, &len[1], &saved[1]);

        g_assert_cmpmem(one, len[0], other, len[1]);
        /* up to the merge, 16384, and the rest; or the seconds 0 to 20, and
         * in one of them the merge */
        g_assert_cmpuint(frames_of(KT_FRAME_EVENTS, one, len[0]), ==,
                         us == 1 ? 3 : 22);
        g_assert_cmpuint(frames_of(KT_FRAME_STATUS, one, len[0]), ==, 1);
        g_assert_cmpuint(saved[0], ==, REPEATED / 2048);
        g_assert_cmpuint(saved[1], ==, REPEATED / 2048);
    }
}

TEST(no_such_folder, "/journal/no-such-folder")
{
    g_autoptr(GError) err = NULL;

    g_assert_null(new_tracer("/nowhere/at/all/journal", &err));
    g_assert_nonnull(strstr(err->message, "/nowhere/at/all/journal"));
    g_assert_null(strchr(err->message, '\n'));
}

/* The time that was asked for is where it ends. */
TEST(as_of_a_time, "/journal/as-of-a-time")
{
    g_autoptr(JournalPath) path = new_path();
    KtTracer *t = new_tracer(path, NULL);

    for (unsigned i = 1; i <= 10; i++) {
        kt_tracer_push(t, 0, &(KtEvent) {
            .kind = KT_EV_ALLOC, .va = i * 64, .size = 64, .us = i * 100,
            .layer = KT_LAYER_KMALLOC });
        if (i % 4 == 0) {
            tracer_stats(t);
        }
    }
    kt_tracer_free(t);
    for (unsigned us = 0; us <= 1100; us += 50) {
        const KtReplayPlan plan = { .until_us = us, .apply = true };
        g_autoptr(KtReplay) r = kt_replay_open(path, NULL);

        kt_replay_run(r, &plan);
        g_assert_cmpuint(tracer_stats(kt_replay_tracer(r)).live_blocks, ==,
                         MIN(us / 100, 10));
        g_assert_true(kt_replay_info(r)->reached == (us < 1000));
    }
}

static void push_at(KtTracer *t, uint64_t us)
{
    kt_tracer_push(t, 0, &(KtEvent) { .kind = KT_EV_RESIZE, .us = us });
}

/* The slide of the kernel that ran then; events are not looked at. */
static void expect_slide(const char *path, uint64_t us, uint64_t slide)
{
    const KtReplayPlan plan = { .until_us = us, .since_us = UINT64_MAX };
    g_autoptr(KtReplay) r = kt_replay_open(path, NULL);

    kt_replay_run(r, &plan);
    g_assert_true(kt_replay_info(r)->reached);
    g_assert_cmpuint(gs_kernel_slide(kt_replay_kernel(r)), ==, slide);
}

/* Of a file that was not ended, too: what is behind that time, and what is
 * missing, does not matter. */
TEST(names_of_a_time, "/journal/names-of-a-time")
{
    g_autoptr(JournalPath) path = new_path();
    g_autoptr(KtTracer) t = new_tracer(path, NULL);

    save_kernel(t, 0x1000000, true);
    push_at(t, 100);
    kt_tracer_reset(t);
    push_at(t, 200);
    push_at(t, 300);
    save_kernel(t, 0x2000000, true);
    push_at(t, 400);
    save_kernel(t, 0x3000000, true);
    push_at(t, 500);
    tracer_stats(t);
    expect_slide(path, 99, 0x1000000);
    expect_slide(path, 150, 0x1000000);
    expect_slide(path, 250, 0x1000000);
    expect_slide(path, 350, 0x2000000);
    expect_slide(path, 450, 0x3000000);
}

/* Names, marks and sizes as the tracer had them that wrote it. */
TEST(state_comes_back, "/journal/state-comes-back")
{
    g_autoptr(JournalPath) path = new_path();
    g_autoptr(KtTracer) t = new_tracer(path, NULL);
    g_autoptr(KtReplay) r = NULL;
    const KtStatus status = { .kernel_found = true, .why_no_kernel = "why" };
    KtStatus back;
    KtStats was, is;

    push_samples(t);
    kt_tracer_intern_stack(t, (uint64_t[]) { 1, 2, 3 }, 3, GS_STOP_END);
    kt_tracer_count(t, KT_CNT_ALLOC_FAILED, 7);
    kt_tracer_set_enabled(t, false);
    kt_tracer_save_status(t, &status);
    was = tracer_stats(t);
    r = read_all(path);
    is = tracer_stats(kt_replay_tracer(r));
    assert_same_stats(&was, &is);
    for (unsigned i = 0; i < KT_CNT__COUNT; i++) {
        g_assert_cmpuint(kt_tracer_counter(t, i), ==,
                         kt_tracer_counter(kt_replay_tracer(r), i));
    }
    g_assert_false(kt_tracer_enabled(kt_replay_tracer(r)));
    kt_replay_status(r, &back);
    g_assert_true(back.kernel_found);
    g_assert_cmpstr(back.why_no_kernel, ==, "why");
}

/* A VM state is loaded: the file goes on from there, as the tracer does. */
TEST(state_is_loaded, "/journal/state-is-loaded")
{
    g_autoptr(JournalPath) path = new_path();
    g_autoptr(KtTracer) t = new_tracer(path, NULL);
    g_autoptr(KtReplay) r = NULL;
    g_autoptr(GByteArray) state = g_byte_array_new();
    GsBytes in;
    KtStats was, is;
    KtBlock a, b;

    push_samples(t);
    kt_tracer_push(t, 0, &(KtEvent) {
        .kind = KT_EV_ALLOC, .va = 0x5000, .size = 64, .us = 3,
        .layer = KT_LAYER_KMALLOC });
    kt_snapshot_save(t, gs_stream_to_array, state);
    kt_tracer_push(t, 0, &(KtEvent) { .kind = KT_EV_FREE, .va = 0x5000 });
    push_resizes(t, 100);
    in = (GsBytes) { state->data, state->len };
    g_assert_true(kt_snapshot_load(t, gs_stream_from_bytes, &in, NULL));
    push_samples(t);
    kt_tracer_save_status(t, &(KtStatus) { 0 });
    was = tracer_stats(t);
    r = read_all(path);
    g_assert_null(kt_replay_info(r)->damage);
    is = tracer_stats(kt_replay_tracer(r));
    assert_same_stats(&was, &is);
    kt_query_begin(t);
    kt_query_begin(kt_replay_tracer(r));
    g_assert_true(kt_query_find(t, 0x5000, &a) &&
                  kt_query_find(kt_replay_tracer(r), 0x5000, &b));
    g_assert_cmpint(a.state, ==, KT_BLOCK_ALLOCATED);
    g_assert_cmpint(b.state, ==, KT_BLOCK_ALLOCATED);
    kt_query_end(kt_replay_tracer(r));
    kt_query_end(t);
}
