/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A tracer within a memory limit (mem=): what it evicts, in which order, that
 * each event is counted, and that an evicted block never causes an error.
 */
#include "kalloc-tracer/base/budget.h"
#include "kalloc-tracer/model/history.h"
#include "kalloc-tracer/tracer/tracer.h"
#include "tests/lib/fed-tracer.h"
#include "tests/lib/test-main.h"

#define BOUND   ((uint64_t)64 << 20)
#define STEP    64
#define AREA    0xffff888000000000ull

static unsigned warnings;

static void note_warning(const char *line)
{
    g_assert_nonnull(strstr(line, "64 MiB"));
    g_assert_null(strchr(line, '\n'));
    warnings++;
}

static FedTracer bounded_world(void)
{
    KtConfig config = KT_CONFIG_DEFAULT;
    FedTracer w = { .us = 1 };

    config.mem_bytes = BOUND;
    config.warn = note_warning;
    warnings = 0;
    w.t = kt_tracer_new(&config, NULL);
    kt_tracer_set_complete(w.t, true);
    return w;
}

/* A case with a tracer @w of BOUND bytes. */
#define BOUNDED_TEST(fn, path) \
    TEST_IN(g_auto(FedTracer), FedTracer w, bounded_world(), fn, path)

/* Every block that ever was is somewhere, and within the bound. */
static KtStats check(FedTracer *w)
{
    KtStats s = stats(w);
    uint64_t parts = 0;

    g_assert_cmpuint(counter(w, KT_CNT_EV_ALLOC) + counter(w, KT_CNT_SPLIT),
                     ==, s.live_blocks + s.freed_blocks + s.history_rows +
                     counter(w, KT_CNT_EVICT_HISTORY) +
                     counter(w, KT_CNT_EVICT_FREED) +
                     counter(w, KT_CNT_DROP_BLOCK) +
                     counter(w, KT_CNT_ALLOC_AGAIN) +
                     counter(w, KT_CNT_FORGOTTEN));
    g_assert_cmpuint(s.events, ==, counter(w, KT_CNT_EV_ALLOC) +
                     counter(w, KT_CNT_EV_FREE) +
                     counter(w, KT_CNT_EV_RESIZE) +
                     counter(w, KT_CNT_EV_RCU) + counter(w, KT_CNT_GAPS) +
                     counter(w, KT_CNT_EV_DESTROY));
    for (unsigned i = 0; i < KT_MEM__COUNT; i++) {
        parts += s.part_bytes[i];
    }
    g_assert_cmpuint(s.mem_bytes, ==, parts);
    g_assert_cmpuint(s.mem_bytes, <=, BOUND);
    return s;
}

static uint64_t block(unsigned i)
{
    return AREA + (uint64_t)i * STEP;
}

static void alloc_blocks(FedTracer *w, unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++) {
        alloc(w, block(i), STEP);
    }
}

static void free_blocks(FedTracer *w, unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++) {
        kfree(w, block(i));
    }
}

static bool is_known(FedTracer *w, unsigned i)
{
    KtBlock b;

    return find(w, block(i), &b);
}

static bool count_past(const KtBlock *b, void *opaque)
{
    ++*(unsigned *)opaque;
    return true;
}

static unsigned past_lives(FedTracer *w, unsigned i)
{
    unsigned n = 0;

    kt_query_begin(w->t);
    kt_query_history(w->t, block(i), count_past, &n);
    kt_query_end(w->t);
    return n;
}

/* Free and allocate again, over and over: rows of the history. */
static void churn(FedTracer *w, unsigned from, unsigned to, unsigned times)
{
    for (unsigned k = 0; k < times; k++) {
        free_blocks(w, from, to);
        alloc_blocks(w, from, to);
    }
}

