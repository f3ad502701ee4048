/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rows about objects of the kernel, see object-row.h.
 */
#include "monitor-cmds/commands/object-row.h"

#include "monitor-cmds/commands/pointer-note.h"

void mc_object_row_init(McObjectRow *r)
{
    *r = (McObjectRow) {
        .text = g_string_new(NULL),
        .strings = g_ptr_array_new_with_free_func(g_free),
    };
}

void mc_object_row_deinit(McObjectRow *r)
{
    g_string_free(g_steal_pointer(&r->text), TRUE);
    g_clear_pointer(&r->strings, g_ptr_array_unref);
}

static void add(McObjectRow *r, const McStat *value)
{
    g_return_if_fail(r->n < MC_OBJECT_VALUES_MAX);
    r->figure[r->n++] = *value;
}

/* Append " key=" to the text; and "-" if the value is not known. */
static void put_key(McObjectRow *r, const char *key, bool known)
{
    g_string_append_printf(r->text, "%s%s=%s", r->text->len ? " " : "", key,
                           known ? "" : "-");
}

void mc_object_put_address(McObjectRow *r, const char *key, bool known,
                           uint64_t va)
{
    put_key(r, key, known);
    if (known) {
        mc_put_hex(r->text, va, va ? 16 : 1);
    }
    add(r, &(McStat) { .key = key, .u = va, .hex = true, .unknown = !known });
}

void mc_object_put_hex(McObjectRow *r, const char *key, bool known, uint64_t v)
{
    put_key(r, key, known);
    if (known) {
        mc_put_hex(r->text, v, 1);
    }
    add(r, &(McStat) { .key = key, .u = v, .hex = true, .unknown = !known });
}

void mc_object_put_number(McObjectRow *r, const char *key, bool known,
                          uint64_t v)
{
    put_key(r, key, known);
    if (known) {
        mc_put_decimal(r->text, v);
    }
    mc_object_add(r, key, known, v);
}

void mc_object_put_word(McObjectRow *r, const char *key, const char *word)
{
    put_key(r, key, word != NULL);
    if (word) {
        mc_put_word(r->text, word);
    }
    mc_object_add_word(r, key, word);
}

void mc_object_add(McObjectRow *r, const char *key, bool known, uint64_t v)
{
    add(r, &(McStat) { .key = key, .u = v, .unknown = !known });
}

void mc_object_add_address(McObjectRow *r, const char *key, uint64_t va)
{
    add(r, &(McStat) { .key = key, .u = va, .hex = true });
}

void mc_object_add_word(McObjectRow *r, const char *key, const char *word)
{
    char *copy = g_strdup(word);

    g_ptr_array_add(r->strings, copy);
    add(r, &(McStat) { .key = key, .s = copy, .unknown = !copy });
}

void mc_object_add_list(McObjectRow *r, const char *key,
                        const char *const *list)
{
    add(r, &(McStat) { .key = key, .list = list });
}

void mc_object_print(McOut *out, McObjectId type, const McObjectRow *r)
{
    out->format->sum(out, type, r->figure, r->n, r->text->str);
}

/* Print an object that is no block: init_cred and the like are variables of the
 * kernel. */
static void print_no_block(McOut *out, const char *name, uint64_t va)
{
    bool freed;
    g_autofree char *note = mc_pointer_note(out, va, &freed);
    g_auto(McObjectRow) r;

    mc_object_row_init(&r);
    g_string_append_printf(r.text, "  %-8s - ", name);
    mc_put_hex(r.text, va, 16);
    mc_object_add_word(&r, "object", name);
    r.figure[r.n++] = (McStat) { .key = "va", .u = va, .hex = true };
    mc_object_add_word(&r, "leads_to", note);
    g_string_append_printf(r.text, " %s%s", note ? "> " : "no block",
                           note ? note : "");
    mc_object_print(out, MC_OBJ_OBJECT, &r);
}

void mc_object_print_block(McOut *out, const char *name, uint64_t va)
{
    KtBlock b;
    bool found;

    kt_query_begin(out->ctx->tracer);
    found = kt_query_find(out->ctx->tracer, va, &b);
    kt_query_end(out->ctx->tracer);
    if (!found) {
        print_no_block(out, name, va);
        return;
    }
    out->margin = 0;
    out->format->row(out, &(McRow) {
        .block = &b, .object = name, .hit = va != b.va,
        .offset = va - b.va });
}
