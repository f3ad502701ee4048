/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rows of ka struct, see struct-rows.h.
 *
 *     +8    f_lock            spinlock_t                       4
 *     +50   | f_pipe          u64                              8
 *     +18:3 high              unsigned int                5 bits
 *     +20   private_data      void * 0xffff8beb81b72d80 ! +0 F ffff8beb81b72d80
 *     offset member           type, and size or value
 */
#include "monitor-cmds/commands/struct-rows.h"
#include "monitor-cmds/commands/pointer-note.h"

#define OFFSET_WIDTH    5
#define NAME_WIDTH_MAX  44
#define TYPE_WIDTH_MAX  40

/* A member; the texts are owned. @note: what its words lead to, with marks */
typedef struct Row {
    GsMember m;
    char *path, *type, *value;
    char *note[2];
    bool freed[2];
} Row;

static void row_free(void *opaque)
{
    Row *row = opaque;

    g_free(row->path);
    g_free(row->type);
    g_free(row->value);
    g_free(row->note[0]);
    g_free(row->note[1]);
    g_free(row);
}

void mc_struct_rows_init(McStructRows *r, McOut *out, bool values)
{
    *r = (McStructRows) {
        .out = out, .values = values,
        .row = g_ptr_array_new_with_free_func(row_free),
    };
}

void mc_struct_rows_deinit(McStructRows *r)
{
    g_ptr_array_unref(r->row);
}

/* What has no name is no row in text: its members are. */
void mc_struct_rows_add(const GsMember *m, void *opaque)
{
    McStructRows *r = opaque;
    Row *row;

    if (m->kind == GS_MEMBER_CLOSE ||
        (m->kind == GS_MEMBER_OPEN && !*m->name)) {
        return;
    }
    row = g_new0(Row, 1);
    row->m = *m;
    row->path = g_strdup(m->path);
    row->type = g_strdup(m->type);
    row->value = g_strdup(m->value);
    for (unsigned i = 0; i < m->n_words; i++) {
        if (!i || m->word[1] != m->word[0]) {
            row->note[i] = mc_pointer_note(r->out, m->word[i],
                                           &row->freed[i]);
        }
    }
    g_ptr_array_add(r->row, row);
}

/* ---- text ---------------------------------------------------------------- */

static void pad(GString *s, size_t from, size_t width)
{
    while (s->len - from < width) {
        g_string_append_c(s, ' ');
    }
}

static void put_offset(GString *s, const Row *row)
{
    size_t from = s->len;

    g_string_append_printf(s, "+%x", row->m.offset);
    if (row->m.bits) {
        g_string_append_printf(s, ":%u", row->m.bit);
    }
    pad(s, from, OFFSET_WIDTH);
    g_string_append_c(s, ' ');
}

static void put_size(GString *s, const Row *row)
{
    if (row->m.bits) {
        g_string_append_printf(s, " %u %s", row->m.bits,
                               row->m.bits == 1 ? "bit" : "bits");
    } else {
        g_string_append_printf(s, " %u", row->m.size);
    }
}

static void put_notes(GString *s, const Row *row)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(row->note); i++) {
        if (row->note[i]) {
            g_string_append_printf(s, " %c %s", row->freed[i] ? '!' : '>',
                                   row->note[i]);
        }
    }
}

static size_t name_len(const Row *row)
{
    return strlen(row->path) + (row->m.overlaps ? 2 : 0);
}

/* @name, @type: widths */
static char *text_of(const McStructRows *r, const Row *row, size_t name,
                     size_t type)
{
    GString *s = g_string_new(NULL);
    size_t from;

    put_offset(s, row);
    from = s->len;
    g_string_append_printf(s, "%s%s", row->m.overlaps ? "| " : "", row->path);
    pad(s, from, name);
    g_string_append_c(s, ' ');
    from = s->len;
    g_string_append(s, row->type);
    if (r->values) {
        g_string_append_printf(s, " %s", row->value);
        put_notes(s, row);
    } else {
        pad(s, from, type);
        put_size(s, row);
    }
    return g_string_free(s, FALSE);
}

/* ---- both ---------------------------------------------------------------- */

#define FIGURES 14

static unsigned add(McStat *f, unsigned n, const char *key, uint64_t value)
{
    f[n] = (McStat) { .key = key, .u = value };
    return n + 1;
}

static unsigned add_text(McStat *f, unsigned n, const char *key,
                         const char *text)
{
    if (!text) {
        return n;
    }
    f[n] = (McStat) { .key = key, .s = text };
    return n + 1;
}

static unsigned add_value(McStat *f, unsigned n, const Row *row)
{
    n = add_text(f, n, "value", row->value);
    if (row->m.has_number) {
        n = add(f, n, "number", row->m.number);
    }
    n = add_text(f, n, "leads_to", row->note[0] ? row->note[0] :
                                                  row->note[1]);
    if (row->freed[0] || row->freed[1]) {
        n = add(f, n, "freed", 1);
    }
    return n;
}

static void print_row(const McStructRows *r, const Row *row, size_t name,
                      size_t type)
{
    g_autofree char *text = text_of(r, row, name, type);
    McStat f[FIGURES];
    unsigned n = add_text(f, 0, "member", row->path);

    n = add(f, n, "offset", row->m.offset);
    if (row->m.bits) {
        n = add(f, n, "bit", row->m.bit);
        n = add(f, n, "bits", row->m.bits);
    }
    n = add(f, n, "size", row->m.size);
    n = add_text(f, n, "ctype", row->type);
    if (row->m.overlaps) {
        n = add(f, n, "union", 1);
    }
    if (row->m.kind == GS_MEMBER_OPEN) {
        n = add(f, n, "opened", 1);
    }
    n = add_value(f, n, row);
    r->out->format->sum(r->out, MC_OBJ_MEMBER, f, n, text);
}

void mc_struct_rows_print(McStructRows *r)
{
    size_t name = 0, type = 0;

    for (guint i = 0; i < r->row->len; i++) {
        const Row *row = r->row->pdata[i];

        name = MAX(name, name_len(row));
        type = MAX(type, strlen(row->type));
    }
    name = MIN(name, NAME_WIDTH_MAX);
    type = MIN(type, TYPE_WIDTH_MAX);
    for (guint i = 0; i < r->row->len && !r->out->closed; i++) {
        print_row(r, r->row->pdata[i], name, type);
    }
    g_ptr_array_set_size(r->row, 0);
}