TEST(too_little_is_refused, "/limits/too-little-is-refused")
{
    g_autoptr(GError) err = NULL;
    KtConfig config = KT_CONFIG_DEFAULT;

    config.mem_bytes = BOUND - 1;
    g_assert_null(kt_tracer_new(&config, &err));
    g_assert_nonnull(strstr(err->message, "mem=64M"));
    g_assert_null(strchr(err->message, '\n'));
    config.n_cpus = 255;
    config.mem_bytes = BOUND;
    g_assert_null(kt_tracer_new(&config, NULL));
}

/* ---- history ------------------------------------------------------------ */

static void add_past(KtHistory *h, unsigned i)
{
    const KtBlock b = {
        .va = block(i),
        .requested = STEP,
        .actual = STEP,
        .free_us = i,
        .state = KT_BLOCK_FREED,
        .layer = KT_LAYER_KMALLOC,
    };

    kt_history_add(h, &b);
}

static bool has_past(const KtHistory *h, unsigned i)
{
    unsigned n = 0;

    kt_history_find(h, block(i), count_past, &n);
    return n;
}

/* What is left are the newest, however often the ring has come around. */
static void check_window(const KtHistory *h, unsigned added)
{
    unsigned rows = kt_history_rows(h);

    g_assert_cmpuint(kt_history_evicted(h), ==, added - rows);
    for (unsigned i = 0; i < added; i += 1 + added / 5000) {
        g_assert_cmpint(has_past(h, i), ==, i >= added - rows);
    }
    g_assert_cmpint(rows == 0 || has_past(h, added - 1), ==, true);
    g_assert_cmpint(rows == 0 || has_past(h, added - rows), ==, true);
}

TEST(history_shrinks_from_its_oldest, "/limits/history-shrinks-from-its-oldest")
{
    for (unsigned n = 1000; n < 600000; n = n * 3 + 77) {
        KtBudget *b = kt_budget_new(0);
        KtHistory *h = kt_history_new(48 * 200000, b);
        unsigned added = 0;

        for (unsigned k = 1; k < 5; k++) {
            uint64_t before;

            for (unsigned i = 0; i < n; i++) {
                add_past(h, added++);
            }
            check_window(h, added);
            before = kt_budget_used(b, KT_MEM_HISTORY);
            g_assert_cmpuint(kt_history_shrink(h, k << 20), ==,
                             before - kt_budget_used(b, KT_MEM_HISTORY));
            check_window(h, added);
        }
        kt_history_shrink(h, UINT64_MAX);
        g_assert_cmpuint(kt_history_rows(h), ==, 0);
        add_past(h, added++);
        check_window(h, added);
        kt_history_free(h);
        g_assert_cmpuint(kt_budget_total(b), ==, 0);
        kt_budget_free(b);
    }
}

TEST(history_lives_on_what_is_left, "/limits/history-lives-on-what-is-left")
{
    KtBudget *b = kt_budget_new(8 << 20);
    KtHistory *h = kt_history_new(1 << 30, b);
    unsigned added = 0;

    while (added < 400000) {
        add_past(h, added++);
    }
    check_window(h, added);
    g_assert_cmpuint(kt_history_rows(h), >, 100000);
    /* Others take half of it, and give it back. */
    kt_history_shrink(h, 4 << 20);
    kt_budget_charge(b, KT_MEM_FIXED, 4 << 20);
    while (added < 800000) {
        add_past(h, added++);
    }
    check_window(h, added);
    g_assert_cmpuint(kt_history_rows(h), <, 100000);
    kt_budget_release(b, KT_MEM_FIXED, 4 << 20);
    while (added < 1200000) {
        add_past(h, added++);
    }
    check_window(h, added);
    g_assert_cmpuint(kt_history_rows(h), >, 100000);
    g_assert_cmpuint(kt_budget_total(b), <=, 8 << 20);
    kt_history_free(h);
    kt_budget_free(b);
}

/* ---- the order of giving up --------------------------------------------- */

