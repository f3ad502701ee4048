/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The journal: what the tracer writes, tests/lib/journal.py reads back, and
 * what becomes of files that cannot be written or are no journals.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "journal.h"
#include "kt.h"

#ifndef KA_SOURCE_DIR
#define KA_SOURCE_DIR "."
#endif

/* ---- help --------------------------------------------------------------- */

/* (owned) a path in a folder of its own. */
static char *new_path(void)
{
    g_autofree char *dir = g_dir_make_tmp("ka-journal-XXXXXX", NULL);

    g_assert_nonnull(dir);
    return g_build_filename(dir, "journal", NULL);
}

static void remove_path(char *path)
{
    g_autofree char *dir = g_path_get_dirname(path);

    unlink(path);
    rmdir(dir);
    g_free(path);
}

static KtTracer *new_tracer(const char *path, GError **errp)
{
    KtConfig config = KT_CONFIG_DEFAULT;

    config.journal = path;
    return kt_tracer_new(&config, errp);
}

/* (owned) what the reader prints of a file; @rc its result. */
static char *read_back(const char *path, int *rc)
{
    const char *argv[] = {
        "python3", "-B", KA_SOURCE_DIR "/tests/lib/journal.py", path, NULL
    };
    g_autofree char *err = NULL;
    char *out = NULL;

    if (!g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_SEARCH_PATH, NULL,
                      NULL, &out, &err, rc, NULL)) {
        return NULL;
    }
    if (*rc) {
        g_free(out);
        return g_steal_pointer(&err);
    }
    return out;
}

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

static void expect_refused(const char *path, const char *why)
{
    int rc;
    g_autofree char *got = read_back(path, &rc);

    if (!got) {
        g_test_skip("there is no python3");
        return;
    }
    g_assert_cmpint(rc, !=, 0);
    g_assert_nonnull(strstr(got, why));
}

/* ---- tests -------------------------------------------------------------- */

static void push_samples(KtTracer *t)
{
    uint64_t pc[20] = { 0xffffffff81000010, 0xffffffff81000020 };
    KtEvent ev = {
        .kind = KT_EV_ALLOC, .va = 0xffff888000001000, .size = 60,
        .actual = 64, .us = 0xfedcba987654, .cpu = 0x1234,
        .stack = kt_tracer_intern_stack(t, pc, 2, GS_STOP_USER),
        .task = kt_tracer_intern_task(t, 42, "in\x01it\0junkjunkju"),
        .gfp = 0xcc0,
        .cache = kt_tracer_add_cache(t, 0xffff888000c00000,
                                     "a-name-of-more-than-one-cell-which-is-"
                                     "64-bytes-long-or-a-bit-more\n", 64, 128),
        .layer = KT_LAYER_CACHE,
        .flags = KT_EVF_TAKE, .pad = { 1, 2, 3, 4, 5 },
    };

    kt_tracer_push(t, 0, &ev);
    for (unsigned i = 0; i < 20; i++) {
        pc[i] = i;
    }
    ev = (KtEvent) {
        .kind = KT_EV_FREE, .va = 0xffff888000001000, .us = 2,
        .stack = kt_tracer_intern_stack(t, pc, 20, GS_STOP_END),
        .family = KT_FAMILY_VFREE,
    };
    kt_tracer_push(t, 0, &ev);
    kt_tracer_push(t, 0, &ev);
    kt_tracer_push(t, 0, &(KtEvent) { .kind = KT_EV_RESIZE, .size = 1 });
    kt_tracer_push(t, 0, &(KtEvent) { .kind = KT_EV_RCU_QUEUE });
}

static void written_and_read(void)
{
    char *path = new_path();
    KtTracer *t = new_tracer(path, NULL);
    g_autofree char *hook = g_strdup(kt_hook_name((KtHookId) { 0 }));
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
    remove_path(path);
}

/* With each query all that was pushed before is in the file. */
static void flushed_by_queries(void)
{
    char *path = new_path();
    g_autoptr(KtTracer) t = new_tracer(path, NULL);
    g_autofree char *data = NULL;
    gsize before;
    gsize len;

    push_samples(t);
    kt_query_begin(t);
    kt_query_end(t);
    g_assert_true(g_file_get_contents(path, &data, &before, NULL));
    g_assert_cmpuint(before % 64, ==, 0);
    g_clear_pointer(&data, g_free);
    kt_tracer_push(t, 0, &(KtEvent) { .kind = KT_EV_RESIZE });
    kt_query_begin(t);
    kt_query_end(t);
    g_assert_true(g_file_get_contents(path, &data, &len, NULL));
    g_assert_cmpuint(len, ==, before + 64);
    remove_path(path);
}

