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
    f->log = kt_fault_records_new();
    f->ranges = g_array_new(FALSE, FALSE, sizeof(KtFaultCode));
    f->gfp = kt_gfp_find(NULL);
    f->layout = kt_call_layout_find(NULL);
    f->slab_panic = SLAB_PANIC;
    f->next = 1;
    g_mutex_init(&f->lock);
    g_mutex_init(&f->save_lock);
    return f;
}

static void free_faults(void *part)
{
    KtFaults *f = part;

    g_ptr_array_unref(f->log);
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

void kt_faults_rules(KtTracer *t, KtPointRequestFn fn, void *opaque)
{
    kt_call_points_foreach_request(kt_tracer_calls(t)->points, KT_POINT_FAULT,
                                   fn, opaque);
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

/* Find the functions of a rule, and begin to count anew. */
static bool begin_rule(const KtPointRequestInfo *info, void *k)
{
    KtRule *r = info->request->opaque;
    KtStackTable *t = &r->condition->counts;

    kt_rule_find_functions(r, k);
    g_mutex_lock(&t->lock);
    g_hash_table_remove_all(t->entries);
    g_mutex_unlock(&t->lock);
    __atomic_store_n(&r->calls, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&r->done, 0, __ATOMIC_RELAXED);
    return true;
}

void kt_faults_begin_boot(KtTracer *t, const GsKernel *k)
{
    KtFaults *f = prepare(t);

    f->gfp = kt_gfp_find(k);
    f->layout = kt_call_layout_find(k);
    find_ranges(f, k);
    find_state(f, k);
    find_slab_panic(f, k);
    kt_faults_rules(t, begin_rule, (void *)k);
}

/* ---- rules -------------------------------------------------------------- */

static bool fail(GError **errp, const char *text)
{
    g_set_error_literal(errp, GS_ERROR, GS_ERROR_UNSUPPORTED, text);
    return false;
}

static bool count_rule(const KtPointRequestInfo *info, void *n)
{
    ++*(unsigned *)n;
    return true;
}

static bool may_add(KtFaults *f, GError **errp)
{
    unsigned n = 0;

    if (f->off) {
        return fail(errp, "the plugin runs with faults=off");
    }
    kt_faults_rules(f->tracer, count_rule, &n);
    return n < KT_FAULT_RULES_MAX ||
           fail(errp, "there are 64 rules already; ka fault del removes some");
}

uint32_t kt_faults_add(KtTracer *t, const GsKernel *k, const KtFaultSpec *spec,
                       GError **errp)
{
    KtFaults *f = prepare(t);
    KtRule *r = may_add(f, errp) ? kt_rule_new(f, k, spec, errp) : NULL;
    g_autofree char *text = r ? kt_rule_points(r) : NULL;
    uint32_t id;

    if (!r) {
        return 0;
    }
    g_mutex_lock(&f->lock);
    r->id = id = f->next;
    g_mutex_unlock(&f->lock);
    /* From now on vCPUs can use the rule. */
    if (!kt_call_points_add(kt_tracer_calls(t)->points, &(KtPointSpec) {
            .text = text, .use = KT_POINT_FAULT, .id = id, .opaque = r,
            .free = kt_fault_rule_free }, errp)) {
        return 0;
    }
    g_mutex_lock(&f->lock);
    f->next++;
    g_mutex_unlock(&f->lock);
    return id;
}

unsigned kt_faults_remove(KtTracer *t, uint32_t id)
{
    return kt_call_points_remove(kt_tracer_calls(t)->points, KT_POINT_FAULT,
                                 id);
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
        .id = r->id, .spec = *r->spec, .calls = load(&r->calls),
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
    out.fails = r->has_value ? r->spec->value : out.fails ? out.fails : "?";
    for (unsigned i = 0; i < KT_REFUSED__COUNT; i++) {
        out.refused[i] = load(&r->refused[i]);
    }
    g_mutex_lock(&r->condition->counts.lock);
    out.stacks = g_hash_table_size(r->condition->counts.entries);
    g_mutex_unlock(&r->condition->counts.lock);
    return out;
}

typedef struct EachRule {
    KtFaultRuleFn fn;
    void *opaque;
} EachRule;

static bool each_rule(const KtPointRequestInfo *info, void *opaque)
{
    const EachRule *each = opaque;
    KtFaultRule rule = describe(info->request->opaque);

    return each->fn(&rule, each->opaque);
}

void kt_faults_foreach(KtTracer *t, KtFaultRuleFn fn, void *opaque)
{
    kt_faults_rules(t, each_rule, &(EachRule) { fn, opaque });
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
