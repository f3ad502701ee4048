/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Folded stacks: a line for each different stack, and a number.
 *
 *     # [a comment]
 *     root;...;leaf 4096
 *
 * ka's stacks are leaf first, so their frames are written in reverse order.
 * Stacks that have equal names are one line. Readers ignore lines whose number
 * is zero or negative, so such stacks are not written. A comment says how many
 * they are, and their sum. A comment ends with "]", because readers that know
 * no comments take a line that ends with a number for a stack.
 */
#include "monitor-cmds/export/export.h"

#include <string.h>

/* Append a frame. ";" separates frames, and a line that begins with "#" is a
 * comment. */
static void put_frame(GString *line, const McProfileFrame *f, McFrames frames)
{
    g_autoptr(GString) name = g_string_new(NULL);

    mc_put_frame(name, f, frames);
    for (const char *c = name->str; *c; c++) {
        if (*c == ';' || (*c == '#' && !line->len)) {
            g_string_append_printf(line, "\\x%02x", (unsigned)*c);
        } else {
            g_string_append_c(line, *c);
        }
    }
}

static char *line_of(const McExport *e, const McProfileStack *s)
{
    const McHeapProfile *p = e->profile;
    GString *line = g_string_new(NULL);

    for (unsigned i = s->n; i-- > 0;) {
        unsigned id = g_array_index(p->path, unsigned, s->first + i);

        put_frame(line, &g_array_index(p->frame, McProfileFrame, id),
                  e->frames);
        g_string_append(line, i ? ";" : "");
    }
    return g_string_free(line, FALSE);
}

/* Return (owned) the sum of each line. */
static GHashTable *add_lines(const McExport *e)
{
    const GArray *stacks = e->profile->stack;
    GHashTable *sums = g_hash_table_new_full(g_str_hash, g_str_equal, g_free,
                                             g_free);

    for (unsigned i = 0; i < stacks->len; i++) {
        const McProfileStack *s = &g_array_index(stacks, McProfileStack, i);
        g_autofree char *line = line_of(e, s);
        int64_t *sum = g_hash_table_lookup(sums, line);

        if (!sum) {
            sum = g_new0(int64_t, 1);
            g_hash_table_insert(sums, g_steal_pointer(&line), sum);
        }
        *sum += s->value[e->value];
    }
    return sums;
}

static int compare_lines(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Return (owned) the lines in order. */
static GPtrArray *sorted(GHashTable *sums)
{
    GPtrArray *lines = g_ptr_array_new();
    GHashTableIter it;
    gpointer line;

    g_hash_table_iter_init(&it, sums);
    while (g_hash_table_iter_next(&it, &line, NULL)) {
        g_ptr_array_add(lines, line);
    }
    g_ptr_array_sort(lines, compare_lines);
    return lines;
}

static void write_head(const McExport *e, GHashTable *sums, FILE *to)
{
    const McHeapProfile *p = e->profile;
    GHashTableIter it;
    gpointer sum;
    uint64_t n = 0;
    int64_t negative = 0;

    fprintf(to, "# [ka: %s (%s) of each stack, root first]\n",
            mc_top_columns[e->value].key, mc_top_columns[e->value].help);
    if (p->banner) {
        fprintf(to, "# [kernel: %s]\n", p->banner);
    }
    for (unsigned i = 0; i < p->note->len; i++) {
        fprintf(to, "# [%s]\n", (const char *)p->note->pdata[i]);
    }
    g_hash_table_iter_init(&it, sums);
    while (g_hash_table_iter_next(&it, NULL, &sum)) {
        n += *(int64_t *)sum < 0;
        negative += MIN(*(int64_t *)sum, 0);
    }
    if (n) {
        fprintf(to, "# [left out, because they are negative: %" PRIu64
                " stacks, their sum is %" PRId64 "]\n", n, negative);
    }
}

bool mc_export_folded(const McExport *e, FILE *to, GError **errp)
{
    g_autoptr(GHashTable) sums = add_lines(e);
    g_autoptr(GPtrArray) lines = sorted(sums);

    write_head(e, sums, to);
    for (unsigned i = 0; i < lines->len; i++) {
        const char *line = lines->pdata[i];
        int64_t sum = *(int64_t *)g_hash_table_lookup(sums, line);

        if (sum > 0) {
            fprintf(to, "%s %" PRId64 "\n", line, sum);
        }
    }
    return true;
}
