/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The job of a page: see json-line.h. */

#include <gio/gio.h>
#include <string.h>

#include "guest-symbols/gs.h"
#include "monitor-cmds/program/json-line.h"
#include "monitor-cmds/report/report-data.h"

/* The largest file, and the schema that is known. */
#define MAX_BYTES   (64u << 20)
#define SCHEMA      1

static bool refuse(const char *path, const char *what, GError **errp)
{
    g_set_error(errp, G_IO_ERROR, G_IO_ERROR_INVALID_DATA,
                "%s: not what sweep --json writes: %s", path, what);
    return false;
}

static const char *text_of(JsonObject *o, const char *key)
{
    const char *text = ka_json_text(o, key);

    return text ? text : "";
}

static bool is_finding(JsonObject *o)
{
    return ka_json_text(o, "name") && ka_json_text(o, "kind") &&
           ka_json_text(o, "fold") && ka_json_text(o, "text");
}

static JsonObject *finding_at(JsonArray *list, unsigned i)
{
    JsonNode *node = json_array_get_element(list, i);
    JsonObject *o = JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) :
                                                   NULL;

    return is_finding(o) ? o : NULL;
}

static void add_card(McReport *r, JsonObject *o)
{
    McJobCard *c = mc_job_add(r->job);

    if (c) {
        c->name = mc_report_text(r, text_of(o, "name"));
        c->kind = mc_report_text(r, text_of(o, "kind"));
        c->fold = mc_report_text(r, text_of(o, "fold"));
        c->hidden = mc_report_text(r, text_of(o, "hidden"));
        mc_job_text(r, &c->text, text_of(o, "text"));
    }
}

/* Add the findings that are hidden, or those that are not. Findings of one name
 * are counted once; those in @seen were. Return how many names are new. */
static unsigned add_cards(McReport *r, JsonArray *list, bool hidden,
                          GHashTable *seen)
{
    unsigned before = g_hash_table_size(seen);

    for (unsigned i = 0; i < json_array_get_length(list); i++) {
        JsonObject *o = finding_at(list, i);

        if (*text_of(o, "hidden") ? hidden : !hidden) {
            g_hash_table_add(seen, (gpointer)ka_json_text(o, "name"));
            add_card(r, o);
        }
    }
    return g_hash_table_size(seen) - before;
}

/* Return what is wrong with the file, NULL if nothing is. */
static const char *why_not(JsonObject *o, JsonArray *list)
{
    int64_t schema;

    if (!ka_json_number(o, "schema", &schema) || schema != SCHEMA) {
        return "its schema is another one";
    }
    if (!list || !ka_json_text(o, "verdict")) {
        return "it has no findings or verdict";
    }
    for (unsigned i = 0; i < json_array_get_length(list); i++) {
        if (!finding_at(list, i)) {
            return "a finding has no name, kind, fold or text";
        }
    }
    return NULL;
}

static void read_job(McReport *r, JsonObject *o, JsonArray *list)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);

    r->job = mc_job_new(r);
    r->job->problem = mc_report_text(r, text_of(o, "problem"));
    mc_job_text(r, &r->job->detail, text_of(o, "detail"));
    r->job->failing = add_cards(r, list, false, seen);
    r->job->hidden = add_cards(r, list, true, seen);
}

bool ka_report_read_job(McReport *r, const char *path, GError **errp)
{
    g_autoptr(JsonParser) parser = json_parser_new();
    g_autoptr(GBytes) bytes = gs_file_read_named(path, MAX_BYTES, errp);
    g_autofree char *text = NULL;
    const char *why, *verdict;
    JsonObject *o;
    gsize n;

    if (!bytes) {
        return false;
    }
    text = g_strndup(g_bytes_get_data(bytes, &n), g_bytes_get_size(bytes));
    o = ka_json_parse(parser, text, strlen(text));
    why = o ? why_not(o, ka_json_list(o, "findings")) : "it is no whole JSON "
          "object";
    if (why) {
        return refuse(path, why, errp);
    }
    read_job(r, o, ka_json_list(o, "findings"));
    verdict = r->job->failing ? "found" : *text_of(o, "problem") ? "broken" :
              "clean";
    return !strcmp(verdict, ka_json_text(o, "verdict")) ||
           refuse(path, "its verdict is not that of its findings", errp);
}
