/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A tracer that loads a snapshot answers all queries as the one that saved it
 * did, for random maps. Bytes that are no snapshot leave a tracer unchanged.
 * Two tracers are compared with stacks and names in place of ids.
 */
#include <string.h>

#include "tests/lib/bare-tracer.h"
#include "tests/lib/test-main.h"
#include "kalloc-tracer/hooks/hooks.h"
#include "tests/lib/snapshot-dump.h"
#include "kalloc-tracer/snapshot/snapshot.h"
#include "kalloc-tracer/tracer/tracer.h"

/* ---- random maps -------------------------------------------------------- */

/* Half of the stacks of pages get these for other layers. */
static void find_backing(KtTracer *t)
{
    static const char map[] = "ffffffff81000000 T _stext\n"
                              "ffffffff81000001 T allocate_slab\n"
                              "ffffffff81000020 T other\n"
                              "ffffffff81f00000 T _etext\n";
    GsKernel *k = gs_kernel_new_from_data(map, strlen(map), "map", NULL);

    g_assert_nonnull(k);
    kt_tracer_find_backing(t, k);
    gs_kernel_free(k);
}

static KtTracer *new_tracer_with(uint64_t history_bytes)
{
    KtConfig config = KT_CONFIG_DEFAULT;
    KtTracer *t;

    config.history_bytes = history_bytes;
    t = kt_tracer_new(&config, NULL);
    find_backing(t);
    return t;
}

static KtTracer *new_tracer(void)
{
    return new_tracer_with(64 * 1024);
}

static KtStackId some_stack(KtTracer *t, GRand *r)
{
    uint64_t pc[KT_MAX_FRAMES];
    unsigned n = g_rand_int_range(r, 0, 9);
    GsStackEra era = {
        g_rand_int_range(r, 0, 3), g_rand_int_range(r, 0, 2)
    };

    for (unsigned i = 0; i < n; i++) {
        pc[i] = 0xffffffff81000000ull + g_rand_int_range(r, 0, 4) * 16;
    }
    return kt_tracer_intern_stack_of(t, pc, n, g_rand_int_range(r, 0, 2),
                                     era);
}

static KtTaskId some_task(KtTracer *t, GRand *r)
{
    char comm[16] = "task";

    return kt_tracer_intern_task(t, g_rand_int_range(r, 0, 9), comm);
}

static KtCacheId some_cache(KtTracer *t, GRand *r)
{
    unsigned i = g_rand_int_range(r, 0, 9);
    g_autofree char *name = g_strdup_printf("cache-%u", i);

    return i ? kt_tracer_add_cache(t, VA + i, name, i, i * 2)
             : (KtCacheId) { 0 };
}

static uint64_t some_size(GRand *r)
{
    uint64_t small = g_rand_int_range(r, 0, 200);

    return g_rand_int_range(r, 0, 200) ? small : ((uint64_t)5 << 30) + small;
}

static void push_any(KtTracer *t, GRand *r, uint64_t us)
{
    static const KtEventKind kinds[] = {
        KT_EV_ALLOC, KT_EV_ALLOC, KT_EV_ALLOC, KT_EV_FREE, KT_EV_FREE,
        KT_EV_RCU_QUEUE, KT_EV_RESIZE, KT_EV_ACCESS
    };
    KtEvent ev = {
        .kind = kinds[g_rand_int_range(r, 0, G_N_ELEMENTS(kinds))],
        .va = VA + g_rand_int_range(r, 0, ADDRESSES) * 64,
        .size = some_size(r), .us = us, .cpu = g_rand_int_range(r, 0, 4),
        .stack = some_stack(t, r), .task = some_task(t, r),
        .gfp = g_rand_int_range(r, 0, 1 << 20), .cache = some_cache(t, r),
        .hook = { g_rand_int_range(r, 1, 9) },
        .layer = g_rand_int_range(r, 1, KT_LAYER__COUNT),
        .family = g_rand_int_range(r, 0, KT_FAMILY__COUNT),
    };

    ev.actual = g_rand_boolean(r) ? some_size(r) : 0;
    if (ev.family == KT_FAMILY_PAGES && ev.us & 1) {
        ev.flags = KT_EVF_REMOVED;
    }
    kt_tracer_push(t, 0, &ev);
}

static void push_many(KtTracer *t, GRand *r, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        push_any(t, r, 1000 + i * 3);
    }
}

