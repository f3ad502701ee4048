/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rows of ka struct, see commands.h.
 *
 *     +8    f_lock            spinlock_t                       4
 *     +50   | f_pipe          u64                              8
 *     +18:3 high              unsigned int                5 bits
 *     +20   private_data      void * 0xffff8beb81b72d80 ! +0 F ffff8beb81b72d80
 *     +30   f_path.dentry     struct dentry * 0xffff8beb81b72e00 "passwd"
 *     offset member           type, and size or value
 */
#include "monitor-cmds/commands/commands.h"

#define NAME_WIDTH_MAX  44
#define TYPE_WIDTH_MAX  40

/* A member; the texts are owned. @called: (nullable) the name of what its value
 * leads to; @note: what its words lead to, with marks */
typedef struct Row {
    GsMember m;
    char *path, *type, *value, *called;
    char *shown_path;
    char *note[2];
    bool freed[2];
} Row;

static void row_free(void *opaque)
{
    Row *row = opaque;

    g_free(row->path);
    g_free(row->shown_path);
    g_free(row->type);
    g_free(row->value);
    g_free(row->called);
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

/* (owned) The name of what a pointer leads to, NULL if it has none, or if
 * another member of a union may be meant. */
static char *name_behind(const McStructRows *r, const GsMember *m)
{
    const KtObjects o = { r->out->ctx->tracer, mc_symbols(r->out->ctx),
                          r->out->ctx->vm };
    char name[KT_OBJECT_NAME_MAX + 1];

    return r->values && m->n_words == 1 && !m->overlaps &&
           kt_pointer_name(&o, m->type, m->word[0], name) ? g_strdup(name) :
                                                            NULL;
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
    row->shown_path = g_strconcat(m->overlaps ? "| " : "", m->path, NULL);
    row->type = g_strdup(m->type);
    row->value = g_strdup(m->value);
    row->called = name_behind(r, m);
    for (unsigned i = 0; i < m->n_words; i++) {
        if (!i || m->word[1] != m->word[0]) {
            row->note[i] = mc_pointer_note(r->out, m->word[i],
                                           &row->freed[i]);
        }
    }
    g_ptr_array_add(r->row, row);
}

/* ---- the table ----------------------------------------------------------- */

static const Row *row_of(const void *row)
{
    return row;
}

MC_GETTER(place)
{
    const GsMember *m = &row_of(row)->m;

    g_snprintf(v->text, sizeof(v->text), m->bits ? "+%x:%u" : "+%x",
               m->offset, m->bit);
    v->s = v->text;
    return true;
}

MC_GETTER(leads_to)
{
    v->s = row_of(row)->note[0] ? row_of(row)->note[0] : row_of(row)->note[1];
    return v->s;
}

MC_GETTER(one)
{
    v->u = 1;
    return true;
}

static void put_name(McOut *o, GString *s, const void *of, bool json)
{
    const char *name = row_of(of)->called;

    gs_value_print_text(s, name, strlen(name) + 1);
}

/* Append what the words lead to. */
static void put_notes(McOut *o, GString *s, const void *of, bool json)
{
    const Row *row = of;

    for (unsigned i = 0; i < G_N_ELEMENTS(row->note); i++) {
        if (row->note[i]) {
            g_string_append_printf(s, " %c %s", row->freed[i] ? '!' : '>',
                                   row->note[i]);
        }
    }
}

MC_WHEN(is_opened)
{
    return row_of(row)->m.kind == GS_MEMBER_OPEN;
}

MC_WHEN(is_freed)
{
    return row_of(row)->freed[0] || row_of(row)->freed[1];
}

static const McColumn member_columns[] = {
    MC_GET(NULL, get_place, TEXT, "%-5 ", NULL),
    MC_KEY(NULL, Row, shown_path, TEXT, "%-* ", NULL),
    MC_KEY("member", Row, path, TEXT, NULL, "its path"),
    MC_KEY("offset", Row, m.offset, NUMBER, NULL, "its offset"),
    MC_KEY("bit", Row, m.bit, NUMBER, NULL, "first bit of a bit field",
           MC_IF(Row, m.bits)),
    MC_KEY("bits", Row, m.bits, NUMBER, NULL, "bits of a bit field",
           MC_IF(Row, m.bits)),
    MC_KEY("size", Row, m.size, NUMBER, NULL, "its bytes"),
    MC_KEY("ctype", Row, type, TEXT, "%-*", "its type in C"),
    MC_KEY("union", Row, m.overlaps, NUMBER, NULL, "1 if it is in a union",
           .flags = MC_ZERO | MC_OMIT),
    MC_GET("opened", get_one, NUMBER, NULL, "1 if its members follow",
           .when = is_opened),
    MC_END
};
static const McColumn size_columns[] = {
    MC_KEY(NULL, Row, m.bits, NUMBER, " % {bit|bits}", NULL,
           MC_IF(Row, m.bits)),
    MC_KEY(NULL, Row, m.size, NUMBER, " %", NULL, MC_UNLESS(Row, m.bits)),
    MC_END
};
static const McColumn value_columns[] = {
    MC_COLUMN(Row, value, TEXT, NULL, "its text", .flags = MC_OMIT),
    MC_KEY("number", Row, m.number, NUMBER, NULL,
           "of a number, as 64 bits with the sign extended",
           MC_IF(Row, m.has_number)),
    MC_COLUMN(Row, called, TEXT, NULL,
              "name of what a pointer leads to: of a dentry, a device ..., or "
              "the text of a pointer to char", .flags = MC_OMIT),
    MC_GET("leads_to", get_leads_to, TEXT, NULL, "what a pointer leads to",
           .flags = MC_OMIT),
    MC_GET("freed", get_one, NUMBER, NULL, "1 if that is a freed block",
           .when = is_freed),
    MC_END
};
static const McColumn shown_value_columns[] = {
    MC_KEY(NULL, Row, value, TEXT, " %", NULL),
    MC_PUT(NULL, put_name, " %", NULL, MC_IF(Row, called)),
    MC_PUT(NULL, put_notes, "%", NULL),
    MC_END
};

const McObject mc_member_object = {
    "member", "ka struct: a member",
    { member_columns, value_columns, size_columns }, .line = true,
};
static const McObject value_object = {
    "member", "ka struct: a member",
    { member_columns, value_columns, shown_value_columns }, .line = true,
};

void mc_struct_rows_print(McStructRows *r)
{
    unsigned *width = r->out->width;

    width[0] = width[1] = 0;
    for (guint i = 0; i < r->row->len; i++) {
        const Row *row = r->row->pdata[i];

        width[0] = MAX(width[0], (unsigned)strlen(row->shown_path));
        width[1] = MAX(width[1], (unsigned)strlen(row->type));
    }
    width[0] = MIN(width[0], NAME_WIDTH_MAX);
    width[1] = r->values ? 0 : MIN(width[1], TYPE_WIDTH_MAX);
    for (guint i = 0; i < r->row->len && !r->out->closed; i++) {
        mc_print(r->out, r->values ? &value_object : &mc_member_object,
                 r->row->pdata[i]);
    }
    g_ptr_array_set_size(r->row, 0);
}
