/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Code that accesses memory: see watch-internal.h. */
#include "kalloc-tracer/capture/watch-internal.h"
#include "kalloc-tracer/access/code-classes.h"
#include "kalloc-tracer/capture/capture-internal.h"

/* A range is checked up to here. Where the guest asks for more, by a negative
 * size, the block's end is not far away. */
#define RANGE_MAX ((uint64_t)16 << 20)

void kt_watch_function(KtWatchFunction *f, const KtCodeClasses *c, uint64_t va)
{
    const KtCodeRow *row;

    if (va - f->start < f->end - f->start) {
        return;
    }
    row = kt_code_classes_at(c, va);
    f->class = row ? row->class : KT_CODE_PLAIN;
    f->is_part = row && row->dst == KT_NO_ARG && row->src == KT_NO_ARG;
    kt_code_classes_function(c, va, &f->start, &f->end);
}

KtCodeClass kt_watch_class(const KtCodeClasses *c, uint64_t pc)
{
    const KtCodeRow *row = kt_code_classes_at(c, pc);

    return row ? row->class : KT_CODE_PLAIN;
}

#define LOADS   4u

unsigned kt_watch_string_how(const GsString *s)
{
    return (unsigned)g_bit_storage(s->unit) - 1 + (s->loads ? LOADS : 0);
}

GsString kt_watch_string(unsigned how)
{
    return (GsString) { .unit = 1u << (how & 3), .loads = how & LOADS };
}

/* Argument 3 is in rcx. */
uint64_t kt_watch_string_len(const KtVcpu *v, const GsString *s)
{
    return MIN(kt_vcpu_arg(v, 3), RANGE_MAX / s->unit) * s->unit;
}

/* Functions of the kernel are not that long; each suspect costs a walk. */
#define CODE_MAX 0x4000u

bool kt_watch_may_count_down(const KtHookCall *m, uint64_t pc)
{
    const GsKernel *k = m->c->kernel;
    const GsStringRules *strings = gs_kernel_arch(k)->strings;
    g_autofree uint8_t *code = NULL;
    GsSymbol sym;
    size_t n;

    if (!strings) {
        return false;
    }
    if (!gs_kernel_symbolize(k, pc, &sym) || pc - sym.va > CODE_MAX) {
        return true;
    }
    n = pc - sym.va;
    code = g_malloc(n);
    return !kt_guest_read(m->boot->guest, sym.va, code, n) ||
           strings->may_count_down(code, n);
}

uint64_t kt_watch_range_len(const KtHookCall *m, const KtCodeRow *row)
{
    uint64_t unit = row->unit == KT_PAGE ?
                        1ull << kt_guest_page_shift(m->boot->guest) : row->unit;
    uint64_t n = row->n == KT_NO_ARG ? 1 : kt_vcpu_arg(m->v, row->n);

    return MIN(MIN(n, RANGE_MAX) * MIN(unit, RANGE_MAX), RANGE_MAX);
}

/* ---- modules ------------------------------------------------------------- */
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
