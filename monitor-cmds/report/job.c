/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The job of a page: see report-data.h. */
#include "monitor-cmds/report/report-data.h"

#include <inttypes.h>
#include <string.h>

#include "monitor-cmds/table/put.h"

static void clear_card(gpointer p)
{
    g_array_unref(((McJobCard *)p)->text.line);
}

McJob *mc_job_new(McReport *r)
{
    McJob *j = g_new0(McJob, 1);

    j->problem = mc_strings_add(r->strings, "");
    j->detail.line = g_array_new(FALSE, FALSE, sizeof(unsigned));
    j->card = g_array_new(FALSE, TRUE, sizeof(McJobCard));
    g_array_set_clear_func(j->card, clear_card);
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

#define C(member) MC_JSON_ARRAY(#member, McJobCard, member)

static const McJsonArray card_members[] = {
    C(name), C(kind), C(fold), C(hidden),
};

static void put_card(GString *to, const void *row)
{
    mc_json_members(to, card_members, G_N_ELEMENTS(card_members), row);
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
    mc_json_objects(to, "cards", j->card, put_card);
    g_string_append_c(to, '}');
}
