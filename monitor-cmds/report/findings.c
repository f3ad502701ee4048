/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Findings of a page: see report-data.h. */
#include "monitor-cmds/report/report-data.h"

#include "monitor-cmds/table/put.h"

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

GArray *mc_report_findings(McReport *r, unsigned *of)
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

void mc_put_findings(GString *to, McReport *r)
{
    g_autofree unsigned *of = g_new0(unsigned, r->card->len + 1);
    g_autoptr(GArray) list = mc_report_findings(r, of);

    mc_json_objects(to, "findings", list, put_finding);
    mc_json_begin_list(to, "finding_of");
    for (unsigned i = 0; i < r->card->len; i++) {
        mc_json_item(to, of[i]);
    }
    g_string_append_c(to, ']');
}
