/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The journal: what the tracer writes, tests/lib/journal.py reads back, and
 * what becomes of files that cannot be written or are no journals.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "journal.h"
#include "kt.h"
#include "state.h"

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

static KtStats stats(KtTracer *t)
{
    KtStats s;

    kt_query_begin(t);
    kt_query_stats(t, &s);
    kt_query_end(t);
    return s;
}

static KtReplay *read_all(const char *path)
{
    const KtReplayPlan plan = { .until_us = UINT64_MAX, .apply = true };
    g_autoptr(GError) err = NULL;
    KtReplay *r = kt_replay_open(path, &err);

    g_assert_no_error(err);
    kt_replay_run(r, &plan);
    return r;
}

static uint64_t events_in(const char *path)
{
    g_autoptr(KtReplay) r = read_all(path);

    return kt_replay_info(r)->read_events;
}

static bool add_event(void *opaque, const KtEvent *ev)
{
    g_array_append_vals(opaque, ev, 1);
    return true;
}

/* (owned) the events of a file, NULL if it is refused. */
static GArray *list_events(const char *path, KtReplayInfo *info)
{
    g_autoptr(KtReplay) r = kt_replay_open(path, NULL);
    GArray *list = g_array_new(FALSE, FALSE, sizeof(KtEvent));
    const KtReplayPlan plan = {
        .until_us = UINT64_MAX, .event = add_event, .opaque = list,
    };

    if (!r) {
        g_array_free(list, TRUE);
        return NULL;
    }
    kt_replay_run(r, &plan);
    if (info) {
        *info = *kt_replay_info(r);
    }
    return list;
}

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

    push_samples(t);
    stats(t);
    g_assert_cmpuint(events_in(path), ==, 5);
    kt_tracer_push(t, 0, &(KtEvent) { .kind = KT_EV_RESIZE });
    stats(t);
    g_assert_cmpuint(events_in(path), ==, 6);
    remove_path(path);
}

/* More than a run holds, and many stacks. */
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

/* Without waiting for the disk. */
static void put_file(const char *path, const char *data, gsize len)
{
    FILE *f = fopen(path, "w");

    g_assert_nonnull(f);
    g_assert_cmpuint(fwrite(data, 1, len, f), ==, len);
    g_assert_cmpint(fclose(f), ==, 0);
}

static uint64_t size_of(const char *path)
{
    struct stat st;

    g_assert_cmpint(stat(path, &st), ==, 0);
    return st.st_size;
}

static void limit_files(uint64_t bytes)
{
    const struct rlimit limit = { bytes, RLIM_INFINITY };

    g_assert_cmpint(setrlimit(RLIMIT_FSIZE, &limit), ==, 0);
}

static void push_resizes(KtTracer *t, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        kt_tracer_push(t, 0, &(KtEvent) {
            .kind = KT_EV_RESIZE, .va = 0x1000 + i, .us = 10 + i,
            .size = g_random_int() });
    }
}

/* A full disk, or here a limit: what does not fit is counted, event for
 * event, and the model goes on. With room again the journal does, too, and
 * says what is missing. */
static void disk_full(void)
{
    char *path = new_path();
    g_autoptr(KtTracer) t = new_tracer(path, NULL);
    g_autofree char *out = NULL;
    g_autoptr(KtReplay) r = NULL;
    int rc;

    signal(SIGXFSZ, SIG_IGN);
    push_resizes(t, 10);
    stats(t);
    limit_files(size_of(path) + 7);
    push_resizes(t, 100);
    g_assert_cmpuint(stats(t).events, ==, 110);
    g_assert_cmpuint(kt_tracer_counter(t, KT_CNT_JOURNAL_LOST), ==, 100);
    kt_tracer_set_complete(t, true);
    g_assert_cmpuint(events_in(path), ==, 10);
    limit_files(RLIM_INFINITY);
    push_resizes(t, 5);
    stats(t);
    g_assert_cmpuint(kt_tracer_counter(t, KT_CNT_JOURNAL_LOST), ==, 100);
    r = read_all(path);
    g_assert_cmpuint(kt_replay_info(r)->read_events, ==, 15);
    g_assert_cmpuint(kt_replay_info(r)->hole_events, ==, 100);
    g_assert_cmpuint(kt_replay_info(r)->lost_events, ==, 0);
    out = read_back(path, &rc);
    g_assert_true(!out || (rc && strstr(out, "events are missing")));
    remove_path(path);
}