/* A tracer that has seen all there is to see. */
static KtTracer *random_tracer(uint32_t seed)
{
    g_autoptr(GRand) r = g_rand_new_with_seed(seed);
    KtTracer *t = new_tracer();

    kt_tracer_set_complete(t, seed & 1);
    push_many(t, r, g_rand_int_range(r, 0, 1200));
    if (seed % 3 == 0) {
        kt_tracer_reset(t);
        kt_tracer_set_complete(t, true);
        find_backing(t);
        push_many(t, r, 500);
    }
    if (seed % 5 == 0) {
        kt_tracer_set_enabled(t, false);
        kt_tracer_set_enabled(t, seed % 2);
    }
    kt_tracer_cache_destroyed(t, (KtCacheId) { 1 });
    kt_tracer_count(t, KT_CNT_TASK_UNKNOWN, seed);
    return t;
}

/* ---- streams ------------------------------------------------------------ */

static GByteArray *save(KtTracer *t)
{
    GByteArray *bytes = g_byte_array_new();

    kt_snapshot_save(t, gs_stream_to_array, bytes);
    return bytes;
}

/* A few at a time, as they may come. */
static size_t few_bytes(void *opaque, void *buf, size_t len)
{
    return gs_stream_from_bytes(opaque, buf, MIN(len, 1000));
}

static bool load(KtTracer *t, const void *at, size_t len, GError **errp)
{
    GsBytes b = { at, len };

    return kt_snapshot_load(t, few_bytes, &b, errp);
}

/* Accesses are random: most of them are right. */
static void violated(KtCheckRule rule, const char *where, void *opaque)
{
    g_assert_cmpstr(rule == KT_CHECK_ACCESS ? "" : where, ==, "");
}

/* What it holds fits together. */
static void examine(KtTracer *t)
{
    const KtCheckFns fns = { .violation = violated };
    KtCheckReport report;

    kt_query_begin(t);
    kt_query_check(t, &fns, &report);
    kt_query_end(t);
}

static void assert_loads(KtTracer *t, const GByteArray *bytes)
{
    g_autoptr(GError) err = NULL;

    load(t, bytes->data, bytes->len, &err);
    g_assert_no_error(err);
    examine(t);
}

/* ---- tests -------------------------------------------------------------- */

TEST(test_round_trip, "/state/round-trip")
{
    for (uint32_t seed = 1; seed <= 20; seed++) {
        g_autoptr(KtTracer) a = random_tracer(seed);
        g_autoptr(KtTracer) b = random_tracer(seed + 1000);
        g_autofree char *before = snapshot_dump(a);
        g_autoptr(GByteArray) bytes = save(a);
        g_autofree char *after = NULL, *same = NULL;

        assert_loads(b, bytes);
        after = snapshot_dump(b);
        g_assert_cmpstr(after, ==, before);
        same = snapshot_dump(a);
        g_assert_cmpstr(same, ==, before);
    }
}

/* Two tracers go on alike from where one was loaded. */
TEST(test_life_after, "/state/life-after")
{
    for (uint32_t seed = 1; seed <= 20; seed++) {
        g_autoptr(GRand) ra = g_rand_new_with_seed(seed);
        g_autoptr(GRand) rb = g_rand_new_with_seed(seed);
        g_autoptr(KtTracer) a = random_tracer(seed);
        g_autoptr(KtTracer) b = new_tracer();
        g_autoptr(GByteArray) bytes = save(a);
        g_autofree char *one = NULL, *two = NULL;

        assert_loads(b, bytes);
        push_many(a, ra, 2000);
        push_many(b, rb, 2000);
        examine(b);
        one = snapshot_dump(a);
        two = snapshot_dump(b);
        g_assert_cmpstr(one, ==, two);
    }
}

/* As loadvm does: to and fro between two times of one tracer. */
TEST(test_back_and_forth, "/state/back-and-forth")
{
    g_autoptr(GRand) r = g_rand_new_with_seed(7);
    g_autoptr(KtTracer) t = random_tracer(6);
    g_autofree char *before = snapshot_dump(t);
    g_autoptr(GByteArray) bytes = save(t);
    KtStats first = { 0 }, last = { 0 };

    for (unsigned i = 0; i < 10; i++) {
        g_autofree char *after = NULL;

        push_many(t, r, 500);
        kt_tracer_add_cache(t, 77, "of another time", 8, 8);
        assert_loads(t, bytes);
        after = snapshot_dump(t);
        g_assert_cmpstr(after, ==, before);
        kt_query_stats(t, &last);
        first = i ? first : last;
    }
    g_assert_cmpuint(last.caches, ==, first.caches);
    g_assert_cmpuint(kt_tracer_counter(t, KT_CNT_LOADS), ==, 10);
    kt_tracer_count(t, KT_CNT_KVM_HITS, 7);
    assert_loads(t, bytes);
    g_assert_cmpuint(kt_tracer_counter(t, KT_CNT_KVM_HITS), ==, 7);
}

