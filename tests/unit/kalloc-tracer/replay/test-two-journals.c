/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two journals are open in one process. One is of Linux, the other of a kernel
 * with a profile. Each has a hook table of its own, and queries of one do not
 * change the answers of the other.
 */
#include "tests/lib/journal-files.h"
#include "tests/lib/test-main.h"
#include "kalloc-tracer/hooks/profile.h"
#include "kalloc-tracer/tracer/tracer.h"

#define BLOCK   0xffff888000001000ull
#define ROUNDS  3

/* What one journal is expected to say. */
typedef struct Journal {
    const char *profile;        /* NULL: Linux */
    const char *alloc, *free;   /* functions that are hooked */
    bool has_gfp;
    uint64_t size;
    char *path;
    KtReplay *replay;
} Journal;

static void use_profile(KtTracer *t, const char *name)
{
    g_autofree char *path = g_build_filename(KA_SOURCE_DIR, "kalloc-tracer",
                                             "hooks", "profiles", name, NULL);
    g_autoptr(GError) err = NULL;
    g_autoptr(KtProfile) p = kt_profile_open(path, &err);

    g_assert_no_error(err);
    kt_hook_table_set(kt_tracer_hooks(t), p->hook, p->n_hooks);
}

static void push(KtTracer *t, KtEventKind kind, const char *hook,
                 uint64_t size)
{
    KtHookId id = kt_hook_table_find(kt_tracer_hooks(t), hook);

    g_assert_cmpuint(id.v, !=, 0);
    kt_tracer_push(t, 0, &(KtEvent) {
        .kind = kind, .va = BLOCK, .size = size, .actual = size, .us = 10,
        .hook = id, .gfp = 0xcc0, .layer = KT_LAYER_KMALLOC });
}

/* The block is allocated, freed and allocated again. */
static void write_journal(Journal *j)
{
    g_autoptr(GError) err = NULL;
    g_autoptr(KtTracer) t = NULL;

    j->path = new_path();
    t = new_tracer(j->path, &err);
    g_assert_no_error(err);
    if (j->profile) {
        use_profile(t, j->profile);
    }
    push(t, KT_EV_ALLOC, j->alloc, 8);
    push(t, KT_EV_FREE, j->free, 0);
    push(t, KT_EV_ALLOC, j->alloc, j->size);
}

static void run(Journal *j)
{
    const KtReplayPlan plan = { .until_us = UINT64_MAX, .apply = true };

    kt_replay_run(j->replay, &plan);
    g_assert_null(kt_replay_info(j->replay)->damage);
    g_assert_cmpuint(kt_replay_info(j->replay)->read_events, ==, 3);
}

static void check_answers(const Journal *j)
{
    KtTracer *t = kt_replay_tracer(j->replay);
    KtBlock b;

    kt_query_begin(t);
    g_assert_true(kt_query_find(t, BLOCK, &b));
    g_assert_cmpuint(b.requested, ==, j->size);
    g_assert_cmpstr(kt_tracer_hook_name(t, b.hook), ==, j->alloc);
    g_assert_cmpint(kt_tracer_hook_has_gfp(t, b.hook), ==, j->has_gfp);
    kt_query_end(t);
    g_assert_cmpuint(kt_hook_table_find(kt_tracer_hooks(t), j->free).v, !=, 0);
}

static void close_journal(Journal *j)
{
    g_clear_pointer(&j->replay, kt_replay_free);
    remove_path(j->path);
}

TEST(two_tables, "/two-journals/two-tables")
{
    Journal linux_one = { NULL, "__kmalloc", "kfree", true, 64 };
    Journal other = { "xnu.profile", "zalloc", "kfree_ext", false, 48 };

    write_journal(&linux_one);
    write_journal(&other);
    linux_one.replay = kt_replay_open(linux_one.path, NULL);
    other.replay = kt_replay_open(other.path, NULL);
    run(&other);
    check_answers(&other);
    run(&linux_one);
    for (unsigned i = 0; i < ROUNDS; i++) {
        check_answers(&linux_one);
        check_answers(&other);
    }
    close_journal(&other);
    check_answers(&linux_one);
    close_journal(&linux_one);
}