/* Parts of a VM state, say, that is loaded while the disk is full: without
 * all of them what follows would be told of another map. */
static void too_much_to_keep(void)
{
    char *path = new_path();
    KtConfig config = KT_CONFIG_DEFAULT;
    KtDepot *stacks = kt_depot_new(1);
    KtNames *names = kt_names_new(NULL);
    KtCounters *counters = kt_counters_new();
    const KtEvent ev = { .kind = KT_EV_RESIZE, .seq = 1 };
    g_autoptr(KtReplay) r = NULL;
    KtJournal *j;

    signal(SIGXFSZ, SIG_IGN);
    config.journal = path;
    j = kt_journal_open(&config, stacks, names, counters, NULL);
    limit_files(size_of(path));
    for (unsigned i = 0; i < 9; i++) {
        GByteArray *part = g_byte_array_new();

        g_byte_array_set_size(part, KT_PART_BYTES);
        memset(part->data, 1, part->len);
        kt_journal_note(j, KT_FRAME_CHECKPOINT, part);
    }
    limit_files(RLIM_INFINITY);
    kt_journal_promise(j, 1);
    kt_journal_events(j, &ev, 1);
    kt_journal_close(j);
    g_assert_cmpuint(kt_counters_get(counters, KT_CNT_JOURNAL_LOST), ==, 1);
    r = read_all(path);
    g_assert_false(kt_replay_info(r)->ended);
    g_assert_null(kt_replay_info(r)->damage);
    g_assert_cmpuint(kt_replay_info(r)->read_events, ==, 0);
    g_assert_cmpuint(kt_replay_info(r)->lost_events, ==, 1);
    kt_counters_free(counters);
    kt_names_free(names);
    kt_depot_free(stacks);
    remove_path(path);
}

/* What names events is told again behind a hole. */
static void full_and_stacks(void)
{
    char *path = new_path();
    g_autoptr(KtTracer) t = new_tracer(path, NULL);
    g_autoptr(KtReplay) r = NULL;
    KtBlock b;

    signal(SIGXFSZ, SIG_IGN);
    limit_files(size_of(path) + 7);
    push_samples(t);
    stats(t);
    limit_files(RLIM_INFINITY);
    push_samples(t);
    stats(t);
    r = read_all(path);
    g_assert_cmpuint(kt_replay_info(r)->read_events, ==, 5);
    g_assert_cmpuint(kt_replay_info(r)->hole_events, ==, 5);
    kt_query_begin(kt_replay_tracer(r));
    g_assert_true(kt_query_find(kt_replay_tracer(r), 0xffff888000001000, &b));
    kt_query_end(kt_replay_tracer(r));
    g_assert_cmpuint(b.cache.v, !=, 0);
    remove_path(path);
}

/* A file whose end was never written, as after kill -9: what was to be in it
 * is known. */
static void torn_end(void)
{
    char *path = new_path();
    char *torn = new_path();
    KtTracer *t = new_tracer(path, NULL);
    g_autofree char *data = NULL;
    uint64_t whole;
    gsize len;

    push_resizes(t, 2);
    stats(t);
    whole = size_of(path);
    push_resizes(t, 3);
    stats(t);
    g_assert_true(g_file_get_contents(path, &data, &len, NULL));
    kt_tracer_free(t);
    for (gsize cut = whole; cut < len; cut++) {
        g_autoptr(KtReplay) r = NULL;
        const KtReplayInfo *info;

        put_file(torn, data, cut);
        r = read_all(torn);
        info = kt_replay_info(r);
        g_assert_false(info->ended);
        g_assert_cmpuint(info->read_events, ==, 2);
        g_assert_true(info->lost_known);
        g_assert_cmpuint(info->lost_events, ==, 3);
        g_assert_cmpuint(info->lost_bytes, ==, cut - whole);
    }
    remove_path(path);
    remove_path(torn);
}

/* Whatever byte is changed: what is read is the beginning of what was
 * written, and a file that lacks something says so. */