BOUNDED_TEST(history_goes_before_blocks, "/limits/history-goes-before-blocks")
{
    KtStats s;
    uint64_t most;

    alloc_blocks(&w, 0, 1000);
    churn(&w, 0, 1000, 200);
    most = check(&w).history_rows;
    g_assert_cmpuint(most, ==, 200000);
    alloc_blocks(&w, 1000, 530000);
    s = check(&w);
    g_assert_cmpuint(s.live_blocks, ==, 530000);
    g_assert_cmpuint(s.history_rows, <, most);
    g_assert_cmpuint(counter(&w, KT_CNT_EVICT_HISTORY), ==,
                     most - s.history_rows);
    g_assert_cmpuint(counter(&w, KT_CNT_DROP_BLOCK), ==, 0);
    /* All rows of a round are as old as each other; the last are left. */
    g_assert_cmpuint(past_lives(&w, 999), >=, past_lives(&w, 0));
    g_assert_false(s.full);
    g_assert_cmpuint(warnings, ==, 0);
    expect(&w, "");
}

TEST(freed_blocks_go_oldest_first, "/limits/freed-blocks-go-oldest-first")
{
    const unsigned n = 300000;
    g_auto(FedTracer) w = bounded_world();
    uint64_t gone;
    KtStats s;

    alloc_blocks(&w, 0, n);
    /* Freed from the last to the first. */
    for (unsigned i = n; i-- > 0;) {
        kfree(&w, block(i));
    }
    g_assert_cmpuint(check(&w).freed_blocks, ==, n);
    alloc_blocks(&w, 1000000, 1000000 + n + n / 2);
    s = check(&w);
    gone = counter(&w, KT_CNT_EVICT_FREED);
    g_assert_cmpuint(s.live_blocks, ==, n + n / 2);
    g_assert_cmpuint(s.freed_blocks, ==, n - gone);
    g_assert_cmpuint(gone, >, 0);
    g_assert_cmpuint(gone, <, n);
    for (unsigned i = 0; i < n; i += 100) {
        g_assert_cmpint(is_known(&w, i), ==, i < n - gone);
    }
    g_assert_cmpuint(counter(&w, KT_CNT_DROP_BLOCK), ==, 0);
    /* Still an error, though not known as a double free any more. */
    kfree(&w, block(n - 1));
    kfree(&w, block(0));
    expect(&w, "invalid-free double-free");
}

TEST(blocks_are_not_kept_beyond_the_bound,
     "/limits/blocks-are-not-kept-beyond-the-bound")
{
    const unsigned n = 1500000;
    g_auto(FedTracer) w = bounded_world();
    uint64_t kept;
    KtStats s;

    alloc_blocks(&w, 0, n);
    s = check(&w);
    kept = s.live_blocks;
    g_assert_cmpuint(kept, >, 400000);
    g_assert_cmpuint(counter(&w, KT_CNT_DROP_BLOCK), ==, n - kept);
    g_assert_true(s.full);
    g_assert_cmpuint(warnings, ==, 1);
    g_assert_true(is_known(&w, 0));
    g_assert_true(is_known(&w, kept - 1));
    g_assert_false(is_known(&w, n - 1));
    /* What was not kept is freed, and is no error. */
    free_blocks(&w, n - 1000, n);
    g_assert_cmpuint(counter(&w, KT_CNT_FREE_UNKNOWN), ==, 1000);
    /* What was kept is known to the end, with who freed it. */
    free_blocks(&w, 0, 1000);
    g_assert_cmpuint(check(&w).freed_blocks, ==, 1000);
    kfree(&w, block(0));
    /* There is room again, for as many, and then there is none. */
    alloc_blocks(&w, n, n + 1000);
    g_assert_true(is_known(&w, n + 999));
    g_assert_false(check(&w).full);
    alloc_blocks(&w, n + 1000, n + 2000);
    g_assert_true(check(&w).full);
    g_assert_cmpuint(warnings, ==, 1);
    expect(&w, "double-free");
}

