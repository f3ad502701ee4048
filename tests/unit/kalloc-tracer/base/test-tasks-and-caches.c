/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table of tasks and caches handles any names that a guest makes up. Names
 * of enum values are parsed back to the same values.
 */
#include <string.h>

#include "tests/lib/bare-tracer.h"
#include "tests/lib/test-main.h"
#include "kalloc-tracer/kt.h"
#include "kalloc-tracer/base/tasks-and-caches.h"

G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtTasksCaches, kt_tasks_caches_free)

TEST(cache_names, "/names/caches")
{
    g_autoptr(KtTracer) t = bare_tracer(0);
    KtCacheId a = kt_tracer_add_cache(t, 0x1000, "kmalloc-64", 64, 64);
    KtCacheId b = kt_tracer_add_cache(t, 0x2000, "a\n\x80\\", 8, 16);
    KtCacheInfo info;
    KtCacheId c;

    g_assert_cmpuint(a.v, ==, 1);
    g_assert_cmpuint(b.v, ==, 2);
    g_assert_true(kt_tracer_cache(t, b, &info));
    g_assert_cmpstr(info.name, ==, "a\\x0a\\x80\\x5c");
    g_assert_cmpuint(info.size, ==, 16);
    g_assert_cmpuint(kt_tracer_add_cache(t, 0x1000, "kmalloc-64", 64,
                                         64).v, ==, 1);
    /* Another cache at that address: the end of the first was not seen. */
    c = kt_tracer_add_cache(t, 0x1000, "other", 64, 64);
    g_assert_cmpuint(c.v, ==, 3);
    g_assert_true(kt_tracer_cache(t, a, &info) && info.destroyed);
    kt_tracer_cache_destroyed(t, c);
    g_assert_true(kt_tracer_cache(t, c, &info) && info.destroyed);
    g_assert_cmpuint(kt_tracer_add_cache(t, 0x1000, "other", 64, 64).v, ==,
                     4);
    g_assert_false(kt_tracer_cache(t, (KtCacheId) { 0 }, &info));
    g_assert_false(kt_tracer_cache(t, (KtCacheId) { 5 }, &info));
    kt_tracer_cache_destroyed(t, (KtCacheId) { 99 });
}

/* A merge raises the size of objects; it keeps the id, also for a reader. */
TEST(caches_grow, "/names/caches-grow")
{
    g_autoptr(KtTasksCaches) n = kt_tasks_caches_new(NULL);
    const KtCacheInfo small = { .va = 0x1000, .name = "c", .object_size = 56,
                                .size = 64 };
    const KtCacheInfo grown = { .va = 0x1000, .name = "c", .object_size = 60,
                                .size = 64 };
    KtCacheInfo info;

    g_assert_cmpuint(kt_tasks_caches_add_cache(n, &small).v, ==, 1);
    kt_tasks_caches_grow_cache(n, 0x2000, 60);
    kt_tasks_caches_grow_cache(n, 0x1000, 60);
    kt_tasks_caches_grow_cache(n, 0x1000, 0);
    kt_tasks_caches_grow_cache(n, 0x1000, 65);
    g_assert_true(kt_tasks_caches_cache(n, (KtCacheId) { 1 }, &info));
    g_assert_cmpuint(info.object_size, ==, 60);
    g_assert_cmpuint(kt_tasks_caches_add_cache(n, &grown).v, ==, 1);
    kt_tasks_caches_cache_destroyed(n, (KtCacheId) { 1 });
    kt_tasks_caches_grow_cache(n, 0x1000, 64);
    g_assert_true(kt_tasks_caches_cache(n, (KtCacheId) { 1 }, &info));
    g_assert_cmpuint(info.object_size, ==, 60);
}

TEST(caches_are_bounded, "/names/caches-are-bounded")
{
    g_autoptr(KtTracer) t = bare_tracer(0);

    for (unsigned i = 1; i <= UINT16_MAX; i++) {
        g_assert_cmpuint(kt_tracer_add_cache(t, i, "c", 8, 8).v, ==, i);
    }
    g_assert_cmpuint(kt_tracer_add_cache(t, 0, "c", 8, 8).v, ==, 0);
    g_assert_cmpuint(kt_tracer_counter(t, KT_CNT_DROP_CACHE), ==, 1);
}

/* By the lower half of their addresses these are all the same, and it would
 * take seconds to look at so many. */
TEST(caches_at_chosen_addresses, "/names/caches-at-chosen-addresses")
{
    g_autoptr(KtTracer) t = bare_tracer(0);

    for (unsigned i = 1; i <= UINT16_MAX; i++) {
        g_assert_cmpuint(kt_tracer_add_cache(t, (uint64_t)i << 32, "c", 8,
                                             8).v, ==, i);
    }
}

/* Caches of a state, and what they are called here. */
typedef struct List {
    KtCacheInfo info[UINT16_MAX];
    uint16_t id[UINT16_MAX];
    uint32_t n;
} List;

static void add(List *l, uint64_t va, const char *name)
{
    l->info[l->n++] = (KtCacheInfo) { .va = va, .name = name,
                                      .object_size = 8, .size = 8 };
}

static void set(KtTasksCaches *n, List *l)
{
    kt_tasks_caches_set_caches(n, l->info, l->n, l->id);
}

static uint32_t add_again(KtTasksCaches *n, const List *l, uint32_t i)
{
    return kt_tasks_caches_add_cache(n, &l->info[i]).v;
}

static bool is_destroyed(const KtTasksCaches *n, uint32_t id)
{
    KtCacheInfo info;

    g_assert_true(kt_tasks_caches_cache(n, (KtCacheId) { id }, &info));
    return info.destroyed;
}