/* The equation of docs/limits.md. */
static KtStats assert_nothing_lost(KtTracer *t)
{
    uint64_t gone = 0;
    static const KtCounter where[] = {
        KT_CNT_EVICT_HISTORY, KT_CNT_EVICT_FREED, KT_CNT_DROP_BLOCK,
        KT_CNT_ALLOC_AGAIN, KT_CNT_FORGOTTEN,
    };
    KtStats s = tracer_stats(t);

    for (unsigned i = 0; i < G_N_ELEMENTS(where); i++) {
        gone += kt_tracer_counter(t, where[i]);
    }
    g_assert_cmpuint(kt_tracer_counter(t, KT_CNT_EV_ALLOC) +
                     kt_tracer_counter(t, KT_CNT_SPLIT), ==,
                     s.live_blocks + s.freed_blocks + s.history_rows + gone);
    return s;
}

/* What finds no room is counted at once, not with the next event. */
TEST(test_less_history, "/state/less-history")
{
    for (uint32_t seed = 1; seed <= 6; seed++) {
        g_autoptr(KtTracer) a = random_tracer(seed);
        g_autoptr(KtTracer) b = new_tracer_with(0);
        g_autoptr(GByteArray) bytes = save(a);
        KtStats had = assert_nothing_lost(a);

        assert_loads(b, bytes);
        g_assert_cmpuint(had.history_rows, >,
                         assert_nothing_lost(b).history_rows);
    }
}

/* Of a state that has pages, into a tracer without. */
TEST(test_without_pages, "/state/without-pages")
{
    g_autoptr(KtTracer) a = random_tracer(6);
    g_autoptr(KtTracer) b = new_tracer();
    g_autoptr(GByteArray) bytes = save(a);
    GsBytes from = { bytes->data, bytes->len };
    g_autoptr(GsStreamIn) reader =
        gs_stream_in_new(few_bytes, &from, KT_SNAPSHOT_MAX_BYTES);
    GsBytes *u = gs_stream_in(reader);
    g_autoptr(KtSnapshot) s = kt_snapshot_unpack(b, u);

    g_assert_true(gs_stream_in_end(reader, NULL));
    kt_snapshot_drop_pages(s);
    kt_snapshot_install(b, s);
    assert_nothing_lost(b);
    g_assert_cmpuint(kt_tracer_counter(b, KT_CNT_FORGOTTEN), >,
                     kt_tracer_counter(a, KT_CNT_FORGOTTEN));
}

/* What the host has worked is not undone. */
TEST(test_costs_stay, "/state/costs-stay")
{
    g_autoptr(KtTracer) t = random_tracer(8);
    g_autoptr(GByteArray) bytes = save(t);
    unsigned n = 0;

    for (unsigned i = 0; i < KT_CNT__COUNT; i++) {
        uint64_t before;

        if (!g_str_has_prefix(kt_counter_name(i), "cost.")) {
            continue;
        }
        kt_tracer_count(t, i, 1000000);
        before = kt_tracer_counter(t, i);
        assert_loads(t, bytes);
        g_assert_cmpuint(kt_tracer_counter(t, i), >=, before);
        n++;
    }
    g_assert_cmpuint(n, >=, 6);
}

/* A load drops the lines of the kernel's log, which are read and counted again:
 * they must not count twice. */
TEST(test_log_is_counted_again, "/state/log-is-counted-again")
{
    g_autoptr(KtTracer) t = random_tracer(8);
    g_autoptr(GByteArray) bytes = NULL;

    kt_tracer_count(t, KT_CNT_LOG_LINES, 351);
    bytes = save(t);
    assert_loads(t, bytes);
    g_assert_cmpuint(kt_tracer_counter(t, KT_CNT_LOG_LINES), ==, 0);
}

static void assert_refused(KtTracer *t, const char *before, const void *at,
                           size_t len)
{
    g_autoptr(GError) err = NULL;
    g_autofree char *after = NULL;

    g_assert_false(load(t, at, len, &err));
    g_assert_error(err, GS_ERROR, GS_ERROR_FORMAT);
    g_assert_null(strchr(err->message, '\n'));
    after = snapshot_dump(t);
    g_assert_cmpstr(after, ==, before);
}

