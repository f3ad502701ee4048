/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Benchmark of the model at scale, with synthetic events and one thread: memory
 * per block and per past life, events per second, and the queries of `ka show`,
 * `ka <va>-<va>` and `ka alloc <pc>`. Prints "name value unit" lines.
 *
 * Blocks are allocated in random order over their whole area, which is the
 * worst case for the map. Then each block is freed, and allocated again 1000
 * events later, in another random order. So each block has a past life.
 */
#include "tests/lib/bare-tracer.h"
#include "tests/perf/bench.h"
#include "kalloc-tracer/kt.h"

#define BASE        0xffff888000000000ull
#define STEP        192
#define TEXT        0xffffffff81000000ull
#define LAG         1000
#define SMALL_MAP   100000

static int n_live = 10000000;
static int n_history = 10000000;
static int n_stacks = 50000;
static int depth = 16;

static GOptionEntry options[] = {
    { "live", 0, 0, G_OPTION_ARG_INT, &n_live, "live blocks", "N" },
    { "history", 0, 0, G_OPTION_ARG_INT, &n_history, "past lives", "N" },
    { "stacks", 0, 0, G_OPTION_ARG_INT, &n_stacks, "backtraces", "N" },
    { "depth", 0, 0, G_OPTION_ARG_INT, &depth, "frames of each", "N" },
    { NULL },
};

typedef struct Bench {
    KtTracer *t;
    uint32_t *order;        /* a permutation of the blocks */
    uint64_t us;
    uint64_t sink;
} Bench;

static void put(const char *name, double value, const char *unit)
{
    printf("%s %.3f %s\n", name, value, unit);
    fflush(stdout);
}

static double seconds_since(uint64_t start)
{
    return (now_ns() - start) / 1e9;
}

static void shuffle(uint32_t *a, uint32_t n, GRand *rand)
{
    for (uint32_t i = n; i > 1; i--) {
        uint32_t k = g_rand_int(rand) % i;
        uint32_t x = a[k];

        a[k] = a[i - 1];
        a[i - 1] = x;
    }
}

static uint32_t *new_order(uint32_t n, GRand *rand)
{
    uint32_t *a = g_new(uint32_t, n);

    for (uint32_t i = 0; i < n; i++) {
        a[i] = i;
    }
    shuffle(a, n, rand);
    return a;
}

/* The stacks have different leaves and common roots. */
static void make_stack(uint64_t *pc, uint32_t i)
{
    for (int k = 0; k < depth; k++) {
        uint32_t f = i >> (k < 12 ? k : 12);

        pc[k] = TEXT + ((uint64_t)k << 24) + f * 64;
    }
}

static void add_stacks(Bench *b)
{
    uint64_t pc[KT_MAX_FRAMES];

    for (int i = 0; i < n_stacks; i++) {
        make_stack(pc, i);
        kt_tracer_intern_stack(b->t, pc, depth, GS_STOP_END);
    }
}

static KtEvent event(Bench *b, KtEventKind kind, uint32_t block)
{
    uint64_t mix = block * 0x9e3779b97f4a7c15ull;

    return (KtEvent) {
        .kind = kind,
        .va = BASE + (uint64_t)block * STEP,
        .size = 100 + mix % 92,
        .actual = STEP,
        .us = b->us++,
        .stack = { 1 + (mix >> 32) % n_stacks },
        .task = { 1 },
        .gfp = 0xcc0,
        .layer = KT_LAYER_KMALLOC,
        .family = KT_FAMILY_KFREE,
    };
}

static void alloc_block(Bench *b, uint32_t block)
{
    KtEvent ev = event(b, KT_EV_ALLOC, block);

    kt_tracer_push(b->t, 0, &ev);
}

static void free_block(Bench *b, uint32_t block)
{
    KtEvent ev = event(b, KT_EV_FREE, block);

    kt_tracer_push(b->t, 0, &ev);
}

static void settle(Bench *b)
{
    kt_query_begin(b->t);
    kt_query_end(b->t);
}

static KtStats stats(Bench *b)
{
    return tracer_stats(b->t);
}

static void fill(Bench *b)
{
    uint64_t before = resident();
    uint64_t start = now_ns();
    KtStats s;

    add_stacks(b);
    for (int i = 0; i < n_live; i++) {
        alloc_block(b, b->order[i]);
    }
    settle(b);
    put("scale.fill_events_per_s", n_live / seconds_since(start), "1/s");
    s = stats(b);
    put("scale.bytes_per_live_block",
        (double)MAX(resident() - before, s.map_bytes) / s.live_blocks,
        "bytes");
}

static void churn(Bench *b)
{
    uint64_t before;
    uint64_t start;
    KtStats s;

    /* Do not count the memory of freed blocks as history. */
    for (int i = 0; i < 2 * LAG; i++) {
        (i < LAG ? free_block : alloc_block)(b, b->order[i % LAG]);
    }
    settle(b);
    before = resident();
    start = now_ns();
    for (int i = 0; i < n_history + LAG; i++) {
        if (i < n_history) {
            free_block(b, b->order[i % n_live]);
        }
        if (i >= LAG) {
            alloc_block(b, b->order[(i - LAG) % n_live]);
        }
    }
    settle(b);
    put("scale.events_per_s", 2.0 * n_history / seconds_since(start), "1/s");
    s = stats(b);
    put("scale.bytes_per_history_row",
        (double)MAX(resident() - before, s.history_bytes) / s.history_rows,
        "bytes");
}

