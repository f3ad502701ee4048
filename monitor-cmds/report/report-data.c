/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a page shows: see report-data.h. */
#include "monitor-cmds/report/report-data.h"

#include <inttypes.h>
#include <string.h>

#include "monitor-cmds/table/put.h"

/* ---- strings ------------------------------------------------------------- */

McStrings *mc_strings_new(void)
{
    McStrings *s = g_new0(McStrings, 1);

    s->text = g_ptr_array_new();
    s->ids = g_hash_table_new(g_str_hash, g_str_equal);
    s->bytes = g_string_chunk_new(4096);
    return s;
}

void mc_strings_free(McStrings *s)
{
    if (!s) {
        return;
    }
    g_ptr_array_unref(s->text);
    g_hash_table_unref(s->ids);
    g_string_chunk_free(s->bytes);
    g_free(s);
}

unsigned mc_strings_add(McStrings *s, const char *text)
{
    gpointer id;
    char *copy;

    if (g_hash_table_lookup_extended(s->ids, text, NULL, &id)) {
        return GPOINTER_TO_UINT(id);
    }
    copy = g_string_chunk_insert(s->bytes, text);
    g_ptr_array_add(s->text, copy);
    g_hash_table_insert(s->ids, copy, GUINT_TO_POINTER(s->text->len - 1));
    return s->text->len - 1;
}

const char *mc_strings_text(const McStrings *s, unsigned id)
{
    return s->text->pdata[id];
}

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
    r->log = g_array_new(FALSE, TRUE, sizeof(McReportLine));
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
    g_array_unref(r->log);
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

/* ---- leaks --------------------------------------------------------------- */

const char *mc_left_key(McLeftId id)
{
    static const char *const keys[MC_LEFT__COUNT] = {
        "unloaded_us", "blocks", "bytes", "withdrawn", "leaked", "leaked_bytes",
        "kept", "kept_bytes", "bad_frees", "unsure", "not_listed",
    };

    return keys[id];
}

static void clear_group(gpointer p)
{
    g_clear_pointer(&((McLeakGroup *)p)->alloc.frame, g_array_unref);
}

McLeakGroups *mc_leak_groups_new(void)
{
    McLeakGroups *l = g_new0(McLeakGroups, 1);

    l->group = g_array_new(FALSE, TRUE, sizeof(McLeakGroup));
    l->module = g_array_new(FALSE, TRUE, sizeof(McLeftModule));
    g_array_set_clear_func(l->group, clear_group);
    return l;
}

void mc_leak_groups_free(McLeakGroups *l)
{
    if (!l) {
        return;
    }
    g_array_unref(l->group);
    g_array_unref(l->module);
    g_free(l);
}

McLeakGroup *mc_leak_groups_add(McLeakGroups *l)
{
    static const McLeakGroup none = { 0 };

    if (l->group->len >= MC_REPORT_GROUPS) {
        l->more++;
        return NULL;
    }
    g_array_append_val(l->group, none);
    return &g_array_index(l->group, McLeakGroup, l->group->len - 1);
}

/* ---- JSON ---------------------------------------------------------------- */

#define G(member) MC_JSON_ARRAY(#member, McLeakGroup, member)

static const McJsonArray group_members[] = {
    G(module), G(state), G(title), G(fold), G(exact), G(weak), G(block),
    G(address), MC_JSON_ARRAY("blocks", McLeakGroup, n),
};

static void put_group(GString *to, const void *row)
{
    const McLeakGroup *g = row;

    mc_json_members(to, group_members, G_N_ELEMENTS(group_members), g);
    if (g->bytes_known) {
        mc_json_integer(to, "bytes", (int64_t)g->bytes);
    }
    mc_json_integer(to, "held", (int64_t)g->held);
    if (g->alloc.frame) {
        mc_json_integer(to, "when", g->alloc.when);
        mc_json_ids(to, "frames", g->alloc.frame);
    }
}

static void put_module(GString *to, const void *row)
{
    const McLeftModule *m = row;

    mc_json_integer(to, "name", m->name);
    for (unsigned i = 0; i < MC_LEFT__COUNT; i++) {
        if (m->known >> i & 1) {
            mc_json_integer(to, mc_left_key(i), m->value[i]);
        }
    }
}

static void put_scan(GString *to, const McLeakGroups *l)
{
    mc_json_integer(to, "scan", l->scan);
    mc_json_integer(to, "scanned", l->scanned);
    if (l->scanned) {
        mc_json_integer(to, "leaks", l->leaks);
        mc_json_integer(to, "stacks", l->stacks);
        mc_json_integer(to, "bytes", l->bytes);
        mc_json_integer(to, "us", l->us);
    }
}

