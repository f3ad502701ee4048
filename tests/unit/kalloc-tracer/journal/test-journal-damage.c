/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Journals that cannot be written, are torn, damaged, or no journals: the
 * reader reports what is missing.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "tests/lib/journal-files.h"
#include "tests/lib/test-main.h"
#include "kalloc-tracer/tracer/tracer.h"

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

static void limit_files(uint64_t bytes)
{
    const struct rlimit limit = { bytes, RLIM_INFINITY };

    g_assert_cmpint(setrlimit(RLIMIT_FSIZE, &limit), ==, 0);
}

static void expect_not_begun(const char *path, const char *why)
{
    g_autoptr(GError) err = NULL;
    g_autofree char *begin = g_strdup_printf("journal %s: %s", path, why);

    g_assert_null(new_tracer(path, &err));
    g_assert_true(g_str_has_prefix(err->message, begin));
    g_assert_null(strchr(err->message, '\n'));
}

TEST(cannot_begin, "/journal-damage/cannot-begin")
{
    g_autoptr(JournalPath) path = new_path();

    signal(SIGXFSZ, SIG_IGN);
    limit_files(KT_HEAD_BYTES - 1);
    expect_not_begun(path, "File too large");
    limit_files(RLIM_INFINITY);
}

/* The one that has it keeps it whole, and it can be read. */
TEST(file_of_another_vm, "/journal-damage/file-of-another-vm")
{
    g_autoptr(JournalPath) path = new_path();
    g_autoptr(KtTracer) t = new_tracer(path, NULL);
    g_autoptr(KtTracer) next = NULL;

    push_samples(t);
    tracer_stats(t);
    expect_not_begun(path, "another VM writes to it");
    g_assert_cmpuint(events_in(path), ==, 5);
    g_clear_pointer(&t, kt_tracer_free);
    g_assert_cmpuint(events_in(path), ==, 5);
    next = new_tracer(path, NULL);
    g_assert_cmpuint(events_in(path), ==, 0);
}

static void expect_not_read(const char *path)
{
    g_autoptr(GError) err = NULL;

    g_assert_null(kt_replay_open(path, &err));
    g_assert_nonnull(strstr(err->message, "it is no regular file"));
}

/* Neither end of a FIFO is waited for. */
TEST(no_regular_file, "/journal-damage/no-regular-file")
{
    g_autoptr(JournalPath) path = new_path();
    int fd;

    g_assert_cmpint(mkfifo(path, 0600), ==, 0);
    expect_not_begun(path, "it is no regular file");
    expect_not_read(path);
    fd = open(path, O_RDWR | O_CLOEXEC);
    expect_not_begun(path, "it is no regular file");
    expect_not_read(path);
    close(fd);
    expect_not_begun("/dev/null", "it is no regular file");
    expect_not_read("/dev/null");
}

/* A full disk, or here a limit: what does not fit is counted, event for
 * event, and the model goes on. With room again the journal does, too, and
 * says what is missing. */
TEST(disk_full, "/journal-damage/disk-full")
{
    g_autoptr(JournalPath) path = new_path();
    g_autoptr(KtTracer) t = new_tracer(path, NULL);
    g_autofree char *out = NULL;
    g_autoptr(KtReplay) r = NULL;
    uint64_t whole;
    int rc;

    signal(SIGXFSZ, SIG_IGN);
    push_resizes(t, 10);
    tracer_stats(t);
    whole = size_of(path);
    limit_files(whole + 7);
    push_resizes(t, 100);
    g_assert_cmpuint(tracer_stats(t).events, ==, 110);
    g_assert_cmpuint(kt_tracer_counter(t, KT_CNT_JOURNAL_LOST), ==, 100);
    kt_tracer_set_complete(t, true);
    g_assert_cmpuint(size_of(path), ==, whole);
    g_assert_cmpuint(events_in(path), ==, 10);
    limit_files(RLIM_INFINITY);
    push_resizes(t, 5);
    tracer_stats(t);
    g_assert_cmpuint(kt_tracer_counter(t, KT_CNT_JOURNAL_LOST), ==, 100);
    r = read_all(path);
    g_assert_cmpuint(kt_replay_info(r)->read_events, ==, 15);
    g_assert_cmpuint(kt_replay_info(r)->gap_events, ==, 100);
    g_assert_cmpuint(kt_replay_info(r)->missing_events, ==, 0);
    out = read_back(path, &rc);
    g_assert_true(!out || (rc && strstr(out, "events are missing")));
}

