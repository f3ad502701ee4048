/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka map: how full each piece of the address space is.
 *
 * Called through mc_run(). Blocks are visited in batches, the tracer's lock is
 * held for one batch. A second walk lists the blocks of the chosen cells, for
 * ka report.
 */
#include "monitor-cmds/commands/block-walk.h"
#include "monitor-cmds/commands/commands.h"
#include "monitor-cmds/commands/heap-map.h"

#include <string.h>

/* Lines of text without -n, and cells of a line. */
#define LINES       40
#define LINE_CELLS  64

/** struct Walk - @rows: KtBlock, of this batch: those to print */
typedef struct Walk {
    McOut *out;
    McHeapMap *map;
    GArray *rows;
    McBlockWalk blocks;
} Walk;

static void walk_batch(Walk *w)
{
    KtTracer *t = w->out->ctx->tracer;

    w->blocks.opaque = w;
    kt_query_begin(t);
    mc_block_walk_batch(&w->blocks, t);
    kt_query_end(t);
}

/* ---- the map ------------------------------------------------------------- */

static void add_block(void *opaque, const KtBlock *b)
{
    const Walk *w = opaque;
    McStack stack = mc_stack(w->out->ctx->tracer, b->alloc_stack);
    McFrame frame = mc_caller(&stack);

    mc_heap_map_add(w->map, b, mc_top_caller_number(frame.pc, frame.era));
}

static bool choose_error(const KtError *e, void *opaque)
{
    McHeapMap *m = opaque;

    for (unsigned s = 0; s < MC_SPACE__COUNT; s++) {
        McMapCell *c = mc_heap_map_at(m, s, e->has_block ? e->block.va : e->va);

        if (c) {
            c->listed = true;
        }
    }
    return true;
}

/* Return (owned) the map of all blocks. */
static McHeapMap *make_map(McOut *out)
{
    McHeapMap *m = mc_heap_map_new(MC_MAP_CELLS);
    Walk w = { .out = out, .map = m, .blocks.visit = add_block };

    do {
        walk_batch(&w);
    } while (w.blocks.stopped && !out->closed);
    kt_query_begin(out->ctx->tracer);
    kt_query_errors(out->ctx->tracer, 0, UINT64_MAX, choose_error, m);
    kt_query_end(out->ctx->tracer);
    mc_heap_map_choose(m, MC_MAP_BLOCKS);
    return m;
}

/* ---- JSON ---------------------------------------------------------------- */

/* Return (owned) the name of a cache, or of a layer in brackets. */
static char *cache_name(McOut *out, uint32_t cache, KtLayer layer)
{
    KtCacheInfo info;

    return cache && kt_tracer_cache(out->ctx->tracer, (KtCacheId) { cache },
                                    &info) && info.name ?
           g_strdup(info.name) :
           g_strdup_printf("[%s]", kt_layer_name(layer));
}

/* Return (owned) the caller of a stack, with its name if names are printed. */
static char *caller_name(McOut *out, uint32_t stack)
{
    McStack frames = mc_stack(out->ctx->tracer, (KtStackId) { stack });
    McFrame frame = mc_caller(&frames);
    g_autoptr(GString) s = g_string_new(NULL);

    if (!frame.pc) {
        return NULL;
    }
    mc_put_pc(s, out->symbols, &frame);
    return g_string_free(g_steal_pointer(&s), FALSE);
}

static void json_cell(McOut *out, const McMapCell *c, McSpace space)
{
    g_autofree char *cache = cache_name(out, c->cache.id,
                                        (KtLayer)(c->cache.key & 0xff));
    g_autofree char *caller = caller_name(out, c->caller.id);

    out->format->sum(out, MC_OBJ_MAP_CELL, (McStat[]) {
        { .key = "va", .u = c->va, .hex = true },
        { .key = "space", .s = mc_space_name(space) },
        { .key = "live", .u = c->live },
        { .key = "pages", .u = c->pages },
        { .key = "freed", .u = c->freed },
        { .key = "blocks", .u = c->blocks },
        { .key = "oldest_us", .u = c->oldest_us,
          .unknown = c->oldest_us == UINT64_MAX },
        { .key = "cache", .s = cache },
        { .key = "caller", .s = caller, .unknown = !caller },
        { .key = "listed", .u = c->listed },
    }, 10, NULL);
}

static void keep_block(void *opaque, const KtBlock *b)
{
    const Walk *w = opaque;
    const McMapCell *c = mc_heap_map_at(w->map, mc_space_of(b->layer), b->va);

    if (c && c->listed) {
        g_array_append_vals(w->rows, b, 1);
    }
}

