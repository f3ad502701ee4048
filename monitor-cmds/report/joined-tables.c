/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tables of two runs: see report-data.h. */
#include "monitor-cmds/report/report-data.h"

#include <string.h>

#include "monitor-cmds/table/put.h"

/* ---- joining ------------------------------------------------------------- */

static void add_rows(GArray *out, GHashTable *ids, const GArray *rows,
                     unsigned run)
{
    for (unsigned i = 0; i < rows->len; i++) {
        const McReportRow *row = &g_array_index(rows, McReportRow, i);
        const McJoinedRow new = { .name = row->name };
        gpointer id = g_hash_table_lookup(ids, GUINT_TO_POINTER(row->name));
        McJoinedRow *to;

        if (!id) {
            g_array_append_val(out, new);
            id = GUINT_TO_POINTER(out->len);
            g_hash_table_insert(ids, GUINT_TO_POINTER(row->name), id);
        }
        to = &g_array_index(out, McJoinedRow, GPOINTER_TO_UINT(id) - 1);
        to->in |= 1u << run;
        for (unsigned v = 0; v < MC_TOP__COUNT; v++) {
            to->value[run][v] += mc_top_is_sum(v) ? row->value[v] : 0;
        }
    }
}

static uint64_t distance(const McJoinedRow *row, McTopId id)
{
    int64_t a = row->value[0][id], b = row->value[1][id];

    return a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;
}

static gint compare_rows(gconstpointer a, gconstpointer b, gpointer strings)
{
    const McJoinedRow *x = a, *y = b;
    const McTopId order[] = { MC_TOP_live, MC_TOP_reserved };

    for (unsigned i = 0; i < G_N_ELEMENTS(order); i++) {
        uint64_t p = distance(x, order[i]), q = distance(y, order[i]);

        if (p != q) {
            return p > q ? -1 : 1;
        }
    }
    return strcmp(mc_strings_text(strings, x->name),
                  mc_strings_text(strings, y->name));
}

GArray *mc_join_tables(const McReportTable *run, const McReportTable *base,
                       const McStrings *strings)
{
    const McReportTable *const table[2] = { run, base };
    g_autoptr(GHashTable) ids = g_hash_table_new(NULL, NULL);
    GArray *out = g_array_new(FALSE, FALSE, sizeof(McJoinedRow));

    for (unsigned i = 0; i < 2; i++) {
        add_rows(out, ids, table[i]->row, i);
        if (table[i]->tail) {
            add_rows(out, ids, table[i]->tail, i);
        }
    }
    g_array_sort_with_data(out, compare_rows, (gpointer)strings);
    return out;
}

/* ---- JSON ---------------------------------------------------------------- */

/* Append a column of the rows that are kept, and behind them the sum of all
 * others. */
static void put_column(GString *to, const GArray *rows, unsigned run,
                       McTopId id)
{
    g_autofree char *key = g_strconcat(run ? "base_" : "",
                                       mc_top_columns[id].key, NULL);
    int64_t rest = 0;

    mc_json_begin_list(to, key);
    for (unsigned i = 0; i < rows->len; i++) {
        int64_t n = g_array_index(rows, McJoinedRow, i).value[run][id];

        if (i < MC_REPORT_ROWS) {
            mc_json_item(to, n);
        } else {
            rest += n;
        }
    }
    mc_json_item(to, rest);
    g_string_append_c(to, ']');
}

static void put_table(GString *to, const char *by, const GArray *rows)
{
    const unsigned n = MIN(rows->len, MC_REPORT_ROWS);

    mc_json_text(to, "by", by);
    mc_json_integer(to, "more", rows->len - n);
    mc_json_begin_list(to, "name");
    for (unsigned i = 0; i < n; i++) {
        mc_json_item(to, g_array_index(rows, McJoinedRow, i).name);
    }
    g_string_append_c(to, ']');
    mc_json_begin_list(to, "in");
    for (unsigned i = 0; i < n; i++) {
        mc_json_item(to, g_array_index(rows, McJoinedRow, i).in);
    }
    g_string_append_c(to, ']');
    for (unsigned i = 0; i < 2 * MC_TREE_VALUES; i++) {
        put_column(to, rows, i % 2, mc_tree_value[i / 2]);
    }
}

void mc_put_joined_tables(GString *to, const McReport *r)
{
    unsigned n = MIN(r->table->len, r->base->table->len);

    mc_json_begin_list(to, "tables");
    for (unsigned i = 0; i < n; i++) {
        const McReportTable *t = &g_array_index(r->table, McReportTable, i);
        g_autoptr(GArray) rows = mc_join_tables(
            t, &g_array_index(r->base->table, McReportTable, i), r->strings);

        g_string_append(to, i ? ",{" : "{");
        put_table(to, t->by, rows);
        g_string_append_c(to, '}');
    }
    g_string_append_c(to, ']');
}
