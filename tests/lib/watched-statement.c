/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/lib/watched-statement.h"

#include <string.h>

#include "kalloc-tracer/access/block-watch.h"

static const char *text(GHashTable *a, const char *key)
{
    const char *s = g_hash_table_lookup(a, key);

    return s ? s : "";
}

static uint64_t number(GHashTable *a, const char *key, unsigned base)
{
    return g_ascii_strtoull(text(a, key), NULL, base);
}

static KtStackId read_stack(KtTracer *t, GHashTable *a)
{
    g_auto(GStrv) words = g_strsplit(text(a, "stack"), ",", KT_MAX_FRAMES);
    uint64_t frames[KT_MAX_FRAMES];
    unsigned n = 0;

    for (; words[n]; n++) {
        frames[n] = g_ascii_strtoull(words[n], NULL, 16);
    }
    return kt_tracer_intern_stack(t, frames, n, GS_STOP_END);
}

static KtTaskId read_task(KtTracer *t, GHashTable *a)
{
    char comm[16] = "";

    memcpy(comm, text(a, "comm"), MIN(strlen(text(a, "comm")), sizeof(comm)));
    return kt_tracer_intern_task(t, number(a, "pid", 10), comm);
}

static void watch_block(KtTracer *t, GHashTable *a)
{
    const KtBlockWatchSpec spec = {
        .va = number(a, "block", 16), .len = number(a, "size", 16),
        .ring = number(a, "ring", 10),
    };

    g_assert_true(kt_block_watch_start(t, &spec, NULL));
}

void watched_statement(TestWorld *w, GHashTable *a)
{
    KtTracer *t = test_world_tracer(w);
    KtBlockWatch *watch = kt_block_watch_of(t);
    const KtBlockPlace place = { .pc = number(a, "stack", 16) };
    KtBlockAccess access = {
        .us = number(a, "us", 10), .last_us = number(a, "us", 10),
        .va = number(a, "va", 16), .len = number(a, "size", 16), .count = 1,
        .cpu = number(a, "cpu", 10), .flags = number(a, "flags", 16),
    };

    if (g_hash_table_contains(a, "block")) {
        watch_block(t, a);
    } else if (!kt_block_watch_repeat(watch, &place, &access)) {
        access.stack = read_stack(t, a);
        access.task = read_task(t, a);
        kt_block_watch_add(watch, &place, &access);
    }
}
