/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rows as text, for people, and for tools that split lines at blanks: see
 * row.h. Called on the thread of a command; no locks.
 */
#include "monitor-cmds/output/row.h"

#include <string.h>

/* Only this end of a stack is said: the last frame looks like an end. */
#define CUT " (cut: a tracer replaced the return address)"

/* ---- rows that fit a terminal -------------------------------------------- */

/* How a row is printed, one way after the other until it fits: McOut.narrow. In
 * one line with at most three frames of each stack; with a line for each stack;
 * with fewer frames; without offsets. */
enum { WHOLE, ONE_LINE, FRAMES_3, FRAMES_2, FRAMES_1, NO_OFFSETS };

static unsigned most_frames(const McOut *o)
{
    return o->narrow == WHOLE ? UINT_MAX : o->narrow <= FRAMES_3 ? 3 :
           o->narrow == FRAMES_2 ? 2 : 1;
}

/* Return the first frame that is printed. Rows of accesses begin with the
 * instruction, whoever it belongs to. */
static unsigned first_frame(McOut *o, const McStack *stack)
{
    unsigned i = 0;

    if (o->narrow == WHOLE || (stack->exact && !o->stack_lines)) {
        return 0;
    }
    for (; i < stack->n; i++) {
        McFrame frame = mc_frame(stack, i);

        if (!mc_frame_name(o, &frame)->is_helper) {
            return i;
        }
    }
    return 0;
}

static void put_sets(McOut *o, GString *s, const McObject *object,
                     const void *row)
{
    o->n_widths = 0;
    for (unsigned i = 0; i < MC_SETS && object->columns[i]; i++) {
        mc_put_columns(o, s, object->columns[i], row, 0);
    }
}

void mc_put_row(McOut *o, GString *s, const McObject *object, const void *row)
{
    size_t from = s->len;

    o->n_lines = 0;
    if (o->json || o->whole || object->long_lines) {
        put_sets(o, s, object, row);
        return;
    }
    o->stack_lines = object->is_block;
    for (o->narrow = ONE_LINE; o->narrow <= NO_OFFSETS; o->narrow++) {
        g_string_truncate(s, from);
        o->line_at[0] = o->item_at = from;
        o->n_lines = 1;
        o->too_long = false;
        put_sets(o, s, object, row);
        if (!o->too_long && (o->narrow > ONE_LINE || o->n_lines == 1 ||
                             !o->stack_lines)) {
            break;
        }
    }
    o->narrow = WHOLE;
}

/* Return the columns of the last line. */
static size_t columns(const McOut *o, const GString *s)
{
    return s->len - o->line_at[o->n_lines - 1] +
           (o->n_lines > 1 ? strlen(MC_INDENT) - 1 : 0);
}

/* Begin a new line with the last item. */
static void begin_line(McOut *o)
{
    if (o->item_at > o->line_at[o->n_lines - 1] && o->n_lines < MC_ROW_LINES) {
        o->line_at[o->n_lines++] = o->item_at;
    }
}

/* Column @c was appended at @start. An item is a column that begins with a
 * space, and those behind it that do not. */
static void wrap(McOut *o, const GString *s, const McColumn *c, size_t start)
{
    if (s->str[start] == ' ') {
        o->item_at = start;
        if (c->look == MC_LOOK_STACK && o->narrow > ONE_LINE &&
            o->stack_lines) {
            begin_line(o);
        }
    }
    if (columns(o, s) > MC_COLUMNS) {
        begin_line(o);
        o->too_long |= columns(o, s) > MC_COLUMNS;
    }
}

void mc_end_row(McOut *o)
{
    g_autofree char *text = NULL;
    unsigned n = o->n_lines;

    if (!n) {
        mc_out_end_line(o);
        return;
    }
    text = g_strndup(o->line->str, o->line->len);
    g_string_truncate(o->line, 0);
    for (unsigned i = 0; i < n; i++) {
        size_t at = o->line_at[i] + !!i;
        size_t end = i + 1 < n ? o->line_at[i + 1] : strlen(text);
        g_autofree char *part = g_strndup(text + at, end - at);
        g_autofree char *line = g_strconcat(i ? MC_INDENT : "", part, NULL);

        mc_out_wrapped(o, line);
    }
}

/* ---- values -------------------------------------------------------------- */

