/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Differential fuzzer of the map: the same random events for the tracer and for
 * the naive model.
 *
 * Each round of events has its own seed and one of several kinds. A difference
 * aborts the program, after a line with the seed. --seed N --operations 1 runs
 * only that round again.
 *
 * usage: model-diff [--operations N] [--seed N] [--tap]
 */
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include <glib.h>

#include "tests/lib/naive-run.h"

#define ROUND_OPS   4000
#define EVERY       250     /* events between comparisons */

/* The bytes of an event: see naive-run.c. */
enum { OP, VA_HIGH, VA_LOW, SIZE, ACTUAL, STACK, CPU, KIND };

#define PAGES_LAYER (6 << 2)
#define PAGES_FREE  (5 << 5)

/* No clear, no reset, no gap. */
static void calm(GRand *r, uint8_t *op)
{
    op[OP] &= 0x7f;
}

/* Rarely a clear, a reset or a gap. */
static void wild(GRand *r, uint8_t *op)
{
    if (g_rand_int_range(r, 0, 100)) {
        op[OP] &= 0x7f;
    }
}

/* As many small blocks side by side as possible. */
static void crowded(GRand *r, uint8_t *op)
{
    op[OP] &= 0x7f;
    op[SIZE] &= 3;
    op[ACTUAL] &= 0xfe;
    op[VA_HIGH] |= 0x80;
}

/* The page allocator: frees of parts of a block, bulk calls. */
static void pages(GRand *r, uint8_t *op)
{
    op[OP] &= 0x7f;
    op[VA_HIGH] = (op[VA_HIGH] & 3) | 0x60;
    op[SIZE] = op[SIZE] & 1 ? 0xf3 : 0xf4;
    op[ACTUAL] &= 0xfe;
    op[KIND] = (op[KIND] & 3) | PAGES_LAYER | PAGES_FREE;
}

/* Slabs on pages: blocks of both layers at the same addresses. */
static void layered(GRand *r, uint8_t *op)
{
    if (g_rand_boolean(r)) {
        pages(r, op);
    } else {
        calm(r, op);
        op[VA_HIGH] = (op[VA_HIGH] & 3) | 0x60;
    }
}

/* Accesses among small blocks. */
static void accesses(GRand *r, uint8_t *op)
{
    crowded(r, op);
    if (!g_rand_int_range(r, 0, 4)) {
        op[OP] = 0xf9;
    }
}

typedef void Bias(GRand *r, uint8_t *op);

static Bias *const biases[] = { calm, wild, crowded, pages, layered,
                               accesses };

static size_t one_round(uint64_t seed)
{
    g_autoptr(GRand) r = g_rand_new_with_seed_array(
        (guint32[]) { seed, seed >> 32 }, 2);
    g_autofree uint8_t *data = g_malloc(ROUND_OPS * NAIVE_OP_BYTES);
    Bias *bias = biases[seed % G_N_ELEMENTS(biases)];

    for (unsigned i = 0; i < ROUND_OPS * NAIVE_OP_BYTES; i += 4) {
        guint32 word = g_rand_int(r);

        memcpy(data + i, &word, sizeof(word));
    }
    for (unsigned i = 0; i < ROUND_OPS; i++) {
        bias(r, data + i * NAIVE_OP_BYTES);
    }
    /* Half of the rounds are complete: unknown frees are errors. */
    data[0] = 0xfd;
    return naive_run(data, ROUND_OPS * NAIVE_OP_BYTES, EVERY);
}

/* Seed of the current round, for the line that is printed on a failure. */
static uint64_t now_seed;

static void tell_seed(int number)
{
    static const char begin[] = "model-diff: failed with --seed ";
    char digits[24];
    char *p = digits + sizeof(digits);

    signal(number, SIG_DFL);
    *--p = '\n';
    for (uint64_t v = now_seed; p == digits + sizeof(digits) - 1 || v;
         v /= 10) {
        *--p = '0' + v % 10;
    }
    if (write(STDERR_FILENO, begin, sizeof(begin) - 1) < 0 ||
        write(STDERR_FILENO, p, digits + sizeof(digits) - p) < 0) {
        return;
    }
}

static void show(uint64_t done, uint64_t wanted)
{
    if (isatty(STDERR_FILENO)) {
        g_printerr("\r%" PRIu64 " of %" PRIu64 " million operations",
                   done / 1000000, wanted / 1000000);
    }
}

static uint64_t run(uint64_t seed, uint64_t wanted)
{
    uint64_t done = 0;

    for (now_seed = seed; done < wanted; now_seed++) {
        done += one_round(now_seed);
        if ((now_seed - seed) % 100 == 99) {
            show(done, wanted);
        }
    }
    return done;
}

int main(int argc, char **argv)
{
    gint64 operations = 10 * 1000 * 1000;
    gint64 seed = 1;
    gboolean tap = FALSE;
    const GOptionEntry entries[] = {
        { "operations", 0, 0, G_OPTION_ARG_INT64, &operations,
          "how many events, 10000000 unless told", "N" },
        { "seed", 0, 0, G_OPTION_ARG_INT64, &seed,
          "of the first round, 1 unless told", "N" },
        { "tap", 0, 0, G_OPTION_ARG_NONE, &tap, "the result as TAP", NULL },
        G_OPTION_ENTRY_NULL
    };
    g_autoptr(GOptionContext) context = g_option_context_new(NULL);
    g_autoptr(GError) err = NULL;
    uint64_t done;
    gint64 begin = g_get_monotonic_time();

    g_option_context_add_main_entries(context, entries, NULL);
    if (!g_option_context_parse(context, &argc, &argv, &err)) {
        g_printerr("model-diff: %s\n", err->message);
        return 2;
    }
    signal(SIGABRT, tell_seed);
    signal(SIGSEGV, tell_seed);
    done = run(seed, MAX(operations, 1));
    g_print("%s: clean: %" PRIu64 " operations, %" PRId64 " s\n",
            tap ? "1..1\nok 1 - model-diff" : "model-diff", done,
            (g_get_monotonic_time() - begin) / G_USEC_PER_SEC);
    return 0;
}
