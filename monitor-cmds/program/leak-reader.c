/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Leaks from answers of ka: see json-line.h. */
#include "monitor-cmds/program/json-line.h"

#include <string.h>


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