/* So many at least: nobody knows more of a file that was not ended. */
static void expect_lost(const char *path, uint64_t events)
{
    g_autoptr(KtReplay) r = read_all(path);

    g_assert_true(kt_replay_info(r)->missing_known);
    g_assert_true(kt_replay_info(r)->missing_least);
    g_assert_cmpuint(kt_replay_info(r)->missing_events, ==, events);
}

/* Parts of a VM state, say, that is loaded while the disk is full: without
 * all of them what follows would be told of another map. */
TEST(too_much_to_keep, "/journal-damage/too-much-to-keep")
{
    g_autoptr(JournalPath) path = new_path();
    Bare b = bare_new(path);
    const KtEvent ev = { .kind = KT_EV_RESIZE, .seq = 1 };
    g_autoptr(KtReplay) r = NULL;

    signal(SIGXFSZ, SIG_IGN);
    limit_files(size_of(path));
    for (unsigned i = 0; i < 9; i++) {
        GByteArray *part = g_byte_array_new();

        g_byte_array_set_size(part, KT_MEM_BYTES);
        memset(part->data, 1, part->len);
        kt_journal_add_frame(b.j, KT_FRAME_CHECKPOINT, part);
    }
    limit_files(RLIM_INFINITY);
    kt_journal_promise(b.j, 1);
    kt_journal_events(b.j, &ev, 1);
    kt_journal_end(b.j);
    g_assert_cmpuint(kt_counters_get(b.counters, KT_CNT_JOURNAL_LOST), ==, 1);
    bare_free(&b);
    r = read_all(path);
    g_assert_false(kt_replay_info(r)->ended);
    g_assert_null(kt_replay_info(r)->damage);
    g_assert_cmpuint(kt_replay_info(r)->read_events, ==, 0);
    g_assert_cmpuint(kt_replay_info(r)->missing_events, ==, 1);
}

static void push_bare(KtJournal *j, uint64_t from, uint64_t to)
{
    kt_journal_promise(j, to);
    for (uint64_t seq = from; seq <= to; seq++) {
        kt_journal_events(j, &(KtEvent) {
            .kind = KT_EV_RESIZE, .seq = seq }, 1);
    }
}

/* As when a full disk copies on write: how far the file was to go is told as
 * soon as that can be, though nothing else can be written. */
TEST(head_cannot_be_written, "/journal-damage/head-cannot-be-written")
{
    g_autoptr(JournalPath) path = new_path();
    Bare b = bare_new(path);

    signal(SIGXFSZ, SIG_IGN);
    limit_files(KT_HEAD_LIVE);
    push_bare(b.j, 1, 5);
    kt_journal_flush(b.j, true);
    expect_lost(path, 0);
    limit_files(KT_HEAD_BYTES);
    kt_journal_flush(b.j, true);
    expect_lost(path, 5);
    limit_files(KT_HEAD_LIVE);
    push_bare(b.j, 6, 9);
    limit_files(KT_HEAD_BYTES);
    kt_journal_end(b.j);
    expect_lost(path, 9);
    limit_files(RLIM_INFINITY);
    bare_free(&b);
}

/* What names events is told again behind a hole. */
TEST(full_and_stacks, "/journal-damage/full-and-stacks")
{
    g_autoptr(JournalPath) path = new_path();
    g_autoptr(KtTracer) t = new_tracer(path, NULL);
    g_autoptr(KtReplay) r = NULL;
    KtBlock b;

    signal(SIGXFSZ, SIG_IGN);
    limit_files(size_of(path) + 7);
    push_samples(t);
    tracer_stats(t);
    limit_files(RLIM_INFINITY);
    push_samples(t);
    tracer_stats(t);
    r = read_all(path);
    g_assert_cmpuint(kt_replay_info(r)->read_events, ==, 5);
    g_assert_cmpuint(kt_replay_info(r)->gap_events, ==, 5);
    kt_query_begin(kt_replay_tracer(r));
    g_assert_true(kt_query_find(kt_replay_tracer(r), 0xffff888000001000, &b));
    kt_query_end(kt_replay_tracer(r));
    g_assert_cmpuint(b.cache.v, !=, 0);
}

/* A file whose end was never written, as after kill -9: what was to be in it
 * is known. */
TEST(torn_end, "/journal-damage/torn-end")
{
    g_autoptr(JournalPath) path = new_path();
    g_autoptr(JournalPath) torn = new_path();
    KtTracer *t = new_tracer(path, NULL);
    g_autofree char *data = NULL;
    uint64_t whole;
    gsize len;

    push_resizes(t, 2);
    tracer_stats(t);
    whole = size_of(path);
    push_resizes(t, 3);
    tracer_stats(t);
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
        g_assert_true(info->missing_known);
        g_assert_cmpuint(info->missing_events, ==, 3);
        g_assert_cmpuint(info->missing_bytes, ==, cut - whole);
    }
}

