/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rows in the form that the user asked for: see row.h. */
#include "monitor-cmds/output/row.h"

static void end_object(McOut *o)
{
    g_string_append_c(o->line, '}');
    mc_out_end_line(o);
}

/* Append the line of text as a key. It is made in a string of its own. */
static void put_line(McOut *o, const McObject *object, const void *row,
                     const char *text)
{
    mc_json_key(o->line, "text");
    if (!text) {
        g_string_truncate(o->word, 0);
        mc_put_row(o, o->word, object, row);
        text = o->word->str;
    }
    mc_json_string(o->line, text);
    g_string_truncate(o->word, 0);
}

static void print_json(McOut *o, const McObject *object, const void *row,
                       const char *text)
{
    if (!object->type) {
        return;
    }
    mc_json_open(o, object);
    for (unsigned i = 0; i < MC_SETS && object->columns[i]; i++) {
        mc_json_columns(o, object->columns[i], row);
    }
    if (object->line) {
        put_line(o, object, row, text);
    }
    end_object(o);
}

void mc_print_line(McOut *o, const McObject *object, const void *row,
                   const char *text)
{
    if (o->json) {
        print_json(o, object, row, text);
    } else if (o->long_form && object->is_block) {
        mc_long_row(o, object, row);
    } else if (text && object->long_lines) {
        g_string_append(o->line, text);
        mc_out_end_line(o);
    } else if (text) {
        mc_out_wrapped(o, text);
    } else if (object->is_table) {
        mc_table_row(o, object, row);
    } else {
        mc_put_row(o, o->line, object, row);
        mc_end_row(o);
    }
}

void mc_print(McOut *o, const McObject *object, const void *row)
{
    mc_print_line(o, object, row, NULL);
}

void mc_more(McOut *o, uint64_t n)
{
    if (o->json) {
        g_string_append_c(o->line, '{');
        mc_json_number(o->line, "more", n);
        end_object(o);
    } else {
        mc_out_printf(o, "... %" PRIu64 " more", n);
    }
}

void mc_remark(McOut *o, const char *text)
{
    if (!o->json) {
        mc_out_wrapped(o, text);
    }
}

void mc_remarkf(McOut *o, const char *format, ...)
{
    g_autofree char *text = NULL;
    va_list args;

    va_start(args, format);
    text = g_strdup_vprintf(format, args);
    va_end(args);
    mc_remark(o, text);
}

bool mc_goes_on(McOut *o, uint64_t i, uint64_t n, uint64_t limit)
{
    if (i == limit && i < n && !o->closed) {
        mc_more(o, n - i);
    }
    return i < MIN(n, limit) && !o->closed;
}

void mc_set_margin(McOut *o, uint64_t offset)
{
    unsigned width = sizeof("> + ");

    for (; offset >> 4; offset >>= 4) {
        width++;
    }
    o->margin = MAX(o->margin, MAX(width, MC_MARGIN));
}

void mc_fail(McOut *o, const char *text)
{
    if (o->json) {
        g_string_append_c(o->line, '{');
        mc_json_text(o->line, "fail", text);
        end_object(o);
    } else {
        g_string_append_printf(o->line, "ka: %s", text);
        mc_out_end_line(o);
    }
}

void mc_put_bytes(const McOut *o, GString *s, uint64_t bytes)
{
    if (o->exact || bytes < 1024) {
        g_string_append_printf(s, "%" PRIu64 " bytes", bytes);
    } else {
        mc_put_size(s, bytes);
    }
}

/* ---- figures ------------------------------------------------------------- */

static void print_figure(McOut *o, const McColumn *c, const void *row)
{
    g_autoptr(GString) value = g_string_new(NULL);
    McValue v = { 0 };

    if (mc_value(o, c, row, &v)) {
        mc_put_text_value(o, value, c, &v);
    } else if (c->flags & MC_OMIT) {
        return;
    } else {
        g_string_append_c(value, '-');
    }
    mc_out_printf(o, "  %-22s %14s%s%s", c->key, value->str,
                  c->help ? "  " : "", c->help ? c->help : "");
}

void mc_figures_begin(McOut *o, const McObject *object)
{
    if (o->json) {
        mc_json_open(o, object);
    }
}

void mc_figures(McOut *o, const char *heading, const McColumn *columns,
                const void *row)
{
    if (o->json) {
        mc_json_columns(o, columns, row);
        return;
    }
    if (heading) {
        mc_out_printf(o, "%s", heading);
    }
    for (const McColumn *c = columns; c->key; c++) {
        if (mc_applies(o, c, row)) {
            print_figure(o, c, row);
        }
    }
}

void mc_figures_end(McOut *o)
{
    if (o->json) {
        end_object(o);
    }
}
