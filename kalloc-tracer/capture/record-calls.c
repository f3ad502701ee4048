/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Record: calls of call points.
 *
 *     entry:   KtOpenCall (sp, ra) with arguments, task, time; the return
 *              address becomes a return site
 *     return:  result and duration; the call becomes a record, if the options
 *              of its request want it
 *
 * The options are those of the point's newest request at that moment. A call
 * whose point was deleted meanwhile makes no record. When no function is
 * watched any more, returns do not search for calls.
 */
#include "kalloc-tracer/capture/record-internal.h"
#include "kalloc-tracer/calls/deref-plan.h"

#include <string.h>

static const KtWatch *watch_of(const KtCallPoint *point)
{
    const KtPointRequest *r = point ? kt_call_point_watch(point) : NULL;

    return r ? r->opaque : NULL;
}

/* ---- entries ------------------------------------------------------------- */

static void fill_task(KtHookCall *m, KtCall *call, bool stack)
{
    KtTaskAt task;

    if (stack) {
        kt_record_complete(m);
        call->task = m->ev.task;
        call->stack = m->ev.stack;
        return;
    }
    kt_guest_find_task(m->boot->guest, kt_vcpu_reg(m->v, GS_REG_BASE), &task);
    call->task = kt_guest_task(m->boot->guest, &m->v->seen, &task);
}

static uint8_t interrupt_flags(const KtHookCall *m)
{
    switch (kt_guest_in_interrupt(m->boot->guest,
                                  kt_vcpu_reg(m->v, GS_REG_BASE))) {
    case KT_YES:
        return KT_CALL_IRQ;
    case KT_NO:
        return 0;
    default:
        return KT_CALL_IRQ_UNKNOWN;
    }
}

static void fill_call(KtHookCall *m, const KtCallPoint *point, KtOpenCall *c,
                      uint64_t ns)
{
    c->sp = m->sp_after;
    c->site = m->ra;
    c->call = (KtCall) {
        .start_ns = ns, .caller = m->ra, .point = point->id,
        .cpu = m->v->index, .return_cpu = m->v->index,
        .era = gs_kernel_era(m->c->kernel, &m->ra, 1).all,
        .flags = interrupt_flags(m),
    };
    for (unsigned i = 0; i < point->n_args; i++) {
        const uint64_t *reg = m->v->reg[kt_vcpu_arg_reg(i)];

        if (reg) {
            c->args[c->call.n_args++] = *reg;
        }
    }
}

/* ---- what conditions ask ------------------------------------------------- */

/** struct Asked - a call at its entry or at its return */
typedef struct Asked {
    KtHookCall *m;
    KtOpenCall *c;
    bool at_return;
} Asked;

static bool read_word(void *call, GsReg reg, uint64_t *out)
{
    const Asked *a = call;
    int arg = kt_call_arg_of(reg);
    bool known = arg >= 0 && arg < a->c->call.n_args;

    *out = known ? a->c->args[arg] : 0;
    return known;
}

static bool read_stack(void *call, KtCallStack *out)
{
    const Asked *a = call;
    KtTracer *t = a->m->c->tracer;

    if (!a->c->call.stack.v && !a->at_return) {
        kt_record_complete(a->m);
        a->c->call.stack = a->m->ev.stack;
    }
    out->id = a->c->call.stack;
    out->frames = kt_tracer_stack(t, out->id, &out->n, &out->stop);
    out->era = kt_tracer_stack_era(t, out->id);
    return out->id.v && out->frames;
}

static bool read_task(void *call, KtCallTask *out)
{
    const Asked *a = call;
    KtTaskAt at;

    kt_guest_find_task(a->m->boot->guest, kt_vcpu_reg(a->m->v, GS_REG_BASE),
                       &at);
    out->va = at.va;
    out->id = a->c->call.task;
    return kt_tracer_task(a->m->c->tracer, out->id, &out->pid, out->comm);
}

/* Read memory. Most of the time the kernel itself must not access user space
 * (SMAP of x86-64, SUM of riscv64), so its memory is read by a walk of the page
 * tables, which checks no privilege, raises no exception and reads no device.
 * The vCPU walks its own tables. */
static bool read_memory(void *call, uint64_t va, void *buf, size_t len)
{
    const KtHookCall *m = ((const Asked *)call)->m;
    uint64_t at = kt_vcpu_untag(m->v, va);

    return kt_guest_read(m->boot->guest, at, buf, len) ||
           (at < gs_kernel_lowest(m->c->kernel) &&
            qemu_plugin_read_vaddr_ram(m->v->index, at, buf, len));
}

