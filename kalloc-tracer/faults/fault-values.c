/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Values of a call, for conditions and records: see fault-values.h. */
#include "kalloc-tracer/faults/fault-values.h"

#include <string.h>

bool kt_fault_raw_arg(const KtDecision *d, int i, uint64_t *out)
{
    static const uint8_t order[] = {
        GS_REG_ARG0, GS_REG_ARG1, GS_REG_ARG2, GS_REG_ARG3, GS_REG_ARG4,
        GS_REG_ARG5, GS_REG_ARG6, GS_REG_ARG7,
    };

    return i >= 0 && (unsigned)i < G_N_ELEMENTS(order) &&
           d->c->ops->word(d->c->opaque, order[i], out);
}

/* Argument @i by the prototype, which knows its place and its width. */
static bool typed_arg(const KtDecision *d, unsigned i, int64_t *out)
{
    const GsParam *p = gs_prototype_param(d->r->prototype, i);
    uint64_t word = 0;

    if (!p) {
        return false;
    }
    switch (p->place.kind) {
    case GS_PLACE_REGISTERS:
        return p->place.words == 1 &&
               d->c->ops->word(d->c->opaque, p->place.reg[0], &word) &&
               gs_param_number(p, word, out);
    case GS_PLACE_STACK:
        return d->c->ops->read(d->c->opaque, d->c->sp + p->place.stack, &word,
                               sizeof(word)) &&
               gs_param_number(p, word, out);
    default:
        return false;
    }
}

static bool fetch_arg(const KtDecision *d, unsigned i, int64_t *out)
{
    uint64_t word;

    if (d->r->prototype && gs_prototype_param(d->r->prototype, i)) {
        return typed_arg(d, i, out);
    }
    if (!kt_fault_raw_arg(d, i, &word)) {
        return false;
    }
    *out = word;
    return true;
}

bool kt_fault_need_stack(KtDecision *d)
{
    if (!d->have_stack) {
        d->have_stack = true;
        d->stack_known = d->c->ops->stack(d->c->opaque, &d->stack);
        if (d->stack_known) {
            d->facts = kt_stack_rules_facts(d->r->stacks, d->c->kernel,
                                            &d->stack);
        }
    }
    return d->stack_known;
}

bool kt_fault_need_task(KtDecision *d)
{
    if (!d->have_task) {
        d->have_task = true;
        d->task_known = d->c->ops->task(d->c->opaque, &d->task);
    }
    return d->task_known;
}

bool kt_fault_need_n(KtDecision *d)
{
    if (!d->have_n && kt_fault_need_stack(d)) {
        d->have_n = true;
        d->lost = !kt_rule_count(d->r, d->facts.hash, &d->n);
    }
    return d->have_n && !d->lost;
}

