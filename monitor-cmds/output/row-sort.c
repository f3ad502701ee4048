/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The order of rows by one of their columns: see row.h. */
#include "monitor-cmds/output/row.h"

#include <string.h>

const McColumn *mc_sort_column(const McObject *object, unsigned i)
{
    for (unsigned set = 0; set < MC_SETS && object->columns[set]; set++) {
        const McColumn *c = object->columns[set];

        for (; c->key || c->text; c++) {
            if (c->key && c->look < MC_LOOK_YES_NO && !i--) {
                return c;
            }
        }
    }
    return NULL;
}

const McColumn *mc_find_sort_column(const McObject *object, const char *key,
                                    GError **errp)
{
    g_autofree char *quoted = mc_quote(key);
    g_autoptr(GString) keys = g_string_new(NULL);
    const McColumn *c;

    for (unsigned i = 0; (c = mc_sort_column(object, i)); i++) {
        if (!strcmp(c->key, key)) {
            return c;
        }
        g_string_append_printf(keys, "%s%s", i ? ", " : "", c->key);
    }
    mc_fail_syntax(errp, "--sort %s: the fields are %s", quoted, keys->str);
    return NULL;
}

typedef struct Order {
    McOut *o;
    const McColumn *c;
} Order;

static gint compare(gconstpointer a, gconstpointer b, gpointer opaque)
{
    const Order *order = opaque;
    McValue x, y;
    bool has = mc_value(order->o, order->c, a, &x);
    bool other = mc_value(order->o, order->c, b, &y);

    if (has != other) {
        return has ? -1 : 1;
    }
    return has && x.u != y.u ? (x.u > y.u ? -1 : 1) : 0;
}

void mc_sort_rows(McOut *o, const McColumn *c, GArray *rows)
{
    g_array_sort_with_data(rows, compare, &(Order) { o, c });
}
