/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tables and errors from answers of ka: see json-line.h. */
#include "monitor-cmds/program/json-line.h"

#include <gio/gio.h>
#include <string.h>

#include "guest-symbols/gs.h"
#include "monitor-cmds/report/report-data.h"

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
    return layer ? g_strdup_printf("[%s%s]", layer,
                                   ka_json_text(o, "backing") ?
                                   " of other layers" : "") :
                   g_strdup("[unknown]");
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

/* ---- leaks --------------------------------------------------------------- */

/* Modules that are read. */
#define MAX_MODULES 500u

/* ---- groups -------------------------------------------------------------- */

static uint64_t count_of(JsonObject *o, const char *key)
{
    int64_t n;

    return ka_json_number(o, key, &n) && n > 0 ? (uint64_t)n : 0;
}

/* Return the number of the words about what refers to the block. */
static unsigned state_of(McReport *r, JsonObject *o)
{
    const char *leak = ka_json_text(o, "leak");
    const char *kept = ka_json_text(o, "kept");
    const char *by = ka_json_text(o, "kept_by");
    const char *in = ka_json_text(o, "kept_in");
    g_autofree char *text = NULL;

    if (leak) {
        text = !strcmp(leak, "nothing") ?
               g_strdup("leaked: nothing refers to it") :
               g_strdup_printf("leaked: only other leaked blocks refer to it "
                               "(%s)", leak);
    } else if (kept) {
        text = g_strdup_printf("in use: %s %s %s", kept, by ? by : "",
                               in ? in : "");
    } else {
        text = g_strdup("not freed; it is not known what refers to it");
    }
    return mc_report_text(r, g_strchomp(text));
}

/* Read the sum of the group; a group of one block has it in its block. */
static void read_bytes(McLeakGroup *g, JsonObject *o)
{
    int64_t bytes;

    g->bytes_known = ka_json_number(o, "same_bytes", &bytes) ||
                     (g->n == 1 && ka_json_number(o, "requested", &bytes));
    g->bytes = g->bytes_known && bytes > 0 ? (uint64_t)bytes : 0;
}

static void read_group(McReport *r, JsonObject *o, unsigned module)
{
    McLeakGroup *g = mc_leak_groups_add(r->leaks);

    if (!g) {
        return;
    }
    g->module = module;
    g->state = state_of(r, o);
    g->title = ka_row_text(r, o, "title");
    g->fold = ka_row_text(r, o, "fold");
    g->exact = ka_row_text(r, o, "exact");
    g->weak = count_of(o, "weak") != 0;
    g->block = ka_row_block(r, o);
    g->address = ka_row_text(r, o, "va");
    g->n = count_of(o, "same_stack") + 1;
    g->held = count_of(o, "held");
    read_bytes(g, o);
    ka_row_stack(r, &g->alloc, o, MC_CARD_ALLOC);
}

static void read_more(McReport *r, JsonObject *o)
{
    r->leaks->more += count_of(o, "more");
}

/* ---- the last scan ------------------------------------------------------- */

static bool read_scan_row(void *opaque, JsonObject *o, const char *type)
{
    McReport *r = opaque;
    McLeakGroups *l = r->leaks;

    if (!strcmp(type, "block")) {
        read_group(r, o, 0);
    } else if (!strcmp(type, "list")) {
        l->scanned = true;
        l->scan = ka_row_text(r, o, "text");
        ka_json_number(o, "leaks", &l->leaks);
        ka_json_number(o, "stacks", &l->stacks);
        ka_json_number(o, "leaked_bytes", &l->bytes);
        ka_json_number(o, "scan_us", &l->us);
    } else {
        read_more(r, o);
    }
    return true;
}

void ka_report_read_scan(McReport *r, const char *answer, bool journal)
{
    ka_json_each(answer, read_scan_row, r);
    if (!r->leaks->scanned) {
        r->leaks->scan = mc_report_text(r, journal ?
            "No scan for leaks: a journal does not have the memory of the "
            "guest. Make the page of a running VM, with ka -q SOCKET report, "
            "after ka leak scan." :
            "No scan for leaks was made before this page. ka leak scan makes "
            "one; then make the page again.");
    }
}

/* ---- modules ------------------------------------------------------------- */

static bool read_left_row(void *opaque, JsonObject *o, const char *type)
{
    McReport *r = opaque;
    GArray *list = r->leaks->module;
    McLeftModule m = { 0 };

    if (!strcmp(type, "block")) {
        read_group(r, o, list->len);
    } else if (strcmp(type, "module")) {
        read_more(r, o);
    } else if (list->len < MAX_MODULES) {
        m.name = ka_row_text(r, o, "name");
        for (unsigned i = 0; i < MC_LEFT__COUNT; i++) {
            if (ka_json_number(o, mc_left_key(i), &m.value[i])) {
                m.known |= 1u << i;
            }
        }
        g_array_append_val(list, m);
    }
    return list->len < MAX_MODULES;
}

void ka_report_read_left(McReport *r, const char *answer)
{
    ka_json_each(answer, read_left_row, r);
}

/* ---- the job ------------------------------------------------------------- */

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

/* ---- the kernel's log ---------------------------------------------------- */

