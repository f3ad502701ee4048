/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which calls are recorded: see watch.h. */
#include "kalloc-tracer/calls/watch.h"

#include <string.h>

#include "kalloc-tracer/conditions/condition.h"

/* ---- names in conditions ------------------------------------------------- */

/* Variables. Those from RET on are known at the return only. */
typedef enum Var {
    VAR_ARG0,
    VAR_ARG_LAST = VAR_ARG0 + KT_CALL_ARGS_MAX - 1,
    VAR_PID, VAR_CPU, VAR_US, VAR_IRQ, VAR_CALLER,
    VAR_RET, VAR_FAILED, VAR_TOOK,
    VAR__COUNT
} Var;

static const struct {
    const char *name;
    Var var;
} names[] = {
    { "arg0", VAR_ARG0 }, { "arg1", VAR_ARG0 + 1 }, { "arg2", VAR_ARG0 + 2 },
    { "arg3", VAR_ARG0 + 3 }, { "arg4", VAR_ARG0 + 4 },
    { "arg5", VAR_ARG0 + 5 }, { "arg6", VAR_ARG0 + 6 },
    { "arg7", VAR_ARG0 + 7 }, { "pid", VAR_PID }, { "cpu", VAR_CPU },
    { "us", VAR_US }, { "irq", VAR_IRQ }, { "caller_address", VAR_CALLER },
    { "ret", VAR_RET }, { "failed", VAR_FAILED }, { "took", VAR_TOOK },
};

static bool find_name(void *opaque, const char *name, KtConditionName *out)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(names); i++) {
        if (!strcmp(names[i].name, name)) {
            *out = (KtConditionName) { .var = names[i].var };
            return true;
        }
    }
    return false;
}

static void each_name(void *opaque, KtConditionOffer *offer, void *to)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(names); i++) {
        offer(to, names[i].name);
    }
}

static int64_t fetch(void *opaque, unsigned var, bool *known)
{
    const KtWatchFacts *f = opaque;
    const KtCall *call = f->call;

    switch (var) {
    case VAR_PID:
        *known = f->pid >= 0;
        return f->pid;
    case VAR_CPU:
        return call->cpu;
    case VAR_US:
        return call->start_ns / 1000;
    case VAR_IRQ:
        *known = !(call->flags & KT_CALL_IRQ_UNKNOWN);
        return (call->flags & KT_CALL_IRQ) != 0;
    case VAR_CALLER:
        return call->caller;
    case VAR_RET:
        return call->result;
    case VAR_FAILED:
        return kt_call_failed(f->proto, call->result);
    case VAR_TOOK:
        return call->took_ns / 1000;
    default:
        *known = var - VAR_ARG0 < call->n_args;
        return *known ? f->args[var - VAR_ARG0] : 0;
    }
}

bool kt_call_failed(const GsPrototype *proto, uint64_t result)
{
    uint32_t low = result;

    if (proto) {
        return gs_param_failed(gs_prototype_result(proto), result);
    }
    return result >= (uint64_t)-4095 ||
           (result <= UINT32_MAX && low >= (uint32_t)-4095);
}

/* ---- the object ---------------------------------------------------------- */

static bool compile(KtWatch *w, const char *text, GError **errp)
{
    const KtConditionNames in = { .find = find_name, .each = each_name };

    if (!text) {
        return true;
    }
    w->condition = kt_condition_new(text, &in, errp);
    for (unsigned var = VAR_RET; w->condition && var < VAR__COUNT; var++) {
        w->at_return |= kt_condition_uses(w->condition, var);
    }
    return w->condition != NULL;
}

static char *describe(const KtWatchSpec *spec)
{
    GString *s = g_string_new(spec->functions);

    if (spec->module) {
        g_string_append_printf(s, " --module %s", spec->module);
    }
    if (spec->condition) {
        g_string_append_printf(s, " --if '%s'", spec->condition);
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

KtWatch *kt_watch_new(const KtWatchSpec *spec, GError **errp)
{
    KtWatch *w = g_new0(KtWatch, 1);

    if (!compile(w, spec->condition, errp)) {
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

void kt_watch_free(void *watch)
{
    KtWatch *w = watch;

    if (w) {
        kt_condition_free(w->condition);
        g_free(w->module);
        g_free(w->text);
    }
    g_free(w);
}

/* Readers see the old number of areas, none, or the new one: a vCPU that is
 * inside a call then cannot be inside the module's code as well. */
void kt_watch_set_module(KtWatch *w, const GsModule *module)
{
    if (!w->module || strcmp(w->module, module->name)) {
        return;
    }
    __atomic_store_n(&w->n_areas, 0, __ATOMIC_RELEASE);
    if (module->live) {
        memcpy(w->area, module->area, sizeof(w->area));
        __atomic_store_n(&w->n_areas, MIN(module->n, GS_MODULE_AREAS_MAX),
                         __ATOMIC_RELEASE);
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
        if (caller - w->area[i].start < w->area[i].end - w->area[i].start) {
            return true;
        }
    }
    return false;
}

static KtAnswer evaluate(const KtWatch *w, const KtWatchFacts *f)
{
    switch (kt_condition_eval(w->condition, fetch, (void *)f)) {
    case KT_TRUTH_TRUE:
        return KT_YES;
    case KT_TRUTH_FALSE:
        return KT_NO;
    default:
        return KT_UNKNOWN;
    }
}

KtAnswer kt_watch_wants_entry(const KtWatch *w, const KtWatchFacts *f)
{
    if (!w->condition || w->at_return) {
        return KT_YES;
    }
    return evaluate(w, f);
}

KtAnswer kt_watch_wants_return(const KtWatch *w, const KtWatchFacts *f)
{
    if (f->call->took_ns < w->longer_ns ||
        (w->errors && !kt_call_failed(f->proto, f->call->result))) {
        return KT_NO;
    }
    if (!w->at_return) {
        return KT_YES;
    }
    return evaluate(w, f);
}