TEST(test_cut_short, "/state/cut-short")
{
    g_autoptr(KtTracer) a = random_tracer(3);
    g_autoptr(KtTracer) b = random_tracer(4);
    g_autoptr(GByteArray) bytes = save(a);
    g_autofree char *before = snapshot_dump(b);

    for (size_t len = 0; len < bytes->len; len += 1 + len / 8) {
        assert_refused(b, before, bytes->data, len);
    }
    assert_refused(b, before, bytes->data, bytes->len - 1);
    g_byte_array_append(bytes, (const uint8_t *)"", 1);
    assert_refused(b, before, bytes->data, bytes->len);
}

/* Some bits of zstd's headers are of no account (the size of its window, for
 * one): then it is the state that was saved. */
TEST(test_flipped, "/state/flipped")
{
    g_autoptr(GRand) r = g_rand_new_with_seed(1);
    g_autoptr(KtTracer) a = random_tracer(3);
    g_autoptr(KtTracer) b = random_tracer(4);
    g_autoptr(GByteArray) bytes = save(a), saved = save(b);
    g_autofree char *whole = snapshot_dump(a), *before = snapshot_dump(b);

    for (unsigned i = 0; i < 60; i++) {
        size_t any = g_rand_int_range(r, 0, bytes->len);
        size_t at = i < 20 ? i : any;
        uint8_t bit = 1 << g_rand_int_range(r, 0, 8);
        g_autofree char *after = NULL;
        bool loaded;

        bytes->data[at] ^= bit;
        loaded = load(b, bytes->data, bytes->len, NULL);
        bytes->data[at] ^= bit;
        after = snapshot_dump(b);
        g_assert_cmpstr(after, ==, loaded ? whole : before);
        assert_loads(b, saved);
    }
    assert_loads(b, bytes);
}

/* Streams that are sound, with a state that cannot be. */
static void assert_no_state(void (*fill)(GsOut *p))
{
    g_autoptr(KtTracer) t = random_tracer(4);
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    g_autofree char *before = snapshot_dump(t);
    GsStreamOut *writer = gs_stream_out_new(gs_stream_to_array, bytes);
    GsOut *p = gs_stream_out(writer);

    fill(p);
    gs_stream_out_end(writer);
    assert_refused(t, before, bytes->data, bytes->len);
}

static void nothing(GsOut *p)
{
}

static void other_words(GsOut *p)
{
    gs_out_text(p, "ki state");
}

static void newer(GsOut *p)
{
    gs_out_text(p, "ka state");
    gs_out_varint(p, KT_SNAPSHOT_VERSION + 1);
}

static void many_stacks(GsOut *p)
{
    gs_out_text(p, "ka state");
    gs_out_varint(p, KT_SNAPSHOT_VERSION);
    gs_out_varint(p, 0);
    gs_out_varint(p, UINT64_MAX);
}

static void put_names(GsOut *p)
{
    gs_out_text(p, "ka state");
    gs_out_varint(p, KT_SNAPSHOT_VERSION);
    for (unsigned i = 0; i < 5; i++) {
        gs_out_varint(p, 0);      /* hooks, stacks, tasks, caches, counters */
    }
    gs_out_varint(p, 1);          /* on */
    gs_out_varint(p, 0);
    gs_out_varint(p, 0);
    gs_out_varint(p, 1);          /* complete */
    gs_out_varint(p, 0);
}

static void put_block(GsOut *p, uint64_t va, uint64_t from, uint64_t stack)
{
    gs_out_varint(p, KT_LAYER_KMALLOC << 4);
    gs_out_step(p, from, va);
    gs_out_varint(p, 64);
    gs_out_step(p, 64, 64);
    gs_out_step(p, 0, 5);
    gs_out_varint(p, stack);
    for (unsigned i = 0; i < 6; i++) {
        gs_out_varint(p, 0);
    }
}

static void two_that_overlap(GsOut *p)
{
    put_names(p);
    gs_out_varint(p, 0);
    gs_out_varint(p, 2);
    put_block(p, VA, 0, 0);
    put_block(p, VA + 32, VA, 0);
}

static void unknown_stack(GsOut *p)
{
    put_names(p);
    gs_out_varint(p, 0);
    gs_out_varint(p, 1);
    put_block(p, VA, 0, 1);
}

static void object_among_pages(GsOut *p)
{
    put_names(p);
    gs_out_varint(p, 1);
    put_block(p, VA, 0, 0);
}

static void endless(GsOut *p)
{
    put_names(p);
    gs_out_varint(p, 0);
    gs_out_varint(p, UINT32_MAX);
}

