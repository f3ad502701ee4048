/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rows as a table: a line of headings, and columns that are as wide as their
 * widest value.
 *
 *     pid  comm   live      born
 *       1  init   13.5 MiB  4 s ago
 *      77  worker     64 B  208 us ago  running
 *
 * So a row waits until the last one is known. Lines that a command prints
 * between the rows or behind them wait, too, so that all keep their order.
 * Columns of the row's text that have no heading follow it ("running").
 *
 * Called by row.c and out.c, on the thread of the command; no locks.
 */
#include "monitor-cmds/output/row.h"

#include <string.h>

#define MOST_COLUMNS 32
/* A cell that is wider makes only its own row wider. */
#define MOST_WIDTH 40
/* A table with more lines is printed in parts, to limit the memory. */
#define MOST_LINES 4096

#define BETWEEN "  "
#define CUT " ..."

/** struct Line - a row or another line; @cells: (nullable) of a row, as many as
 *  the table has columns; @text: another line, or what follows the cells */
typedef struct Line {
    char **cells;
    char *text;
} Line;

/** struct McTable - the table that is made; @headed: its headings are printed;
 *  @lines: of Line, those that wait */
struct McTable {
    unsigned n;
    const McColumn *column[MOST_COLUMNS];
    size_t width[MOST_COLUMNS];
    bool headed;
    GArray *lines;
};

static void line_clear(gpointer p)
{
    Line *l = p;

    g_strfreev(l->cells);
    g_free(l->text);
}

void mc_table_free(McTable *t)
{
    if (t) {
        g_array_unref(t->lines);
        g_free(t);
    }
}

/* ---- columns ------------------------------------------------------------- */

static bool is_cell(const McOut *o, const McColumn *c, const void *row)
{
    bool wide = c->flags & MC_WIDE && !o->whole &&
                g_strcmp0(c->head, o->sorted_by);

    return c->head && *c->head && !wide && mc_applies(o, c, row) &&
           (o->verbose || !(c->flags & MC_TEXT_V));
}

/* Find the columns of the row's table. */
static void find_columns(const McOut *o, const McObject *object,
                         const void *row, McTable *t)
{
    t->n = 0;
    for (unsigned i = 0; i < MC_SETS && object->columns[i]; i++) {
        for (const McColumn *c = object->columns[i]; c->key || c->text; c++) {
            if (is_cell(o, c, row) && t->n < MOST_COLUMNS) {
                t->column[t->n++] = c;
            }
        }
    }
}

static bool has_headings(const McTable *t, const McTable *other)
{
    for (unsigned i = 0; t && i < other->n && t->n == other->n; i++) {
        if (strcmp(t->column[i]->head, other->column[i]->head)) {
            return false;
        }
    }
    return t && t->n == other->n;
}

/* End the table before, and begin one. */
static void begin(McOut *o, const McTable *columns)
{
    McTable *t;

    mc_table_put(o);
    g_clear_pointer(&o->table, mc_table_free);
    t = o->table = g_memdup2(columns, sizeof(*columns));
    t->lines = g_array_new(FALSE, FALSE, sizeof(Line));
    g_array_set_clear_func(t->lines, line_clear);
    for (unsigned i = 0; i < t->n; i++) {
        t->width[i] = strlen(t->column[i]->head);
    }
}

/* ---- lines --------------------------------------------------------------- */

static void add_line(McOut *o, char **cells, char *text)
{
    const Line l = { cells, text };

    g_array_append_val(o->table->lines, l);
    if (o->table->lines->len >= MOST_LINES) {
        mc_table_put(o);
    }
}

void mc_table_line(McOut *o, const char *text)
{
    add_line(o, NULL, g_strdup(text));
}

