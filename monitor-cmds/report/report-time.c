/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The timeline of a page as JSON. Columns in order, such as times, have
 * differences to the value before: they are shorter when they are compressed.
 */
#include "monitor-cmds/report/report-data.h"

#include <string.h>

#include "monitor-cmds/table/put.h"

/* By what the page has tables, in the order of McReport.table. */
static bool find_by(const char *name, McBy *by)
{
    for (*by = 0; *by < MC_BY__COUNT; (*by)++) {
        if (!strcmp(mc_by_name(*by), name)) {
            return true;
        }
    }
    return false;
}

/* ---- is it the same run? ------------------------------------------------- */

/* Return true if the steps of each stack have the sums of the page. */
static bool fits(const McReport *r, const McTimeSteps *steps)
{
    g_autoptr(GArray) cells = mc_time_steps_cells(steps, MC_BY_STACK);
    const unsigned n = r->profile->stack->len;
    g_autofree int64_t *live = g_new0(int64_t, n + 1);
    g_autofree int64_t *allocs = g_new0(int64_t, n + 1);

    for (unsigned i = 0; i < cells->len; i++) {
        const McStepCell *c = &g_array_index(cells, McStepCell, i);

        if (c->row >= n) {
            return false;
        }
        live[c->row] += c->value[MC_STEP_RESERVED] -
                        c->value[MC_STEP_FREED_RESERVED];
        allocs[c->row] += c->value[MC_STEP_ALLOCS];
    }
    for (unsigned i = 0; i < n; i++) {
        const McProfileStack *s = &g_array_index(r->profile->stack,
                                                 McProfileStack, i);

        if (live[i] != s->value[MC_TOP_live] ||
            allocs[i] != s->value[MC_TOP_allocs]) {
            return false;
        }
    }
    return true;
}

void mc_report_set_time(McReport *r, McTimeline *t, McTimeSteps *steps)
{
    r->timeline = t;
    if (!steps || fits(r, steps)) {
        r->steps = steps;
        return;
    }
    mc_time_steps_free(steps);
    mc_heap_profile_note(r->profile, "not on this page: sums of an interval: "
                         "the journal grew while it was read");
}

/* ---- counters ------------------------------------------------------------ */

static const McJsonArray point_arrays[] = {
    MC_JSON_ARRAY("us", McPoint, us, .steps = true),
    MC_JSON_ARRAY("value", McPoint, value, .steps = true),
};

static void put_counters(GString *to, McReport *r)
{
    const GArray *counter = r->timeline->counter;

    mc_json_begin_list(to, "counters");
    for (unsigned i = 0; i < counter->len; i++) {
        const McCounter *c = &g_array_index(counter, McCounter, i);
        const GArray *points = mc_counter_series_points(c->series);

        g_string_append(to, i ? ",{" : "{");
        mc_json_integer(to, "name", mc_report_text(r, c->name ? c->name :
                                                 "everything"));
        mc_json_arrays(to, point_arrays, G_N_ELEMENTS(point_arrays), points);
        g_string_append_c(to, '}');
    }
    g_string_append_c(to, ']');
}

/* ---- instants and modules ------------------------------------------------ */

static const McJsonArray instant_arrays[] = {
    MC_JSON_ARRAY("us", McInstant, us, .steps = true),
};

static void put_instants(GString *to, McReport *r)
{
    const GArray *rows = r->timeline->instant;

    mc_json_key(to, "instants");
    g_string_append_c(to, '{');
    mc_json_begin_list(to, "kind");
    for (unsigned i = 0; i < rows->len; i++) {
        mc_json_item(to, mc_report_text(r, mc_instant_kind_name(
            g_array_index(rows, McInstant, i).kind)));
    }
    g_string_append_c(to, ']');
    mc_json_arrays(to, instant_arrays, G_N_ELEMENTS(instant_arrays), rows);
    mc_json_begin_list(to, "name");
    for (unsigned i = 0; i < rows->len; i++) {
        mc_json_item(to, mc_report_text(r, g_array_index(rows, McInstant,
                                                         i).name));
    }
    g_string_append(to, "]}");
}

