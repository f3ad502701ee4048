/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tables and errors from answers of ka: see report-reader.h. */
#include "monitor-cmds/program/report-reader.h"

#include <string.h>

#include "monitor-cmds/program/json-line.h"

/* Frames of a stack, and further titles, that are read. */
#define MAX_ITEMS   1024u

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

/** struct PartKeys - the members of an error that tell of one stack */
typedef struct PartKeys {
    const char *word, *stack, *us, *pid, *comm, *cpu, *hook;
} PartKeys;

static const PartKeys part_keys[MC_CARD__COUNT] = {
    [MC_CARD_ALLOC] = { "allocated", "alloc", "alloc_us", "pid", "comm", "cpu",
                        "hook" },
    [MC_CARD_FREE] = { "freed", "free", "free_us", "free_pid", "free_comm",
                       "free_cpu", "free_hook" },
    [MC_CARD_ERROR] = { NULL, "error_stack", "error_us", "error_pid",
                        "error_comm", "error_cpu", "error_hook" },
};

/* Return the number of the heading of a stack. */
static unsigned when_of(McReport *r, JsonObject *o, const PartKeys *k)
{
    g_autoptr(GString) s = g_string_new(NULL);
    const char *kind = ka_json_text(o, "error");
    const char *comm = ka_json_text(o, k->comm);
    const char *hook = ka_json_text(o, k->hook);
    int64_t n;

    g_string_append(s, k->word ? k->word : kind ? kind : "error");
    if (ka_json_number(o, k->us, &n)) {
        g_string_append_printf(s, " at %" PRId64 "us", n);
    }
    if (comm) {
        g_string_append_printf(s, " by %s", comm);
    }
    if (ka_json_number(o, k->pid, &n)) {
        g_string_append_printf(s, " (pid %" PRId64 ")", n);
    }
    if (ka_json_number(o, k->cpu, &n)) {
        g_string_append_printf(s, " on vCPU %" PRId64, n);
    }
    if (hook) {
        g_string_append_printf(s, ", in %s", hook);
    }
    return mc_report_text(r, s->str);
}

static void read_part(McReport *r, McCardPart *part, JsonObject *o,
                      const PartKeys *k)
{
    g_autofree char *symbols = g_strconcat(k->stack, "_symbols", NULL);
    JsonArray *pcs = ka_json_list(o, k->stack);
    JsonArray *names = ka_json_list(o, symbols);
    unsigned n = pcs ? MIN(json_array_get_length(pcs), MAX_ITEMS) : 0;

    if (!pcs) {
        return;
    }
    part->when = when_of(r, o, k);
    part->frame = g_array_new(FALSE, FALSE, sizeof(unsigned));
    for (unsigned i = 0; i < n; i++) {
        const char *name = ka_json_text_at(names, i);
        const char *pc = ka_json_text_at(pcs, i);
        unsigned id = mc_report_text(r, name ? name : pc ? pc : "?");

        g_array_append_val(part->frame, id);
    }
}

static unsigned text_of(McReport *r, JsonObject *o, const char *key)
{
    const char *text = ka_json_text(o, key);

    return mc_report_text(r, text ? text : "");
}

/* Return the number of a line about the block. */
static unsigned block_of(McReport *r, JsonObject *o)
{
    g_autoptr(GString) s = g_string_new(NULL);
    const char *state = ka_json_text(o, "state");
    const char *va = ka_json_text(o, "va"), *end = ka_json_text(o, "end");
    const char *cache = ka_json_text(o, "cache");
    const char *layer = ka_json_text(o, "layer");
    int64_t asked, actual;

    g_string_append_printf(s, "%s %s-%s", state ? state : "-", va ? va : "?",
                           end ? end : "?");
    if (ka_json_number(o, "requested", &asked)) {
        g_string_append_printf(s, ", %" PRId64 " bytes requested", asked);
    }
    if (ka_json_number(o, "actual", &actual)) {
        g_string_append_printf(s, ", %" PRId64 " reserved", actual);
    }
    if (layer) {
        g_string_append_printf(s, ", layer %s", layer);
    }
    if (cache) {
        g_string_append_printf(s, ", cache %s", cache);
    }
    return mc_report_text(r, s->str);
}

static void read_alt(McReport *r, McReportCard *c, JsonObject *o)
{
    JsonArray *list = ka_json_list(o, "alt");
    unsigned n = list ? MIN(json_array_get_length(list), MAX_ITEMS) : 0;

    for (unsigned i = 0; i < n; i++) {
        const char *text = ka_json_text_at(list, i);
        unsigned id = mc_report_text(r, text ? text : "");

        g_array_append_val(c->alt, id);
    }
}

static void read_card(McReport *r, McReportCard *c, JsonObject *o)
{
    int64_t weak;

    c->title = text_of(r, o, "title");
    c->fold = text_of(r, o, "fold");
    c->exact = text_of(r, o, "exact");
    c->kind = text_of(r, o, "error");
    c->block = block_of(r, o);
    c->address = text_of(r, o, ka_json_text(o, "error_va") ? "error_va" : "va");
    c->weak = ka_json_number(o, "weak", &weak) && weak;
    read_alt(r, c, o);
    for (unsigned i = 0; i < MC_CARD__COUNT; i++) {
        read_part(r, &c->part[i], o, &part_keys[i]);
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