static bool read_line(void *opaque, JsonObject *o, const char *type)
{
    McReport *r = opaque;
    McReportLine line = { .level = (unsigned)count_of(o, "level"),
                          .us = (int64_t)count_of(o, "us"),
                          .ns = (int64_t)count_of(o, "ns"),
                          .number = (int64_t)count_of(o, "number") };

    if (!strcmp(type, "log")) {
        line.text = ka_row_text(r, o, "text");
        g_array_append_val(r->log, line);
    }
    return r->log->len < MC_REPORT_LINES;
}

void ka_report_read_log(McReport *r, const char *answer)
{
    ka_json_each(answer, read_line, r);
}

/* ---- the heap map -------------------------------------------------------- */

static int64_t number_of(JsonObject *o, const char *key, int64_t unknown)
{
    int64_t n;

    return ka_json_number(o, key, &n) && n >= 0 ? n : unknown;
}

static bool read_address(JsonObject *o, uint64_t *va)
{
    const char *text = ka_json_text(o, "va");

    return text && g_str_has_prefix(text, "0x") &&
           g_ascii_string_to_unsigned(text + 2, 16, 0, UINT64_MAX, va, NULL);
}

static bool read_space(JsonObject *o, unsigned *out)
{
    static const char *const spaces[] = { "direct", "vmalloc", "percpu" };
    const char *text = ka_json_text(o, "space");

    for (unsigned i = 0; text && i < G_N_ELEMENTS(spaces); i++) {
        if (!strcmp(text, spaces[i])) {
            *out = i;
            return true;
        }
    }
    return false;
}

static unsigned cache_of(McReport *r, JsonObject *o)
{
    const char *text = ka_json_text(o, "cache");

    return mc_report_text(r, text ? text : "[unknown]");
}

/* Return the number of a function's name: "f+0x10[ext4]" is "f [ext4]". */
static unsigned caller_of(McReport *r, JsonObject *o)
{
    const char *text = ka_json_text(o, "caller");
    const char *offset = text ? strstr(text, "+0x") : NULL;
    const char *module = offset ? strchr(offset, '[') : NULL;
    g_autofree char *name = NULL;

    if (!text) {
        return mc_report_text(r, "[no backtrace]");
    }
    name = !offset ? g_strdup(text) :
           g_strdup_printf("%.*s%s%s", (int)(offset - text), text,
                           module ? " " : "", module ? module : "");
    return mc_report_text(r, name);
}

static void read_cell(McReport *r, JsonObject *o)
{
    McCellColumn c = {
        .live = number_of(o, "live", 0),
        .pages = number_of(o, "pages", 0),
        .freed = number_of(o, "freed", 0),
        .blocks = number_of(o, "blocks", 0),
        .oldest_us = number_of(o, "oldest_us", -1),
        .listed = number_of(o, "listed", 0) != 0,
    };

    if (r->map->cell->len < MC_COLUMN_CELLS && read_address(o, &c.va) &&
        read_space(o, &c.space)) {
        c.cache = cache_of(r, o);
        c.caller = caller_of(r, o);
        g_array_append_val(r->map->cell, c);
    }
}

static unsigned map_state_of(JsonObject *o)
{
    const char *text = ka_json_text(o, "state");

    return !text || *text == 'A' ? 0 : *text == 'R' ? 1 : 2;
}

static void read_map_block(McReport *r, JsonObject *o)
{
    McBlockColumn b = {
        .asked = number_of(o, "requested", 0),
        .size = number_of(o, "actual", 0),
        .us = number_of(o, "us", -1),
        .state = map_state_of(o),
        .pages = number_of(o, "pages", 0) != 0,
    };
    unsigned space;

    if (r->map->block->len < MC_COLUMN_BLOCKS && read_address(o, &b.va) &&
        read_space(o, &space) &&
        mc_map_columns_find(r->map, space, b.va, &b.cell)) {
        b.cache = cache_of(r, o);
        b.caller = caller_of(r, o);
        g_array_append_val(r->map->block, b);
    }
}

static bool read_map_row(void *opaque, JsonObject *o, const char *type)
{
    McReport *r = opaque;

    if (!strcmp(type, "map_cell")) {
        read_cell(r, o);
    } else if (!strcmp(type, "map_block")) {
        read_map_block(r, o);
    } else if (!strcmp(type, "map")) {
        r->map->live = number_of(o, "live", 0);
        r->map->blocks = number_of(o, "blocks", 0);
    }
    return true;
}

/* The size of a cell is needed to find the cells of blocks, and comes last. */
static bool read_size(void *opaque, JsonObject *o, const char *type)
{
    McReport *r = opaque;

    if (!strcmp(type, "map")) {
        r->map->cell_bytes = number_of(o, "cell_bytes", 0);
    }
    return true;
}

void ka_report_read_map(McReport *r, const char *answer)
{
    const char *last = g_strrstr(answer, "\"type\":\"map\"");

    while (last && last > answer && last[-1] != '\n') {
        last--;
    }
    ka_json_each(last ? last : "", read_size, r);
    if (r->map->cell_bytes >= 4096) {
        ka_json_each(answer, read_map_row, r);
    } else {
        r->map->cell_bytes = 0;
    }
}
