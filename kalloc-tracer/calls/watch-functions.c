/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Prototypes of the functions of a request: see watch-functions.h. */
#include "kalloc-tracer/calls/watch-functions.h"

#include "kalloc-tracer/calls/point-match.h"

static void add_protos(KtWatchFunctions *f, const GsKernel *k,
                       const GArray *found)
{
    for (unsigned i = 0; i < found->len; i++) {
        const KtFoundFunction *at = &g_array_index(found, KtFoundFunction, i);
        GsPrototype *p = gs_kernel_prototype(k, at->module, at->name,
                                             &f->why_not);

        if (p) {
            g_ptr_array_add(f->protos, p);
        }
    }
}

static bool add_pattern(KtWatchFunctions *f, const GsKernel *k,
                        const char *pattern, GError **errp)
{
    g_autoptr(GArray) found = kt_found_functions_new();

    if (!kt_point_match(k, pattern, found, errp)) {
        return false;
    }
    f->pending |= !found->len;
    add_protos(f, k, found);
    return true;
}

bool kt_watch_functions_init(KtWatchFunctions *f, const GsKernel *k,
                             const char *text, GError **errp)
{
    g_auto(GStrv) pattern = g_strsplit(text, ",", -1);
    bool ok = true;

    *f = (KtWatchFunctions) {
        .protos = g_ptr_array_new_with_free_func(
            (GDestroyNotify)gs_prototype_free),
        .pending = !k,
    };
    for (unsigned i = 0; k && ok && pattern[i]; i++) {
        ok = add_pattern(f, k, pattern[i], errp);
    }
    if (!ok) {
        kt_watch_functions_deinit(f);
    }
    return ok;
}

void kt_watch_functions_deinit(KtWatchFunctions *f)
{
    g_clear_pointer(&f->protos, g_ptr_array_unref);
}

bool kt_watch_functions_has_arg(const KtWatchFunctions *f, const char *name)
{
    for (unsigned i = 0; i < f->protos->len; i++) {
        if (gs_prototype_find(f->protos->pdata[i], name) >= 0) {
            return true;
        }
    }
    return f->pending;
}