TEST(the_end_of_every_block_is_kept, "/limits/the-end-of-every-block-is-kept")
{
    const unsigned n = 1000000;
    g_auto(FedTracer) w = bounded_world();
    uint64_t kept;
    KtBlock b;

    alloc_blocks(&w, 0, n);
    kept = check(&w).live_blocks;
    for (unsigned i = 0; i < kept; i++) {
        push(&w, (KtEvent) { .kind = KT_EV_FREE, .va = block(i),
                             .family = KT_FAMILY_KFREE, .cpu = 3 });
    }
    g_assert_cmpuint(check(&w).freed_blocks, ==, kept);
    for (unsigned i = 0; i < kept; i += 1000) {
        g_assert_true(find(&w, block(i), &b));
        g_assert_cmpuint(b.free_cpu, ==, 3);
    }
    expect(&w, "");
}

BOUNDED_TEST(memory_comes_back, "/limits/memory-comes-back")
{
    alloc_blocks(&w, 0, 1000000);
    g_assert_true(check(&w).full);
    kt_tracer_clear(w.t);
    g_assert_cmpuint(check(&w).mem_bytes, <, BOUND / 8);
    alloc_blocks(&w, 0, 1000000);
    kt_tracer_reset(w.t);
    g_assert_cmpuint(check(&w).mem_bytes, <, BOUND / 8);
    g_assert_cmpuint(stats(&w).previous_live_blocks, >, 400000);
    alloc_blocks(&w, 0, 400000);
    g_assert_false(check(&w).full);
    expect(&w, "");
}

/* Whichever part of a block the last memory went to. Some may be lost until
 * the map has nodes to spare, too: several blocks that go make one. */
TEST(new_ones_are_kept_when_others_went,
     "/limits/new-ones-are-kept-when-others-went")
{
    for (unsigned i = 0; i < 16; i++) {
        g_auto(FedTracer) w = bounded_world();
        uint64_t kept, dropped;

        kt_budget_charge(kt_tracer_budget(w.t), KT_MEM_FIXED,
                         BOUND / 8 * 5 + i * (BOUND / 512));
        alloc_blocks(&w, 0, 400000);
        kept = check(&w).live_blocks;
        dropped = counter(&w, KT_CNT_DROP_BLOCK);
        g_assert_cmpuint(dropped, >, 0);
        free_blocks(&w, 0, 400000);
        alloc_blocks(&w, 400000, 400000 + kept / 2);
        g_assert_cmpuint(counter(&w, KT_CNT_DROP_BLOCK), <, dropped + 100);
        g_assert_cmpuint(kept, >, 50000);
        g_assert_false(check(&w).full);
    }
}

/* ---- what else a guest can make grow ------------------------------------ */

BOUNDED_TEST(backtraces_have_their_share, "/limits/backtraces-have-their-share")
{
    uint64_t pc[16] = { 0xffffffff81000000 };
    KtStats s;

    for (unsigned i = 0; i < 500000; i++) {
        pc[1] = i;
        push(&w, (KtEvent) {
            .kind = KT_EV_ALLOC, .va = block(i % 100000), .size = STEP,
            .layer = KT_LAYER_KMALLOC,
            .stack = kt_tracer_intern_stack(w.t, pc, 16, GS_STOP_END),
        });
        push(&w, (KtEvent) { .kind = KT_EV_FREE, .va = block(i % 100000),
                             .family = KT_FAMILY_KFREE });
    }
    s = check(&w);
    g_assert_cmpuint(s.stacks, >, 50000);
    g_assert_cmpuint(counter(&w, KT_CNT_DROP_STACK), ==, 500000 - s.stacks);
    g_assert_cmpuint(s.part_bytes[KT_MEM_STACKS], <=, BOUND / 4 + (8 << 20));
    /* One that is known is found, whatever is full. */
    pc[1] = 7;
    g_assert_cmpuint(kt_tracer_intern_stack(w.t, pc, 16, GS_STOP_END).v, ==,
                     8);
    expect(&w, "");
}

