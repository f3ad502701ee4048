/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Write a journal of synthetic events, to measure exports. Two of three events
 * are of a few blocks that live short, as in a kernel; the stacks form a tree.
 *
 *     bench-journal --file FILE [--events N] [--live N] [--stacks N]
 */
#include <inttypes.h>

#include "tests/lib/events.h"

#define TEXT        0xffffffff81000000ull
#define FUNCTIONS   4000
#define FUNCTION    0x400
#define BLOCKS      0xffff888000000000ull
#define STEP        0x1000
#define DEPTH       14
#define CACHES      100
#define YOUNG       64          /* blocks that are freed soon */

static char *file;
static int n_events = 10000000;
static int n_live = 100000;
static int n_stacks = 20000;

static GOptionEntry options[] = {
    { "file", 0, 0, G_OPTION_ARG_FILENAME, &file, "the journal", "FILE" },
    { "events", 0, 0, G_OPTION_ARG_INT, &n_events, "events", "N" },
    { "live", 0, 0, G_OPTION_ARG_INT, &n_live, "live blocks", "N" },
    { "stacks", 0, 0, G_OPTION_ARG_INT, &n_stacks, "backtraces", "N" },
    { NULL },
};

/** struct Run - @live: which blocks are live */
typedef struct Run {
    KtTracer *t;
    GRand *rand;
    KtStackId *stack;
    KtCacheId cache[CACHES];
    KtTaskId task;
    bool *live;
    uint64_t us;
} Run;

/* Return (owned) the kernel's symbols as a script. */
static char *symbols(void)
{
    GString *s = g_string_new("symbol va=ffffffff81000000 name=_stext\n");

    for (unsigned i = 0; i < FUNCTIONS; i++) {
        g_string_append_printf(s, "symbol va=%" PRIx64 " name=function_%u\n",
                               (uint64_t)TEXT + FUNCTION * (i + 1), i);
    }
    g_string_append_printf(s, "symbol va=%" PRIx64 " name=_etext\n"
                           "symbol va=ffffffff82001000 name=_end type=B\n"
                           "complete\nkernel\n",
                           (uint64_t)TEXT + FUNCTION * (FUNCTIONS + 1));
    return g_string_free(s, FALSE);
}

/* The frame of a stack at a depth: neighbours share their outer frames. */
static uint64_t frame_of(unsigned stack, unsigned depth)
{
    const unsigned shared = depth > 3 ? stack >> (depth - 3) : stack;

    return TEXT + FUNCTION * (1 + (shared * 2654435761u + depth * 97) %
                              FUNCTIONS) + 0x10 + depth;
}

static void add_definitions(Run *run)
{
    static const char comm[16] = "worker";

    for (int i = 0; i < n_stacks; i++) {
        uint64_t pc[DEPTH];

        for (unsigned d = 0; d < DEPTH; d++) {
            pc[d] = frame_of(i, d);
        }
        run->stack[i] = kt_tracer_intern_stack(run->t, pc, DEPTH, GS_STOP_END);
    }
    for (unsigned i = 0; i < CACHES; i++) {
        g_autofree char *name = g_strdup_printf("cache-%u", i);

        run->cache[i] = kt_tracer_add_cache(run->t, 0xffff888000c00000 + i,
                                            name, 64 * (i + 1), 64 * (i + 1));
    }
    run->task = kt_tracer_intern_task(run->t, 7, comm);
}

/* Push the next event of a block: an allocation if it is free. */
static void push(Run *run, unsigned block)
{
    const unsigned kind = block % CACHES;
    const uint64_t size = 64 * (kind + 1);

    kt_tracer_push(run->t, 0, &(KtEvent) {
        .kind = run->live[block] ? KT_EV_FREE : KT_EV_ALLOC,
        .va = BLOCKS + (uint64_t)block * 2 * STEP, .us = run->us++,
        .size = run->live[block] ? 0 : size,
        .actual = run->live[block] ? 0 : size,
        .layer = KT_LAYER_CACHE, .family = KT_FAMILY_ANY,
        .cache = run->cache[kind], .task = run->task,
        .stack = run->stack[g_rand_int(run->rand) % n_stacks],
    });
    run->live[block] = !run->live[block];
}

static void push_events(Run *run)
{
    for (int i = 0; i < n_events; i++) {
        const bool young = i >= n_live && i % 3;

        push(run, i < n_live ? (unsigned)i :
             young ? g_rand_int(run->rand) % YOUNG :
             g_rand_int(run->rand) % (2 * n_live));
    }
}

int main(int argc, char **argv)
{
    g_autoptr(GOptionContext) context = g_option_context_new(NULL);
    g_autoptr(GError) err = NULL;
    g_autofree char *script = symbols();
    g_autoptr(TestWorld) world = NULL;
    Run run = { 0 };

    g_option_context_add_main_entries(context, options, NULL);
    if (!g_option_context_parse(context, &argc, &argv, &err) || !file) {
        g_printerr("bench-journal: %s\n", err ? err->message : "no --file");
        return 2;
    }
    world = test_world_new_at(script, file);
    run.t = test_world_tracer(world);
    run.rand = g_rand_new_with_seed(1);
    run.stack = g_new(KtStackId, n_stacks);
    run.live = g_new0(bool, 2 * n_live);
    add_definitions(&run);
    push_events(&run);
    g_free(run.live);
    g_free(run.stack);
    g_rand_free(run.rand);
    return 0;
}
