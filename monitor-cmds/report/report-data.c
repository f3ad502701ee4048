/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a page shows: see report-data.h. */
#include "monitor-cmds/report/report-data.h"

#include <string.h>


static void clear_table(gpointer p)
{
    McReportTable *t = p;

    g_array_unref(t->row);
    g_clear_pointer(&t->tail, g_array_unref);
}

static void clear_card(gpointer p)
{
    McReportCard *c = p;

    g_array_unref(c->alt);
    for (unsigned i = 0; i < MC_CARD__COUNT; i++) {
        g_clear_pointer(&c->part[i].frame, g_array_unref);
    }
}

McReport *mc_report_new(void)
{
    McReport *r = g_new0(McReport, 1);

    r->profile = mc_heap_profile_new();
    r->strings = mc_strings_new();
    r->command = g_strdup("ka");
    r->source = g_strdup("");
    r->table = g_array_new(FALSE, TRUE, sizeof(McReportTable));
    r->card = g_array_new(FALSE, TRUE, sizeof(McReportCard));
    r->leaks = mc_leak_groups_new();
    r->map = mc_map_columns_new();
    r->leaks->scan = mc_strings_add(r->strings, "");
    g_array_set_clear_func(r->table, clear_table);
    g_array_set_clear_func(r->card, clear_card);
    return r;
}

McReport *mc_report_add_base(McReport *r)
{
    McReport *base = mc_report_new();

    mc_strings_free(base->strings);
    base->strings = r->strings;
    base->joined = r->joined = true;
    r->base = base;
    return base;
}

static void free_one(McReport *r)
{
    mc_heap_profile_free(r->profile);
    mc_strings_free(r->strings);
    g_free(r->command);
    g_free(r->source);
    g_array_unref(r->table);
    g_array_unref(r->card);
    mc_leak_groups_free(r->leaks);
    mc_map_columns_free(r->map);
    mc_job_free(r->job);
    mc_timeline_free(r->timeline);
    mc_time_steps_free(r->steps);
    g_free(r->place[0]);
    g_free(r->place[1]);
    g_free(r);
}

void mc_report_free(McReport *r)
{
    if (!r) {
        return;
    }
    if (r->base) {
        r->base->strings = NULL;        /* they are those of r */
        free_one(r->base);
    }
    free_one(r);
}

unsigned mc_report_text(McReport *r, const char *text)
{
    g_autoptr(GString) s = g_string_new(NULL);

    for (const char *c = text; *c; c++) {
        if (s->len >= MC_PROFILE_NAME_MAX) {
            g_string_append(s, "...");
            break;
        }
        if (*c >= 0x20 && *c < 0x7f) {
            g_string_append_c(s, *c);
        } else {
            g_string_append_printf(s, "\\x%02x", (unsigned char)*c);
        }
    }
    return mc_strings_add(r->strings, s->str);
}

/* ---- tables and cards ---------------------------------------------------- */

McReportTable *mc_report_table(McReport *r, const char *by)
{
    McReportTable t = { .by = by };

    t.row = g_array_new(FALSE, TRUE, sizeof(McReportRow));
    if (r->joined) {
        t.tail = g_array_new(FALSE, TRUE, sizeof(McReportRow));
    }
    g_array_append_val(r->table, t);
    return &g_array_index(r->table, McReportTable, r->table->len - 1);
}

void mc_report_row(McReportTable *t, const McReportRow *row)
{
    if (t->row->len < MC_REPORT_ROWS) {
        g_array_append_vals(t->row, row, 1);
        return;
    }
    t->more++;
    if (t->tail) {
        g_array_append_vals(t->tail, row, 1);
    }
    for (unsigned i = 0; i < MC_TOP__COUNT; i++) {
        if (mc_top_is_sum(i)) {
            t->rest.value[i] += row->value[i];
            t->rest.known |= 1u << i;
        }
    }
}

McReportCard *mc_report_card(McReport *r)
{
    McReportCard c = { 0 };

    r->errors++;
    if (r->card->len >= MC_REPORT_CARDS) {
        return NULL;
    }
    c.alt = g_array_new(FALSE, FALSE, sizeof(unsigned));
    g_array_append_val(r->card, c);
    return &g_array_index(r->card, McReportCard, r->card->len - 1);
}
