/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Callers of many blocks: what a listing prints instead of thousands of lines.
 *
 * Called by the listings (blocks.c), on the command's thread. A caller is the
 * leaf frame of a stack, as in ka top.
 */
#include "monitor-cmds/commands/commands.h"

/* Callers are printed until these percent of the blocks are theirs, but at most
 * so many. */
#define MOST_PERCENT 90
#define MOST_CALLERS 10

typedef struct Caller {
    uint64_t number;        /* mc_top_caller_number() */
    McFrame frame;
    uint64_t blocks;
    uint64_t bytes;
} Caller;

struct McCallers {
    GHashTable *by_number;
    uint64_t blocks;
};

McCallers *mc_callers_new(void)
{
    McCallers *c = g_new0(McCallers, 1);

    c->by_number = g_hash_table_new_full(gs_number_hash, g_int64_equal, NULL,
                                     g_free);
    return c;
}

void mc_callers_free(McCallers *c)
{
    if (c) {
        g_hash_table_unref(c->by_number);
        g_free(c);
    }
}

void mc_callers_add(McCallers *c, KtTracer *t, KtStackId stack,
                    const KtBlock *b)
{
    McStack frames = mc_stack(t, stack);
    McFrame frame = mc_caller(&frames);
    uint64_t number = mc_top_caller_number(frame.pc, frame.era);
    Caller *caller = g_hash_table_lookup(c->by_number, &number);

    if (!caller) {
        caller = g_new0(Caller, 1);
        caller->number = number;
        caller->frame = frame;
        g_hash_table_insert(c->by_number, &caller->number, caller);
    }
    caller->blocks++;
    caller->bytes += kt_block_len(b);
    c->blocks++;
}

uint64_t mc_callers_blocks(const McCallers *c)
{
    return c->blocks;
}

static gint by_blocks(gconstpointer a, gconstpointer b)
{
    const Caller *x = *(Caller *const *)a, *y = *(Caller *const *)b;

    if (x->blocks != y->blocks) {
        return x->blocks > y->blocks ? -1 : 1;
    }
    return x->frame.pc < y->frame.pc ? -1 : x->frame.pc > y->frame.pc;
}

/* Return (owned) the callers, the one with the most blocks first. */
static GPtrArray *sorted(const McCallers *c)
{
    GPtrArray *list = g_ptr_array_new();
    GHashTableIter it;
    gpointer caller;

    g_hash_table_iter_init(&it, c->by_number);
    while (g_hash_table_iter_next(&it, NULL, &caller)) {
        g_ptr_array_add(list, caller);
    }
    g_ptr_array_sort(list, by_blocks);
    return list;
}

MC_GETTER(caller)
{
    v->frame = ((const Caller *)row)->frame;
    return true;
}

/* Only in text: JSON has all blocks. */
static const McObject caller_object = {
    .columns = { (const McColumn[]) {
        MC_COLUMN(Caller, blocks, NUMBER, "%", NULL, .head = "blocks"),
        MC_COLUMN(Caller, bytes, NUMBER, "%", NULL, .head = "size",
                  .unit = MC_SIZE),
        MC_GET(NULL, get_caller, CALLER, "%", NULL, .head = "caller"),
        MC_END } },
    .is_table = true,
};

void mc_callers_print(McOut *out, const McCallers *c)
{
    g_autoptr(GPtrArray) list = sorted(c);
    uint64_t shown = 0;
    unsigned i, others;

    for (i = 0; i < MIN(list->len, MOST_CALLERS) &&
                shown < c->blocks * MOST_PERCENT / 100; i++) {
        const Caller *caller = list->pdata[i];

        mc_print(out, &caller_object, caller);
        shown += caller->blocks;
    }
    others = list->len - i;
    if (others) {
        mc_out_printf(out, "%6" PRIu64 " blocks of %u other %s",
                      c->blocks - shown, others,
                      others == 1 ? "caller" : "callers");
    }
}
