/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The self-check reports each rule that is broken. A test breaks one rule at a
 * time in the tracer's memory, and expects no report but those of that damage.
 */
#include <string.h>

#include "tests/lib/bare-tracer.h"
#include "tests/lib/test-main.h"
#include "kalloc-tracer/check/exam.h"
#include "kalloc-tracer/model/map-node.h"
#include "kalloc-tracer/tracer/tracer.h"

/* Their structures are nobody else's. */
#include "kalloc-tracer/capture/pending-calls.c"
#include "kalloc-tracer/model/history-rows.h"

#define BASE 0xffff888000000000ull
#define STEP 256
#define N 3000

typedef struct World {
    KtTracer *t;
    KtPendingCalls *calls;
    GString *rules;         /* those that were told, by name */
    KtCheckReport report;
} World;

static void push(World *w, KtEvent ev)
{
    ev.stack.v = ev.va / STEP % 3 + 1;
    ev.task.v = 1;
    ev.us = ++w->t->last_us;
    kt_tracer_push(w->t, 0, &ev);
    kt_query_begin(w->t);
    kt_query_end(w->t);
}

static uint64_t nth(unsigned i)
{
    return BASE + (uint64_t)i * STEP;
}

static void alloc(World *w, uint64_t va, uint64_t size)
{
    push(w, (KtEvent) { .kind = KT_EV_ALLOC, .va = va, .size = size,
                        .layer = KT_LAYER_KMALLOC, .gfp = 7, .cache = { 1 } });
}

/* Every third is freed, every ninth by kfree_rcu(); one is huge. */
static World new_world(void)
{
    const KtConfig config = { .n_cpus = 1, .history_bytes = 1 << 20,
                              .max_stacks = 100 };
    World w = { kt_tracer_new(&config, NULL), kt_pending_calls_new(),
                g_string_new(NULL) };

    for (uint64_t i = 1; i <= 3; i++) {
        kt_tracer_intern_stack(w.t, &i, 1, GS_STOP_END);
    }
    kt_tracer_intern_task(w.t, 1, "test\0\0\0\0\0\0\0\0\0\0\0");
    kt_tracer_add_cache(w.t, 1, "cache", 64, 64);
    kt_tracer_set_complete(w.t, true);
    kt_tracer_add_check(w.t, KT_CHECK_CALLS, kt_pending_calls_check, w.calls);
    for (unsigned i = 0; i < N; i++) {
        alloc(&w, nth(i), 64);
        if (i % 9 == 0) {
            push(&w, (KtEvent) { .kind = KT_EV_RCU_QUEUE, .va = nth(i) });
        }
        if (i % 3 == 0) {
            push(&w, (KtEvent) { .kind = KT_EV_FREE, .va = nth(i) });
        }
    }
    for (unsigned i = 0; i < 300; i += 3) {
        alloc(&w, nth(i), 64);
    }
    alloc(&w, BASE - (1ull << 40), 1ull << 33);
    push(&w, (KtEvent) { .kind = KT_EV_FREE, .va = nth(303) });
    return w;
}

static void told(KtCheckRule rule, const char *where, void *opaque)
{
    g_string_append_printf(opaque, "%s%s", ((GString *)opaque)->len ? " " : "",
                           kt_check_name(rule));
    g_assert_cmpuint(strlen(where), >, 0);
}

static void end_world(World *w)
{
    kt_tracer_free(w->t);
    kt_pending_calls_free(w->calls);
    g_string_free(w->rules, TRUE);
}

static void check(World *w)
{
    const KtCheckFns fns = { .violation = told, .opaque = w->rules };

    kt_query_begin(w->t);
    kt_query_check(w->t, &fns, &w->report);
    kt_query_end(w->t);
}

static KtRec *rec(World *w, unsigned i)
{
    return kt_rec(&w->t->model->blocks,
                  kt_map_floor(&w->t->model->map[KT_MAP_MAIN], nth(i)).val);
}

static KtEnd *end(World *w, unsigned i)
{
    return kt_end(&w->t->model->blocks, rec(w, i)->end);
}

static Leaf *leaf(World *w, unsigned i)
{
    KtMap *m = &w->t->model->map[KT_MAP_MAIN];

    return leaf_at(m, kt_map_seek(m, nth(i)).leaf);
}

static Inner *root(World *w)
{
    KtMap *m = &w->t->model->map[KT_MAP_MAIN];

    return inner_at(m, m->root);
}

/* ---- what is broken ----------------------------------------------------- */

static void break_map_node(World *w)
{
    root(w)->child[1] = 1 << 30;
}

static void break_map_empty(World *w)
{
    leaf(w, 500)->n = LEAF_CAP + 1;
}

