/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Functions that allocate pages for other allocators: see backing-code.h. */
#include "kalloc-tracer/hooks/backing-code.h"

static const char *const names[] = {
#define KT_BACKING(symbol) symbol,
#include "kalloc-tracer/hooks/backing-code.def"
};

/* What compilers append to the name of a function, or of a part of it. */
static const char *const suffixes[] = {
    "", ".isra.0", ".constprop.0", ".constprop.0.isra.0", ".part.0", ".cold",
};

static bool add_function(const GsSymbol *sym, void *opaque)
{
    const KtCodeRange r = { sym->va, sym->va + sym->size - 1 };

    if (!sym->module && sym->size && r.hi >= r.lo) {
        g_array_append_val((GArray *)opaque, r);
    }
    return true;
}

static gint compare_ranges(gconstpointer a, gconstpointer b)
{
    const KtCodeRange *x = a, *y = b;

    return x->lo < y->lo ? -1 : x->lo > y->lo;
}

GArray *kt_backing_code(const GsKernel *k)
{
    g_autoptr(GArray) code = g_array_new(FALSE, FALSE, sizeof(KtCodeRange));

    for (unsigned i = 0; i < G_N_ELEMENTS(names); i++) {
        for (unsigned s = 0; s < G_N_ELEMENTS(suffixes); s++) {
            g_autofree char *name = g_strconcat(names[i], suffixes[s], NULL);

            gs_kernel_foreach_named(k, name, add_function, code);
        }
    }
    g_array_sort(code, compare_ranges);
    return code->len ? g_steal_pointer(&code) : NULL;
}
