/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka show: print the block that contains an address, and its neighbours.
 *
 * Called through mc_run(). The block and its neighbours are copied under one
 * hold of the tracer's lock, so they are of the same moment. Past lives are
 * copied afterwards.
 */
#include "monitor-cmds/commands/commands.h"
#include "monitor-cmds/output/block-row.h"

#include <string.h>

#define AROUND_DEFAULT 4
#define AROUND_MAX 1000

/**
 * struct View - what is printed
 * @before: KtBlock, neighbours below, the nearest first
 * @after: KtBlock, neighbours above, the nearest first
 * @empty: there is no block at all
 */
typedef struct View {
    KtBlock hit;
    bool has_hit;
    GArray *before;
    GArray *after;
    bool empty;
    uint64_t past;
} View;

/** struct MissRow - no block contains @va */
typedef struct MissRow {
    uint64_t va;
} MissRow;

MC_GETTER(no_hit)
{
    v->s = "> -";
    return true;
}

static const McObject miss_object = MC_OBJECT("miss",
    "ka show: no block contains the address",
    MC_GET(NULL, get_no_hit, TEXT, "%-*no block at ", NULL),
    MC_COLUMN(MissRow, va, ADDRESS, "%", "the address"));

typedef struct PastRow {
    uint64_t va, past_lives;
} PastRow;

static const McObject past_object = MC_OBJECT("past",
    "ka show: past lives of the address",
    MC_COLUMN(PastRow, va, ADDRESS, NULL, "the address"),
    MC_COLUMN(PastRow, past_lives, NUMBER, "% past {life|lives} of ",
              "their number"),
    MC_KEY(NULL, PastRow, va, ADDRESS, "%", NULL),
    MC_KEY(NULL, PastRow, past_lives, NUMBER, ", --history prints {it|them}",
           NULL));

MC_OBJECTS(mc_show_objects, &miss_object, &past_object, &mc_mapping_object);

static void view_init(View *v)
{
    *v = (View) {
        .before = g_array_new(FALSE, FALSE, sizeof(KtBlock)),
        .after = g_array_new(FALSE, FALSE, sizeof(KtBlock)),
    };
}

static void view_deinit(View *v)
{
    g_clear_pointer(&v->before, g_array_unref);
    g_clear_pointer(&v->after, g_array_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(View, view_deinit)

static bool count_past(const KtBlock *b, void *opaque)
{
    ++*(uint64_t *)opaque;
    return true;
}

static void find_neighbours(KtTracer *t, View *v, uint64_t va, unsigned n)
{
    uint64_t below = v->has_hit ? v->hit.va : va;
    uint64_t above = below;
    KtBlock b;

    while (v->before->len < n && kt_query_prev(t, below, &b) &&
           b.va < below) {
        g_array_append_val(v->before, b);
        below = b.va;
    }
    while (v->after->len < n && kt_query_next(t, above, &b) && b.va > above) {
        g_array_append_val(v->after, b);
        above = b.va;
    }
}

static void look(KtTracer *t, View *v, uint64_t va, unsigned n)
{
    kt_query_begin(t);
    v->has_hit = kt_query_find(t, va, &v->hit);
    find_neighbours(t, v, va, MAX(n, 1));
    v->empty = !v->has_hit && !v->before->len && !v->after->len;
    g_array_set_size(v->before, MIN(v->before->len, n));
    g_array_set_size(v->after, MIN(v->after->len, n));
    kt_query_history(t, va, count_past, &v->past);
    kt_query_end(t);
}

static void print_view(McOut *out, const View *v, uint64_t va)
{
    mc_set_margin(out, v->has_hit ? va - v->hit.va : 0);
    out->width[0] = out->margin;
    for (unsigned i = v->before->len; i-- > 0;) {
        mc_print_block(out, &g_array_index(v->before, KtBlock, i));
    }
    if (v->has_hit) {
        mc_print(out, &mc_block_object, &(McBlockRow) {
            .block = &v->hit, .hit = true, .offset = va - v->hit.va });
    } else {
        mc_print(out, &miss_object, &(MissRow) { va });
    }
    for (unsigned i = 0; i < v->after->len; i++) {
        mc_print_block(out, &g_array_index(v->after, KtBlock, i));
    }
}

bool mc_cmd_show(McOut *out, const McArgs *args, GError **errp)
{
    uint64_t n = mc_given(args, MC_OPT_LIMIT) ? args->around : AROUND_DEFAULT;
    uint64_t va = args->va.lo;
    g_auto(View) v;

    view_init(&v);
    if (n > AROUND_MAX) {
        return mc_fail_syntax(errp, "\"%s\": ka show prints 0 to %d neighbours "
                              "on each side", mc_options[MC_OPT_LIMIT].spelling,
                              AROUND_MAX);
    }
    look(out->ctx->tracer, &v, va, n);
    print_view(out, &v, va);
    if (mc_given(args, MC_OPT_HISTORY)) {
        mc_print_history(out, va, v.has_hit ? &v.hit : NULL);
    } else if (v.past) {
        mc_print(out, &past_object, &(PastRow) { va, v.past });
    } else if (v.empty) {
        g_autofree char *why = mc_why_nothing(out);

        mc_remarkf(out, "no blocks at all%s", why);
    }
    mc_print_mapping(out, va, mc_given(args, MC_OPT_HISTORY));
    return true;
}
