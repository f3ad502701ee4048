/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The faults of a tracer: rules, log, boot. See api/kt-faults.h.
 */
#include <string.h>

#include "kalloc-tracer/faults/faults-internal.h"
#include "kalloc-tracer/tracer/tracer.h"

/* Before the flags were an enum, in 6.9. */
#define SLAB_PANIC 0x40000u

/* ---- the part ----------------------------------------------------------- */

static void *new_faults(KtBudget *budget)
{
    KtFaults *f = g_new0(KtFaults, 1);

    f->budget = budget;
    f->insides = kt_fault_insides();
    f->rules = g_ptr_array_new_with_free_func((GDestroyNotify)kt_rule_unref);
    f->log = g_ptr_array_new_with_free_func(g_free);
    f->log_text =
        g_ptr_array_new_with_free_func((GDestroyNotify)kt_rule_text_unref);
    f->ranges = g_array_new(FALSE, FALSE, sizeof(KtFaultCode));
    f->gfp = kt_gfp_find(NULL);
    f->layout = kt_call_layout_find(NULL);
    f->slab_panic = SLAB_PANIC;
    f->next = 1;
    g_mutex_init(&f->lock);
    g_mutex_init(&f->save_lock);
    return f;
}

/* Rules that call points have are freed with these. */
static void free_faults(void *part)
{
    KtFaults *f = part;

    g_ptr_array_unref(f->rules);
    g_ptr_array_unref(f->log);
    g_ptr_array_unref(f->log_text);
    g_array_unref(f->ranges);
    g_clear_pointer(&f->allocators, g_hash_table_unref);
    g_hash_table_unref(f->insides);
    g_mutex_clear(&f->lock);
    g_mutex_clear(&f->save_lock);
    g_free(f);
}

KtFaults *kt_faults_of(KtTracer *t)
{
    static const KtBootPart part = {
        .name = "faults", .new = new_faults, .free = free_faults,
    };

    return kt_tracer_part(t, &part);
}

/* The first use of a command or of capture; before any callback of a call. */
static KtFaults *prepare(KtTracer *t)
{
    KtFaults *f = kt_faults_of(t);

    g_mutex_lock(&f->lock);
    if (!f->tracer) {
        f->allocators = kt_fault_allocators(kt_tracer_hooks(t));
        f->tracer = t;
    }
    g_mutex_unlock(&f->lock);
    return f;
}

/* ---- boots -------------------------------------------------------------- */

static gint by_start(gconstpointer a, gconstpointer b)
{
    const KtFaultCode *x = a, *y = b;

    return (x->start > y->start) - (x->start < y->start);
}

static void find_ranges(KtFaults *f, const GsKernel *k)
{
    GHashTableIter iter;
    gpointer name;
    GsSymbol sym;

    g_array_set_size(f->ranges, 0);
    g_hash_table_iter_init(&iter, f->allocators);
    while (g_hash_table_iter_next(&iter, &name, NULL)) {
        if (gs_kernel_lookup(k, name, &sym) && !sym.module && sym.size) {
            KtFaultCode range = { sym.va + 1, sym.va + sym.size + 1 };

            g_array_append_val(f->ranges, range);
        }
    }
    g_array_sort(f->ranges, by_start);
}

/* Since 5.17 SYSTEM_FREEING_INITMEM is before SYSTEM_RUNNING. */
static void find_state(KtFaults *f, const GsKernel *k)
{
    GsSymbol sym;
    int64_t running = 3;

    f->system_state = gs_kernel_variable(k, "system_state", &sym) ? sym.va : 0;
    if (gs_kernel_enum_value(k, "SYSTEM_RUNNING", &running)) {
        f->running = running;
    } else {
        f->running = 2;
    }
    f->up = false;
}

static void find_slab_panic(KtFaults *f, const GsKernel *k)
{
    int64_t bit;

    f->slab_panic = gs_kernel_enum_value(k, "_SLAB_PANIC", &bit) &&
                    bit >= 0 && bit < 32 ? 1u << bit : SLAB_PANIC;
}

void kt_faults_begin_boot(KtTracer *t, const GsKernel *k)
{
    KtFaults *f = prepare(t);

    f->gfp = kt_gfp_find(k);
    f->layout = kt_call_layout_find(k);
    find_ranges(f, k);
    find_state(f, k);
    find_slab_panic(f, k);
    g_mutex_lock(&f->lock);
    for (unsigned i = 0; i < f->rules->len; i++) {
        KtRule *r = g_ptr_array_index(f->rules, i);

        kt_rule_find_functions(r, k);
        kt_rule_clear_counts(r);
    }
    g_mutex_unlock(&f->lock);
}

/* ---- rules -------------------------------------------------------------- */

static bool fail(GError **errp, const char *text)
{
    g_set_error_literal(errp, GS_ERROR, GS_ERROR_UNSUPPORTED, text);
    return false;
}

static bool may_add(KtFaults *f, GError **errp)
{
    unsigned n;

    if (f->off) {
        return fail(errp, "the plugin runs with faults=off");
    }
    g_mutex_lock(&f->lock);
    n = f->rules->len;
    g_mutex_unlock(&f->lock);
    return n < KT_FAULT_RULES_MAX ||
           fail(errp, "there are 64 rules already; ka fault del removes some");
}

