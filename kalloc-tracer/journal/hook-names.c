/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The hook table of who wrote a journal: see hook-names.h. */
#include "kalloc-tracer/journal/hook-names.h"
#include "kalloc-tracer/hooks/hooks.h"

#include <string.h>

static bool same_table(GPtrArray *names)
{
    for (guint i = 0; i < names->len; i++) {
        if (strcmp(names->pdata[i], kt_hook_name((KtHookId) { i + 1 }))) {
            return false;
        }
    }
    return names->len == kt_hook_count();
}

/* What events call their hooks by, until the next table takes its place. */
static void use_table(GPtrArray *names, const GByteArray *tells_gfp)
{
    static KtHook rows[UINT8_MAX];
    static GStringChunk *text;

    if (!text) {
        text = g_string_chunk_new(4096);
    }
    memset(rows, 0, sizeof(rows));
    g_string_chunk_clear(text);
    for (guint i = 0; i < names->len; i++) {
        rows[i].symbol = g_string_chunk_insert(text, names->pdata[i]);
        rows[i].role = KT_ROLE_ALLOC;
        rows[i].gfp = tells_gfp->data[i] ? 0 : KT_NO_ARG;
    }
    kt_hooks_use(rows, names->len);
}

bool kt_hook_names_use(KtBytes *in)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    g_autoptr(GByteArray) tells_gfp = g_byte_array_new();

    while (kt_bytes_left(in) && names->len < UINT8_MAX - 1) {
        const char *name;

        kt_put_u8(tells_gfp, kt_bytes_u8(in));
        name = kt_bytes_str(in, GS_SYMBOL_NAME_MAX);
        if (!name) {
            return false;
        }
        g_ptr_array_add(names, (char *)name);
    }
    if (!same_table(names)) {
        use_table(names, tells_gfp);
    }
    return !in->failed;
}