static void damaged(void)
{
    char *path = new_path();
    char *bad = new_path();
    KtTracer *t = new_tracer(path, NULL);
    g_autofree char *data = NULL;
    g_autoptr(GArray) good = NULL;
    gsize len;

    for (unsigned i = 0; i < 20; i++) {
        push_samples(t);
        push_resizes(t, 50);
        stats(t);
    }
    kt_tracer_free(t);
    good = list_events(path, NULL);
    g_assert_true(g_file_get_contents(path, &data, &len, NULL));
    for (unsigned i = 0; i < 1000; i++) {
        gsize at = g_random_int_range(0, len);
        gsize cut = i % 3 ? len : at;
        KtReplayInfo info = { 0 };
        g_autoptr(GArray) got = NULL;

        data[at] ^= 1 << i % 8;
        put_file(bad, data, cut);
        data[at] ^= 1 << i % 8;
        got = list_events(bad, &info);
        if (!got) {
            continue;           /* refused */
        }
        g_assert_cmpuint(got->len, <=, good->len);
        g_assert_true(!got->len ||
                      !memcmp(got->data, good->data,
                              got->len * sizeof(KtEvent)));
        g_assert_true(got->len == good->len ||
                      (!info.ended &&
                       (!info.lost_known ||
                        info.lost_events == good->len - got->len)));
    }
    remove_path(path);
    remove_path(bad);
}

/* As of a run of some days: the index would have too many rows. The file was
 * ended all the same. */
static void index_without_rows(void)
{
    char *path = new_path();
    KtTracer *t = new_tracer(path, NULL);
    g_autofree char *data = NULL;
    g_autoptr(GByteArray) file = g_byte_array_new();
    g_autoptr(KtReplay) r = NULL;
    const uint8_t empty[8] = { 0 };
    uint8_t header[KT_FRAME_BYTES], tail[KT_TAIL_BYTES];
    uint64_t at;
    KtFrame f;
    gsize len;

    push_samples(t);
    kt_tracer_free(t);
    g_assert_true(g_file_get_contents(path, &data, &len, NULL));
    memcpy(tail, data + len - sizeof(tail), sizeof(tail));
    g_assert_true(kt_tail_get(&at, tail));
    g_assert_true(kt_frame_get(&f, (uint8_t *)data + at));
    f.stored = sizeof(empty);
    f.raw = 0;
    f.crc = kt_crc(empty, sizeof(empty));
    kt_frame_put(&f, header);
    g_byte_array_append(file, (uint8_t *)data, at);
    g_byte_array_append(file, header, sizeof(header));
    g_byte_array_append(file, empty, sizeof(empty));
    g_byte_array_append(file, tail, sizeof(tail));
    put_file(path, (char *)file->data, file->len);
    r = read_all(path);
    g_assert_true(kt_replay_info(r)->ended);
    g_assert_null(kt_replay_info(r)->damage);
    g_assert_cmpuint(kt_replay_info(r)->read_events, ==, 5);
    g_assert_cmpuint(kt_replay_info(r)->lost_bytes, ==, 0);
    remove_path(path);
}

static void not_a_journal(void)
{
    char *path = new_path();
    char head[128] = "KAJRNL\x01";

    g_assert_true(g_file_set_contents(path, "KAJRN", -1, NULL));
    expect_refused(path, "not a journal");
    g_assert_true(g_file_set_contents(path, head, sizeof(head), NULL));
    expect_refused(path, "version 1");
    head[6] = 2;
    g_assert_true(g_file_set_contents(path, head, sizeof(head), NULL));
    expect_refused(path, "damaged");
    g_assert_true(g_file_set_contents(path, head, 20, NULL));
    expect_refused(path, "damaged");
    unlink(path);
    expect_refused(path, "No such file");
    remove_path(path);
}

