/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/lib/journal-files.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

JournalPath *new_path(void)
{
    g_autofree char *dir = g_dir_make_tmp("ka-journal-XXXXXX", NULL);

    g_assert_nonnull(dir);
    return g_build_filename(dir, "journal", NULL);
}

void remove_path(JournalPath *path)
{
    g_autofree char *dir = g_path_get_dirname(path);

    unlink(path);
    rmdir(dir);
    g_free(path);
}

KtTracer *new_tracer(const char *path, GError **errp)
{
    KtConfig config = KT_CONFIG_DEFAULT;

    config.journal = path;
    return kt_tracer_new(&config, errp);
}

char *read_back(const char *path, int *rc)
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

char *said_by_ka(const char *path, const char *word)
{
    const char *argv[] = { g_getenv("KA_PROGRAM"), "-f", path, word, NULL };
    char *err = NULL;
    int rc;

    g_assert_true(g_spawn_sync(NULL, (char **)argv, NULL,
                               G_SPAWN_STDOUT_TO_DEV_NULL, NULL, NULL, NULL,
                               &err, &rc, NULL));
    g_assert_cmpint(rc, ==, 0);
    return err;
}

GsKernel *small_kernel(void)
{
    static const char map[] = "ffffffff81000000 T _stext\n"
                              "ffffffff81000100 T kmalloc\n"
                              "ffffffff81000200 T _etext\n";
    GsKernel *k = gs_kernel_new_from_data(map, strlen(map), "map", NULL);

    g_assert_nonnull(k);
    return k;
}

void save_kernel(KtTracer *t, uint64_t slide, bool found)
{
    g_autoptr(GsKernel) k = small_kernel();

    gs_kernel_set_slide(k, slide);
    kt_tracer_save_kernel(t, k, found);
}

KtReplay *read_all(const char *path)
{
    const KtReplayPlan plan = { .until_us = UINT64_MAX, .apply = true };
    g_autoptr(GError) err = NULL;
    KtReplay *r = kt_replay_open(path, &err);

    g_assert_no_error(err);
    kt_replay_run(r, &plan);
    return r;
}

void push_samples(KtTracer *t)
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
        .flags = KT_EVF_TAKE, .tag = 0xd1, .pad = { 1, 2, 3, 4 },
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

void put_file(const char *path, const char *data, gsize len)
{
    FILE *f = fopen(path, "w");

    g_assert_nonnull(f);
    g_assert_cmpuint(fwrite(data, 1, len, f), ==, len);
    g_assert_cmpint(fclose(f), ==, 0);
}

uint64_t size_of(const char *path)
{
    struct stat st;

    g_assert_cmpint(stat(path, &st), ==, 0);
    return st.st_size;
}

void push_resizes(KtTracer *t, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        kt_tracer_push(t, 0, &(KtEvent) {
            .kind = KT_EV_RESIZE, .va = 0x1000 + i, .us = 10 + i,
            .size = g_random_int() });
    }
}

Bare bare_new(const char *path)
{
    KtConfig config = KT_CONFIG_DEFAULT;
    Bare b = {
        kt_depot_new(1),
        kt_tasks_caches_new(NULL),
        kt_hook_table_new(),
        kt_counters_new(),
        NULL,
    };

    config.journal = path;
    b.j = kt_journal_open(&config, b.stacks, b.names, b.hooks, b.counters,
                          NULL);
    g_assert_nonnull(b.j);
    return b;
}

void bare_free(Bare *b)
{
    kt_journal_close(b->j);
    kt_counters_free(b->counters);
    kt_hook_table_free(b->hooks);
    kt_tasks_caches_free(b->names);
    kt_depot_free(b->stacks);
}

KtReplay *read_note(KtFrameKind kind, GByteArray *data)
{
    char *path = new_path();
    Bare b = bare_new(path);
    KtReplay *r;

    kt_journal_add_frame(b.j, kind, data);
    bare_free(&b);
    r = read_all(path);
    remove_path(path);
    return r;
}

uint64_t events_in(const char *path)
{
    g_autoptr(KtReplay) r = read_all(path);

    return kt_replay_info(r)->read_events;
}