static void break_map_bounds(World *w)
{
    root(w)->key[1]++;
}

static void break_map_order(World *w)
{
    leaf(w, 500)->delta[5] = leaf(w, 500)->delta[6];
}

static void break_map_chain(World *w)
{
    leaf(w, 500)->next = leaf(w, 900)->next;
}

static void break_map_count(World *w)
{
    w->t->model->map[KT_MAP_MAIN].n++;
}

static void break_map_lost(World *w)
{
    kt_pool_alloc(&w->t->model->map[KT_MAP_MAIN].nodes);
}

static void break_block_record(World *w)
{
    leaf(w, 500)->val[3] = 1 << 30;
}

static void break_block_va(World *w)
{
    rec(w, 501)->va += 8;
}

static void break_block_twice(World *w)
{
    kt_map_insert(&w->t->model->map[KT_MAP_PAGES], nth(500),
                  kt_map_floor(&w->t->model->map[KT_MAP_MAIN], nth(500)).val);
}

static void break_block_overlap(World *w)
{
    rec(w, 500)->actual = STEP + 1;
}

static void break_block_layer(World *w)
{
    rec(w, 500)->layer = KT_LAYER_PAGES;
}

static void break_block_size(World *w)
{
    rec(w, 500)->huge = 1;
}

static void break_block_size_kept(World *w)
{
    g_hash_table_insert(w->t->model->blocks.huge, GUINT_TO_POINTER(1),
                        g_malloc(16));
}

static void break_block_time(World *w)
{
    rec(w, 500)->alloc_us = w->t->last_us + 1;
}

static void break_block_task(World *w)
{
    rec(w, 500)->task = 77;
}

static void break_block_cache(World *w)
{
    rec(w, 500)->cache = 77;
}

static void break_block_gfp(World *w)
{
    rec(w, 500)->gfp = 77;
}

static void break_block_end(World *w)
{
    end(w, 600)->block++;
}

static void break_block_end_index(World *w)
{
    rec(w, 600)->end = 1 << 30;
}

static void break_block_end_rcu(World *w)
{
    end(w, 900)->rcu = 1 << 30;
}

static void break_block_orphan(World *w)
{
    kt_pool_alloc(&w->t->model->blocks.rec);
}

static void break_block_free(World *w)
{
    KtMapEntry e = kt_map_floor(&w->t->model->map[KT_MAP_MAIN], nth(500));
    KtRec keep = *kt_rec(&w->t->model->blocks, e.val);

    kt_pool_release(&w->t->model->blocks.rec, e.val);
    keep.va &= ~0xffffffffull;
    keep.va |= *(uint32_t *)kt_rec(&w->t->model->blocks, e.val);
    rec(w, 500)->va = nth(500);
}

static void break_end_orphan(World *w)
{
    kt_pool_alloc(&w->t->model->blocks.end);
}

static void break_live_blocks(World *w)
{
    w->t->model->live_blocks++;
}

static void break_freed_blocks(World *w)
{
    w->t->model->freed_blocks++;
}

static void break_live_bytes(World *w)
{
    w->t->model->live_bytes++;
}

static void break_index_link(World *w)
{
    rec(w, 500)->link.prev = 0;
}

static void break_index_stack(World *w)
{
    rec(w, 500)->stack = rec(w, 500)->stack % 3 + 1;
}

static void break_index_head(World *w)
{
    w->t->model->blocks.by_free.head[end(w, 600)->stack] = 0;
}

/* A ring, which no list leads to: its neighbours agree. */
static void break_index_count(World *w)
{
    KtBlocks *b = &w->t->model->blocks;
    uint32_t i = b->by_alloc.head[2];
    KtLink *link = &kt_rec(b, i)->link;

    b->by_alloc.head[2] = link->next;
    kt_rec(b, link->next)->link.prev = 0;
    *link = (KtLink) { i, i };
}

static void break_error_row(World *w)
{
    g_array_index(w->t->model->errors.list, KtError, 0).id = 7;
}

static void break_count_events(World *w)
{
    w->t->events++;
}

static void break_count_accounts(World *w)
{
    w->t->model->count[KT_CNT_SPLIT]++;
}

static void break_accounts_live(World *w)
{
    KtCells *c = &w->t->model->accounts.now.by[KT_BY_STACK];

    kt_cells_at(c, 1)->freed_reserved -= 8;
    kt_cells_at(c, 2)->freed_reserved += 8;
}

static void break_accounts_sum(World *w)
{
    kt_cells_at(&w->t->model->accounts.now.by[KT_BY_TASK], 1)->cross++;
}

static void break_history_row(World *w)
{
    kt_history_add(w->t->model->history, &(KtBlock) { .va = 1 });
}