void mc_put_leaks(GString *to, const McLeakGroups *l)
{
    mc_json_key(to, "leaks");
    g_string_append_c(to, '{');
    put_scan(to, l);
    mc_json_objects(to, "groups", l->group, put_group);
    mc_json_integer(to, "more", (int64_t)l->more);
    mc_json_objects(to, "modules", l->module, put_module);
    g_string_append_c(to, '}');
}

/* ---- the job ------------------------------------------------------------- */

static void clear_job_card(gpointer p)
{
    g_array_unref(((McJobCard *)p)->text.line);
}

McJob *mc_job_new(McReport *r)
{
    McJob *j = g_new0(McJob, 1);

    j->problem = mc_strings_add(r->strings, "");
    j->detail.line = g_array_new(FALSE, FALSE, sizeof(unsigned));
    j->card = g_array_new(FALSE, TRUE, sizeof(McJobCard));
    g_array_set_clear_func(j->card, clear_job_card);
    return j;
}

void mc_job_free(McJob *j)
{
    if (!j) {
        return;
    }
    g_array_unref(j->detail.line);
    g_array_unref(j->card);
    g_free(j);
}

void mc_job_text(McReport *r, McJobText *to, const char *text)
{
    while (*text) {
        size_t len = strcspn(text, "\n");
        g_autofree char *line = g_strndup(text, len);

        if (to->line->len < MC_JOB_LINES) {
            unsigned id = mc_report_text(r, line);

            g_array_append_val(to->line, id);
        } else {
            to->more++;
        }
        text += len + (text[len] == '\n');
    }
}

McJobCard *mc_job_add(McJob *j)
{
    McJobCard c = { 0 };

    if (j->card->len >= MC_JOB_CARDS) {
        j->more++;
        return NULL;
    }
    c.text.line = g_array_new(FALSE, FALSE, sizeof(unsigned));
    g_array_append_val(j->card, c);
    return &g_array_index(j->card, McJobCard, j->card->len - 1);
}

char *mc_job_summary(const McReport *r)
{
    const McJob *j = r->job;
    const char *problem = mc_strings_text(r->strings, j->problem);
    g_autoptr(GString) s = g_string_new(NULL);

    if (!j->failing && !j->hidden && !*problem) {
        return g_strdup("No errors were found.");
    }
    g_string_append_printf(s, "%" PRIu64 " finding%s", j->failing,
                           j->failing == 1 ? "" : "s");
    if (j->hidden) {
        g_string_append_printf(s, ", and %" PRIu64 " suppressed or known",
                               j->hidden);
    }
    g_string_append(s, ". ");
    if (*problem) {
        g_string_append_printf(s, "The run is not complete: %s", problem);
    } else {
        g_string_append(s, "The run is complete.");
    }
    return g_string_free(g_steal_pointer(&s), FALSE);
}

/* ---- JSON ---------------------------------------------------------------- */

static void put_lines(GString *to, const char *key, const McJobText *text)
{
    g_autofree char *more = g_strconcat(key, "_more", NULL);

    mc_json_ids(to, key, text->line);
    mc_json_integer(to, more, (int64_t)text->more);
}

#define J(member) MC_JSON_ARRAY(#member, McJobCard, member)

static const McJsonArray job_card_members[] = {
    J(name), J(kind), J(fold), J(hidden),
};

static void put_job_card(GString *to, const void *row)
{
    mc_json_members(to, job_card_members, G_N_ELEMENTS(job_card_members), row);
    put_lines(to, "text", &((const McJobCard *)row)->text);
}

void mc_put_job(GString *to, const McReport *r)
{
    const McJob *j = r->job;
    g_autofree char *summary = j ? mc_job_summary(r) : NULL;

    mc_json_key(to, "job");
    if (!j) {
        g_string_append(to, "null");
        return;
    }
    g_string_append_c(to, '{');
    mc_json_text(to, "summary", summary);
    mc_json_integer(to, "problem", j->problem);
    put_lines(to, "detail", &j->detail);
    mc_json_integer(to, "failing", (int64_t)j->failing);
    mc_json_integer(to, "hidden", (int64_t)j->hidden);
    mc_json_integer(to, "more", (int64_t)j->more);
    mc_json_objects(to, "cards", j->card, put_job_card);
    g_string_append_c(to, '}');
}
