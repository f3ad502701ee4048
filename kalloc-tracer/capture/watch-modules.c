/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Access checks: what depends on the modules that are loaded. These are the
 * code that is checked, if only the code of some modules is, and the classes of
 * functions that the user's rules name.
 *
 *     the kernel loads or unloads a module   kt_access_watch_module()
 *          | is it about this module? no ---> done
 *          v yes
 *     no vCPU executes                       find_code()
 *
 * The module's code has not run when it is added, so nothing is translated
 * anew. When it is dropped, its code does not run any more.
 */
#include "kalloc-tracer/access/access-rules.h"
#include "kalloc-tracer/capture/watch-access.h"
#include "kalloc-tracer/capture/watch-internal.h"

void kt_access_watch_find_code(KtAccessWatch *w, KtTracer *t, const GsKernel *k)
{
    g_clear_pointer(&w->classes, kt_code_classes_free);
    g_clear_pointer(&w->areas, kt_code_areas_free);
    w->classes = kt_access_code(t, k);
    w->areas = kt_access_filter_areas(w->filter, k);
    w->rules = kt_access_rules_of(t);
}

void kt_access_watch_module(const KtAccessWatch *w, const GsKernel *k,
                            uint64_t module_va)
{
    GsModule module;

    if (gs_kernel_module(k, module_va, &module) &&
        (kt_access_filter_module(w->filter, module.name) ||
         kt_access_rules_concern(w->rules, k, module_va))) {
        qemu_plugin_request_exclusive(w->find_code, NULL);
    }
}

bool kt_access_watch_is_range(const KtAccessWatch *w, uint64_t va)
{
    const KtCodeRow *row = kt_code_classes_at(w->classes, va);
    uint64_t start, end;

    return row && row->class == KT_CODE_RANGE &&
           kt_code_classes_function(w->classes, va, &start, &end) &&
           start == va;
}

bool kt_access_watch_has_code(const KtAccessWatch *w, uint64_t va)
{
    return kt_access_watch_in_areas(w, va) || kt_access_watch_is_range(w, va) ||
           kt_access_watch_is_ksize(w, va);
}
