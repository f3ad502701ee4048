/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lines of source in answers: see source-lines.h.
 *
 * An answer is read twice: first for all frames, so that a file that does not
 * fit is refused before the first line of it is printed. An object of JSON
 * keeps its bytes; keys are inserted before its end.
 */
#include "monitor-cmds/program/source-lines.h"

#include <string.h>

#include "monitor-cmds/program/json-line.h"

#define FRAME       "            "  /* indentation of output/row-long.c */
#define DIGITS      16
#define AT          "_at"

/** struct Writer - @to: NULL in the first pass */
typedef struct Writer {
    KaLines *lines;
    GString *to;
    JsonParser *parser;
    bool keep;
} Writer;

static uint64_t address_of(const char *text)
{
    return text && g_str_has_prefix(text, "0x") ?
           g_ascii_strtoull(text + 2, NULL, 16) : 0;
}

/* ---- text ---------------------------------------------------------------- */

/* Return the length of the frame of a line of the long form, and read its
 * address; 0: this is another line. */
static size_t frame_length(const char *line, size_t len, uint64_t *at)
{
    const size_t tail = strlen(" @") + DIGITS, indent = strlen(FRAME);
    const char *mark = line + len - tail;

    if (len < indent + 1 + tail || memcmp(line, FRAME, indent) ||
        line[indent] == ' ' || mark[0] != ' ' || mark[1] != '@' ||
        strspn(mark + 2, "0123456789abcdef") < DIGITS) {
        return 0;
    }
    *at = g_ascii_strtoull(mark + 2, NULL, 16);
    return len - tail;
}

static void put_inlined(GString *to, const GArray *places)
{
    for (unsigned i = 0; i + 1 < places->len; i++) {
        const KaPlace *p = &g_array_index(places, KaPlace, i);

        g_string_append_printf(to, FRAME "%s", p->function ? p->function : "?");
        if (p->file) {
            g_string_append_printf(to, "  %s:%u", p->file, p->line);
        }
        g_string_append(to, " (inlined)\n");
    }
}

static const KaPlace *own_place(const GArray *places)
{
    return &g_array_index(places, KaPlace, places->len - 1);
}

static void put_text_line(Writer *w, const char *line, size_t len)
{
    uint64_t at = 0;
    size_t frame = frame_length(line, len, &at);
    g_autofree char *symbol = !frame ? NULL :
        g_strndup(line + strlen(FRAME), frame - strlen(FRAME));
    const GArray *places = NULL;

    if (!w->to) {
        if (frame && w->lines) {
            ka_lines_learn(w->lines, symbol, at);
        }
        return;
    }
    if (frame && w->lines) {
        places = ka_lines_find(w->lines, symbol, at);
    }
    if (places && ka_lines_inlines(w->lines)) {
        put_inlined(w->to, places);
    }
    g_string_append_len(w->to, line, frame && !w->keep ? frame : len);
    if (places) {
        g_string_append_printf(w->to, "  %s:%u", own_place(places)->file,
                               own_place(places)->line);
    }
}

/* ---- JSON ---------------------------------------------------------------- */

static void put_quoted(GString *to, const char *text)
{
    g_string_append_c(to, '"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') {
            g_string_append_c(to, '\\');
        }
        g_string_append_c(to, *text);
    }
    g_string_append_c(to, '"');
}

static void put_place(GString *to, const GArray *places)
{
    const KaPlace *p = places ? own_place(places) : NULL;
    g_autofree char *text = !p ? NULL :
                            g_strdup_printf("%s:%u", p->file, p->line);

    if (text) {
        put_quoted(to, text);
    } else {
        g_string_append(to, "null");
    }
}

/* Append the inlined functions of a frame: ["function file:line", ...]. */
static void put_inlined_list(GString *to, const GArray *places)
{
    g_string_append_c(to, '[');
    for (unsigned i = 0; places && i + 1 < places->len; i++) {
        const KaPlace *p = &g_array_index(places, KaPlace, i);
        g_autoptr(GString) text = g_string_new(p->function ? p->function : "?");

        if (p->file) {
            g_string_append_printf(text, " %s:%u", p->file, p->line);
        }
        g_string_append(to, i ? "," : "");
        put_quoted(to, text->str);
    }
    g_string_append_c(to, ']');
}

typedef void PutFn(GString *to, const GArray *places);

