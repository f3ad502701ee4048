/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The journal agrees with the tracer after snapshots are loaded, the VM is
 * reset and the tracer is cleared, also if the disk is full then.
 */
#include <signal.h>
#include <sys/resource.h>

#include "tests/lib/journal-files.h"
#include "tests/lib/test-main.h"
#include "kalloc-tracer/snapshot/snapshot.h"

#define VA  0xffff888000001000u
#define N   50              /* blocks of a test */

/* ---- help --------------------------------------------------------------- */

static KtStackId a_stack(KtTracer *t)
{
    const uint64_t pc[] = { 0xffffffff81000010, 0xffffffff81000020 };

    return kt_tracer_intern_stack(t, pc, G_N_ELEMENTS(pc), GS_STOP_END);
}

static KtCacheId a_cache(KtTracer *t)
{
    return kt_tracer_add_cache(t, 0xffff888000c00000, "obj", 64, 64);
}

static void push_alloc(KtTracer *t, uint64_t va, uint64_t us)
{
    kt_tracer_push(t, 0, &(KtEvent) {
        .kind = KT_EV_ALLOC, .va = va, .size = 64, .actual = 64, .us = us,
        .cache = a_cache(t), .layer = KT_LAYER_CACHE, .stack = a_stack(t) });
}

static void push_free(KtTracer *t, uint64_t va, uint64_t us)
{
    kt_tracer_push(t, 0, &(KtEvent) {
        .kind = KT_EV_FREE, .va = va, .us = us, .cache = a_cache(t),
        .family = KT_FAMILY_CACHE, .stack = a_stack(t) });
}

static void push_allocs(KtTracer *t, unsigned n, uint64_t us)
{
    for (unsigned i = 0; i < n; i++) {
        push_alloc(t, VA + 64 * i, us + i);
    }
}

static void push_frees(KtTracer *t, unsigned n, uint64_t us)
{
    for (unsigned i = 0; i < n; i++) {
        push_free(t, VA + 64 * i, us + i);
    }
}

static GByteArray *save(KtTracer *t)
{
    GByteArray *state = g_byte_array_new();

    kt_snapshot_save(t, gs_stream_to_array, state);
    return state;
}

static void load(KtTracer *t, const GByteArray *state)
{
    GsBytes in = { state->data, state->len };

    g_assert_true(kt_snapshot_load(t, gs_stream_from_bytes, &in, NULL));
}

/* Of a process that is gone: a tracer that saw so many allocations. */
static GByteArray *state_of_another(unsigned n)
{
    g_autoptr(KtTracer) t = new_tracer(NULL, NULL);

    kt_tracer_set_complete(t, true);
    push_allocs(t, n, 10);
    return save(t);
}

static unsigned n_caches(KtTracer *t)
{
    KtCacheInfo info;
    unsigned n = 0;

    while (kt_tracer_cache(t, (KtCacheId) { n + 1 }, &info)) {
        n++;
    }
    return n;
}

/* The file's tracer knows what that one does which wrote it. */
static void expect_same(KtTracer *t, const char *path)
{
    g_autoptr(KtReplay) r = NULL;
    KtStats was, is;

    kt_tracer_save_status(t, &(KtStatus) { 0 });
    was = tracer_stats(t);
    r = read_all(path);
    g_assert_null(kt_replay_info(r)->damage);
    is = tracer_stats(kt_replay_tracer(r));
    g_assert_cmpuint(is.errors, ==, was.errors);
    g_assert_cmpuint(is.live_blocks, ==, was.live_blocks);
    g_assert_cmpuint(n_caches(kt_replay_tracer(r)), ==, n_caches(t));
}

/* ---- another process's state -------------------------------------------- */

/* Its caches come with the checkpoint, and are told when events name them. */
TEST(caches_of_a_state, "/journal-states/caches-of-a-state")
{
    g_autoptr(JournalPath) path = new_path();
    g_autoptr(KtTracer) t = new_tracer(path, NULL);
    g_autoptr(GByteArray) state = state_of_another(N);

    load(t, state);
    push_frees(t, N / 2, 100);
    push_allocs(t, N / 2, 200);
    expect_same(t, path);
    g_assert_cmpuint(tracer_stats(t).errors, ==, 0);
    g_assert_cmpuint(n_caches(t), ==, 1);
}

/* One that was destroyed and is there again, at the same place, is not the
 * one that a number stands for. */
TEST(cache_of_a_second_life, "/journal-states/cache-of-a-second-life")
{
    g_autoptr(JournalPath) path = new_path();
    g_autoptr(KtTracer) t = new_tracer(path, NULL);
    g_autoptr(GByteArray) state = state_of_another(1);

    load(t, state);
    push_frees(t, 1, 100);
    kt_tracer_cache_destroyed(t, a_cache(t));
    push_allocs(t, 1, 200);
    push_frees(t, 1, 300);
    expect_same(t, path);
    g_assert_cmpuint(n_caches(t), ==, 2);
}

/* ---- the kernel --------------------------------------------------------- */

static void expect_kernel(const char *path, bool known, bool found)
{
    g_autoptr(KtReplay) r = read_all(path);
    KtStatus s;

    kt_replay_status(r, &s);
    g_assert_true((kt_replay_kernel(r) != NULL) == known);
    g_assert_true(s.kernel_found == found);
}