/* The time that was asked for is where it ends. */
static void as_of_a_time(void)
{
    char *path = new_path();
    KtTracer *t = new_tracer(path, NULL);

    for (unsigned i = 1; i <= 10; i++) {
        kt_tracer_push(t, 0, &(KtEvent) {
            .kind = KT_EV_ALLOC, .va = i * 64, .size = 64, .us = i * 100,
            .layer = KT_LAYER_KMALLOC });
        if (i % 4 == 0) {
            stats(t);
        }
    }
    kt_tracer_free(t);
    for (unsigned us = 0; us <= 1100; us += 50) {
        const KtReplayPlan plan = { .until_us = us, .apply = true };
        g_autoptr(KtReplay) r = kt_replay_open(path, NULL);

        kt_replay_run(r, &plan);
        g_assert_cmpuint(stats(kt_replay_tracer(r)).live_blocks, ==,
                         MIN(us / 100, 10));
        g_assert_true(kt_replay_info(r)->reached == (us < 1000));
    }
    remove_path(path);
}

/* Names, marks and sizes as the tracer had them that wrote it. */
static void state_comes_back(void)
{
    char *path = new_path();
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
    was = stats(t);
    r = read_all(path);
    is = stats(kt_replay_tracer(r));
    g_assert_cmpmem(&was, sizeof(was), &is, sizeof(is));
    for (unsigned i = 0; i < KT_CNT__COUNT; i++) {
        g_assert_cmpuint(kt_tracer_counter(t, i), ==,
                         kt_tracer_counter(kt_replay_tracer(r), i));
    }
    g_assert_false(kt_tracer_enabled(kt_replay_tracer(r)));
    kt_replay_status(r, &back);
    g_assert_true(back.kernel_found);
    g_assert_cmpstr(back.why_no_kernel, ==, "why");
    remove_path(path);
}

static void collect(void *opaque, const void *buf, size_t len)
{
    g_byte_array_append(opaque, buf, len);
}

static size_t give(void *opaque, void *buf, size_t len)
{
    KtBytes *in = opaque;
    size_t n = MIN(len, kt_bytes_left(in));

    memcpy(buf, kt_bytes_take(in, n), n);
    return n;
}

/* A VM state is loaded: the file goes on from there, as the tracer does. */
static void state_is_loaded(void)
{
    char *path = new_path();
    g_autoptr(KtTracer) t = new_tracer(path, NULL);
    g_autoptr(KtReplay) r = NULL;
    g_autoptr(GByteArray) state = g_byte_array_new();
    KtBytes in;
    KtStats was, is;
    KtBlock a, b;

    push_samples(t);
    kt_tracer_push(t, 0, &(KtEvent) {
        .kind = KT_EV_ALLOC, .va = 0x5000, .size = 64, .us = 3,
        .layer = KT_LAYER_KMALLOC });
    kt_state_save(t, collect, state);
    kt_tracer_push(t, 0, &(KtEvent) { .kind = KT_EV_FREE, .va = 0x5000 });
    push_resizes(t, 100);
    in = kt_bytes(state->data, state->len);
    g_assert_true(kt_state_load(t, give, &in, NULL));
    push_samples(t);
    kt_tracer_save_status(t, &(KtStatus) { 0 });
    was = stats(t);
    r = read_all(path);
    g_assert_null(kt_replay_info(r)->damage);
    is = stats(kt_replay_tracer(r));
    g_assert_cmpmem(&was, sizeof(was), &is, sizeof(is));
    kt_query_begin(t);
    kt_query_begin(kt_replay_tracer(r));
    g_assert_true(kt_query_find(t, 0x5000, &a) &&
                  kt_query_find(kt_replay_tracer(r), 0x5000, &b));
    g_assert_cmpint(a.state, ==, KT_STATE_ALLOCATED);
    g_assert_cmpint(b.state, ==, KT_STATE_ALLOCATED);
    kt_query_end(kt_replay_tracer(r));
    kt_query_end(t);
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
    g_test_add_func("/journal/too-much-to-keep", too_much_to_keep);
    g_test_add_func("/journal/full-and-stacks", full_and_stacks);
    g_test_add_func("/journal/torn-end", torn_end);
    g_test_add_func("/journal/damaged", damaged);
    g_test_add_func("/journal/as-of-a-time", as_of_a_time);
    g_test_add_func("/journal/state-comes-back", state_comes_back);
    g_test_add_func("/journal/state-is-loaded", state_is_loaded);
    g_test_add_func("/journal/index-without-rows", index_without_rows);
    g_test_add_func("/journal/not-a-journal", not_a_journal);
    return g_test_run();
}