static KtAnswer read_irq(void *call)
{
    const KtCall *c = &((const Asked *)call)->c->call;

    return c->flags & KT_CALL_IRQ_UNKNOWN ? KT_UNKNOWN :
           c->flags & KT_CALL_IRQ ? KT_YES : KT_NO;
}

static uint64_t read_us(void *call)
{
    return ((const Asked *)call)->c->call.start_ns / 1000;
}

static KtCallFacts facts_of(Asked *a, const KtCallPoint *point)
{
    static const KtCallOps ops = {
        .word = read_word, .stack = read_stack, .task = read_task,
        .read = read_memory, .irq = read_irq, .us = read_us,
    };

    return (KtCallFacts) {
        .ops = &ops, .opaque = a, .kernel = a->m->c->kernel,
        .layout = &a->m->c->watched->layout, .proto = point->proto,
        .call = &a->c->call, .ra = a->c->call.caller,
        .sp = a->at_return ? 0 : kt_vcpu_reg(a->m->v, GS_REG_SP),
        .cpu = a->c->call.cpu,
    };
}

static void read_derefs(KtHookCall *m, const KtCallPoint *point,
                        const KtCallFacts *f, KtOpenCall *c)
{
    unsigned bad = kt_deref_read_entry(point->plan, f, c->extra,
                                       &c->call.n_extra);

    kt_vcpu_count(m->v, KT_CNT_CALLS_DEREF_UNREADABLE, bad);
}

static void read_result_derefs(KtHookCall *m, const KtCallPoint *point,
                               const KtCallFacts *f, KtOpenCall *c)
{
    unsigned bad = kt_deref_read_return(point->plan, f, c->extra,
                                        &c->call.n_extra);

    kt_vcpu_count(m->v, KT_CNT_CALLS_DEREF_UNREADABLE, bad);
}

static bool is_wanted(KtHookCall *m, KtAnswer answer)
{
    if (answer == KT_UNKNOWN) {
        kt_vcpu_count(m->v, KT_CNT_CALLS_UNDECIDED, 1);
    }
    return answer == KT_YES;
}

static void put_record(KtHookCall *m, const KtOpenCall *c)
{
    unsigned dropped = kt_call_records_put(m->c->watched->records, &c->call,
                                           c->args, c->extra);

    kt_vcpu_count(m->v, KT_CNT_CALLS_RECORDED, 1);
    kt_vcpu_count(m->v, KT_CNT_CALLS_DROPPED, dropped);
}

static void put_unfinished(KtHookCall *m, KtOpenCalls *calls, KtOpenCall *c)
{
    c->call.flags |= KT_CALL_UNFINISHED;
    if (c->undecided) {
        kt_vcpu_count(m->v, KT_CNT_CALLS_UNDECIDED, 1);
    } else {
        put_record(m, c);
    }
    kt_open_calls_put(calls, m->v->index, c);
}

/* Wait for the return. A return address in user space belongs to the kernel's
 * entry code, which does not return there. */
static void await_return(KtHookCall *m, KtOpenCalls *calls, KtOpenCall *c)
{
    KtOpenCall *stale;

    if (m->ra < gs_kernel_lowest(m->c->kernel) ||
        !kt_record_add_point_site(m)) {
        kt_vcpu_count(m->v, KT_CNT_CALLS_NO_RETURN, 1);
        put_unfinished(m, calls, c);
        return;
    }
    stale = kt_open_calls_add(calls, c);
    while (stale) {
        KtOpenCall *next = stale->next;

        kt_vcpu_count(m->v, KT_CNT_CALLS_STALE, 1);
        put_unfinished(m, calls, stale);
        stale = next;
    }
}

GS_HOT
static void watch_entry(KtHookCall *m, const KtCallPoint *point,
                        const KtWatch *w)
{
    KtOpenCalls *calls = kt_call_records_calls(m->c->watched->records);
    uint64_t ns = qemu_plugin_get_virtual_ns(m->insns_left);
    Asked asked = { .m = m };
    KtCallFacts facts;
    KtOpenCall *c;

    kt_call_records_enter(m->c->watched->records, m->v->index, point->id, ns);
    if (!kt_watch_wants_caller(w, m->ra)) {
        return;
    }
    c = kt_open_calls_get(calls, m->v->index);
    if (!c) {
        kt_vcpu_count(m->v, KT_CNT_CALLS_DROPPED, 1);
        return;
    }
    fill_call(m, point, c, ns);
    fill_task(m, &c->call, kt_watch_wants_stack(w));
    c->undecided = kt_watch_is_open(w);
    asked.c = c;
    facts = facts_of(&asked, point);
    if (is_wanted(m, kt_watch_wants_entry(w, &facts))) {
        if (G_UNLIKELY(point->plan)) {
            read_derefs(m, point, &facts, c);
        }
        await_return(m, calls, c);
    } else {
        kt_open_calls_put(calls, m->v->index, c);
    }
}