static bool take(const KtBlock *block, void *opaque)
{
    Bench *b = opaque;

    b->sink += block->va;
    return true;
}

static void show(Bench *b, GRand *rand)
{
    const int n = 100000;
    uint64_t start;

    kt_query_begin(b->t);
    start = now_ns();
    for (int i = 0; i < n; i++) {
        uint64_t va = BASE + (uint64_t)(g_rand_int(rand) % n_live) * STEP + 7;
        KtBlock block;

        if (kt_query_find(b->t, va, &block)) {
            b->sink += block.va;
        }
    }
    put("scale.find_us", seconds_since(start) * 1e6 / n, "us");
    start = now_ns();
    for (int i = 0; i < n; i++) {
        uint64_t va = BASE + (uint64_t)(g_rand_int(rand) % n_live) * STEP + 7;
        KtBlock block;

        kt_query_find(b->t, va, &block);
        kt_query_prev(b->t, va, &block);
        kt_query_next(b->t, va, &block);
        kt_query_history(b->t, va, take, b);
    }
    put("scale.show_us", seconds_since(start) * 1e6 / n, "us");
    kt_query_end(b->t);
}

static void range(Bench *b, GRand *rand)
{
    const int n = 1000;
    uint64_t start;

    kt_query_begin(b->t);
    start = now_ns();
    for (int i = 0; i < n; i++) {
        uint64_t lo = BASE + (uint64_t)(g_rand_int(rand) % n_live) * STEP;

        kt_query_range(b->t, lo, lo + 4095, take, b);
    }
    put("scale.range_ms", seconds_since(start) * 1e3 / n, "ms");
    kt_query_end(b->t);
}

/* Query the leaf of one stack, which has some hundred blocks. */
static void alloc_pc(Bench *b, GRand *rand)
{
    const int n = 20;
    uint64_t start;

    kt_query_begin(b->t);
    start = now_ns();
    for (int i = 0; i < n; i++) {
        uint64_t pc = TEXT + (uint64_t)(g_rand_int(rand) % n_stacks) * 64;

        kt_query_alloc_pc(b->t, pc, pc, take, b);
    }
    put("scale.alloc_pc_ms", seconds_since(start) * 1e3 / n, "ms");
    kt_query_end(b->t);
}

/* Take the best of many rounds. A small map fits in the host's caches, unless
 * another process evicts it. */
static void small(GRand *rand)
{
    const KtConfig config = KT_CONFIG_DEFAULT;
    Bench b = { kt_tracer_new(&config, NULL) };
    const int rounds = 100;
    double best = 1e9;
    uint64_t start;

    b.order = new_order(SMALL_MAP, rand);
    add_stacks(&b);
    for (int i = 0; i < SMALL_MAP; i++) {
        alloc_block(&b, b.order[i]);
    }
    settle(&b);
    for (int r = 0; r < rounds; r++) {
        start = now_ns();
        for (int i = 0; i < SMALL_MAP; i++) {
            free_block(&b, b.order[i]);
            alloc_block(&b, b.order[i]);
        }
        settle(&b);
        best = MIN(best, seconds_since(start));
    }
    put("event.push_apply_ns", best * 1e9 / (2.0 * SMALL_MAP), "ns");
    g_free(b.order);
    kt_tracer_free(b.t);
}

static void intern(GRand *rand)
{
    const KtConfig config = KT_CONFIG_DEFAULT;
    Bench b = { kt_tracer_new(&config, NULL) };
    const int n = 2000000;
    uint64_t pc[16][KT_MAX_FRAMES];
    uint64_t start;

    add_stacks(&b);
    for (int i = 0; i < 16; i++) {
        make_stack(pc[i], g_rand_int(rand) % n_stacks);
    }
    start = now_ns();
    for (int i = 0; i < n; i++) {
        b.sink += kt_tracer_intern_stack(b.t, pc[i % 16], depth,
                                         GS_STOP_END).v;
    }
    put("event.intern_ns", seconds_since(start) * 1e9 / n, "ns");
    kt_tracer_free(b.t);
}

int main(int argc, char **argv)
{
    g_autoptr(GOptionContext) oc = g_option_context_new(NULL);
    g_autoptr(GRand) rand = g_rand_new_with_seed(1);
    g_autoptr(GError) err = NULL;
    KtConfig config = KT_CONFIG_DEFAULT;
    Bench b = { 0 };

    g_option_context_add_main_entries(oc, options, NULL);
    if (!g_option_context_parse(oc, &argc, &argv, &err) || n_live <= LAG ||
        n_history <= LAG || n_stacks < 1 || depth < 1 ||
        depth > KT_MAX_FRAMES) {
        fprintf(stderr, "bench-model: %s\n",
                err ? err->message : "a number is out of range");
        return 1;
    }
    small(rand);
    intern(rand);
    config.history_bytes = (uint64_t)n_history * 48;
    b.t = kt_tracer_new(&config, NULL);
    b.order = new_order(n_live, rand);
    fill(&b);
    shuffle(b.order, n_live, rand);
    churn(&b);
    show(&b, rand);
    range(&b, rand);
    alloc_pc(&b, rand);
    kt_tracer_free(b.t);
    g_free(b.order);
    return b.sink == 1;
}
