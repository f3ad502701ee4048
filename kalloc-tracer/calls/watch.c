/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which calls are recorded: see watch.h. */
#include "kalloc-tracer/calls/watch.h"

#include <string.h>

#include "kalloc-tracer/calls/point-match.h"

/* ---- prototypes of the functions ----------------------------------------- */

static bool add_pattern(KtCallFunctions *f, const GsKernel *k,
                        const char *pattern, GError **errp)
{
    g_autoptr(GArray) found = kt_found_functions_new();

    if (!kt_point_match(k, pattern, found, errp)) {
        return false;
    }
    f->pending |= !found->len;
    for (unsigned i = 0; i < found->len; i++) {
        const KtFoundFunction *at = &g_array_index(found, KtFoundFunction, i);
        GsPrototype *p = gs_kernel_prototype(k, at->module, at->name,
                                             &f->why_not);

        if (p) {
            g_ptr_array_add(f->protos, p);
        }
    }
    return true;
}

static bool find_functions(KtCallFunctions *f, const GsKernel *k,
                           const char *text, GError **errp)
{
    g_auto(GStrv) pattern = g_strsplit(text, ",", -1);
    bool ok = true;

    for (unsigned i = 0; k && ok && pattern[i]; i++) {
        ok = add_pattern(f, k, pattern[i], errp);
    }
    return ok;
}

/* ---- the object ---------------------------------------------------------- */

static char *describe(const KtWatchSpec *spec)
{
    GString *s = g_string_new(spec->functions);

    if (spec->module) {
        g_string_append_printf(s, " --module %s", spec->module);
    }
    if (spec->condition) {
        g_string_append_printf(s, " --if '%s'", spec->condition);
    }
    if (spec->derefs) {
        g_string_append_printf(s, " --deref '%s'", spec->derefs);
    }
    if (spec->errors) {
        g_string_append(s, " --errors");
    }
    if (spec->longer_ns) {
        g_string_append_printf(s, " --longer %" G_GUINT64_FORMAT,
                               spec->longer_ns / 1000);
    }
    if (spec->stack) {
        g_string_append(s, " --stack");
    }
    return g_string_free(s, false);
}

/* (owned, nullable) Compile --if. */
static KtCallCondition *new_condition(const KtWatch *w, const char *text,
                                      const KtCallFunctions *functions,
                                      const GsKernel *k, GError **errp)
{
    const KtGfp gfp = kt_gfp_find(k);
    g_autoptr(KtCallCondition) c =
        kt_call_condition_new(w->budget, KT_MEM_CALLS, sizeof(KtCallCount));

    return kt_call_condition_compile(c, text, KT_CALL_AT_RETURN, &gfp,
                                     functions, errp) ?
               g_steal_pointer(&c) : NULL;
}

static bool compile_options(KtWatch *w, const KtWatchSpec *spec,
                            const KtCallFunctions *functions,
                            const GsKernel *k, GError **errp)
{
    if (spec->condition) {
        w->condition = new_condition(w, spec->condition, functions, k, errp);
        if (!w->condition) {
            return false;
        }
    }
    if (spec->derefs) {
        w->derefs = kt_deref_list_new(spec->derefs, errp);
        return w->derefs && kt_deref_list_check(w->derefs, functions, k, errp);
    }
    return true;
}

/* Options that name arguments need the prototypes. */
static bool compile(KtWatch *w, const KtWatchSpec *spec, const GsKernel *k,
                    GError **errp)
{
    g_autoptr(GPtrArray) protos = g_ptr_array_new_with_free_func(
        (GDestroyNotify)gs_prototype_free);
    KtCallFunctions functions = {
        .protos = protos, .pending = !k, .kernel = k,
    };

    return (!spec->condition && !spec->derefs) ||
           (find_functions(&functions, k, spec->functions, errp) &&
            compile_options(w, spec, &functions, k, errp));
}

KtWatch *kt_watch_new(const KtWatchSpec *spec, const GsKernel *k,
                      KtBudget *budget, KtDerefTable *plans, GError **errp)
{
    KtWatch *w = g_new0(KtWatch, 1);

    w->budget = budget;
    w->plans = plans;
    if (!compile(w, spec, k, errp)) {
        kt_watch_free(w);
        return NULL;
    }
    w->text = describe(spec);
    w->module = g_strdup(spec->module);
    if (w->module) {
        g_strdelimit(w->module, "-", '_');
    }
    w->errors = spec->errors;
    w->stack = spec->stack;
    w->longer_ns = spec->longer_ns;
    return w;
}