void mc_table_row(McOut *o, const McObject *object, const void *row)
{
    g_autoptr(GString) s = g_string_new(NULL);
    McTable columns = { 0 };
    char **cells;

    find_columns(o, object, row, &columns);
    if (!has_headings(o->table, &columns)) {
        begin(o, &columns);
    }
    cells = g_new0(char *, columns.n + 1);
    for (unsigned i = 0; i < columns.n; i++) {
        g_string_truncate(s, 0);
        mc_put_cell(o, s, columns.column[i], row);
        cells[i] = g_strdup(s->str);
        o->table->width[i] = MAX(o->table->width[i], MIN(s->len, MOST_WIDTH));
    }
    g_string_truncate(s, 0);
    for (unsigned i = 0; i < MC_SETS && object->columns[i]; i++) {
        mc_put_notes(o, s, object->columns[i], row);
    }
    add_line(o, cells, g_strdup(s->str));
}

/* ---- printing ------------------------------------------------------------ */

static bool is_right(const McColumn *c)
{
    return c->look < MC_LOOK_YES_NO || c->look == MC_LOOK_PID;
}

static void end_line(McOut *o, GString *s)
{
    while (s->len && s->str[s->len - 1] == ' ') {
        g_string_truncate(s, s->len - 1);
    }
    mc_out_put_line(o, s);
}

/* Cut a text of several words if it does not fit in a line of its own. */
static void cut(GString *s)
{
    size_t len = MC_COLUMNS - strlen(CUT);

    while (len && ((unsigned char)s->str[len] & 0xc0) == 0x80) {
        len--;
    }
    g_string_truncate(s, len);
    g_string_append(s, CUT);
}

/* Append a part of a row. It begins a line if it does not fit. */
static void put_part(McOut *o, GString *s, const char *part)
{
    if (!o->whole && s->len && s->len + strlen(part) > MC_COLUMNS) {
        end_line(o, s);
        g_string_append(s, MC_INDENT);
        part += strspn(part, " ");
        g_string_append(s, part);
        if (s->len > MC_COLUMNS && strchr(part, ' ')) {
            cut(s);
        }
        return;
    }
    g_string_append(s, part);
}

/* Append a cell, or a heading. */
static void put_cell(McOut *o, GString *s, const McTable *t, unsigned i,
                     const char *text)
{
    g_autoptr(GString) part = g_string_new(i ? BETWEEN : "");
    size_t from = part->len;

    g_string_append(part, text);
    if (is_right(t->column[i])) {
        mc_put_padded(part, from, t->width[i]);
    }
    while (i + 1 < t->n && part->len - from < t->width[i]) {
        g_string_append_c(part, ' ');
    }
    put_part(o, s, part->str);
}

static void put_headings(McOut *o, GString *s, McTable *t)
{
    t->headed = true;
    for (unsigned i = 0; i < t->n; i++) {
        put_cell(o, s, t, i, t->column[i]->head);
    }
    end_line(o, s);
}

static void put_notes(McOut *o, GString *s, const char *text)
{
    g_auto(GStrv) notes = g_strsplit(text, " ", -1);
    const char *between = BETWEEN;

    for (unsigned i = 0; notes[i]; i++) {
        g_autofree char *part = g_strconcat(between, notes[i], NULL);

        if (*notes[i]) {
            put_part(o, s, part);
            between = " ";
        }
    }
}

static void put_line(McOut *o, GString *s, McTable *t, const Line *l)
{
    if (!l->cells) {
        g_string_append(s, l->text);
        mc_out_put_line(o, s);
        return;
    }
    if (!t->headed) {
        put_headings(o, s, t);
    }
    for (unsigned i = 0; i < t->n; i++) {
        put_cell(o, s, t, i, l->cells[i]);
    }
    put_notes(o, s, l->text);
    end_line(o, s);
}

void mc_table_put(McOut *o)
{
    McTable *t = o->table;
    g_autoptr(GString) s = g_string_new(NULL);

    if (!t) {
        return;
    }
    for (unsigned i = 0; i < t->lines->len; i++) {
        put_line(o, s, t, &g_array_index(t->lines, Line, i));
    }
    g_array_set_size(t->lines, 0);
}