static void put_list(Writer *w, const char *stem, const char *end,
                     JsonArray *symbols, JsonArray *ats, PutFn *put)
{
    unsigned n = json_array_get_length(ats);

    g_string_append_printf(w->to, ",\"%s%s\":[", stem, end);
    for (unsigned i = 0; i < n; i++) {
        const char *symbol = ka_json_text_at(symbols, i);
        uint64_t at = address_of(ka_json_text_at(ats, i));

        g_string_append(w->to, i ? "," : "");
        put(w->to, symbol ? ka_lines_find(w->lines, symbol, at) : NULL);
    }
    g_string_append_c(w->to, ']');
}

static void learn_list(Writer *w, JsonArray *symbols, JsonArray *ats)
{
    for (unsigned i = 0; i < json_array_get_length(ats); i++) {
        const char *symbol = ka_json_text_at(symbols, i);

        if (symbol) {
            ka_lines_learn(w->lines, symbol,
                           address_of(ka_json_text_at(ats, i)));
        }
    }
}

/* A stack: the lists @stem_symbols and @stem_at. */
static void add_stack(Writer *w, const char *stem, JsonArray *symbols,
                      JsonArray *ats)
{
    if (!w->to) {
        learn_list(w, symbols, ats);
        return;
    }
    put_list(w, stem, "_lines", symbols, ats, put_place);
    if (ka_lines_inlines(w->lines)) {
        put_list(w, stem, "_inlined", symbols, ats, put_inlined_list);
    }
}

/* A single frame: the texts @stem_symbol and @stem_at. */
static void add_frame(Writer *w, const char *stem, const char *symbol,
                      uint64_t at)
{
    if (!w->to) {
        ka_lines_learn(w->lines, symbol, at);
        return;
    }
    g_string_append_printf(w->to, ",\"%s_line\":", stem);
    put_place(w->to, ka_lines_find(w->lines, symbol, at));
}

static void add_member(Writer *w, JsonObject *o, const char *key)
{
    g_autofree char *stem = !g_str_has_suffix(key, AT) ? NULL :
                            g_strndup(key, strlen(key) - strlen(AT));
    g_autofree char *many = g_strconcat(stem ? stem : "", "_symbols", NULL);
    g_autofree char *one = g_strconcat(stem ? stem : "", "_symbol", NULL);
    JsonArray *symbols = stem ? ka_json_list(o, many) : NULL;
    JsonArray *ats = symbols ? ka_json_list(o, key) : NULL;
    const char *symbol = stem ? ka_json_text(o, one) : NULL;
    const char *at = symbol ? ka_json_text(o, key) : NULL;

    if (!stem || !g_str_is_ascii(stem) || strpbrk(stem, "\"\\")) {
        return;
    }
    if (ats) {
        add_stack(w, stem, symbols, ats);
    } else if (at) {
        add_frame(w, stem, symbol, address_of(at));
    }
}

static void put_json_line(Writer *w, const char *line, size_t len)
{
    g_autofree char *copy = g_strndup(line, len);
    JsonObject *o = w->lines && line[len - 1] == '}' ?
                    ka_json_parse(w->parser, copy, len) : NULL;
    g_autoptr(GList) keys = o ? json_object_get_members(o) : NULL;

    if (w->to) {
        g_string_append_len(w->to, line, o ? len - 1 : len);
    }
    for (GList *k = keys; k; k = k->next) {
        add_member(w, o, k->data);
    }
    if (w->to && o) {
        g_string_append_c(w->to, '}');
    }
}

/* ---- answers ------------------------------------------------------------- */

static void read_answer(Writer *w, const char *answer)
{
    for (const char *line = answer; *line;) {
        size_t len = strcspn(line, "\n");

        if (*line == '{') {
            put_json_line(w, line, len);
        } else {
            put_text_line(w, line, len);
        }
        line += len;
        if (*line && w->to) {
            g_string_append_c(w->to, '\n');
        }
        line += *line != 0;
    }
}

char *ka_lines_add(KaLines *l, const char *answer, bool keep)
{
    g_autoptr(JsonParser) parser = json_parser_new();
    Writer w = { .lines = l, .parser = parser, .keep = keep };

    if (l) {
        read_answer(&w, answer);
    }
    w.to = g_string_sized_new(strlen(answer));
    read_answer(&w, answer);
    return g_string_free(w.to, FALSE);
}