/* Whatever byte is changed: what is read is the beginning of what was
 * written, and a file that lacks something says so. */
TEST(damaged, "/journal-damage/damaged")
{
    g_autoptr(JournalPath) path = new_path();
    g_autoptr(JournalPath) bad = new_path();
    KtTracer *t = new_tracer(path, NULL);
    g_autofree char *data = NULL;
    g_autoptr(GArray) good = NULL;
    gsize len;

    for (unsigned i = 0; i < 20; i++) {
        push_samples(t);
        push_resizes(t, 50);
        tracer_stats(t);
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
                       (!info.missing_known ||
                        info.missing_events == good->len - got->len)));
    }
}

/* As of a run of some hours: the index would have too many rows. The file was
 * ended all the same. */
TEST(index_without_rows, "/journal-damage/index-without-rows")
{
    g_autoptr(JournalPath) path = new_path();
    KtTracer *t = new_tracer(path, NULL);
    g_autoptr(KtReplay) r = NULL;

    for (unsigned i = 0; i < 66000; i++) {
        kt_tracer_set_complete(t, i % 2);
    }
    push_samples(t);
    kt_tracer_free(t);
    r = read_all(path);
    g_assert_true(kt_replay_info(r)->ended);
    g_assert_null(kt_replay_info(r)->damage);
    g_assert_cmpuint(kt_replay_info(r)->read_events, ==, 5);
    g_assert_cmpuint(kt_replay_info(r)->missing_bytes, ==, 0);
}

/* Whoever reads cells of a file whose VM was killed is told, too. */
TEST(cells_of_a_torn_file, "/journal-damage/cells-of-a-torn-file")
{
    char *path;
    KtTracer *t;
    g_autofree char *data = NULL, *whole = NULL, *torn = NULL;
    gsize len;

    if (!g_getenv("KA_PROGRAM")) {
        g_test_skip("KA_PROGRAM does not tell where ka is");
        return;
    }
    path = new_path();
    t = new_tracer(path, NULL);
    push_resizes(t, 2);
    tracer_stats(t);
    push_resizes(t, 3);
    tracer_stats(t);
    whole = said_by_ka(path, "--cells");
    g_assert_true(g_file_get_contents(path, &data, &len, NULL));
    kt_tracer_free(t);
    put_file(path, data, len - 1);
    torn = said_by_ka(path, "--cells");
    g_assert_nonnull(strstr(whole, "it was not closed"));
    g_assert_nonnull(strstr(torn, "and at least 3 events are missing"));
    remove_path(path);
}

/* What a file says of its bounds does not lift those of its reader. */
TEST(absurd_bounds, "/journal-damage/absurd-bounds")
{
    g_autoptr(JournalPath) path = new_path();
    const KtHead head = {
        .map_bytes = UINT64_MAX, .history_bytes = UINT64_MAX,
        .max_stacks = UINT32_MAX, .n_cpus = UINT32_MAX,
    };
    uint8_t bytes[KT_HEAD_BYTES];
    g_autoptr(KtReplay) r = NULL;
    KtBudget *b;

    kt_part_pack(KT_PART_HEAD, &head, bytes);
    kt_part_pack(KT_PART_LIVE, &(KtLive) { 0 }, bytes + KT_HEAD_LIVE);
    put_file(path, (char *)bytes, sizeof(bytes));
    r = read_all(path);
    b = kt_tracer_budget(kt_replay_tracer(r));
    g_assert_cmpuint(kt_budget_room(b, KT_MEM_BLOCKS), <=, 8ull << 30);
}

TEST(not_a_journal, "/journal-damage/not-a-journal")
{
    g_autoptr(JournalPath) path = new_path();
    char head[128] = "KAJRNL\x01";

    g_assert_true(g_file_set_contents(path, "KAJRN", -1, NULL));
    expect_refused(path, "not a journal");
    g_assert_true(g_file_set_contents(path, head, sizeof(head), NULL));
    expect_refused(path, "an older version of ka wrote this journal (format "
                         "version 1;");
    head[6] = KT_JOURNAL_VERSION + 1;
    g_assert_true(g_file_set_contents(path, head, sizeof(head), NULL));
    expect_refused(path, "a newer version of ka wrote this journal (format "
                         "version ");
    head[6] = KT_JOURNAL_VERSION;
    g_assert_true(g_file_set_contents(path, head, sizeof(head), NULL));
    expect_refused(path, "damaged");
    g_assert_true(g_file_set_contents(path, head, 20, NULL));
    expect_refused(path, "damaged");
    unlink(path);
    expect_refused(path, "No such file");
}