static void break_history_names(World *w)
{
    kt_history_add(w->t->model->history, &(KtBlock) {
        .va = 1, .layer = KT_LAYER_KMALLOC, .free_stack = { 77 } });
}

static void break_history_index(World *w)
{
    KtHistory *h = w->t->model->history;
    Row r;

    read_row(h, 10, &r);
    *head_of(h, 0, granule(0, r.va)) = 0;
}

static void break_history_level(World *w)
{
    w->t->model->history->at_level[ROWS_OBJECTS][0]++;
}

static void break_access(World *w)
{
    kt_tracer_count(w->t, KT_CNT_ACCESS_DISAGREED, 1);
}

static void break_queue_order(World *w)
{
    kt_queue_publish(w->t->queue, w->t->events + 3 * KT_QUEUE_SLOTS,
                     &(KtEvent) { .kind = KT_EV_GAP });
}

/* An event that was applied without having been there. */
static void break_queue_lost(World *w)
{
    kt_queue_publish(w->t->queue,
                     kt_queue_done(w->t->queue) - 7 - KT_QUEUE_SLOTS,
                     &(KtEvent) { .kind = KT_EV_GAP });
}

static void break_calls(World *w)
{
    const KtPendingCall call = { .sp = 0x1000, .ra = 1 };
    unsigned stale;

    kt_pending_calls_push(w->calls, &call, &stale);
    w->calls->bucket[bucket_of(call.sp)].call[0].sp += 8;
}

static void break_calls_twice(World *w)
{
    KtPendingCall call = { .sp = 0x1000, .ra = 1 };
    unsigned stale;

    kt_pending_calls_push(w->calls, &call, &stale);
    w->calls->bucket[bucket_of(call.sp)].call[1] = call;
    w->calls->bucket[bucket_of(call.sp)].n = 2;
}

static const struct {
    const char *name;
    void (*damage)(World *w);
    const char *rules;
} cases[] = {
    { "map-node", break_map_node, "map.node" },
    { "map-leaf", break_map_empty, "map.node" },
    { "map-bounds", break_map_bounds, "map.bounds" },
    { "map-order", break_map_order, "map.order" },
    { "map-chain", break_map_chain, "map.chain" },
    { "map-count", break_map_count, "map.count" },
    { "map-lost", break_map_lost, "map.lost" },
    { "block-record", break_block_record, "block.record" },
    { "block-va", break_block_va, "block.va" },
    { "block-twice", break_block_twice, "block.twice" },
    { "block-overlap", break_block_overlap, "block.overlap" },
    { "block-layer", break_block_layer, "block.layer" },
    { "block-size", break_block_size, "block.size" },
    { "block-size-kept", break_block_size_kept, "block.size" },
    { "block-time", break_block_time, "block.time" },
    { "block-task", break_block_task, "block.names" },
    { "block-cache", break_block_cache, "block.names" },
    { "block-gfp", break_block_gfp, "block.names" },
    { "block-end", break_block_end, "block.end" },
    { "block-end-index", break_block_end_index, "block.end" },
    { "block-end-rcu", break_block_end_rcu, "block.end" },
    { "block-orphan", break_block_orphan, "block.orphan" },
    { "block-free", break_block_free, "block.orphan" },
    { "end-orphan", break_end_orphan, "end.orphan" },
    { "live-blocks", break_live_blocks, "count.blocks" },
    { "freed-blocks", break_freed_blocks, "count.blocks" },
    { "live-bytes", break_live_bytes, "count.blocks" },
    { "index-link", break_index_link, "index.link" },
    { "index-stack", break_index_stack, "index.link" },
    { "index-list", break_index_stack, "index.list" },
    { "index-head", break_index_head, "index.link" },
    { "index-count", break_index_count, "index.count" },
    { "error-row", break_error_row, "error.row" },
    { "access", break_access, "access" },
    { "history-row", break_history_row, "history.row" },
    { "history-names", break_history_names, "history.row" },
    { "history-index", break_history_index, "history.index" },
    { "history-level", break_history_level, "history.index" },
    { "queue-order", break_queue_order, "queue.order" },
    { "queue-lost", break_queue_lost, "queue.order" },
    { "calls", break_calls, "calls.table" },
    { "calls-twice", break_calls_twice, "calls.table" },
    { "count-events", break_count_events, "count.events" },
    { "count-accounts", break_count_accounts, "count.accounts" },
    { "accounts-live", break_accounts_live, "accounts" },
    { "accounts-sum", break_accounts_sum, "accounts" },
};

static bool names(const char *rules, const char *rule)
{
    g_auto(GStrv) words = g_strsplit(rules, " ", -1);

    return g_strv_contains((const char *const *)words, rule);
}