static void json_block(McOut *out, const KtBlock *b)
{
    g_autofree char *cache = cache_name(out, b->cache.v, b->layer);
    g_autofree char *caller = caller_name(out, b->alloc_stack.v);
    const char *state = b->state == KT_BLOCK_FREED ? "F" :
                        b->rcu_queued ? "R" : "A";

    out->format->sum(out, MC_OBJ_MAP_BLOCK, (McStat[]) {
        { .key = "va", .u = b->va, .hex = true },
        { .key = "space", .s = mc_space_name(mc_space_of(b->layer)) },
        { .key = "state", .s = state },
        { .key = "requested", .u = b->requested },
        { .key = "actual", .u = b->actual },
        { .key = "pages", .u = b->layer == KT_LAYER_PAGES },
        { .key = "us", .u = b->alloc_us },
        { .key = "cache", .s = cache },
        { .key = "caller", .s = caller, .unknown = !caller },
    }, 9, NULL);
}

static void json_blocks(McOut *out, McHeapMap *m)
{
    g_autoptr(GArray) rows = g_array_new(FALSE, FALSE, sizeof(KtBlock));
    Walk w = {
        .out = out, .map = m, .rows = rows, .blocks.visit = keep_block,
    };

    do {
        g_array_set_size(rows, 0);
        walk_batch(&w);
        for (unsigned i = 0; i < rows->len && !out->closed; i++) {
            json_block(out, &g_array_index(rows, KtBlock, i));
        }
    } while (w.blocks.stopped && !out->closed);
}

static void json_map(McOut *out, McHeapMap *m)
{
    for (unsigned s = 0; s < MC_SPACE__COUNT; s++) {
        for (unsigned i = 0; i < m->cell[s]->len && !out->closed; i++) {
            json_cell(out, &g_array_index(m->cell[s], McMapCell, i), s);
        }
    }
    json_blocks(out, m);
}

/* ---- text ---------------------------------------------------------------- */

/* Return the letter of a cell: tenths in use. */
static char letter_of(const McHeapMap *m, const McMapCell *c)
{
    uint64_t size = 1ull << m->shift;
    uint64_t tenths = c->live / MAX(size / 10, 1);

    if (c->live) {
        return tenths > 9 ? '#' : tenths ? '0' + (char)tenths : '1';
    }
    return c->pages ? 'p' : c->freed ? '.' : '-';
}

/* Print the cells of one line, from number @i on. Return the number of the
 * first one behind it. */
static unsigned text_line(McOut *out, const McHeapMap *m, McSpace space,
                          unsigned i)
{
    const GArray *cells = m->cell[space];
    uint64_t number = g_array_index(cells, McMapCell, i).va >> m->shift;
    uint64_t line = number / LINE_CELLS, live = 0;
    char text[LINE_CELLS + 1];

    memset(text, ' ', LINE_CELLS);
    text[LINE_CELLS] = 0;
    for (; i < cells->len; i++) {
        const McMapCell *c = &g_array_index(cells, McMapCell, i);

        number = c->va >> m->shift;
        if (number / LINE_CELLS != line) {
            break;
        }
        text[number % LINE_CELLS] = letter_of(m, c);
        live += c->live ? c->live : c->pages;
    }
    mc_out_printf(out, "%016" PRIx64 " %s %" PRIu64,
                  (line * LINE_CELLS) << m->shift, text, live);
    return i;
}

static void text_map(McOut *out, const McArgs *args, const McHeapMap *m)
{
    uint64_t most = mc_given(args, MC_OPT_LIMIT) ? args->limit : LINES;
    uint64_t shown = 0, more = 0;

    for (unsigned s = 0; s < MC_SPACE__COUNT; s++) {
        for (unsigned i = 0; i < m->cell[s]->len && !out->closed;) {
            if (shown == most) {
                more += m->cell[s]->len - i;
                break;
            }
            i = text_line(out, m, s, i);
            shown++;
        }
    }
    if (more) {
        mc_out_printf(out, "%" PRIu64 " more cells; -n 0 prints all", more);
    }
}

static void print_sum(McOut *out, const McHeapMap *m)
{
    unsigned cells = mc_heap_map_cells(m);
    g_autofree char *text = g_strdup_printf(
        "%u cells of %" PRIu64 " KiB have blocks: %" PRIu64 " live blocks, %"
        PRIu64 " bytes", cells, (uint64_t)1 << m->shift >> 10, m->blocks,
        m->live);

    out->format->sum(out, MC_OBJ_MAP, (McStat[]) {
        { .key = "cells", .u = cells },
        { .key = "cell_bytes", .u = 1ull << m->shift },
        { .key = "blocks", .u = m->blocks },
        { .key = "live", .u = m->live },
    }, 4, text);
}

bool mc_cmd_map(McOut *out, const McArgs *args, GError **errp)
{
    g_autoptr(McHeapMap) m = make_map(out);

    if (mc_given(args, MC_OPT_JSON)) {
        json_map(out, m);
    } else {
        text_map(out, args, m);
    }
    print_sum(out, m);
    return true;
}
