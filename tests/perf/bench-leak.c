/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Benchmark of leak scans, for several contents of memory. One thread scans a
 * million synthetic blocks; all are reached. Prints "name value unit" lines.
 *
 * Pointers lead to random blocks, which is the worst case for the host's
 * caches. Memory is copied from the host's; there are no guest page tables.
 */
#include <string.h>

#include "tests/perf/bench.h"
#include "kalloc-tracer/leak/mark.h"

#define BASE        0xffff888000000000ull
#define TEXT        0xffffffff81000000ull
#define PAGE        4096

static int n_blocks = 1000000;
static int block_size = 256;

static GOptionEntry options[] = {
    { "blocks", 0, 0, G_OPTION_ARG_INT, &n_blocks, "live blocks", "N" },
    { "size", 0, 0, G_OPTION_ARG_INT, &block_size, "bytes of each", "N" },
    { NULL },
};

/* The contents of memory. The first @links words of a block are pointers to
 * others, so that all are reached: one makes a list, two make a tree. Of the
 * other words, one in @pointer_in is a pointer; of the rest, one in @noise_in
 * is not 0. */
typedef struct Kind {
    const char *name;
    unsigned links;
    unsigned pointer_in;
    unsigned noise_in;
} Kind;

static const Kind kinds[] = {
    { "list", 1, 0, 4 },
    { "sparse", 2, 0, 4 },
    { "eighth", 2, 8, 0 },
    { "dense", 2, 1, 0 },
};

typedef struct Bench {
    uint64_t *word;         /* a page of roots, then the blocks */
    uint64_t bytes;
    uint32_t *order;        /* a permutation of the blocks */
} Bench;

static void put(const Kind *k, const char *what, double value,
                const char *unit)
{
    printf("leak.%s_%s %.3f %s\n", k->name, what, value, unit);
    fflush(stdout);
}

static uint64_t block_va(uint32_t i)
{
    return BASE + PAGE + (uint64_t)i * block_size;
}

static bool read_word(void *opaque, uint64_t va, void *buf, size_t len)
{
    const Bench *b = opaque;
    uint64_t off = va - BASE;

    if (off >= b->bytes || len > b->bytes - off) {
        return false;
    }
    memcpy(buf, (const char *)b->word + off, len);
    return true;
}

static void make_order(Bench *b, GRand *rand)
{
    b->order = g_new(uint32_t, n_blocks);
    for (int i = 0; i < n_blocks; i++) {
        b->order[i] = i;
    }
    for (int i = n_blocks; i > 1; i--) {
        uint32_t k = g_rand_int(rand) % i, x = b->order[k];

        b->order[k] = b->order[i - 1];
        b->order[i - 1] = x;
    }
}

/* Half of the pointers lead to the start of a block. */
static uint64_t pointer(GRand *rand)
{
    uint64_t va = block_va(g_rand_int(rand) % n_blocks);

    return g_rand_boolean(rand) ? va : va + g_rand_int(rand) % block_size;
}

static uint64_t content(const Kind *k, uint64_t i, GRand *rand)
{
    if (k->pointer_in && i % k->pointer_in == 0) {
        return pointer(rand);
    }
    if (k->noise_in && i % k->noise_in == 0) {
        uint32_t r = g_rand_int(rand);

        return r & 1 ? TEXT + (r >> 8) : r >> 16;
    }
    return 0;
}

static void fill(Bench *b, const Kind *k)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(1);

    memset(b->word, 0, PAGE);
    for (uint64_t i = PAGE / 8; i < b->bytes / 8; i++) {
        b->word[i] = content(k, i, rand);
    }
    b->word[0] = block_va(b->order[0]);
    for (int i = 1; i < n_blocks; i++) {
        uint32_t from = b->order[(i - 1) / k->links];
        uint64_t at = (block_va(from) - BASE) / 8 + (i - 1) % k->links;

        b->word[at] = block_va(b->order[i]);
    }
}

static KtMarker *new_scan(void)
{
    KtMarker *s = kt_marker_new();

    for (int i = 0; i < n_blocks; i++) {
        kt_marker_add(s, block_va(i), block_size, 0);
    }
    kt_marker_seal(s);
    return s;
}

static void check_reached(const KtMarker *s)
{
    for (int i = 0; i < n_blocks; i++) {
        g_assert_true(kt_marker_reached(s, i));
    }
}

static void scan(Bench *b, const Kind *k)
{
    uint64_t before = resident(), begin = now_ns(), sealed;
    g_autoptr(KtMarker) s = new_scan();
    KtReader r = { .mem = { .read = read_word, .opaque = b } };
    double seconds;

    sealed = now_ns();
    kt_reader_init(&r);
    kt_reader_each(&r, BASE, PAGE, kt_marker_span, s);
    kt_marker_run(s, &r);
    kt_marker_scan_unreached(s, &r);
    seconds = (now_ns() - begin) / 1e9;
    check_reached(s);
    put(k, "gib_per_s", b->bytes / seconds / (1 << 30), "GiB/s");
    put(k, "read_share", (double)r.bytes / b->bytes, "ratio");
    put(k, "index_ms", (sealed - begin) / 1e6, "ms");
    if (k == kinds) {           /* later kinds reuse the memory */
        put(k, "bytes_per_block",
            (double)(resident() - before) / n_blocks, "bytes");
    }
    kt_reader_deinit(&r);
}

int main(int argc, char **argv)
{
    g_autoptr(GOptionContext) ctx = g_option_context_new(NULL);
    g_autoptr(GError) err = NULL;
    g_autoptr(GRand) rand = g_rand_new_with_seed(2);
    Bench b = { 0 };

    g_option_context_add_main_entries(ctx, options, NULL);
    if (!g_option_context_parse(ctx, &argc, &argv, &err)) {
        fprintf(stderr, "bench-leak: %s\n", err->message);
        return 2;
    }
    if (n_blocks < 1 || block_size < 16 || block_size % 8) {
        fprintf(stderr, "bench-leak: at least one block, of at least 16 "
                        "bytes, and a multiple of 8\n");
        return 2;
    }
    b.bytes = PAGE + (uint64_t)n_blocks * block_size;
    b.word = g_malloc(b.bytes);
    make_order(&b, rand);
    for (unsigned i = 0; i < G_N_ELEMENTS(kinds); i++) {
        fill(&b, &kinds[i]);
        scan(&b, &kinds[i]);
    }
    g_free(b.order);
    g_free(b.word);
    return 0;
}
