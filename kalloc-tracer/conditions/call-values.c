/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Values of a call, for conditions: see call-condition.h. */
#include "kalloc-tracer/conditions/call-condition.h"
#include "kalloc-tracer/layout/layout.h"

#include <string.h>

KtCallLayout kt_call_layout_find(const GsKernel *k)
{
    KtCallLayout l = {
        .task = { UINT32_MAX, UINT32_MAX, UINT32_MAX },
        .module_state = UINT32_MAX,
    };

    if (!k) {
        return l;
    }
    l.task = kt_task_layout_find(k);
    gs_kernel_text_range(k, &l.text_start, &l.text_end);
    l.module_state = kt_member(k, KT_M_MODULE_STATE);
    return l;
}

/* ---- stack and task ------------------------------------------------------ */

bool kt_call_need_stack(KtCallValues *v)
{
    if (!v->have_stack) {
        v->have_stack = true;
        v->stack_known = v->f->ops->stack(v->f->opaque, &v->stack);
        if (v->stack_known) {
            v->facts = kt_stack_rules_facts(v->c->stacks, v->f->kernel,
                                            &v->stack);
        }
    }
    return v->stack_known;
}

bool kt_call_need_task(KtCallValues *v)
{
    if (!v->have_task) {
        v->have_task = true;
        v->task_known = v->f->ops->task(v->f->opaque, &v->task);
    }
    return v->task_known;
}

bool kt_call_need_n(KtCallValues *v)
{
    KtStackTable *t = &v->c->counts;
    KtCallCount *count;

    if (!v->have_n && kt_call_need_stack(v)) {
        v->have_n = true;
        g_mutex_lock(&t->lock);
        count = kt_stack_table_get(t, v->facts.hash);
        v->n = count ? ++count->calls : 0;
        g_mutex_unlock(&t->lock);
        v->no_room = !v->n;
    }
    return v->n;
}

static KtTaskReader reader_of(const KtCallFacts *f)
{
    return (KtTaskReader) { &f->layout->task, f->ops->read, f->opaque };
}

KtAnswer kt_call_is_child(KtCallValues *v, unsigned i)
{
    KtTaskReader reader = reader_of(v->f);

    return kt_call_need_task(v) ?
               kt_task_filter_child(v->c->tasks, i, &reader, v->task.va) :
               KT_UNKNOWN;
}

void kt_call_forks(KtCallValues *v, uint64_t child)
{
    KtTaskReader reader = reader_of(v->f);

    if (kt_call_need_task(v)) {
        kt_task_filter_forked(v->c->tasks, &reader, v->task.va, child);
    }
}

static bool fetch_tgid(KtCallValues *v, int64_t *out)
{
    uint32_t at = v->f->layout->task.tgid;
    uint32_t tgid = 0;
    bool known = kt_call_need_task(v) && at != UINT32_MAX &&
                 v->f->ops->read(v->f->opaque, v->task.va + at, &tgid,
                                 sizeof(tgid));

    *out = tgid;
    return known;
}

bool kt_call_find_module(const KtCallFacts *f, uint64_t va, GsModule *out)
{
    const KtCallLayout *l = f->layout;

    return va - l->text_start >= l->text_end - l->text_start &&
           gs_kernel_module_at(f->kernel, va - 1, out) && out->live;
}

/* The state of the first module on the stack. */
static bool fetch_in_init(KtCallValues *v, int64_t *out)
{
    uint32_t at = v->f->layout->module_state;
    GsModule module;
    uint32_t state;

    if (at == UINT32_MAX || !kt_call_need_stack(v)) {
        return false;
    }
    for (unsigned i = 0; i < v->stack.n; i++) {
        if (kt_call_find_module(v->f, v->stack.frames[i], &module)) {
            bool known = v->f->ops->read(v->f->opaque, module.va + at, &state,
                                         sizeof(state));

            *out = known && (state == 1 || state == 3); /* COMING, UNFORMED */
            return known;
        }
    }
    return true;
}

/* ---- arguments ----------------------------------------------------------- */

bool kt_call_word(const KtCallFacts *f, int i, uint64_t *out)
{
    static const uint8_t order[] = {
        GS_REG_ARG0, GS_REG_ARG1, GS_REG_ARG2, GS_REG_ARG3, GS_REG_ARG4,
        GS_REG_ARG5, GS_REG_ARG6, GS_REG_ARG7,
    };

    return i >= 0 && (unsigned)i < G_N_ELEMENTS(order) &&
           f->ops->word(f->opaque, order[i], out);
}

bool kt_call_u32(const KtCallFacts *f, int i, int64_t *out)
{
    uint64_t word;
    bool known = kt_call_word(f, i, &word);

    *out = known ? (uint32_t)word : *out;
    return known;
}

bool kt_call_arg(const KtCallFacts *f, unsigned i, int64_t *out)
{
    const GsParam *p = f->proto ? gs_prototype_param(f->proto, i) : NULL;
    uint64_t word = 0;
    bool known;

    if (!p) {
        known = kt_call_word(f, i, &word);
        *out = word;
        return known;
    }
    known = p->place.kind == GS_PLACE_REGISTERS ?
            p->place.words == 1 &&
                f->ops->word(f->opaque, p->place.reg[0], &word) :
            p->place.kind == GS_PLACE_STACK && f->sp &&
                f->ops->read(f->opaque, f->sp + p->place.stack, &word,
                             sizeof(word));
    return known && gs_param_number(p, word, out);
}

/* The cache that the function's argument of that role points at. */
static bool find_cache(const KtCallValues *v, KtCacheInfo *out)
{
    uint64_t va;

    return kt_call_word(v->f, v->roles->cache, &va) &&
           v->f->ops->cache(v->f->opaque, va, out);
}

