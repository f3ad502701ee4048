/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tables and errors from answers of ka: see json-line.h. */
#include "monitor-cmds/program/json-line.h"

#include <string.h>


/* ---- tables -------------------------------------------------------------- */

typedef struct TableReader {
    McReport *report;
    McReportTable *table;
} TableReader;

/* Return (owned) the name of a row of `ka top`. */
static char *row_name(JsonObject *o, const char *by)
{
    g_autofree char *symbol_key = g_strconcat(by, "_symbol", NULL);
    const char *text = ka_json_text(o, symbol_key);
    const char *layer = ka_json_text(o, "layer");
    const char *comm = ka_json_text(o, "comm");
    int64_t n;

    text = text ? text : ka_json_text(o, by);
    if (text) {
        return g_strdup(text);
    }
    if (ka_json_number(o, "pid", &n)) {
        return g_strdup_printf("%s (pid %" PRId64 ")", comm ? comm : "?", n);
    }
    if (ka_json_number(o, by, &n)) {
        return g_strdup_printf("%" PRId64, n);
    }
    return layer ? g_strdup_printf("[%s]", layer) : g_strdup("[unknown]");
}

static bool read_row(void *opaque, JsonObject *o, const char *type)
{
    TableReader *t = opaque;
    g_autofree char *name = NULL;
    McReportRow row = { 0 };

    if (strcmp(type, "top")) {
        return true;
    }
    name = row_name(o, t->table->by);
    row.name = mc_report_text(t->report, name);
    for (unsigned i = 0; i < MC_TOP__COUNT; i++) {
        if (ka_json_number(o, mc_top_columns[i].key, &row.value[i])) {
            row.known |= 1u << i;
        }
    }
    mc_report_row(t->table, &row);
    return true;
}

void ka_report_read_table(McReport *r, const char *by, const char *answer)
{
    TableReader t = { .report = r, .table = mc_report_table(r, by) };

    ka_json_each(answer, read_row, &t);
}

/* ---- errors -------------------------------------------------------------- */

static void read_card(McReport *r, McReportCard *c, JsonObject *o)
{
    int64_t weak;

    c->title = ka_row_text(r, o, "title");
    c->fold = ka_row_text(r, o, "fold");
    c->exact = ka_row_text(r, o, "exact");
    c->kind = ka_row_text(r, o, "error");
    c->block = ka_row_block(r, o);
    c->what = ka_row_error(r, o);
    c->address = ka_row_text(r, o, ka_json_text(o, "error_va") ? "error_va" :
                                                                 "va");
    c->weak = ka_json_number(o, "weak", &weak) && weak;
    ka_row_list(r, c->alt, o, "alt");
    for (unsigned i = 0; i < MC_CARD__COUNT; i++) {
        ka_row_stack(r, &c->part[i], o, i);
    }
}

static bool read_error(void *opaque, JsonObject *o, const char *type)
{
    McReport *r = opaque;
    McReportCard *c;
    int64_t more;

    if (!strcmp(type, "error")) {
        c = mc_report_card(r);
        if (c) {
            read_card(r, c, o);
        }
    } else if (ka_json_number(o, "more", &more) && more > 0) {
        r->errors += (uint64_t)more;
    }
    return true;
}

void ka_report_read_errors(McReport *r, const char *answer)
{
    ka_json_each(answer, read_error, r);
}