/* The one that ran is not the state's, which may have none. */
TEST(kernel_of_a_state, "/journal-states/kernel-of-a-state")
{
    g_autoptr(JournalPath) path = new_path();
    g_autoptr(KtTracer) t = new_tracer(path, NULL);
    g_autoptr(GByteArray) state = state_of_another(1);

    save_kernel(t, 0, true);
    load(t, state);
    tracer_stats(t);
    expect_kernel(path, false, false);
    save_kernel(t, 0, true);
    tracer_stats(t);
    expect_kernel(path, true, true);
}

/* kernel=FILE: its symbols are known as ever, only not where it runs. */
TEST(kernel_of_a_file, "/journal-states/kernel-of-a-file")
{
    g_autoptr(JournalPath) path = new_path();
    g_autoptr(KtTracer) t = new_tracer(path, NULL);
    g_autoptr(GByteArray) state = state_of_another(1);

    save_kernel(t, 0, false);
    save_kernel(t, 0x1000000, true);
    load(t, state);
    tracer_stats(t);
    expect_kernel(path, true, false);
}

/* ---- a full disk -------------------------------------------------------- */

static void limit_files(uint64_t bytes)
{
    const struct rlimit limit = { bytes, RLIM_INFINITY };

    g_assert_cmpint(setrlimit(RLIMIT_FSIZE, &limit), ==, 0);
}

static void go_nowhere(KtTracer *t, const GByteArray *state)
{
}

static void go_to_state(KtTracer *t, const GByteArray *state)
{
    load(t, state);
}

static void go_to_reset(KtTracer *t, const GByteArray *state)
{
    kt_tracer_reset(t);
    kt_tracer_set_complete(t, true);
}

static void go_to_clear(KtTracer *t, const GByteArray *state)
{
    kt_tracer_clear(t);
}

/* What is freed was allocated before @go or behind it, while nothing could be
 * written. No error is made of it. */
static void full_and_gone(gconstpointer data)
{
    void (*const go)(KtTracer *, const GByteArray *) = data;
    g_autoptr(JournalPath) path = new_path();
    g_autoptr(KtTracer) t = new_tracer(path, NULL);
    g_autoptr(GByteArray) state = state_of_another(1);
    g_autoptr(KtReplay) r = NULL;

    signal(SIGXFSZ, SIG_IGN);
    kt_tracer_set_complete(t, true);
    push_allocs(t, N / 2, 100);
    tracer_stats(t);
    limit_files(size_of(path));
    go(t, state);
    for (unsigned i = N / 2; i < N; i++) {
        push_alloc(t, VA + 64 * i, 200);
    }
    tracer_stats(t);
    limit_files(RLIM_INFINITY);
    for (unsigned i = N / 2; i < N; i++) {
        push_free(t, VA + 64 * i, 300);
    }
    g_assert_cmpuint(tracer_stats(t).errors, ==, 0);
    r = read_all(path);
    g_assert_cmpuint(tracer_stats(kt_replay_tracer(r)).errors, ==, 0);
    g_assert_cmpuint(kt_replay_info(r)->gap_events, >=, N / 2);
    g_assert_cmpuint(kt_replay_info(r)->read_events, ==, N);
    g_assert_cmpuint(kt_replay_info(r)->missing_events, ==, 0);
}

TEST_WITH(full_and_gone, "/journal-states/full", go_nowhere)
TEST_WITH(full_and_gone, "/journal-states/full-and-state", go_to_state)
TEST_WITH(full_and_gone, "/journal-states/full-and-reset", go_to_reset)
TEST_WITH(full_and_gone, "/journal-states/full-and-clear", go_to_clear)

/* Nothing is missing behind it: errors are told as ever. */
TEST(full_and_then_gone, "/journal-states/full-and-then-gone")
{
    g_autoptr(JournalPath) path = new_path();
    g_autoptr(KtTracer) t = new_tracer(path, NULL);

    signal(SIGXFSZ, SIG_IGN);
    limit_files(size_of(path));
    push_allocs(t, N, 100);
    tracer_stats(t);
    kt_tracer_reset(t);
    kt_tracer_set_complete(t, true);
    tracer_stats(t);
    limit_files(RLIM_INFINITY);
    push_frees(t, 1, 200);
    g_assert_cmpuint(tracer_stats(t).errors, ==, 1);
    expect_same(t, path);
}

/* The state's time is an earlier one than that of the file so far. A hole is
 * of the time that it is in. */
TEST(back_in_time, "/journal-states/back-in-time")
{
    g_autoptr(JournalPath) path = new_path();
    g_autoptr(KtTracer) t = new_tracer(path, NULL);
    g_autoptr(GByteArray) state = NULL;
    g_autoptr(KtReplay) r = NULL;

    signal(SIGXFSZ, SIG_IGN);
    push_alloc(t, VA, 100);
    state = save(t);
    push_alloc(t, VA + 64, 5000);
    load(t, state);
    tracer_stats(t);
    limit_files(size_of(path));
    push_alloc(t, VA + 128, 250);
    tracer_stats(t);
    limit_files(RLIM_INFINITY);
    push_alloc(t, VA + 192, 300);
    tracer_stats(t);
    r = read_all(path);
    g_assert_cmpuint(kt_replay_info(r)->gap_events, ==, 1);
    g_assert_cmpuint(kt_replay_info(r)->read_us, ==, 300);
    g_assert_cmpuint(kt_replay_info(r)->last_us, ==, 5000);
    g_assert_cmpuint(tracer_stats(kt_replay_tracer(r)).last_us, ==, 300);
}
