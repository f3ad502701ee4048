/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The data of a page as JSON: columns, with texts as numbers of one table.
 */
#include "monitor-cmds/report/report-data.h"

#include <string.h>

#include "monitor-cmds/table/put.h"

/* ---- findings ------------------------------------------------------------ */

/* Digits of a hash in a name, as scripts/sweep prints it. */
#define NAME_DIGITS 8

/* Return the finding of a hash, or NULL. */
static McFinding *find(const GArray *list, unsigned fold)
{
    for (unsigned i = 0; i < list->len; i++) {
        McFinding *f = &g_array_index(list, McFinding, i);

        if (f->fold == fold) {
            return f;
        }
    }
    return NULL;
}

/* Put a part of the hash behind each name that is not the only one. */
static void name_apart(McReport *r, GArray *list)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);

    for (unsigned i = 0; i < list->len; i++) {
        gpointer name = GUINT_TO_POINTER(
            g_array_index(list, McFinding, i).name);
        guint n = GPOINTER_TO_UINT(g_hash_table_lookup(seen, name));

        g_hash_table_insert(seen, name, GUINT_TO_POINTER(n + 1));
    }
    for (unsigned i = 0; i < list->len; i++) {
        McFinding *f = &g_array_index(list, McFinding, i);
        g_autofree char *name = NULL;

        if (GPOINTER_TO_UINT(g_hash_table_lookup(
                seen, GUINT_TO_POINTER(f->name))) > 1) {
            name = g_strdup_printf("%s (%.*s)",
                                   mc_strings_text(r->strings, f->name),
                                   NAME_DIGITS,
                                   mc_strings_text(r->strings, f->fold));
            f->name = mc_strings_add(r->strings, name);
        }
    }
}

/* Return (owned) McFinding, in the order of their first errors. @of: (out) for
 * each card of the report its finding */
static GArray *find_findings(McReport *r, unsigned *of)
{
    GArray *list = g_array_new(FALSE, FALSE, sizeof(McFinding));

    for (unsigned i = 0; i < r->card->len; i++) {
        const McReportCard *c = &g_array_index(r->card, McReportCard, i);
        McFinding *f = find(list, c->fold);

        if (!f) {
            g_array_append_val(list, ((McFinding) { c->title, c->fold, 0 }));
            f = &g_array_index(list, McFinding, list->len - 1);
        }
        f->n++;
        of[i] = f - (McFinding *)list->data;
    }
    name_apart(r, list);
    return list;
}

static const McJsonArray members[] = {
    MC_JSON_ARRAY("name", McFinding, name),
    MC_JSON_ARRAY("fold", McFinding, fold),
    MC_JSON_ARRAY("errors", McFinding, n),
};

static void put_finding(GString *to, const void *row)
{
    mc_json_members(to, members, G_N_ELEMENTS(members), row);
}

/* Append the findings, and which one each card is of. */
static void put_findings(GString *to, McReport *r)
{
    g_autofree unsigned *of = g_new0(unsigned, r->card->len + 1);
    g_autoptr(GArray) list = find_findings(r, of);

    mc_json_objects(to, "findings", list, put_finding);
    mc_json_begin_list(to, "finding_of");
    for (unsigned i = 0; i < r->card->len; i++) {
        mc_json_item(to, of[i]);
    }
    g_string_append_c(to, ']');
}

/* ---- trees --------------------------------------------------------------- */

static const McJsonArray tree_arrays[] = {
    MC_JSON_ARRAY("depth", McTreeNode, depth),
    MC_JSON_ARRAY("name", McTreeNode, name),
    MC_JSON_ARRAY("cut", McTreeNode, cut),
};

static void put_tree(GString *to, const char *key, const GArray *tree,
                     bool compared)
{
    mc_json_key(to, key);
    g_string_append_c(to, '{');
    mc_json_arrays(to, tree_arrays, G_N_ELEMENTS(tree_arrays), tree);
    for (unsigned i = 0; i < MC_TREE_VALUES * (compared ? 2 : 1); i++) {
        bool base = i >= MC_TREE_VALUES;
        unsigned v = i % MC_TREE_VALUES;
        g_autofree char *name = g_strconcat(
            base ? "base_" : "", mc_top_columns[mc_tree_value[v]].key, NULL);
        McJsonArray a = base ? (McJsonArray)
                               MC_JSON_ARRAY(name, McTreeNode, base[0]) :
                               (McJsonArray)
                               MC_JSON_ARRAY(name, McTreeNode, value[0]);

        a.at += v * a.size;
        mc_json_arrays(to, &a, 1, tree);
    }
    g_string_append_c(to, '}');
}

static GArray *make_tree(McReport *r, bool inverted)
{
    unsigned **place = &r->place[inverted];

    g_free(*place);
    *place = g_new(unsigned, r->profile->stack->len + 1);
    return mc_stack_tree_new(r->profile, r->base ? r->base->profile : NULL,
                             r->strings, inverted, MC_TREE_NODES, *place);
}

static void put_trees(GString *to, McReport *r)
{
    g_autoptr(GArray) down = make_tree(r, false);
    g_autoptr(GArray) up = make_tree(r, true);

    put_tree(to, "down", down, r->base);
    put_tree(to, "up", up, r->base);
}

/* ---- tables -------------------------------------------------------------- */

static void put_value(GString *to, const McReportRow *row, unsigned id)
{
    if (row->known >> id & 1) {
        g_string_append_printf(to, "%" PRId64, row->value[id]);
    } else {
        g_string_append(to, "null");
    }
}

