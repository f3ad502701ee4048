/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Heap map: see commands.h. */
#include "monitor-cmds/commands/commands.h"

#include <string.h>

const char *mc_space_name(McSpace space)
{
    static const char *const names[MC_SPACE__COUNT] = {
        [MC_SPACE_DIRECT] = "direct",
        [MC_SPACE_VMALLOC] = "vmalloc",
        [MC_SPACE_PERCPU] = "percpu",
    };

    return names[space];
}

McSpace mc_space_of(KtLayer layer)
{
    return layer == KT_LAYER_VMALLOC ? MC_SPACE_VMALLOC :
           layer == KT_LAYER_PERCPU ? MC_SPACE_PERCPU : MC_SPACE_DIRECT;
}

McHeapMap *mc_heap_map_new(unsigned max)
{
    McHeapMap *m = g_new0(McHeapMap, 1);

    m->shift = MC_MAP_SHIFT;
    m->max = max;
    for (unsigned i = 0; i < MC_SPACE__COUNT; i++) {
        m->cell[i] = g_array_new(FALSE, FALSE, sizeof(McMapCell));
    }
    return m;
}

void mc_heap_map_free(McHeapMap *m)
{
    if (!m) {
        return;
    }
    for (unsigned i = 0; i < MC_SPACE__COUNT; i++) {
        g_array_unref(m->cell[i]);
    }
    g_free(m);
}

unsigned mc_heap_map_cells(const McHeapMap *m)
{
    unsigned n = 0;

    for (unsigned i = 0; i < MC_SPACE__COUNT; i++) {
        n += m->cell[i]->len;
    }
    return n;
}

static McMapCell *cell_at(const GArray *cells, unsigned i)
{
    return &g_array_index(cells, McMapCell, i);
}

/* ---- what most of a cell is of ------------------------------------------- */

/* Count bytes for a key: the algorithm of Boyer and Moore. It keeps a key that
 * has more than half of all bytes. */
static void count_most(McMost *m, const McMost *add)
{
    if (!m->weight) {
        *m = *add;
    } else if (m->key == add->key) {
        m->weight += add->weight;
    } else if (m->weight >= add->weight) {
        m->weight -= add->weight;
    } else {
        uint64_t left = add->weight - m->weight;

        *m = *add;
        m->weight = left;
    }
}

/* Objects are what a cell is of, then pages, then freed blocks. */
static unsigned rank_of(const KtBlock *b)
{
    return b->state == KT_BLOCK_FREED ? 1 :
           b->layer == KT_LAYER_PAGES ? 2 : 3;
}

static void count_owner(McMapCell *c, unsigned rank, const McMost *cache,
                        const McMost *caller)
{
    if (rank < c->rank) {
        return;
    }
    if (rank > c->rank) {
        c->rank = rank;
        c->cache.weight = c->caller.weight = 0;
    }
    count_most(&c->cache, cache);
    count_most(&c->caller, caller);
}

/* ---- coarser cells ------------------------------------------------------- */

static void merge_into(McMapCell *to, const McMapCell *from)
{
    to->live += from->live;
    to->pages += from->pages;
    to->freed += from->freed;
    to->blocks += from->blocks;
    to->begin += from->begin;
    to->oldest_us = MIN(to->oldest_us, from->oldest_us);
    count_owner(to, from->rank, &from->cache, &from->caller);
}

static void double_size(McHeapMap *m)
{
    m->shift++;
    for (unsigned s = 0; s < MC_SPACE__COUNT; s++) {
        GArray *cells = m->cell[s];
        unsigned n = 0;

        for (unsigned i = 0; i < cells->len; i++) {
            McMapCell c = *cell_at(cells, i);

            c.va = c.va >> m->shift << m->shift;
            if (n && cell_at(cells, n - 1)->va == c.va) {
                merge_into(cell_at(cells, n - 1), &c);
            } else {
                *cell_at(cells, n++) = c;
            }
        }
        g_array_set_size(cells, n);
    }
}

/* ---- adding -------------------------------------------------------------- */