bool kt_call_size(const KtCallValues *v, int64_t *out)
{
    KtCacheInfo cache;
    uint64_t word;

    if (kt_call_word(v->f, v->roles->size, &word)) {
        *out = word;
        return true;
    }
    if (find_cache(v, &cache)) {
        *out = cache.object_size;
        return true;
    }
    return false;
}

/* Does the cache have name @i? A function without a cache has no such name. */
static bool fetch_cache(const KtCallValues *v, unsigned i, int64_t *out)
{
    KtCacheInfo cache;

    if (v->roles->cache < 0) {
        return true;
    }
    if (!find_cache(v, &cache)) {
        return false;
    }
    *out = kt_name_matches(g_ptr_array_index(v->c->caches, i), cache.name);
    return true;
}

/* ---- variables ----------------------------------------------------------- */

bool kt_call_failed(const GsPrototype *proto, uint64_t result)
{
    uint32_t low = result;

    if (proto) {
        return gs_param_failed(gs_prototype_result(proto), result);
    }
    return result >= (uint64_t)-4095 ||
           (result <= UINT32_MAX && low >= (uint32_t)-4095);
}

static uint64_t mix(uint64_t x)         /* splitmix64 */
{
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

static bool fetch_random(KtCallValues *v, uint64_t below, int64_t *out)
{
    bool known = kt_call_need_n(v);

    *out = known ? mix(mix(mix(v->seed) ^ v->facts.hash) ^ v->n) % below : 0;
    return known;
}

/* Those that are about allocations; only conditions at faults have them. */
static bool fetch_of_fault(KtCallValues *v, unsigned var, int64_t *out)
{
    switch (var) {
    case KT_CALL_VAR_SIZE:
        return kt_call_size(v, out);
    case KT_CALL_VAR_FLAGS:
        return kt_call_u32(v->f, v->roles->gfp, out);
    case KT_CALL_VAR_ORDER:
        return kt_call_u32(v->f, v->roles->order, out);
    case KT_CALL_VAR_CAP:
        return kt_call_u32(v->f, v->roles->cap, out);
    case KT_CALL_VAR_TIMES:
        *out = v->times;
        return true;
    case KT_CALL_VAR_RND100:
        return fetch_random(v, 100, out);
    default:
        return fetch_random(v, 10000, out);
    }
}

static bool fetch_irq(const KtCallFacts *f, int64_t *out)
{
    KtAnswer irq = f->ops->irq(f->opaque);

    *out = irq == KT_YES;
    return irq != KT_UNKNOWN;
}

static bool fetch_variable(KtCallValues *v, unsigned var, int64_t *out)
{
    switch (var) {
    case KT_CALL_VAR_CALLER:
    case KT_CALL_VAR_CALLER_ADDRESS:
        *out = v->f->ra;
        return true;
    case KT_CALL_VAR_CPU:
        *out = v->f->cpu;
        return true;
    case KT_CALL_VAR_US:
        *out = v->f->ops->us(v->f->opaque);
        return true;
    case KT_CALL_VAR_IRQ:
        return fetch_irq(v->f, out);
    case KT_CALL_VAR_PID:
        *out = kt_call_need_task(v) ? v->task.pid : 0;
        return v->task_known;
    case KT_CALL_VAR_TGID:
        return fetch_tgid(v, out);
    case KT_CALL_VAR_STACKID:
        *out = kt_call_need_stack(v) ? v->facts.hash : 0;
        return v->stack_known;
    case KT_CALL_VAR_N:
        *out = kt_call_need_n(v) ? v->n : 0;
        return v->n;
    case KT_CALL_VAR_IN_INIT:
        return fetch_in_init(v, out);
    case KT_CALL_VAR_RET:
        *out = v->f->call->result;
        return true;
    case KT_CALL_VAR_FAILED:
        *out = kt_call_failed(v->f->proto, v->f->call->result);
        return true;
    case KT_CALL_VAR_TOOK:
        *out = v->f->call->took_ns / 1000;
        return true;
    default:
        return var <= KT_CALL_VAR_ARG7 ? kt_call_arg(v->f, var, out) :
                                         fetch_of_fault(v, var, out);
    }
}

static bool fetch_name(KtCallValues *v, unsigned i, int64_t *out)
{
    const KtCallName *name = &g_array_index(v->c->names, KtCallName, i);
    int place = v->f->proto ? gs_prototype_find(v->f->proto, name->name) : -1;

    return place >= 0 ? kt_call_arg(v->f, place, out) :
                        name->var >= 0 && fetch_variable(v, name->var, out);
}

static bool fetch_of(KtCallValues *v, unsigned var, int64_t *out)
{
    unsigned i = var & 0xff;
    KtAnswer child;

    switch (var & ~0xffu) {
    case 0:
        return fetch_variable(v, var, out);
    case KT_CALL_STACK_RULE:
        *out = kt_call_need_stack(v) ? v->facts.rules >> i & 1 : 0;
        return v->stack_known;
    case KT_CALL_TASK_NAME:
        *out = kt_call_need_task(v) &&
               kt_task_filter_name(v->c->tasks, i, v->task.comm);
        return v->task_known;
    case KT_CALL_TASK_CHILD:
        child = kt_call_is_child(v, i);
        *out = child == KT_YES;
        return child != KT_UNKNOWN;
    case KT_CALL_CACHE:
        return fetch_cache(v, i, out);
    default:
        return fetch_name(v, i, out);
    }
}

static int64_t fetch(void *opaque, unsigned var, bool *known)
{
    int64_t value = 0;

    *known = fetch_of(opaque, var, &value);
    return value;
}

KtTruth kt_call_condition_eval(KtCallValues *v)
{
    return v->c->code ? kt_condition_eval(v->c->code, fetch, v) :
                        KT_TRUTH_TRUE;
}