/* Append the values of one row as an object. */
static void put_row(GString *to, const char *key, const McReportRow *row)
{
    mc_json_key(to, key);
    g_string_append_c(to, '{');
    for (unsigned i = 0; i < MC_TOP__COUNT; i++) {
        mc_json_key(to, mc_top_columns[i].key);
        put_value(to, row, i);
    }
    g_string_append_c(to, '}');
}

static void put_columns(GString *to, const McReportTable *t)
{
    static const McJsonArray name = MC_JSON_ARRAY("name", McReportRow, name);

    mc_json_arrays(to, &name, 1, t->row);
    for (unsigned i = 0; i < MC_TOP__COUNT; i++) {
        mc_json_key(to, mc_top_columns[i].key);
        g_string_append_c(to, '[');
        for (unsigned k = 0; k < t->row->len; k++) {
            g_string_append(to, k ? "," : "");
            put_value(to, &g_array_index(t->row, McReportRow, k), i);
        }
        g_string_append_c(to, ']');
    }
}

static void put_table(GString *to, const void *row)
{
    const McReportTable *t = row;

    mc_json_text(to, "by", t->by);
    put_columns(to, t);
    mc_json_integer(to, "more", (int64_t)t->more);
    put_row(to, "rest", &t->rest);
}
/* The columns, for headings and explanations. */
static void put_heads(GString *to)
{
    mc_json_begin_list(to, "columns");
    for (unsigned i = 0; i < MC_TOP__COUNT; i++) {
        g_string_append(to, i ? ",{" : "{");
        mc_json_text(to, "key", mc_top_columns[i].key);
        mc_json_text(to, "help", mc_top_columns[i].help);
        mc_json_integer(to, "rare", mc_top_columns[i].group == MC_TOP_V);
        g_string_append_c(to, '}');
    }
    g_string_append_c(to, ']');
}

/* ---- errors -------------------------------------------------------------- */

static void put_parts(GString *to, const McReportCard *c)
{
    mc_json_begin_list(to, "stacks");
    for (unsigned i = 0; i < MC_CARD__COUNT; i++) {
        const McCardPart *part = &c->part[i];

        g_string_append(to, i ? "," : "");
        if (!part->frame) {
            g_string_append(to, "null");
            continue;
        }
        g_string_append_c(to, '{');
        mc_json_integer(to, "when", part->when);
        mc_json_ids(to, "frames", part->frame);
        g_string_append_c(to, '}');
    }
    g_string_append_c(to, ']');
}

#define C(member) MC_JSON_ARRAY(#member, McReportCard, member)

static const McJsonArray card_members[] = {
    C(fold), C(exact), C(kind), C(block), C(what), C(address), C(weak),
};

static void put_card(GString *to, const void *row)
{
    const McReportCard *c = row;

    mc_json_integer(to, "title", c->title);
    mc_json_ids(to, "alt", c->alt);
    mc_json_members(to, card_members, G_N_ELEMENTS(card_members), c);
    put_parts(to, c);
}

static void put_cards(GString *to, McReport *r)
{
    mc_json_integer(to, "errors", (int64_t)r->errors);
    put_findings(to, r);
    mc_json_objects(to, "cards", r->card, put_card);
}

/* ---- the kernel's log ---------------------------------------------------- */

static const McJsonArray line_arrays[] = {
    MC_JSON_ARRAY("name", McReportLine, text),
    MC_JSON_ARRAY("level", McReportLine, level),
    MC_JSON_ARRAY("us", McReportLine, us, .steps = true),
    MC_JSON_ARRAY("ns", McReportLine, ns, .steps = true),
    MC_JSON_ARRAY("number", McReportLine, number, .steps = true),
};

static void put_log(GString *to, const McReport *r)
{
    mc_json_key(to, "log");
    g_string_append_c(to, '{');
    mc_json_arrays(to, line_arrays, G_N_ELEMENTS(line_arrays), r->log);
    g_string_append_c(to, '}');
}

/* ---- all ----------------------------------------------------------------- */

static void put_meta(GString *to, const McReport *r)
{
    const McHeapProfile *p = r->profile;
    McReportRow total = { .known = p->total.known };

    memcpy(total.value, p->total.value, sizeof(total.value));
    mc_json_integer(to, "schema", 1);
    mc_json_text(to, "source", r->source);
    mc_json_text(to, "command", r->command);
    mc_json_text(to, "kernel", p->banner ? p->banner : "");
    mc_json_integer(to, "us", (int64_t)p->us);
    mc_json_integer(to, "stacks_seen", p->stack->len);
    put_row(to, "total", &total);
    mc_json_integer(to, "missing", p->missing);
    mc_json_texts(to, "notes", p->note);
}

void mc_put_report_json(GString *to, McReport *r)
{
    g_string_append_c(to, '{');
    put_meta(to, r);
    put_trees(to, r);
    put_heads(to);
    mc_json_objects(to, "tables", r->table, put_table);
    mc_put_job(to, r);
    put_cards(to, r);
    mc_put_leaks(to, r->leaks);
    mc_put_map(to, r->map);
    put_log(to, r);
    mc_put_report_time(to, r);
    mc_json_key(to, "base");
    if (r->base) {
        g_string_append_c(to, '{');
        put_meta(to, r->base);
        mc_json_integer(to, "errors", (int64_t)r->base->errors);
        mc_put_report_time(to, r->base);
        mc_put_joined_tables(to, r);
        g_string_append_c(to, '}');
    } else {
        g_string_append(to, "null");
    }
    mc_json_texts(to, "strings", r->strings->text);
    g_string_append_c(to, '}');
}