/* More than the buffer holds; definitions are never torn. */
static void many_events(void)
{
    char *path = new_path();
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
    remove_path(path);
}

static void no_such_folder(void)
{
    g_autoptr(GError) err = NULL;

    g_assert_null(new_tracer("/nowhere/at/all/journal", &err));
    g_assert_nonnull(strstr(err->message, "/nowhere/at/all/journal"));
    g_assert_null(strchr(err->message, '\n'));
}

static void cannot_begin(void)
{
    g_autoptr(GError) err = NULL;

    if (access("/dev/full", W_OK)) {
        g_test_skip("there is no /dev/full");
        return;
    }
    g_assert_null(new_tracer("/dev/full", &err));
    g_assert_nonnull(strstr(err->message, "/dev/full"));
}

static KtStats stats(KtTracer *t)
{
    KtStats s;

    kt_query_begin(t);
    kt_query_stats(t, &s);
    kt_query_end(t);
    return s;
}

/* A full disk, or here a limit: what does not fit is counted, event for
 * event, the model goes on and the file is good up to there. */
static void disk_full(void)
{
    const struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };
    const struct rlimit limit = { 64 * 10 + 7, RLIM_INFINITY };
    const KtEvent ev = { .kind = KT_EV_RESIZE, .size = 1 };
    char *path = new_path();
    g_autoptr(KtTracer) t = new_tracer(path, NULL);
    g_autofree char *out = NULL;
    int rc;

    signal(SIGXFSZ, SIG_IGN);
    g_assert_cmpint(setrlimit(RLIMIT_FSIZE, &limit), ==, 0);
    for (unsigned i = 0; i < 100; i++) {
        kt_tracer_push(t, 0, &ev);
    }
    g_assert_cmpuint(stats(t).events, ==, 100);
    g_assert_cmpint(setrlimit(RLIMIT_FSIZE, &unlimited), ==, 0);
    /* Ten cells are the header, the hook's name in two, and events. */
    g_assert_cmpuint(kt_tracer_counter(t, KT_CNT_JOURNAL_LOST), ==, 93);
    kt_tracer_push(t, 0, &ev);
    kt_tracer_clear(t);
    g_assert_cmpuint(kt_tracer_counter(t, KT_CNT_JOURNAL_LOST), ==, 95);
    out = read_back(path, &rc);
    g_assert_true(!out || (rc == 0 && strstr(out, "\n7 ") &&
                           !strstr(out, "\n8 ")));
    remove_path(path);
}

/* A file whose end was never written, as after kill -9. */
static void torn_end(void)
{
    char *path = new_path();
    KtTracer *t = new_tracer(path, NULL);
    g_autofree char *data = NULL;
    g_autofree char *want = NULL;
    gsize len;

    kt_tracer_push(t, 0, &(KtEvent) { .kind = KT_EV_RESIZE, .size = 1 });
    kt_tracer_push(t, 0, &(KtEvent) { .kind = KT_EV_RESIZE, .size = 2 });
    kt_tracer_free(t);
    g_assert_true(g_file_get_contents(path, &data, &len, NULL));
    g_assert_true(g_file_set_contents(path, data, len - 1, NULL));
    want = g_strdup_printf("1 0us cpu0 resize 0 1/0 - - %s - 0 - -\n",
                           kt_hook_name((KtHookId) { 0 }));
    expect(path, want);
    remove_path(path);
}

static void not_a_journal(void)
{
    char *path = new_path();
    char head[64] = "KAJRNL\x02";

    g_assert_true(g_file_set_contents(path, "KAJRNL", -1, NULL));
    expect_refused(path, "not a journal");
    g_assert_true(g_file_set_contents(path, head, sizeof(head), NULL));
    expect_refused(path, "version 2");
    unlink(path);
    expect_refused(path, "No such file");
    remove_path(path);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/journal/written-and-read", written_and_read);
    g_test_add_func("/journal/flushed-by-queries", flushed_by_queries);
    g_test_add_func("/journal/many-events", many_events);
    g_test_add_func("/journal/no-such-folder", no_such_folder);
    g_test_add_func("/journal/cannot-begin", cannot_begin);
    g_test_add_func("/journal/disk-full", disk_full);
    g_test_add_func("/journal/torn-end", torn_end);
    g_test_add_func("/journal/not-a-journal", not_a_journal);
    return g_test_run();
}