static const McJsonArray module_arrays[] = {
    MC_JSON_ARRAY("since", McLifetime, since, .steps = true),
    MC_JSON_ARRAY("until", McLifetime, until, .steps = true),
    MC_JSON_ARRAY("lane", McLifetime, lane),
    MC_JSON_ARRAY("unloaded", McLifetime, unloaded),
};

static void put_modules(GString *to, McReport *r)
{
    const GArray *rows = r->timeline->lifetime;

    mc_json_key(to, "modules");
    g_string_append_c(to, '{');
    mc_json_begin_list(to, "name");
    for (unsigned i = 0; i < rows->len; i++) {
        mc_json_item(to, mc_report_text(r, g_array_index(rows, McLifetime,
                                                         i).name));
    }
    g_string_append_c(to, ']');
    mc_json_arrays(to, module_arrays, G_N_ELEMENTS(module_arrays), rows);
    g_string_append_c(to, '}');
}

/* ---- cells --------------------------------------------------------------- */

/** struct Cells - @node: (unsigned, nullable) of each row of stacks, the two
 *  nodes in which they end */
typedef struct Cells {
    GArray *cell;
    GArray *node;
} Cells;

static void clear_cells(gpointer p)
{
    Cells *c = p;

    g_array_unref(c->cell);
    g_clear_pointer(&c->node, g_array_unref);
}

static gint compare_cells(gconstpointer a, gconstpointer b)
{
    const McStepCell *x = a, *y = b;

    return x->row != y->row ? (x->row < y->row ? -1 : 1) :
           (x->step > y->step) - (x->step < y->step);
}

/* Add up the cells of one row and step. */
static void merge(GArray *cells)
{
    McStepCell *c = (McStepCell *)cells->data;
    unsigned n = 0;

    g_array_sort(cells, compare_cells);
    for (unsigned i = 0; i < cells->len; i++) {
        if (!n || compare_cells(&c[n - 1], &c[i])) {
            c[n++] = c[i];
            continue;
        }
        for (unsigned v = 0; v < MC_STEP__COUNT; v++) {
            c[n - 1].value[v] += c[i].value[v];
        }
    }
    g_array_set_size(cells, n);
}

/* Stacks that end in the same two nodes are one row. */
static Cells cells_of_stacks(const McReport *r)
{
    Cells c = { .cell = mc_time_steps_cells(r->steps, MC_BY_STACK) };
    g_autoptr(GHashTable) ids = g_hash_table_new_full(
        gs_number_hash, g_int64_equal, g_free, NULL);

    c.node = g_array_new(FALSE, FALSE, 2 * sizeof(unsigned));
    for (unsigned i = 0; i < c.cell->len; i++) {
        McStepCell *cell = &g_array_index(c.cell, McStepCell, i);
        const unsigned node[2] = {
            r->place[0][cell->row], r->place[1][cell->row],
        };
        const uint64_t key = (uint64_t)node[0] << 32 | node[1];
        gpointer id = g_hash_table_lookup(ids, &key);

        if (!id) {
            g_array_append_vals(c.node, node, 1);
            id = GUINT_TO_POINTER(c.node->len);
            g_hash_table_insert(ids, g_memdup2(&key, sizeof(key)), id);
        }
        cell->row = GPOINTER_TO_UINT(id) - 1;
    }
    merge(c.cell);
    return c;
}

/* Rows that the page does not have are its last one. */
static Cells cells_of_table(const McReport *r, const McReportTable *t)
{
    McBy by;
    Cells c = { .cell = find_by(t->by, &by) ?
                mc_time_steps_cells(r->steps, by) :
                g_array_new(FALSE, FALSE, sizeof(McStepCell)) };

    for (unsigned i = 0; i < c.cell->len; i++) {
        McStepCell *cell = &g_array_index(c.cell, McStepCell, i);

        cell->row = MIN(cell->row, t->row->len);
    }
    merge(c.cell);
    return c;
}

