/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/lib/statements.h"

#include <stdlib.h>

#include "kalloc-tracer/access/block-watch.h"

static void watch_block(KtTracer *t, GHashTable *a)
{
    const KtBlockWatchSpec spec = {
        .va = arg_hex(a, "block"), .len = arg_hex(a, "size"),
        .ring = arg_dec(a, "ring"),
    };

    g_assert_true(kt_block_watch_start(t, &spec, NULL));
}

void watched_statement(TestWorld *w, GHashTable *a)
{
    KtTracer *t = test_world_tracer(w);
    KtBlockWatch *watch = kt_block_watch_of(t);
    const KtBlockPlace place = {
        .pc = strtoull(arg_text(a, "stack", ""), NULL, 16),
    };
    KtBlockAccess access = {
        .us = arg_dec(a, "us"), .last_us = arg_dec(a, "us"),
        .va = arg_hex(a, "va"), .len = arg_hex(a, "size"), .count = 1,
        .cpu = arg_dec(a, "cpu"), .flags = arg_hex(a, "flags"),
    };

    if (g_hash_table_contains(a, "block")) {
        watch_block(t, a);
    } else if (!kt_block_watch_repeat(watch, &place, &access)) {
        access.stack = arg_stack(t, a);
        access.task = arg_task(t, a);
        kt_block_watch_add(watch, &place, &access);
    }
}
