/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A table of strings: see report-data.h. */
#include "monitor-cmds/report/report-data.h"

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
