/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The heap map of a page: see map-columns.h. Numbers that grow are written as
 * the difference to the one before, which is shorter.
 */
#include "monitor-cmds/report/map-columns.h"

#include "monitor-cmds/table/put.h"

McMapColumns *mc_map_columns_new(void)
{
    McMapColumns *m = g_new0(McMapColumns, 1);

    m->cell = g_array_new(FALSE, TRUE, sizeof(McCellColumn));
    m->block = g_array_new(FALSE, TRUE, sizeof(McBlockColumn));
    return m;
}

void mc_map_columns_free(McMapColumns *m)
{
    if (!m) {
        return;
    }
    g_array_unref(m->cell);
    g_array_unref(m->block);
    g_free(m);
}

static const McCellColumn *cell_at(const McMapColumns *m, unsigned i)
{
    return &g_array_index(m->cell, McCellColumn, i);
}

/* Return true if the cell ends in front of the address. */
static bool is_before(const McMapColumns *m, const McCellColumn *c,
                      unsigned space, uint64_t va)
{
    return c->space != space ? c->space < space :
           c->va + (uint64_t)m->cell_bytes - 1 < va;
}

bool mc_map_columns_find(const McMapColumns *m, unsigned space, uint64_t va,
                         unsigned *out)
{
    unsigned lo = 0, hi = m->cell->len;

    while (lo < hi) {
        unsigned mid = lo + (hi - lo) / 2;

        if (is_before(m, cell_at(m, mid), space, va)) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    *out = lo;
    return lo < m->cell->len && cell_at(m, lo)->space == space &&
           cell_at(m, lo)->va <= va;
}

/* ---- JSON ---------------------------------------------------------------- */

static void begin_column(GString *to, const char *key)
{
    mc_json_key(to, key);
    g_string_append_c(to, '[');
}

/* The columns of the cells, in the order of the keys below. */
static int64_t cell_value(const McMapColumns *m, unsigned column, unsigned i)
{
    const McCellColumn *c = cell_at(m, i);
    uint64_t before = i ? cell_at(m, i - 1)->va : 0;

    switch (column) {
    case 0:
        return (int64_t)(c->va >> 12) - (int64_t)(before >> 12);
    case 1:
        return c->space;
    case 2:
        return c->live;
    case 3:
        return c->pages;
    case 4:
        return c->freed;
    case 5:
        return c->blocks;
    case 6:
        return c->oldest_us;
    case 7:
        return c->cache;
    case 8:
        return c->caller;
    default:
        return c->listed;
    }
}

static int64_t block_value(const McMapColumns *m, unsigned column, unsigned i)
{
    const McBlockColumn *b = &g_array_index(m->block, McBlockColumn, i);
    unsigned before = i ? b[-1].cell : 0;

    switch (column) {
    case 0:
        return (int64_t)b->cell - before;
    case 1:
        return (int64_t)(b->va - cell_at(m, b->cell)->va);
    case 2:
        return b->asked;
    case 3:
        return b->size;
    case 4:
        return b->state;
    case 5:
        return b->us;
    case 6:
        return b->cache;
    case 7:
        return b->caller;
    default:
        return b->pages;
    }
}

/** Value - return the value of row @i */
typedef int64_t Value(const McMapColumns *m, unsigned column, unsigned i);

static void put_columns(GString *to, const McMapColumns *m, const char *key,
                        const char *const *columns, unsigned rows,
                        Value *value)
{
    mc_json_key(to, key);
    g_string_append_c(to, '{');
    for (unsigned k = 0; columns[k]; k++) {
        begin_column(to, columns[k]);
        for (unsigned i = 0; i < rows; i++) {
            mc_json_item(to, value(m, k, i));
        }
        g_string_append_c(to, ']');
    }
    g_string_append_c(to, '}');
}

void mc_put_map(GString *to, const McMapColumns *m)
{
    static const char *const cell[] = {
        "page", "space", "live", "pages", "freed", "blocks", "oldest", "cache",
        "caller", "listed", NULL,
    };
    static const char *const block[] = {
        "cell", "offset", "asked", "size", "state", "us", "cache", "caller",
        "pages", NULL,
    };

    mc_json_key(to, "map");
    g_string_append_c(to, '{');
    mc_json_integer(to, "cell_bytes", m->cell_bytes);
    mc_json_integer(to, "live", m->live);
    mc_json_integer(to, "blocks", m->blocks);
    put_columns(to, m, "cells", cell, m->cell->len, cell_value);
    put_columns(to, m, "list", block, m->block->len, block_value);
    g_string_append_c(to, '}');
}