/* (owned) Cells of the stacks, and then of each table. */
static GArray *all_cells(const McReport *r)
{
    GArray *list = g_array_new(FALSE, TRUE, sizeof(Cells));
    Cells c = cells_of_stacks(r);

    g_array_set_clear_func(list, clear_cells);
    g_array_append_val(list, c);
    for (unsigned i = 0; i < r->table->len; i++) {
        c = cells_of_table(r, &g_array_index(r->table, McReportTable, i));
        g_array_append_val(list, c);
    }
    return list;
}

static uint64_t count_cells(const GArray *list)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < list->len; i++) {
        n += g_array_index(list, Cells, i).cell->len;
    }
    return n;
}

/* The same, in so few steps that there are few enough cells. */
static GArray *few_cells(const McReport *r)
{
    GArray *list = all_cells(r);

    while (count_cells(list) > MC_REPORT_CELLS &&
           mc_time_steps_span(r->steps).n > MC_REPORT_STEPS) {
        g_array_unref(list);
        mc_time_steps_join(r->steps);
        list = all_cells(r);
    }
    return list;
}

static const McJsonArray cell_arrays[] = {
    MC_JSON_ARRAY("row", McStepCell, row, .steps = true),
    MC_JSON_ARRAY("step", McStepCell, step, .steps = true),
};

static void put_cells(GString *to, const GArray *cells)
{
    mc_json_arrays(to, cell_arrays, G_N_ELEMENTS(cell_arrays), cells);
    for (McStepValue v = 0; v < MC_STEP__COUNT; v++) {
        McJsonArray a = MC_JSON_ARRAY(mc_step_value_name(v), McStepCell,
                                      value[0]);

        a.at += v * a.size;
        mc_json_arrays(to, &a, 1, cells);
    }
}

/* The two nodes in which stacks end. */
static const McJsonArray node_arrays[] = {
    { "down", 0, sizeof(unsigned) },
    { "up", sizeof(unsigned), sizeof(unsigned) },
};

static void put_steps(GString *to, McReport *r)
{
    g_autoptr(GArray) list = few_cells(r);
    const Cells *stacks = &g_array_index(list, Cells, 0);
    McStepSpan span = mc_time_steps_span(r->steps);

    mc_json_key(to, "steps");
    g_string_append_c(to, '{');
    mc_json_integer(to, "origin", (int64_t)span.origin);
    mc_json_integer(to, "width", (int64_t)span.width);
    mc_json_integer(to, "n", span.n);
    mc_json_arrays(to, node_arrays, G_N_ELEMENTS(node_arrays), stacks->node);
    mc_json_key(to, "stacks");
    g_string_append_c(to, '{');
    put_cells(to, stacks->cell);
    g_string_append(to, "}");
    mc_json_begin_list(to, "tables");
    for (unsigned i = 1; i < list->len; i++) {
        g_string_append(to, i > 1 ? ",{" : "{");
        put_cells(to, g_array_index(list, Cells, i).cell);
        g_string_append_c(to, '}');
    }
    g_string_append(to, "]}");
}

/* ---- all ----------------------------------------------------------------- */

void mc_put_report_time(GString *to, McReport *r)
{
    mc_json_key(to, "time");
    if (!r->timeline) {
        g_string_append(to, "null");
        return;
    }
    g_string_append_c(to, '{');
    mc_json_integer(to, "end", (int64_t)r->timeline->us);
    mc_json_integer(to, "lanes", r->timeline->lanes);
    mc_json_integer(to, "left_out", (int64_t)r->timeline->left_out);
    put_counters(to, r);
    put_instants(to, r);
    put_modules(to, r);
    if (r->steps) {
        put_steps(to, r);
    }
    g_string_append_c(to, '}');
}