GS_HOT
bool kt_record_point(KtHookCall *m, const KtCallPoint *point)
{
    const KtWatch *w = watch_of(point);

    kt_vcpu_count(m->v, KT_CNT_CALLS_ENTERED, 1);
    if (!kt_record_find_return(m)) {
        kt_vcpu_count(m->v, KT_CNT_CALLS_UNREADABLE, 1);
        return false;
    }
    if (w) {
        watch_entry(m, point, w);
    }
    return true;
}

/* ---- returns ------------------------------------------------------------- */

static void finish(KtHookCall *m, KtOpenCall *c, uint64_t ns, uint64_t result)
{
    const KtPointSet *set = kt_call_points_set(m->c->points);
    const KtCallPoint *point =
        set ? kt_point_set_get(set, c->call.point) : NULL;
    const KtWatch *w = watch_of(point);
    Asked asked = { m, c, true };
    KtCallFacts facts;

    if (!w) {
        return;
    }

    c->call.took_ns = ns - c->call.start_ns;
    c->call.result = result;
    c->call.return_cpu = m->v->index;
    facts = facts_of(&asked, point);
    if (is_wanted(m, kt_watch_wants_return(w, &facts))) {
        c->call.stack.v = w->stack ? c->call.stack.v : 0;
        if (G_UNLIKELY(point->plan)) {
            read_result_derefs(m, point, &facts, c);
        }
        put_record(m, c);
    }
}

GS_HOT
bool kt_record_point_return(KtHookCall *m)
{
    KtOpenCalls *calls = kt_calls_open(m->c->watched);
    KtOpenCall *c = calls ? kt_open_calls_remove(calls, m->sp_after, m->ra) :
                            NULL;
    bool any = c;
    uint64_t ns = c ? qemu_plugin_get_virtual_ns(m->insns_left) : 0;

    while (c) {
        KtOpenCall *next = c->next;

        finish(m, c, ns, kt_vcpu_reg(m->v, GS_REG_RESULT));
        kt_open_calls_put(calls, m->v->index, c);
        c = next;
    }
    return any;
}

void kt_record_point_failed(KtHookCall *m, KtPointId point, uint64_t value,
                            uint16_t rule)
{
    KtOpenCalls *calls = kt_calls_open(m->c->watched);
    KtOpenCall *c = calls ? kt_open_calls_remove_point(calls, m->sp_after,
                                                       m->ra, point) : NULL;

    if (c) {
        c->call.flags |= KT_CALL_INJECTED;
        c->call.rule = rule;
        finish(m, c, c->call.start_ns, value);
        kt_open_calls_put(calls, m->v->index, c);
    }
}

/* ---- sessions ------------------------------------------------------------ */

static void put_session(KtHookCall *m, uint64_t module_va, uint8_t flag)
{
    KtOpenCall c = {
        .call = {
            .start_ns = qemu_plugin_get_virtual_ns(m->insns_left),
            .flags = flag, .cpu = m->v->index, .return_cpu = m->v->index,
        },
    };
    GsModule module;

    if (kt_call_records_calls(m->c->watched->records) &&
        gs_kernel_module(m->c->kernel, module_va, &module)) {
        fill_task(m, &c.call, false);
        c.call.n_extra = MIN(strlen(module.name), sizeof(c.extra));
        memcpy(c.extra, module.name, c.call.n_extra);
        put_record(m, &c);
    }
}

void kt_record_module(KtHookCall *m, uint64_t module_va, bool added)
{
    if (kt_calls_module(m->c->watched, m->c->kernel, module_va, added)) {
        put_session(m, module_va, added ? KT_CALL_BEGIN : KT_CALL_END);
    }
    if (m->c->access) {
        kt_access_watch_module(m->c->access, m->c->kernel, module_va);
    }
    if (!added) {
        kt_calls_save(m->c->tracer);    /* while the module's code has names */
        kt_faults_save(m->c->tracer);
    }
    kt_vcpu_count(m->v, KT_CNT_CALLS_SKIPPED,
                  kt_call_points_skipped(m->c->points));
}