/* Return the index of the first cell at @va or behind it. */
static unsigned find_index(const GArray *cells, uint64_t va)
{
    unsigned lo = 0, hi = cells->len;

    if (hi && cell_at(cells, hi - 1)->va < va) {
        return hi;
    }
    while (lo < hi) {
        unsigned mid = lo + (hi - lo) / 2;

        if (cell_at(cells, mid)->va < va) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

/* Return the cell at the index, which is that of @va; make it if it is new. */
static McMapCell *need_cell(GArray *cells, unsigned i, uint64_t va)
{
    const McMapCell new = { .va = va, .oldest_us = UINT64_MAX };

    if (i == cells->len || cell_at(cells, i)->va != va) {
        g_array_insert_val(cells, i, new);
    }
    return cell_at(cells, i);
}

static void add_part(McMapCell *c, const KtBlock *b, uint64_t bytes,
                     uint64_t caller)
{
    const McMost by_cache = {
        b->cache.v ? (uint64_t)b->cache.v << 8 : b->layer, bytes, b->cache.v,
    };
    const McMost by_caller = { caller, bytes, b->alloc_stack.v };

    if (b->state == KT_BLOCK_FREED) {
        c->freed += bytes;
    } else {
        *(b->layer == KT_LAYER_PAGES ? &c->pages : &c->live) += bytes;
        c->oldest_us = MIN(c->oldest_us, b->alloc_us);
    }
    count_owner(c, rank_of(b), &by_cache, &by_caller);
}

/* Make room for the cells of a block. */
static void make_room(McHeapMap *m, uint64_t first, uint64_t last)
{
    while (m->shift < 63 && (last >> m->shift) - (first >> m->shift) +
           mc_heap_map_cells(m) >= m->max) {
        double_size(m);
    }
}

void mc_heap_map_add(McHeapMap *m, const KtBlock *b, uint64_t caller)
{
    uint64_t len = kt_block_len(b), last = b->va + MAX(len, 1) - 1;
    GArray *cells = m->cell[mc_space_of(b->layer)];
    uint64_t size, va;
    unsigned i;

    last = MAX(last, b->va);    /* no block goes around */
    make_room(m, b->va, last);
    size = 1ull << m->shift;
    va = b->va & -size;
    i = find_index(cells, va);
    need_cell(cells, i, va)->begin++;
    cell_at(cells, i)->blocks += b->state != KT_BLOCK_FREED;
    for (;; i++, va += size) {
        uint64_t from = MAX(va, b->va), to = MIN(va + (size - 1), last);

        add_part(need_cell(cells, i, va), b, len ? to - from + 1 : 0, caller);
        if (to == last) {
            break;
        }
    }
    if (b->state != KT_BLOCK_FREED) {
        m->live += len;
        m->blocks++;
    }
}

/* ---- which blocks are listed --------------------------------------------- */

McMapCell *mc_heap_map_at(const McHeapMap *m, McSpace space, uint64_t va)
{
    const GArray *cells = m->cell[space];
    uint64_t start = va >> m->shift << m->shift;
    unsigned i = find_index(cells, start);

    return i < cells->len && cell_at(cells, i)->va == start ?
           cell_at(cells, i) : NULL;
}

/* Return the bytes of a cell that no live block has, 0 if nothing is live. */
static uint64_t unused(const McHeapMap *m, const McMapCell *c)
{
    uint64_t used = c->live ? c->live : c->pages;
    uint64_t size = 1ull << m->shift;

    return used && used < size ? size - used : 0;
}

static gint by_unused(gconstpointer a, gconstpointer b, gpointer opaque)
{
    const McMapCell *x = *(McMapCell *const *)a, *y = *(McMapCell *const *)b;
    uint64_t u = unused(opaque, x), v = unused(opaque, y);

    if (x->listed != y->listed) {
        return x->listed ? -1 : 1;
    }
    return u != v ? (u > v ? -1 : 1) : (x->va > y->va) - (x->va < y->va);
}

void mc_heap_map_choose(McHeapMap *m, uint64_t max)
{
    g_autoptr(GPtrArray) order = g_ptr_array_new();

    for (unsigned s = 0; s < MC_SPACE__COUNT; s++) {
        for (unsigned i = 0; i < m->cell[s]->len; i++) {
            g_ptr_array_add(order, cell_at(m->cell[s], i));
        }
    }
    g_ptr_array_sort_with_data(order, by_unused, m);
    for (unsigned i = 0; i < order->len; i++) {
        McMapCell *c = order->pdata[i];

        c->listed = c->begin && c->begin <= max;
        max -= c->listed ? c->begin : 0;
    }
}
