/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The tables of `ka top`: each life of a block is counted once, while the VM
 * runs and blocks end.
 */
#include "tests/lib/test-main.h"
#include "monitor-cmds/table/top-table.h"

#include <stdlib.h>
#include <string.h>

#include "monitor-cmds/mc.h"

#define BASE 0xffff888000000000ull
/* More than a batch of those that are looked at with the lock held. */
#define BLOCKS 150000u

static void count_block(McTopTable *t, uint64_t us)
{
    const KtBlock b = {
        .va = 0xffff888000001000,
        .requested = 64,
        .alloc_us = us,
        .state = KT_BLOCK_ALLOCATED,
    };

    mc_top_count(t, &b, true);
}

static int64_t oldest(McTopTable *t)
{
    int64_t us = -1;

    g_assert_true(mc_top_value(t, &t->all, MC_TOP_oldest, &us));
    return us;
}

/* The time is taken first, then blocks are counted while the VM runs. */
TEST(newer_than_now, "/top/newer-than-now")
{
    g_autoptr(KtTracer) tracer = kt_tracer_new(&(KtConfig) KT_CONFIG_DEFAULT,
                                               NULL);
    g_autoptr(McTopTable) t = mc_top_new(tracer, NULL, MC_BY_SIZE);

    t->all.now = 1000;
    count_block(t, 1005);
    g_assert_cmpint(oldest(t), ==, 0);
    count_block(t, 900);
    g_assert_cmpint(oldest(t), ==, 100);
}

/* ---- while blocks end ---------------------------------------------------- */

typedef struct Busy {
    KtTracer *t;
    KtTaskId first, second;
    bool stop;          /* atomic */
} Busy;

static void push(const Busy *w, KtEventKind kind, uint32_t number,
                 KtTaskId task)
{
    kt_tracer_push(w->t, 0, &(KtEvent) {
        .kind = kind, .va = BASE + number * 64ull, .task = task,
        .size = kind == KT_EV_ALLOC ? 64 : 0, .family = KT_FAMILY_KFREE,
        .layer = kind == KT_EV_ALLOC ? KT_LAYER_KMALLOC : KT_LAYER_NONE,
    });
}

/* Ends the first task's blocks all over the map, and begins others there. */
static gpointer replace_blocks(gpointer opaque)
{
    const Busy *w = opaque;
    uint32_t number = 0;

    while (!__atomic_load_n(&w->stop, __ATOMIC_RELAXED)) {
        number = (number + 7919) % BLOCKS;
        push(w, KT_EV_FREE, number, w->second);
        push(w, KT_EV_ALLOC, number, w->second);
    }
    return NULL;
}

static bool append(void *opaque, const char *text)
{
    g_string_append(opaque, text);
    return true;
}

static uint64_t allocs_of_first(Busy *w)
{
    g_autoptr(GString) text = g_string_new(NULL);
    const McContext ctx = {
        .tracer = w->t, .puts = append, .puts_opaque = text,
    };
    const char *at;

    mc_run(&ctx, "top --task first -n 1 -j");
    at = strstr(text->str, "\"allocs\":");
    g_assert_nonnull(at);
    return strtoull(at + strlen("\"allocs\":"), NULL, 10);
}

TEST(counts_each_life_once, "/top/counts-each-life-once")
{
    static const char first[16] = "first", second[16] = "second";
    Busy w = { .t = kt_tracer_new(&(KtConfig) KT_CONFIG_DEFAULT, NULL) };
    GThread *thread;

    w.first = kt_tracer_intern_task(w.t, 1, first);
    w.second = kt_tracer_intern_task(w.t, 2, second);
    kt_tracer_start(w.t);
    for (uint32_t i = 0; i < BLOCKS; i++) {
        push(&w, KT_EV_ALLOC, i, w.first);
    }
    thread = g_thread_new("replace", replace_blocks, &w);
    for (unsigned i = 0; i < 5; i++) {
        g_assert_cmpuint(allocs_of_first(&w), ==, BLOCKS);
    }
    __atomic_store_n(&w.stop, true, __ATOMIC_RELAXED);
    g_thread_join(thread);
    kt_tracer_free(w.t);
}