static void put_stack(McOut *o, GString *s, const McStack *stack, McLook look)
{
    unsigned first = first_frame(o, stack), most = most_frames(o);
    bool more = stack->n - first > most;

    for (unsigned i = first; i < (more ? first + most : stack->n); i++) {
        McFrame frame = mc_frame(stack, i);
        const McFrameName *name = mc_frame_name(o, &frame);

        if (i > first || look == MC_LOOK_TAIL) {
            g_string_append_c(s, ' ');
        }
        g_string_append(s, o->narrow >= NO_OFFSETS ? name->function :
                           name->full);
    }
    if (more) {
        g_string_append(s, " ...");
        return;
    }
    if (stack->n && stack->stop == GS_STOP_REPLACED && look != MC_LOOK_FRAMES) {
        g_string_append(s, CUT);
    }
}

static void put_list(GString *s, const char *const *text)
{
    for (unsigned i = 0; text[i]; i++) {
        g_string_append_printf(s, "%s%s", i ? "; " : "", text[i]);
    }
}

static void put_caller(McOut *o, GString *s, const McFrame *f)
{
    if (f->pc) {
        g_string_append(s, mc_frame_name(o, f)->full);
    } else {
        g_string_append_c(s, '-');
    }
}

static void put_unit(const McOut *o, GString *s, const McColumn *c, uint64_t u)
{
    bool is_signed = c->look == MC_LOOK_DIFFERENCE ||
                     c->look == MC_LOOK_INTEGER;

    if (is_signed && (int64_t)u < 0) {
        g_string_append_c(s, '-');
        u = -u;
    } else if (c->look == MC_LOOK_DIFFERENCE && u) {
        g_string_append_c(s, '+');
    }
    if (c->unit == MC_SIZE) {
        mc_put_size(s, u);
    } else if (c->unit == MC_AGE && u <= o->newest_us) {
        mc_put_age(s, o->newest_us - u);
    } else {
        mc_put_duration(s, u);
    }
}

void mc_put_text_value(McOut *o, GString *s, const McColumn *c,
                       const McValue *v)
{
    if (c->unit && !o->exact) {
        put_unit(o, s, c, v->u);
        return;
    }
    switch (c->look) {
    case MC_LOOK_NUMBER:
    case MC_LOOK_PID:
        mc_put_decimal(s, v->u);
        break;
    case MC_LOOK_INTEGER:
        g_string_append_printf(s, "%" PRId64, (int64_t)v->u);
        break;
    case MC_LOOK_DIFFERENCE:
        g_string_append_printf(s, v->u ? "%+" PRId64 : "%" PRId64,
                               (int64_t)v->u);
        break;
    case MC_LOOK_BYTES:
    case MC_LOOK_HEX:
    case MC_LOOK_MARGIN:
        mc_put_hex(s, v->u, 1);
        break;
    case MC_LOOK_ADDRESS:
        mc_put_hex(s, v->u, 16);
        break;
    case MC_LOOK_POINTER:
        mc_put_hex(s, v->u, v->u ? 16 : 1);
        break;
    case MC_LOOK_OCTAL:
        g_string_append_printf(s, "0%" PRIo64, v->u);
        break;
    case MC_LOOK_YES_NO:
        g_string_append(s, v->u ? "yes" : "no");
        break;
    case MC_LOOK_ACCESS:
        g_string_append_c(s, v->u ? 'w' : 'r');
        break;
    case MC_LOOK_LETTER:
        g_string_append_c(s, (char)v->u);
        break;
    case MC_LOOK_TEXT:
    case MC_LOOK_STOP:
        g_string_append(s, v->s);
        break;
    case MC_LOOK_LIST:
        put_list(s, v->list);
        break;
    case MC_LOOK_STACK:
    case MC_LOOK_TAIL:
    case MC_LOOK_FRAMES:
        put_stack(o, s, &v->stack, c->look);
        break;
    case MC_LOOK_CALLER:
        put_caller(o, s, &v->frame);
        break;
    case MC_LOOK_CUSTOM:
        break;
    default:
        mc_put_word(s, v->s);
        break;
    }
}

/* ---- what is around a value ---------------------------------------------- */

/* Insert or append blanks until @width characters follow @from. */
static void pad(GString *s, size_t from, size_t width, bool left)
{
    for (size_t len = s->len - from; len < width; len++) {
        if (left) {
            g_string_append_c(s, ' ');
        } else {
            g_string_insert_c(s, (gssize)from, ' ');
        }
    }
}

void mc_put_padded(GString *s, size_t from, size_t width)
{
    pad(s, from, width, false);
}

