/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka map: how full each piece of the address space is.
 *
 * Called through mc_run(). Blocks are visited in batches, the tracer's lock is
 * held for one batch. A second walk lists the blocks of the chosen cells, for
 * ka report.
 */
#include "monitor-cmds/commands/commands.h"

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

/* ---- rows ---------------------------------------------------------------- */

typedef struct CellRow {
    const McMapCell *c;
    const char *space, *cache, *caller;
} CellRow;

#define C(key_, member_, look_, help_, ...) \
    MC_VIA(key_, CellRow, c, member_, look_, NULL, help_, __VA_ARGS__)

static const McObject cell_object = MC_OBJECT("map_cell",
    "ka map: a piece of the address space that has blocks",
    C("va", va, HEX, "its address"),
    MC_COLUMN(CellRow, space, TEXT, NULL, "direct, vmalloc or percpu"),
    C("live", live, NUMBER, "bytes of live objects"),
    C("pages", pages, NUMBER, "bytes of live blocks of the page allocator"),
    C("freed", freed, NUMBER, "bytes of freed blocks"),
    C("blocks", blocks, NUMBER, "live blocks that begin here"),
    C("oldest_us", oldest_us, NUMBER,
      "when the oldest live one was allocated", .flags = MC_MOST),
    MC_COLUMN(CellRow, cache, TEXT, NULL,
              "in brackets: a layer; of most of these bytes, or one of many "
              "if none has more than half"),
    MC_COLUMN(CellRow, caller, TEXT, NULL, "likewise"),
    C("listed", listed, NUMBER, "1 if the blocks that begin here follow"));

typedef struct BlockRow {
    const KtBlock *b;
    const char *space, *state, *cache, *caller;
    bool pages;
} BlockRow;

#define B(key_, member_, look_, help_) \
    MC_VIA(key_, BlockRow, b, member_, look_, NULL, help_)

static const McObject block_object = MC_OBJECT("map_block",
    "ka map: a block of a listed cell",
    B("va", va, HEX, "its address"),
    MC_COLUMN(BlockRow, space, TEXT, NULL, "as in map_cell"),
    MC_COLUMN(BlockRow, state, TEXT, NULL,
              "A, F, or R if kfree_rcu() queued it"),
    B("requested", requested, NUMBER, "bytes that were requested"),
    B("actual", actual, NUMBER, "bytes that the allocator reserved"),
    MC_COLUMN(BlockRow, pages, NUMBER, NULL,
              "1 if it is of the page allocator"),
    B("us", alloc_us, NUMBER, "time of the allocation"),
    MC_COLUMN(BlockRow, cache, TEXT, NULL, "as in map_cell"),
    MC_COLUMN(BlockRow, caller, TEXT, NULL, "as in map_cell"));

typedef struct SumRow {
    unsigned cells;
    uint64_t cell_bytes, kib;
    uint64_t blocks, live;
} SumRow;

static void put_live(McOut *o, GString *s, const void *row, bool json)
{
    mc_put_bytes(o, s, ((const SumRow *)row)->live);
}

static const McObject sum_object = MC_LINE_OBJECT("map", "ka map, at the end",
    MC_COLUMN(SumRow, cells, NUMBER, "% cells", "number of cells"),
    MC_COLUMN(SumRow, cell_bytes, NUMBER, NULL, "size of each"),
    MC_KEY(NULL, SumRow, kib, NUMBER, " of % KiB have blocks: ", NULL),
    MC_COLUMN(SumRow, blocks, NUMBER, "% live blocks",
              "live blocks, pages included"),
    MC_COLUMN(SumRow, live, NUMBER, NULL, "their bytes"),
    MC_PUT(NULL, put_live, ", %", NULL));

MC_OBJECTS(mc_map_objects, &cell_object, &block_object, &sum_object);

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

    mc_print(out, &cell_object, &(CellRow) {
        c, mc_space_name(space), cache, caller });
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

    mc_print(out, &block_object, &(BlockRow) {
        b, mc_space_name(mc_space_of(b->layer)), state, cache, caller,
        b->layer == KT_LAYER_PAGES });
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
    g_string_append_printf(out->line, "%016" PRIx64 " %s  ",
                           (line * LINE_CELLS) << m->shift, text);
    if (out->exact) {
        mc_put_decimal(out->line, live);
    } else {
        mc_put_size(out->line, live);
    }
    mc_out_end_line(out);
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
    mc_print(out, &sum_object, &(SumRow) {
        mc_heap_map_cells(m), (uint64_t)1 << m->shift,
        (uint64_t)1 << m->shift >> 10, m->blocks, m->live });
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
