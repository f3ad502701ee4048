/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Values of a call, for conditions: see call-values.h. */
#include "kalloc-tracer/conditions/call-values.h"
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
        v->stack_known = v->ops->stack(v->opaque, &v->stack);
        if (v->stack_known) {
            v->facts = kt_stack_rules_facts(v->scope->stacks, v->kernel,
                                            &v->stack);
        }
    }
    return v->stack_known;
}

bool kt_call_need_task(KtCallValues *v)
{
    if (!v->have_task) {
        v->have_task = true;
        v->task_known = v->ops->task(v->opaque, &v->task);
    }
    return v->task_known;
}

static bool read_task(void *opaque, uint64_t va, void *buf, size_t len)
{
    const KtCallValues *v = opaque;

    return v->ops->read(v->opaque, va, buf, len);
}

KtTaskReader kt_call_task_reader(const KtCallValues *v)
{
    return (KtTaskReader) { &v->scope->layout->task, read_task, (void *)v };
}

KtAnswer kt_call_is_child(KtCallValues *v, unsigned i)
{
    KtTaskReader reader = kt_call_task_reader(v);

    return kt_call_need_task(v) ?
               kt_task_filter_child(v->scope->tasks, i, &reader, v->task.va) :
               KT_UNKNOWN;
}

static bool fetch_child(KtCallValues *v, unsigned i, int64_t *out)
{
    KtAnswer child = kt_call_is_child(v, i);

    *out = child == KT_YES;
    return child != KT_UNKNOWN;
}

static bool fetch_tgid(KtCallValues *v, int64_t *out)
{
    uint32_t at = v->scope->layout->task.tgid;
    uint32_t tgid = 0;
    bool known = kt_call_need_task(v) && at != UINT32_MAX &&
                 v->ops->read(v->opaque, v->task.va + at, &tgid, sizeof(tgid));

    *out = tgid;
    return known;
}

bool kt_call_find_module(const KtCallValues *v, uint64_t va, GsModule *out)
{
    const KtCallLayout *l = v->scope->layout;

    return va - l->text_start >= l->text_end - l->text_start &&
           gs_kernel_module_at(v->kernel, va - 1, out) && out->live;
}

/* The state of the first module on the stack. */
static bool fetch_in_init(KtCallValues *v, int64_t *out)
{
    uint32_t at = v->scope->layout->module_state;
    GsModule module;
    uint32_t state;

    *out = 0;
    if (at == UINT32_MAX || !kt_call_need_stack(v)) {
        return false;
    }
    for (unsigned i = 0; i < v->stack.n; i++) {
        if (kt_call_find_module(v, v->stack.frames[i], &module)) {
            bool known = v->ops->read(v->opaque, module.va + at, &state,
                                      sizeof(state));

            *out = known && (state == 1 || state == 3); /* COMING, UNFORMED */
            return known;
        }
    }
    return true;
}

/* ---- arguments ----------------------------------------------------------- */

bool kt_call_word(const KtCallValues *v, int i, uint64_t *out)
{
    static const uint8_t order[] = {
        GS_REG_ARG0, GS_REG_ARG1, GS_REG_ARG2, GS_REG_ARG3, GS_REG_ARG4,
        GS_REG_ARG5, GS_REG_ARG6, GS_REG_ARG7,
    };

    return i >= 0 && (unsigned)i < G_N_ELEMENTS(order) &&
           v->ops->word(v->opaque, order[i], out);
}

bool kt_call_arg(const KtCallValues *v, unsigned i, int64_t *out)
{
    const GsParam *p = v->proto ? gs_prototype_param(v->proto, i) : NULL;
    uint64_t word = 0;
    bool known;

    if (!p) {
        known = kt_call_word(v, i, &word);
        *out = word;
        return known;
    }
    known = p->place.kind == GS_PLACE_REGISTERS ?
            p->place.words == 1 &&
                v->ops->word(v->opaque, p->place.reg[0], &word) :
            p->place.kind == GS_PLACE_STACK && v->sp &&
                v->ops->read(v->opaque, v->sp + p->place.stack, &word,
                             sizeof(word));
    return known && gs_param_number(p, word, out);
}

/* ---- variables ----------------------------------------------------------- */

static bool fetch_of_stack(KtCallValues *v, unsigned var, int64_t *out)
{
    bool known = kt_call_need_stack(v);

    *out = !known ? 0 : var == KT_CALL_VAR_STACKID ?
               (int64_t)v->facts.hash :
               v->facts.rules >> (var - KT_CALL_STACK_RULE) & 1;
    return known;
}

static bool fetch_of_task(KtCallValues *v, unsigned var, int64_t *out)
{
    bool known = kt_call_need_task(v);

    *out = !known ? 0 : var == KT_CALL_VAR_PID ?
               v->task.pid :
               kt_task_filter_name(v->scope->tasks, var - KT_CALL_TASK_NAME,
                                   v->task.comm);
    return known;
}

static bool fetch_variable(KtCallValues *v, unsigned var, int64_t *out)
{
    KtAnswer irq;

    switch (var) {
    case KT_CALL_VAR_CALLER:
    case KT_CALL_VAR_CALLER_ADDRESS:
        *out = v->ra;
        return true;
    case KT_CALL_VAR_CPU:
        *out = v->cpu;
        return true;
    case KT_CALL_VAR_US:
        *out = v->us;
        return true;
    case KT_CALL_VAR_IRQ:
        irq = v->ops->irq(v->opaque);
        *out = irq == KT_YES;
        return irq != KT_UNKNOWN;
    case KT_CALL_VAR_PID:
        return fetch_of_task(v, var, out);
    case KT_CALL_VAR_TGID:
        return fetch_tgid(v, out);
    case KT_CALL_VAR_STACKID:
        return fetch_of_stack(v, var, out);
    case KT_CALL_VAR_IN_INIT:
        return fetch_in_init(v, out);
    default:
        *out = 0;
        return var <= KT_CALL_VAR_ARG7 && kt_call_arg(v, var, out);
    }
}

bool kt_call_value(KtCallValues *v, unsigned var, int64_t *out)
{
    switch (var & ~0xffu) {
    case 0:
        return fetch_variable(v, var, out);
    case KT_CALL_STACK_RULE:
        return fetch_of_stack(v, var, out);
    case KT_CALL_TASK_NAME:
        return fetch_of_task(v, var, out);
    case KT_CALL_TASK_CHILD:
        return fetch_child(v, var & 0xff, out);
    default:
        *out = 0;
        return false;
    }
}