/* Read "-5" or "*"; return what follows. */
static const char *read_width(McOut *o, const char *at, bool *left,
                              size_t *width)
{
    *left = *at == '-';
    at += *left;
    *width = 0;
    if (*at == '*') {
        *width = o->width[o->n_widths++ % G_N_ELEMENTS(o->width)];
        at++;
    }
    while (g_ascii_isdigit(*at)) {
        *width = *width * 10 + (size_t)(*at++ - '0');
    }
    return at;
}

/* Append what follows the value; of "{a|b}" only one. */
static void put_after(GString *s, const char *at, bool one)
{
    const char *choice, *bar, *end;

    while ((choice = strchr(at, '{'))) {
        bar = strchr(choice, '|');
        end = strchr(bar, '}');
        g_string_append_len(s, at, choice - at);
        if (one) {
            g_string_append_len(s, choice + 1, bar - choice - 1);
        } else {
            g_string_append_len(s, bar + 1, end - bar - 1);
        }
        at = end + 1;
    }
    g_string_append(s, at);
}

static void put_value(McOut *o, GString *s, const McColumn *c,
                      const McValue *v, bool known, const void *row)
{
    if (!known) {
        g_string_append_c(s, '-');
    } else if (c->put) {
        c->put(o, s, row, false);
    } else {
        mc_put_text_value(o, s, c, v);
    }
}

static void put_column(McOut *o, GString *s, const McColumn *c,
                       const McValue *v, bool known, const void *row)
{
    const char *at = strchr(c->text, '%');
    size_t width, from;
    bool left;

    if (!at) {
        put_after(s, c->text, v->u == 1);
        return;
    }
    g_string_append_len(s, c->text, at - c->text);
    at = read_width(o, at + 1, &left, &width);
    from = s->len;
    put_value(o, s, c, v, known, row);
    pad(s, from, width, left);
    put_after(s, at, v->u == 1);
}

void mc_put_cell(McOut *o, GString *s, const McColumn *c, const void *row)
{
    size_t from = s->len;
    McValue v = { 0 };
    bool known = mc_value(o, c, row, &v);

    if (c->text && !strchr(c->text, '%')) {
        g_string_append(s, c->text);
        return;
    }
    for (o->narrow = o->whole ? WHOLE : ONE_LINE;; o->narrow++) {
        g_string_truncate(s, from);
        put_value(o, s, c, &v, known, row);
        if (o->whole || o->narrow == NO_OFFSETS ||
            s->len - from + strlen(MC_INDENT) <= MC_COLUMNS) {
            break;
        }
    }
    o->narrow = WHOLE;
    if (s->len == from) {
        g_string_append_c(s, '-');
    }
}

/* The margin is there in all rows of blocks. */
static void put_margin(McOut *o, GString *s, const McColumn *c, bool known,
                       const McValue *v)
{
    size_t from = s->len;

    if (known) {
        g_string_append(s, "> +");
        mc_put_text_value(o, s, c, v);
    }
    do {
        g_string_append_c(s, ' ');
    } while (s->len - from < o->margin);
}

bool mc_has_text(const McOut *o, const McColumn *c, const void *row)
{
    return c->text && mc_applies(o, c, row) &&
           (o->verbose || !(c->flags & MC_TEXT_V)) &&
           (o->verbose || !c->text_when || c->text_when(row));
}

static bool is_wanted(const McColumn *c, bool known, const McValue *v)
{
    if (!known) {
        return !(c->flags & (MC_OMIT | MC_IF_SET));
    }
    return !(c->flags & MC_IF_SET) || c->look > MC_LOOK_YES_NO || v->u;
}

static void put_columns(McOut *o, GString *s, const McColumn *columns,
                        const void *row, unsigned need, bool notes)
{
    for (const McColumn *c = columns; c->key || c->text; c++) {
        size_t start = s->len;
        McValue v;
        bool known;

        if ((c->flags & need) != need || (notes && c->head) ||
            !mc_has_text(o, c, row)) {
            continue;
        }
        v.u = 0;
        known = mc_value(o, c, row, &v);
        if (c->look == MC_LOOK_MARGIN) {
            put_margin(o, s, c, known, &v);
        } else if (is_wanted(c, known, &v)) {
            put_column(o, s, c, &v, known, row);
        }
        if (o->narrow != WHOLE && s->len > start) {
            wrap(o, s, c, start);
        }
    }
}

void mc_put_columns(McOut *o, GString *s, const McColumn *columns,
                    const void *row, unsigned need)
{
    put_columns(o, s, columns, row, need, false);
}

void mc_put_notes(McOut *o, GString *s, const McColumn *columns,
                  const void *row)
{
    put_columns(o, s, columns, row, 0, true);
}
