/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Decide about a call: see fault-rules.h. The hot path: on vCPU threads, with
 * locks only for a moment. What a rule does not need is not fetched.
 */
#include <string.h>

#include "guest-symbols/base/sorted.h"
#include "kalloc-tracer/faults/faults-internal.h"
#include "kalloc-tracer/tracer/tracer.h"

/** struct Decision - one rule and one call. @fn: the function that is called */
typedef struct Decision {
    KtFaults *f;
    KtRule *r;
    const KtFaultFunction *fn;
    KtCallFacts facts;
    uint64_t to;
    KtCallValues v;
} Decision;

/* ---- filters ------------------------------------------------------------ */

static void add(uint64_t *counter)
{
    __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

/* Return true if @va is in code of an allocator. */
static bool in_allocator(const KtFaults *f, uint64_t va)
{
    const KtFaultCode *range = (const KtFaultCode *)f->ranges->data;
    unsigned n = gs_sorted_up_to(range, f->ranges->len, sizeof(*range), va);

    return n && va < range[n - 1].end;
}

static bool is_from_module(const Decision *d)
{
    GsModule module;

    return kt_call_find_module(&d->facts, d->facts.ra, &module) &&
           !strcmp(module.name, d->r->spec->module);
}

static bool is_of_task(Decision *d)
{
    if (d->r->task_child >= 0) {
        return kt_call_is_child(&d->v, d->r->task_child) == KT_YES;
    }
    return kt_call_need_task(&d->v) &&
           kt_task_filter_name(d->r->condition->tasks, d->r->task_name,
                               d->v.task.comm);
}

static bool is_in_scope(Decision *d)
{
    const KtRule *r = d->r;

    return !(d->fn->allocates && in_allocator(d->f, d->facts.ra)) &&
           (!r->spec->module || is_from_module(d)) &&
           ((r->task_child < 0 && r->task_name < 0) || is_of_task(d));
}

static bool condition_holds(Decision *d)
{
    KtTruth v = kt_call_condition_eval(&d->v);

    if (v == KT_TRUTH_UNKNOWN && !d->v.no_room) {
        add(&d->r->unknown);
        kt_tracer_count(d->f->tracer, KT_CNT_FAULTS_UNKNOWN, 1);
    } else if (v == KT_TRUTH_DIVIDED) {
        add(&d->r->divided);
        kt_tracer_count(d->f->tracer, KT_CNT_FAULTS_DIVIDED, 1);
    }
    return v == KT_TRUTH_TRUE;
}

/* ---- refusals ----------------------------------------------------------- */

static bool is_early(Decision *d)
{
    uint32_t state;

    if (__atomic_load_n(&d->f->up, __ATOMIC_RELAXED) || !d->f->system_state ||
        !d->facts.ops->read(d->facts.opaque, d->f->system_state, &state,
                            sizeof(state))) {
        return false;
    }
    if (state >= d->f->running) {
        __atomic_store_n(&d->f->up, true, __ATOMIC_RELAXED);
        return false;
    }
    return true;
}

static bool has_gfp(const Decision *d, KtGfpBit bit)
{
    int64_t flags;

    return kt_call_u32(&d->facts, d->fn->role.gfp, &flags) &&
           flags & d->f->gfp.mask[bit];
}

static bool makes_panic(const Decision *d)
{
    int64_t flags;

    return kt_call_u32(&d->facts, d->fn->role.slab, &flags) &&
           flags & d->f->slab_panic;
}

static bool stack_has(Decision *d, int rule)
{
    return kt_call_need_stack(&d->v) && d->v.facts.rules >> rule & 1;
}

/* Return true and the reason if the call has to be left alone. It is counted
 * in any case, so that kt_fault_command() finds the same n. */
static bool is_refused(Decision *d, KtFaultRefusal *why)
{
    const KtFaultSpec *s = d->r->spec;

    *why = KT_REFUSED__COUNT;
    if (!kt_call_need_n(&d->v)) {
        *why = d->v.no_room ? KT_REFUSED_STACKS_FULL : KT_REFUSED_UNSAFE;
    } else if (s->times && __atomic_load_n(&d->r->done, __ATOMIC_RELAXED) >=
                        s->times) {
        *why = KT_REFUSED_TIMES;
    } else if (d->fn->allocates && stack_has(d, d->r->inner)) {
        *why = KT_REFUSED_INNER;
    } else if (stack_has(d, d->r->inside) && !s->force) {
        *why = KT_REFUSED_INSIDE;
    } else if (!s->force && has_gfp(d, KT_GFP_NOFAIL)) {
        *why = KT_REFUSED_NOFAIL;
    } else if (!s->force && makes_panic(d)) {
        *why = KT_REFUSED_PANICS;
    } else if (!s->early && !s->force && is_early(d)) {
        *why = KT_REFUSED_EARLY;
    } else if (s->action == KT_FAULT_DO_FAIL &&
               !gs_kernel_is_text(d->facts.kernel, d->to)) {
        *why = KT_REFUSED_UNSAFE;
    }
    return *why != KT_REFUSED__COUNT;
}

static void refuse(Decision *d, KtFaultRefusal why)
{
    add(&d->r->refused[why]);
    kt_tracer_count(d->f->tracer, KT_CNT_FAULTS_REFUSED, 1);
}

/* ---- records ------------------------------------------------------------ */

static KtFaultChance chance_of(const Decision *d, int64_t size)
{
    int64_t order = 0;

    if (d->fn->role.gfp == KT_NO_ARG) {
        return d->fn->allocates ? KT_CHANCE_LIKELY : KT_CHANCE_NONE;
    }
    kt_call_u32(&d->facts, d->fn->role.order, &order);
    if (!has_gfp(d, KT_GFP_DIRECT_RECLAIM) || has_gfp(d, KT_GFP_NORETRY) ||
        order > 3 || size > 32768) {
        return KT_CHANCE_LIKELY;
    }
    return has_gfp(d, KT_GFP_ACCOUNT) ? KT_CHANCE_CGROUP : KT_CHANCE_RARE;
}

static uint64_t value_of(const Decision *d)
{
    uint64_t size = 0;

    if (d->r->has_value) {
        return d->r->value;
    }
    kt_call_word(&d->facts, d->fn->role.size, &size);
    return kt_fault_default(d->fn->kind, size);
}

static KtFaultRecord make_record(Decision *d)
{
    int64_t size = 0, flags = 0;
    KtFaultRecord rec = {
        .rule = d->r->id, .spec = d->r->spec,
        .function = g_intern_string(d->fn->name),
        .action = d->r->spec->action, .cut = d->v.facts.cut,
        .us = d->facts.ops->us(d->facts.opaque), .hash = d->v.facts.hash,
        .n = d->v.n, .times = d->v.times, .stack = d->v.stack.id,
        .cpu = d->facts.cpu,
    };

    kt_call_size(&d->v, &size);
    kt_call_u32(&d->facts, d->fn->role.gfp, &flags);
    rec.size = size;
    rec.flags = flags;
    rec.chance = chance_of(d, size);
    rec.value = rec.action == KT_FAULT_DO_FAIL ? value_of(d) : 0;
    rec.task = kt_call_need_task(&d->v) ? d->v.task.id : (KtTaskId) { 0 };
    for (unsigned i = 0; i < KT_FAULT_ARGS; i++) {
        kt_call_word(&d->facts, i, &rec.arg[i]);
    }
    return rec;
}

/* Claim one of the rule's --times. Two vCPUs can be here at once. */
static bool claim_one(KtRule *r)
{
    uint64_t before = __atomic_fetch_add(&r->done, 1, __ATOMIC_RELAXED);

    if (r->spec->times && before >= r->spec->times) {
        __atomic_fetch_sub(&r->done, 1, __ATOMIC_RELAXED);
        return false;
    }
    return true;
}

/* Count a selected call of its stack, and keep the first one. */
static void count_selected(KtStackTable *t, const KtFaultRecord *rec)
{
    KtRuleCount *c;

    g_mutex_lock(&t->lock);
    c = kt_stack_table_get(t, rec->hash);
    if (c && !c->selected++) {
        c->first = *rec;
    }
    g_mutex_unlock(&t->lock);
}

static bool finish(Decision *d, KtFaultVerdict *out)
{
    KtFaultAction action = d->r->spec->action;
    KtFaultRecord rec;

    if (!claim_one(d->r)) {
        refuse(d, KT_REFUSED_TIMES);
        return false;
    }
    rec = make_record(d);
    count_selected(&d->r->condition->counts, &rec);
    if (!kt_faults_append(d->f, &rec)) {
        __atomic_fetch_sub(&d->r->done, 1, __ATOMIC_RELAXED);
        refuse(d, KT_REFUSED_LOG_FULL);
        return false;
    }
    kt_tracer_count(d->f->tracer, action == KT_FAULT_DO_FAIL ?
                    KT_CNT_FAULTS_MADE : KT_CNT_FAULTS_LOGGED, 1);
    *out = (KtFaultVerdict) {
        .fail = action == KT_FAULT_DO_FAIL,
        .stop = action == KT_FAULT_DO_STOP,
        .value = rec.value,
        .rule = d->r->id,
    };
    return action != KT_FAULT_DO_LOG;
}

/* ---- the rules of a point ----------------------------------------------- */

/* (nullable) Return the rule's description of the function of @point. */
static const KtFaultFunction *find_function(KtRule *r, const KtCallPoint *point)
{
    uint32_t *seen = &r->seen[point->id.v % G_N_ELEMENTS(r->seen)];
    uint32_t known = __atomic_load_n(seen, __ATOMIC_RELAXED);

    if (known >> 16 == point->id.v) {
        return &g_array_index(r->functions, KtFaultFunction, known & 0xffff);
    }
    for (unsigned i = 0; i < r->functions->len; i++) {
        const KtFaultFunction *f = &g_array_index(r->functions,
                                                  KtFaultFunction, i);

        if (f->va == point->va || !strcmp(f->name, point->name)) {
            __atomic_store_n(seen, (uint32_t)point->id.v << 16 | i,
                             __ATOMIC_RELAXED);
            return f;
        }
    }
    return NULL;
}

static void on_fork(Decision *d)
{
    uint64_t child;

    if (kt_call_word(&d->facts, 0, &child)) {
        kt_call_forks(&d->v, child);
    }
}

static bool is_selected(Decision *d)
{
    if (!is_in_scope(d)) {
        return false;
    }
    d->v.times = __atomic_add_fetch(&d->r->calls, 1, __ATOMIC_RELAXED);
    if (condition_holds(d)) {
        return true;
    }
    if (d->v.no_room) {
        refuse(d, KT_REFUSED_STACKS_FULL);
    }
    return false;
}

static bool decide_selected(Decision *d, KtFaultVerdict *out)
{
    KtFaultRefusal why;

    add(&d->r->selected);
    if (is_refused(d, &why)) {
        refuse(d, why);
        return false;
    }
    return finish(d, out);
}

static bool decide_rule(KtRule *r, const KtFaultFunction *fn,
                        const KtFaultCall *c, KtFaultVerdict *out)
{
    Decision d = {
        .f = r->faults, .r = r, .fn = fn, .facts = c->facts, .to = c->to,
        .v = {
            .c = r->condition, .roles = &fn->role,
            .seed = __atomic_load_n(&r->faults->seed, __ATOMIC_RELAXED),
        },
    };

    d.facts.layout = &r->faults->layout;
    d.facts.proto = r->prototype;
    d.v.f = &d.facts;
    if (fn->forks) {
        on_fork(&d);
        return false;
    }
    return is_selected(&d) && decide_selected(&d, out);
}

bool kt_faults_decide(const KtCallPoint *point, const KtFaultCall *call,
                      KtFaultVerdict *out)
{
    for (unsigned i = 0; i < point->n_requests; i++) {
        const KtPointRequest *request = point->request[i];
        KtRule *r = request->use == KT_POINT_FAULT ? request->opaque : NULL;
        const KtFaultFunction *fn = r ? find_function(r, point) : NULL;

        if (fn && decide_rule(r, fn, call, out)) {
            return true;
        }
    }
    return false;
}