const KtDerefPlan *kt_watch_plan(void *watch, const KtCallPoint *point)
{
    const KtWatch *w = watch;

    return w->derefs && w->plans && point->proto ?
               kt_deref_table_get(w->plans, w->derefs, point->id,
                                  (GsPrototype *)point->proto) : NULL;
}

void kt_watch_begin_boot(KtWatch *w, const GsKernel *k)
{
    g_autoptr(GPtrArray) none = g_ptr_array_new();
    const KtCallFunctions any = { .protos = none, .pending = true };
    KtCallCondition *old = w->condition;
    KtCallCondition *new = old ? new_condition(
        w, kt_condition_text(old->code), &any, k, NULL) : NULL;

    if (new) {
        kt_call_condition_free(old);
        w->condition = new;
    }
}

void kt_watch_free(void *watch)
{
    KtWatch *w = watch;

    if (w) {
        kt_call_condition_free(w->condition);
        kt_deref_list_free(w->derefs);
        g_free(w->module);
        g_free(w->text);
    }
    g_free(w);
}

/* Readers see the old number of areas, none, or the new one: a vCPU that is
 * inside a call then cannot be inside the module's code as well. */
static void set_areas(KtWatch *w, const GsModule *module)
{
    __atomic_store_n(&w->n_areas, 0, __ATOMIC_RELEASE);
    if (module->live) {
        memcpy(w->area, module->area, sizeof(w->area));
        __atomic_store_n(&w->n_areas, MIN(module->n, GS_MODULE_AREAS_MAX),
                         __ATOMIC_RELEASE);
    }
}

static bool overlaps(const GsModuleArea *area, const GsModule *module)
{
    for (unsigned i = 0; i < module->n; i++) {
        if (area->start < module->area[i].end &&
            module->area[i].start < area->end) {
            return true;
        }
    }
    return false;
}

/* The kernel frees an area whole: the init code's, after init. The others stay
 * as they are, as vCPUs may be in their code. */
static void drop_areas(KtWatch *w, const GsModule *other)
{
    for (unsigned i = 0; i < w->n_areas; i++) {
        if (overlaps(&w->area[i], other)) {
            __atomic_store_n(&w->area[i].end, w->area[i].start,
                             __ATOMIC_RELAXED);
        }
    }
}

void kt_watch_set_module(KtWatch *w, const GsModule *module)
{
    if (!w->module) {
        return;
    }
    if (!strcmp(w->module, module->name)) {
        set_areas(w, module);
    } else if (module->live) {
        drop_areas(w, module);
    }
}

/* ---- verdicts ------------------------------------------------------------ */

bool kt_watch_wants_caller(const KtWatch *w, uint64_t caller)
{
    unsigned n;

    if (!w->module) {
        return true;
    }
    n = __atomic_load_n(&w->n_areas, __ATOMIC_ACQUIRE);
    for (unsigned i = 0; i < n; i++) {
        uint64_t start = w->area[i].start;
        uint64_t end = __atomic_load_n(&w->area[i].end, __ATOMIC_RELAXED);

        if (caller - start < end - start) {
            return true;
        }
    }
    return false;
}

bool kt_watch_wants_stack(const KtWatch *w)
{
    return w->stack || (kt_watch_is_open(w) && w->condition->has_stack);
}

bool kt_watch_is_open(const KtWatch *w)
{
    return w->condition && w->condition->at_return;
}

static KtAnswer answer(KtCallCondition *c, const KtCallFacts *f)
{
    KtCallValues v = { .f = f, .c = c };
    KtTruth truth = kt_call_condition_eval(&v);

    return truth == KT_TRUTH_TRUE ? KT_YES :
           truth == KT_TRUTH_FALSE ? KT_NO : KT_UNKNOWN;
}

KtAnswer kt_watch_wants_entry(const KtWatch *w, const KtCallFacts *f)
{
    if (!w->condition || kt_watch_is_open(w)) {
        return KT_YES;
    }
    return answer(w->condition, f);
}

KtAnswer kt_watch_wants_return(const KtWatch *w, const KtCallFacts *f)
{
    if (f->call->took_ns < w->longer_ns ||
        (w->errors && !kt_call_failed(f->proto, f->call->result))) {
        return KT_NO;
    }
    if (!kt_watch_is_open(w)) {
        return KT_YES;
    }
    return answer(w->condition, f);
}