static void names_what_is_broken(gconstpointer opaque)
{
    unsigned i = GPOINTER_TO_UINT(opaque);
    World w = new_world();

    check(&w);
    g_assert_cmpstr(w.rules->str, ==, "");
    cases[i].damage(&w);
    check(&w);
    g_test_message("told: %s", w.rules->str);
    g_assert_true(names(w.rules->str, cases[i].rules));
    g_assert_cmpuint(w.report.violations, >, 0);
    end_world(&w);
}

/* Every rule is one that a case above breaks. */
TEST(every_rule_has_a_case, "/check/every-rule-has-a-case")
{
    for (unsigned rule = 0; rule < KT_CHECK__COUNT; rule++) {
        bool found = false;

        for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
            found = found || names(cases[i].rules, kt_check_name(rule));
        }
        g_test_message("%s", kt_check_name(rule));
        g_assert_true(found);
        g_assert_cmpuint(strlen(kt_check_text(rule)), >, 10);
    }
}

/* ---- when it is examined ------------------------------------------------ */

TEST(counts_what_it_examines, "/check/counts")
{
    World w = new_world();
    KtStats s;

    check(&w);
    s = tracer_stats(w.t);
    g_assert_cmpuint(w.report.blocks, ==, s.live_blocks + s.freed_blocks);
    g_assert_cmpuint(w.report.history, ==, 100);
    g_assert_cmpuint(w.report.errors, ==, 1);
    g_assert_cmpuint(w.report.nodes, >, N / LEAF_CAP);
    g_assert_cmpuint(w.report.index, >, s.live_blocks + 2 * s.freed_blocks);
    end_world(&w);
}

TEST(the_boot_before_is_examined, "/check/boot-before")
{
    World w = new_world();

    kt_tracer_reset(w.t);
    check(&w);
    g_assert_cmpstr(w.rules->str, ==, "");
    g_assert_cmpuint(w.report.blocks, >, N);
    w.t->previous->live_blocks++;
    check(&w);
    g_assert_cmpstr(w.rules->str, ==, "count.blocks");
    end_world(&w);
}

static uint64_t parts_find(World *w)
{
    const KtCheckFns fns = { .violation = told, .opaque = w->rules };
    KtCheckAt at = { 0 };
    KtExam x = {
        .m = w->t->model, .stacks = w->t->stacks, .names = w->t->names,
        .last_us = w->t->last_us, .boot = "", .fns = &fns,
    };

    while (kt_check_part(&x, &at)) {
        continue;
    }
    return x.report.violations;
}

TEST(parts_see_what_is_close_together, "/check/parts")
{
    static const char *const sums[] = {
        "map.count", "map.lost", "block.orphan", "end.orphan", "count.blocks",
        "block.twice", "index.count", "history.index", "error.row", "calls",
        "queue.order", "count.events", "count.accounts", "calls.table",
        "accounts", "access",
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        World w = new_world();
        bool sum = false;

        for (unsigned j = 0; j < G_N_ELEMENTS(sums); j++) {
            sum = sum || !strcmp(cases[i].rules, sums[j]);
        }
        if (!sum && strcmp(cases[i].name, "block-size-kept") &&
            strcmp(cases[i].rules, "index.list")) {
            g_assert_cmpuint(parts_find(&w), ==, 0);
            cases[i].damage(&w);
            g_test_message("%s", cases[i].name);
            g_assert_cmpuint(parts_find(&w), >, 0);
        }
        end_world(&w);
    }
}

static void await(World *w, KtCounter c, uint64_t n)
{
    while (kt_tracer_counter(w->t, c) < n) {
        g_usleep(1000);
    }
}

TEST(is_told_once_at_run_time, "/check/run-time")
{
    World w = new_world();
    g_autoptr(GString) again = g_string_new(NULL);

    kt_tracer_set_check(w.t, told, w.rules);
    kt_tracer_start(w.t);
    await(&w, KT_CNT_CHECK_ROUNDS, 2);
    g_assert_cmpuint(kt_tracer_counter(w.t, KT_CNT_CHECK_VIOLATIONS), ==, 0);
    kt_query_begin(w.t);
    break_block_layer(&w);
    kt_query_end(w.t);
    await(&w, KT_CNT_CHECK_VIOLATIONS, 3);
    kt_tracer_stop(w.t);
    g_assert_cmpstr(w.rules->str, ==, "block.layer");
    kt_query_begin(w.t);
    kt_query_checked(w.t, told, again);
    kt_query_end(w.t);
    g_assert_cmpstr(again->str, ==, "block.layer");
    end_world(&w);
}

int main(int argc, char **argv)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/check/names/%s",
                                                cases[i].name);

        test_add(path, NULL, names_what_is_broken, GUINT_TO_POINTER(i));
    }
    return test_run(argc, argv);
}
