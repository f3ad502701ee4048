/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Hook names in a journal: see hook-names.h. */
#include "kalloc-tracer/journal/hook-names.h"
#include "kalloc-tracer/hooks/hook-table.h"

#include <string.h>

static bool same_names(const KtHookTable *table, GPtrArray *names)
{
    for (guint i = 0; i < names->len; i++) {
        if (strcmp(names->pdata[i],
                   kt_hook_table_name(table, (KtHookId) { i + 1 }))) {
            return false;
        }
    }
    return names->len == kt_hook_table_count(table);
}

/* Rows of a journal have a name only, and say if GFP flags are known. */
static void set_names(KtHookTable *table, GPtrArray *names,
                      const GByteArray *has_gfp)
{
    KtHook rows[KT_HOOKS_MAX] = { 0 };

    for (guint i = 0; i < names->len; i++) {
        rows[i].symbol = names->pdata[i];
        rows[i].role = KT_ROLE_ALLOC;
        rows[i].gfp = has_gfp->data[i] ? 0 : KT_NO_ARG;
    }
    kt_hook_table_set(table, rows, names->len);
}

bool kt_hook_names_read(KtHookTable *table, GsBytes *in)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    g_autoptr(GByteArray) has_gfp = g_byte_array_new();

    while (gs_bytes_left(in) && names->len < KT_HOOKS_MAX) {
        const char *name;

        gs_out_u8(&GS_OUT(has_gfp), gs_bytes_u8(in));
        name = gs_bytes_str(in, GS_SYMBOL_NAME_MAX, NULL);
        if (!name) {
            return false;
        }
        g_ptr_array_add(names, (char *)name);
    }
    if (!same_names(table, names)) {
        set_names(table, names, has_gfp);
    }
    return !in->failed;
}