static void drop_rule(gpointer rule)
{
    kt_rule_unref(rule);
}

/* Ask for the call points of a rule. From then on vCPUs can use the rule. */
static bool arm(KtFaults *f, KtRule *r, GError **errp)
{
    g_autofree char *text = kt_rule_points(r);

    r->request = kt_call_points_add(kt_tracer_calls(f->tracer)->points,
                                    &(KtPointSpec) {
        .text = text, .use = KT_POINT_FAULT, .opaque = kt_rule_ref(r),
        .free = drop_rule }, errp);
    return r->request;
}

uint32_t kt_faults_add(KtTracer *t, const GsKernel *k, const KtFaultSpec *spec,
                       GError **errp)
{
    KtFaults *f = prepare(t);
    KtRule *r = may_add(f, errp) ? kt_rule_new(f, k, spec, errp) : NULL;

    if (!r) {
        return 0;
    }
    g_mutex_lock(&f->lock);
    r->id = f->next;
    g_mutex_unlock(&f->lock);
    if (!arm(f, r, errp)) {
        kt_rule_unref(r);
        return 0;
    }
    g_mutex_lock(&f->lock);
    f->next++;
    g_ptr_array_add(f->rules, r);
    g_mutex_unlock(&f->lock);
    return r->id;
}

/* (owned, nullable) Remove the first rule with that number, any if it is 0. */
static KtRule *steal_rule(KtFaults *f, uint32_t id)
{
    KtRule *found = NULL;

    g_mutex_lock(&f->lock);
    for (unsigned i = 0; i < f->rules->len && !found; i++) {
        KtRule *r = g_ptr_array_index(f->rules, i);

        if (!id || r->id == id) {
            found = kt_rule_ref(r);
            g_ptr_array_remove_index(f->rules, i);
        }
    }
    g_mutex_unlock(&f->lock);
    return found;
}

unsigned kt_faults_remove(KtTracer *t, uint32_t id)
{
    KtFaults *f = kt_faults_of(t);
    unsigned n = 0;
    KtRule *r;

    while ((r = steal_rule(f, id))) {
        kt_call_points_remove(kt_tracer_calls(t)->points, KT_POINT_FAULT,
                              r->request);
        kt_rule_unref(r);
        n++;
    }
    return n;
}

void kt_faults_set_seed(KtTracer *t, uint64_t seed)
{
    __atomic_store_n(&kt_faults_of(t)->seed, seed, __ATOMIC_RELAXED);
}

uint64_t kt_faults_seed(KtTracer *t)
{
    return __atomic_load_n(&kt_faults_of(t)->seed, __ATOMIC_RELAXED);
}

void kt_faults_set_warn(KtTracer *t, void (*fn)(const char *line))
{
    kt_faults_of(t)->warn = fn;
}

void kt_faults_set_off(KtTracer *t)
{
    kt_faults_of(t)->off = true;
}

static uint64_t load(const uint64_t *counter)
{
    return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

static KtFaultRule describe(KtRule *r)
{
    KtFaultRule out = {
        .id = r->id, .spec = r->text->spec, .calls = load(&r->calls),
        .selected = load(&r->selected), .done = load(&r->done),
        .unknown = load(&r->unknown), .divided = load(&r->divided),
        .left_out = r->left_out,
    };

    for (unsigned i = 0; i < r->functions->len; i++) {
        const KtFaultFunction *f = &g_array_index(r->functions,
                                                  KtFaultFunction, i);

        out.n_functions += !f->forks;
        out.fails = out.fails ? out.fails : kt_fault_kind_text(f->kind);
    }
    out.fails = r->has_value ? r->text->value : out.fails ? out.fails : "?";
    for (unsigned i = 0; i < KT_REFUSED__COUNT; i++) {
        out.refused[i] = load(&r->refused[i]);
    }
    g_mutex_lock(&r->condition->counts.lock);
    out.stacks = g_hash_table_size(r->condition->counts.entries);
    g_mutex_unlock(&r->condition->counts.lock);
    return out;
}

void kt_faults_foreach(KtTracer *t, KtFaultRuleFn fn, void *opaque)
{
    KtFaults *f = kt_faults_of(t);
    bool more = true;

    g_mutex_lock(&f->lock);
    for (unsigned i = 0; i < f->rules->len && more; i++) {
        KtFaultRule rule = describe(g_ptr_array_index(f->rules, i));

        more = fn(&rule, opaque);
    }
    g_mutex_unlock(&f->lock);
}

void kt_fault_point_each(KtTracer *t, const GsKernel *k, const char *point,
                         void (*fn)(void *opaque, const char *function,
                                    const char *fails), void *opaque)
{
    g_autoptr(GArray) a = kt_fault_point_functions(kt_tracer_hooks(t), k,
                                                   point);

    for (unsigned i = 0; a && i < a->len; i++) {
        const KtFaultFunction *f = &g_array_index(a, KtFaultFunction, i);

        fn(opaque, f->name, kt_fault_kind_text(f->kind));
    }
}