static uint64_t mix(uint64_t x)         /* splitmix64 */
{
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

static bool fetch_random(KtDecision *d, uint64_t below, int64_t *out)
{
    uint64_t seed = __atomic_load_n(&d->f->seed, __ATOMIC_RELAXED);

    if (!kt_fault_need_n(d)) {
        return false;
    }
    *out = mix(mix(mix(seed) ^ d->facts.hash) ^ d->n) % below;
    return true;
}

bool kt_fault_size(const KtDecision *d, int64_t *out)
{
    KtCacheInfo cache;
    uint64_t word;

    if (kt_fault_raw_arg(d, d->fn->size, &word)) {
        *out = word;
        return true;
    }
    if (kt_fault_raw_arg(d, d->fn->cache, &word) &&
        d->c->ops->cache(d->c->opaque, word, &cache)) {
        *out = cache.object_size;
        return true;
    }
    return false;
}

bool kt_fault_u32(const KtDecision *d, int arg, int64_t *out)
{
    uint64_t word;

    if (!kt_fault_raw_arg(d, arg, &word)) {
        return false;
    }
    *out = (uint32_t)word;
    return true;
}

bool kt_fault_find_module(const KtDecision *d, uint64_t va, GsModule *out)
{
    const KtCodeRange *text = &d->f->text;

    return va - text->start >= text->end - text->start &&
           gs_kernel_module_at(d->c->kernel, va - 1, out) && out->live;
}

/* The state of the first module on the stack. */
static bool fetch_in_init(KtDecision *d, int64_t *out)
{
    GsModule module;
    uint32_t state;

    if (d->f->module_state == UINT32_MAX || !kt_fault_need_stack(d)) {
        return false;
    }
    *out = 0;
    for (unsigned i = 0; i < d->stack.n; i++) {
        if (kt_fault_find_module(d, d->stack.frames[i], &module)) {
            if (!d->c->ops->read(d->c->opaque,
                                 module.va + d->f->module_state, &state,
                                 sizeof(state))) {
                return false;
            }
            *out = state == 1 || state == 3;    /* COMING, UNFORMED */
            return true;
        }
    }
    return true;
}

static bool fetch_tgid(KtDecision *d, int64_t *out)
{
    uint32_t tgid;

    if (!kt_fault_need_task(d) || d->f->task_at.tgid == UINT32_MAX ||
        !d->c->ops->read(d->c->opaque, d->task.va + d->f->task_at.tgid, &tgid,
                         sizeof(tgid))) {
        return false;
    }
    *out = tgid;
    return true;
}

static bool fetch_irq(const KtDecision *d, int64_t *out)
{
    KtAnswer irq = d->c->ops->irq(d->c->opaque);

    *out = irq == KT_YES;
    return irq != KT_UNKNOWN;
}

/* Values that are in the registers, or belong to the vCPU. */
static bool fetch_of_call(const KtDecision *d, KtCallVariable var, int64_t *out)
{
    switch (var) {
    case KT_CALL_VAR_SIZE:
        return kt_fault_size(d, out);
    case KT_CALL_VAR_FLAGS:
        return kt_fault_u32(d, d->fn->gfp, out);
    case KT_CALL_VAR_ORDER:
        return kt_fault_u32(d, d->fn->order, out);
    case KT_CALL_VAR_CAP:
        return kt_fault_u32(d, d->fn->cap, out);
    case KT_CALL_VAR_CALLER:
    case KT_CALL_VAR_CALLER_ADDRESS:
        *out = d->c->ra;
        return true;
    case KT_CALL_VAR_CPU:
        *out = d->c->cpu;
        return true;
    case KT_CALL_VAR_US:
        *out = d->c->ops->us(d->c->opaque);
        return true;
    case KT_CALL_VAR_IRQ:
        return fetch_irq(d, out);
    default:
        return var <= KT_CALL_VAR_ARG7 && fetch_arg(d, var, out);
    }
}

static bool fetch_variable(KtDecision *d, KtCallVariable var, int64_t *out)
{
    switch (var) {
    case KT_CALL_VAR_TIMES:
        *out = d->times;
        return true;
    case KT_CALL_VAR_N:
        if (!kt_fault_need_n(d)) {
            return false;
        }
        *out = d->n;
        return true;
    case KT_CALL_VAR_STACKID:
        if (!kt_fault_need_stack(d)) {
            return false;
        }
        *out = d->facts.hash;
        return true;
    case KT_CALL_VAR_IN_INIT:
        return fetch_in_init(d, out);
    case KT_CALL_VAR_PID:
        if (!kt_fault_need_task(d)) {
            return false;
        }
        *out = d->task.pid;
        return true;
    case KT_CALL_VAR_TGID:
        return fetch_tgid(d, out);
    case KT_CALL_VAR_RND100:
        return fetch_random(d, 100, out);
    case KT_CALL_VAR_RND10000:
        return fetch_random(d, 10000, out);
    default:
        return fetch_of_call(d, var, out);
    }
}

static bool read_task(void *opaque, uint64_t va, void *buf, size_t len)
{
    const KtFaultCall *c = opaque;

    return c->ops->read(c->opaque, va, buf, len);
}

KtTaskReader kt_fault_task_reader(const KtDecision *d)
{
    return (KtTaskReader) { &d->f->task_at, read_task, (void *)d->c };
}

KtAnswer kt_fault_is_child(KtDecision *d, unsigned i)
{
    KtTaskReader reader = kt_fault_task_reader(d);

    return kt_fault_need_task(d) ?
               kt_task_filter_child(d->r->tasks, i, &reader, d->task.va) :
               KT_UNKNOWN;
}

static bool fetch_cache(const KtDecision *d, unsigned i, int64_t *out)
{
    KtCacheInfo cache;
    uint64_t word;

    *out = 0;
    if (d->fn->cache == KT_NO_ARG) {
        return true;
    }
    if (!kt_fault_raw_arg(d, d->fn->cache, &word) ||
        !d->c->ops->cache(d->c->opaque, word, &cache)) {
        return false;
    }
    *out = g_pattern_spec_match_string(g_ptr_array_index(d->r->caches, i),
                                       cache.name);
    return true;
}

/* Values of functions: stack(f), task("x"), child(n), cache("x"). */
static bool fetch_function(KtDecision *d, unsigned var, int64_t *out)
{
    unsigned i = var & 0xff;
    KtAnswer child;

    switch (var & ~0xffu) {
    case KT_CALL_STACK_RULE:
        *out = kt_fault_need_stack(d) ? d->facts.rules >> i & 1 : 0;
        return d->stack_known;
    case KT_CALL_TASK_NAME:
        *out = kt_fault_need_task(d) &&
               kt_task_filter_name(d->r->tasks, i, d->task.comm);
        return d->task_known;
    case KT_CALL_TASK_CHILD:
        child = kt_fault_is_child(d, i);
        *out = child == KT_YES;
        return child != KT_UNKNOWN;
    default:
        return fetch_cache(d, i, out);
    }
}

int64_t kt_fault_fetch(void *opaque, unsigned var, bool *known)
{
    KtDecision *d = opaque;
    int64_t value = 0;

    *known = var < KT_CALL_STACK_RULE ? fetch_variable(d, var, &value) :
                                        fetch_function(d, var, &value);
    return value;
}