/* Those that look the same keep their order; others are new, or gone. */
TEST(caches_of_a_state, "/names/caches-of-a-state")
{
    static const uint16_t first[] = { 1, 2, 3, 4 }, second[] = { 1, 5, 3 };
    KtTasksCaches *n = kt_tasks_caches_new(NULL);
    g_autofree List *l = g_new0(List, 1);

    add(l, 0x1000, "a");
    add(l, 0x2000, "a");
    add(l, 0x1000, "a");
    add(l, 0x1000, "b");
    for (unsigned times = 0; times < 2; times++) {
        set(n, l);
        g_assert_cmpmem(l->id, sizeof(first), first, sizeof(first));
    }
    l->n = 0;
    add(l, 0x1000, "a");
    add(l, 0x2000, "b");
    add(l, 0x1000, "a");
    set(n, l);
    g_assert_cmpmem(l->id, sizeof(second), second, sizeof(second));
    g_assert_true(is_destroyed(n, 2) && is_destroyed(n, 4));
    g_assert_false(is_destroyed(n, 3) || is_destroyed(n, 5));
    kt_tasks_caches_free(n);
}

/* What was left behind comes to be again, each once and in order. */
TEST(caches_that_were_left_behind, "/names/caches-that-were-left-behind")
{
    KtTasksCaches *n = kt_tasks_caches_new(NULL);
    g_autofree List *l = g_new0(List, 1);

    add(l, 0x2000, "b");
    add(l, 0x1000, "a");
    add(l, 0x1000, "a");
    set(n, l);
    kt_tasks_caches_set_caches(n, NULL, 0, NULL);
    g_assert_cmpuint(add_again(n, l, 1), ==, 2);
    kt_tasks_caches_cache_destroyed(n, (KtCacheId) { 2 });
    g_assert_cmpuint(add_again(n, l, 2), ==, 3);
    kt_tasks_caches_cache_destroyed(n, (KtCacheId) { 3 });
    g_assert_cmpuint(add_again(n, l, 2), ==, 4);
    g_assert_cmpuint(add_again(n, l, 0), ==, 1);
    g_assert_false(is_destroyed(n, 1));
    kt_tasks_caches_free(n);
}

/* In another order than they were, and among others that are known: going
 * through all for each takes seconds, and here are many such. */
TEST(caches_of_a_state_that_lies, "/names/caches-of-a-state-that-lies")
{
    KtTasksCaches *n = kt_tasks_caches_new(NULL);
    g_autofree List *l = g_new0(List, 1);

    for (unsigned i = 0; i < UINT16_MAX; i++) {
        add(l, i * 64, "c");
    }
    set(n, l);
    for (unsigned i = 0; i < UINT16_MAX; i++) {
        l->info[i].va = (UINT16_MAX - 1 - i) * 64;
    }
    for (unsigned times = 0; times < 3; times++) {
        set(n, l);
        g_assert_cmpuint(l->id[0], ==, UINT16_MAX);
        g_assert_cmpuint(l->id[UINT16_MAX - 1], ==, 1);
    }
    kt_tasks_caches_set_caches(n, NULL, 0, NULL);
    for (unsigned i = 0; i < UINT16_MAX; i++) {
        l->info[i].va++;
        g_assert_cmpuint(add_again(n, l, i), ==, 0);
    }
    set(n, l);
    g_assert_cmpuint(l->id[0], ==, 0);
    kt_tasks_caches_free(n);
}

TEST(task_names, "/names/tasks")
{
    g_autoptr(KtTracer) t = bare_tracer(0);
    const char full[16] = { "0123456789abcde\xff" };
    KtTaskId a = kt_tracer_intern_task(t, 1, full);
    char comm[17];
    uint32_t pid;

    g_assert_true(kt_tracer_task(t, a, &pid, comm));
    g_assert_cmpuint(pid, ==, 1);
    g_assert_cmpstr(comm, ==, "0123456789abcde?");
    g_assert_cmpuint(kt_tracer_intern_task(t, 2, full).v, !=, a.v);
    g_assert_cmpuint(kt_tracer_intern_task(t, 1, full).v, ==, a.v);
    g_assert_false(kt_tracer_task(t, (KtTaskId) { 0 }, &pid, comm));
}

TEST(tables_have_names, "/names/tables")
{
    for (unsigned i = 0; i < KT_ERR__COUNT; i++) {
        KtErrorKind kind;

        g_assert_true(kt_error_parse(kt_error_name(i), &kind));
        g_assert_cmpuint(kind, ==, i);
        g_assert_cmpuint(strlen(kt_error_text(i)), >, 10);
    }
    for (unsigned i = 1; i < KT_LAYER__COUNT; i++) {
        KtLayer layer;

        g_assert_true(kt_layer_parse(kt_layer_name(i), &layer));
        g_assert_cmpuint(layer, ==, i);
    }
    for (unsigned i = 0; i < KT_CNT__COUNT; i++) {
        g_assert_cmpuint(strlen(kt_counter_name(i)), >, 1);
        g_assert_cmpuint(strlen(kt_counter_help(i)), >, 1);
    }
    g_assert_cmpstr(kt_error_name(KT_ERR__COUNT), ==, "?");
    g_assert_cmpstr(kt_layer_name(KT_LAYER__COUNT), ==, "?");
    g_assert_false(kt_layer_parse("none", &(KtLayer) { 0 }));
    g_assert_false(kt_error_parse("", &(KtErrorKind) { 0 }));
}
