/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The heap map of a page: see report-data.h. Numbers that grow are written as
 * the difference to the one before, which is shorter.
 */
#include "monitor-cmds/report/report-data.h"

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

static const McJsonArray cell_arrays[] = {
    MC_JSON_ARRAY("space", McCellColumn, space),
    MC_JSON_ARRAY("live", McCellColumn, live),
    MC_JSON_ARRAY("pages", McCellColumn, pages),
    MC_JSON_ARRAY("freed", McCellColumn, freed),
    MC_JSON_ARRAY("blocks", McCellColumn, blocks),
    MC_JSON_ARRAY("oldest", McCellColumn, oldest_us),
    MC_JSON_ARRAY("cache", McCellColumn, cache),
    MC_JSON_ARRAY("caller", McCellColumn, caller),
    MC_JSON_ARRAY("listed", McCellColumn, listed),
};

static void put_cells(GString *to, const McMapColumns *m)
{
    uint64_t before = 0;

    mc_json_key(to, "cells");
    g_string_append_c(to, '{');
    mc_json_begin_list(to, "page");
    for (unsigned i = 0; i < m->cell->len; i++) {
        uint64_t page = cell_at(m, i)->va >> 12;

        mc_json_item(to, (int64_t)page - (int64_t)before);
        before = page;
    }
    g_string_append_c(to, ']');
    mc_json_arrays(to, cell_arrays, G_N_ELEMENTS(cell_arrays), m->cell);
    g_string_append_c(to, '}');
}

static const McJsonArray block_arrays[] = {
    MC_JSON_ARRAY("cell", McBlockColumn, cell, .steps = true),
    MC_JSON_ARRAY("asked", McBlockColumn, asked),
    MC_JSON_ARRAY("size", McBlockColumn, size),
    MC_JSON_ARRAY("state", McBlockColumn, state),
    MC_JSON_ARRAY("us", McBlockColumn, us),
    MC_JSON_ARRAY("cache", McBlockColumn, cache),
    MC_JSON_ARRAY("caller", McBlockColumn, caller),
    MC_JSON_ARRAY("pages", McBlockColumn, pages),
};

static void put_blocks(GString *to, const McMapColumns *m)
{
    mc_json_key(to, "list");
    g_string_append_c(to, '{');
    mc_json_begin_list(to, "offset");
    for (unsigned i = 0; i < m->block->len; i++) {
        const McBlockColumn *b = &g_array_index(m->block, McBlockColumn, i);

        mc_json_item(to, (int64_t)(b->va - cell_at(m, b->cell)->va));
    }
    g_string_append_c(to, ']');
    mc_json_arrays(to, block_arrays, G_N_ELEMENTS(block_arrays), m->block);
    g_string_append_c(to, '}');
}

void mc_put_map(GString *to, const McMapColumns *m)
{
    mc_json_key(to, "map");
    g_string_append_c(to, '{');
    mc_json_integer(to, "cell_bytes", m->cell_bytes);
    mc_json_integer(to, "live", m->live);
    mc_json_integer(to, "blocks", m->blocks);
    put_cells(to, m);
    put_blocks(to, m);
    g_string_append_c(to, '}');
}