BOUNDED_TEST(names_have_their_share, "/limits/names-have-their-share")
{
    char comm[16] = "storm";
    unsigned unknown = 0;

    for (uint32_t i = 0; i < 300000; i++) {
        unknown += !kt_tracer_intern_task(w.t, i, comm).v;
    }
    g_assert_cmpuint(unknown, >, 0);
    g_assert_cmpuint(counter(&w, KT_CNT_TASK_UNKNOWN), ==, unknown);
    for (uint32_t i = 0; i < 65000; i++) {
        g_autofree char *name = g_strnfill(127, 'a' + i % 26);

        kt_tracer_add_cache(w.t, AREA + i * 64, name, i, i);
    }
    g_assert_cmpuint(counter(&w, KT_CNT_DROP_CACHE), ==,
                     65000 - check(&w).caches);
    g_assert_cmpuint(stats(&w).part_bytes[KT_MEM_NAMES], <=, BOUND / 16);
}

BOUNDED_TEST(errors_have_their_share, "/limits/errors-have-their-share")
{
    alloc(&w, VA, 64);
    for (unsigned i = 0; i < 65536; i++) {
        kfree(&w, VA);
    }
    g_assert_cmpuint(stats(&w).errors + counter(&w, KT_CNT_DROP_ERROR), ==,
                     65535);
    g_assert_cmpuint(stats(&w).errors, >, 5000);
    g_assert_cmpuint(check(&w).part_bytes[KT_MEM_ERRORS], <=, BOUND / 16);
}

/* Sizes of 4 GiB and more take memory of their own. */
BOUNDED_TEST(huge_sizes_are_bounded, "/limits/huge-sizes-are-bounded")
{
    unsigned n = 600000;

    for (uint64_t i = 1; i <= n; i++) {
        alloc_in(&w, KT_LAYER_VMALLOC, i << 33, (1ull << 33) - 1, 0);
    }
    check(&w);
    for (uint64_t i = 1; i <= n; i++) {
        resize(&w, i << 33, (1ull << 33) - 2);
    }
    check(&w);
    for (uint64_t i = 1; i <= n; i++) {
        free_by(&w, KT_FAMILY_VFREE, i << 33, 0);
        alloc_in(&w, KT_LAYER_VMALLOC, i << 33, (1ull << 33) - 1, 0);
    }
    check(&w);
    expect(&w, "");
}

/* Pages that are freed in parts make blocks, too. */
BOUNDED_TEST(parts_of_pages_are_bounded, "/limits/parts-of-pages-are-bounded")
{
    for (unsigned i = 0; i < 1000000; i++) {
        uint64_t va = AREA + (uint64_t)i * 0x10000;

        alloc_in(&w, KT_LAYER_PAGES, va, 0x10000, 0);
        push(&w, (KtEvent) { .kind = KT_EV_FREE, .va = va + 0x4000,
                             .size = 0x1000, .family = KT_FAMILY_PAGES });
    }
    g_assert_true(check(&w).full);
    g_assert_cmpuint(counter(&w, KT_CNT_SPLIT), >, 100000);
    expect(&w, "");
}

BOUNDED_TEST(anything_is_accounted_for, "/limits/anything-is-accounted-for")
{
    GRand *r = g_rand_new_with_seed(6);

    for (unsigned i = 0; i < 2000000; i++) {
        uint64_t va = AREA + (g_rand_int(r) % 4000000) * 32ull;

        switch (g_rand_int(r) % 8) {
        case 0:
            resize(&w, va, g_rand_int(r) % 128);
            break;
        case 1:
            kfree_rcu(&w, va);
            break;
        case 2:
        case 3:
            kfree(&w, va);
            break;
        default:
            alloc(&w, va, 1 + g_rand_int(r) % 100);
        }
        if (i % 250000 == 0) {
            check(&w);
        }
    }
    check(&w);
    kt_tracer_clear(w.t);
    check(&w);
    g_rand_free(r);
}