TEST(test_no_state, "/state/no-state")
{
    assert_no_state(nothing);
    assert_no_state(other_words);
    assert_no_state(newer);
    assert_no_state(many_stacks);
    assert_no_state(two_that_overlap);
    assert_no_state(unknown_stack);
    assert_no_state(object_among_pages);
    assert_no_state(endless);
}

TEST(test_numbers, "/state/numbers")
{
    static const uint64_t v[] = {
        0, 1, 127, 128, 1ull << 32, 1ull << 63, UINT64_MAX
    };
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    GsStreamOut *writer = gs_stream_out_new(gs_stream_to_array, bytes);
    GsOut *p = gs_stream_out(writer);
    g_autoptr(GsStreamIn) reader = NULL;
    GsBytes *u;
    GsBytes b;

    for (unsigned i = 0; i < G_N_ELEMENTS(v); i++) {
        for (unsigned j = 0; j < G_N_ELEMENTS(v); j++) {
            gs_out_varint(p, v[i]);
            gs_out_step(p, v[i], v[j]);
        }
    }
    gs_stream_out_end(writer);
    b = (GsBytes) { bytes->data, bytes->len };
    reader = gs_stream_in_new(few_bytes, &b, 10000);
    u = gs_stream_in(reader);
    for (unsigned i = 0; i < G_N_ELEMENTS(v); i++) {
        for (unsigned j = 0; j < G_N_ELEMENTS(v); j++) {
            g_assert_cmpuint(gs_bytes_varint(u, UINT64_MAX), ==, v[i]);
            g_assert_cmpuint(gs_bytes_step(u, v[i]), ==, v[j]);
        }
    }
    g_assert_true(gs_stream_in_end(reader, NULL));
}

/* A small stream that unpacks to more than is said to be possible. */
TEST(test_bomb, "/state/bomb")
{
    static const uint8_t zeros[1 << 20];
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    GsStreamOut *writer = gs_stream_out_new(gs_stream_to_array, bytes);
    GsOut *p = gs_stream_out(writer);
    g_autoptr(GError) err = NULL;
    g_autoptr(GsStreamIn) reader = NULL;
    GsBytes *u;
    GsBytes b;

    gs_out_bytes(p, zeros, sizeof(zeros));
    gs_stream_out_end(writer);
    b = (GsBytes) { bytes->data, bytes->len };
    reader = gs_stream_in_new(few_bytes, &b, sizeof(zeros) / 2);
    u = gs_stream_in(reader);
    for (size_t i = 0; i < sizeof(zeros); i++) {
        gs_bytes_varint(u, UINT64_MAX);
    }
    g_assert_false(gs_stream_in_end(reader, &err));
    g_assert_cmpstr(err->message, ==, "it is larger than can be");
}

/* Nothing is known of a state that came without a map. */
TEST(test_lost, "/state/lost")
{
    g_autoptr(KtTracer) t = random_tracer(5);
    KtStats s;

    kt_tracer_reset_unknown(t);
    examine(t);
    kt_query_begin(t);
    kt_query_stats(t, &s);
    g_assert_cmpuint(s.live_blocks, ==, 0);
    g_assert_cmpuint(s.previous_live_blocks, ==, 0);
    g_assert_false(t->model->complete);
    g_assert_true(t->model->gap);
    kt_query_end(t);
    g_assert_cmpuint(kt_tracer_counter(t, KT_CNT_LOADS_BLIND), ==, 1);
}

/* As long as a profile may have them: mangled ones are. */
TEST(test_longest_name_of_a_hook, "/state/longest-name-of-a-hook")
{
    g_autofree char *name = g_strnfill(KT_HOOK_NAME_MAX, 'x');
    const KtHook hook = { .symbol = name, .role = KT_ROLE_ALLOC };
    g_autoptr(KtTracer) a = new_tracer();
    g_autoptr(KtTracer) b = new_tracer();
    g_autoptr(GByteArray) bytes = NULL;
    g_autofree char *before = NULL, *after = NULL;

    kt_hook_table_set(kt_tracer_hooks(a), &hook, 1);
    kt_hook_table_set(kt_tracer_hooks(b), &hook, 1);
    kt_tracer_push(a, 0, &(KtEvent) {
        .kind = KT_EV_ALLOC, .va = VA, .size = 8, .actual = 8, .hook = { 1 },
        .layer = KT_LAYER_KMALLOC });
    bytes = save(a);
    assert_loads(b, bytes);
    before = snapshot_dump(a);
    after = snapshot_dump(b);
    g_assert_cmpstr(after, ==, before);
}
