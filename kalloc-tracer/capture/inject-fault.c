/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Inject faults: the rules of a call point decide about a call at its entry,
 * and the call returns at once, before its first instruction.
 *
 *     architecture    result    returns to               stack pointer
 *     x86-64          rax       the word at rsp          rsp + 8
 *     arm64           x0        x30
 *     riscv64         a0        ra
 *
 * At the first instruction nothing is pushed and nothing is signed yet, so this
 * is what the function's own return would leave behind. QEMU's patches take
 * care of the rest: BTYPE, ELP, single steps, and the instructions that the
 * clock has counted already.
 *
 * A call that is left has no pending call: its return would never come.
 *
 * On the vCPU's thread. qemu_plugin_set_pc() does not return and runs no clean
 * up, so kt_leave_call() owns nothing, and holds no lock.
 */
#include "kalloc-tracer/capture/record-internal.h"

#include <string.h>

/* ---- what the rules ask ------------------------------------------------- */

/** struct Asked - a call, and what was fetched of it: @own is a copy of the
 *  callback, because the hook of this address makes an event of its own */
typedef struct Asked {
    const KtHookCall *m;
    KtHookCall own;
} Asked;

static bool read_word(void *call, GsReg reg, uint64_t *out)
{
    const Asked *a = call;

    if (!a->m->v->reg[reg]) {
        return false;
    }
    *out = kt_vcpu_reg(a->m->v, reg);
    return true;
}

static KtHookCall *complete(Asked *a)
{
    if (!a->own.c) {
        a->own = (KtHookCall) {
            .c = a->m->c, .boot = a->m->boot, .v = a->m->v,
            .insns_left = a->m->insns_left, .ra = a->m->ra,
            .sp_after = a->m->sp_after,
        };
        kt_record_complete(&a->own);
    }
    return &a->own;
}

static bool read_stack(void *call, KtCallStack *out)
{
    KtHookCall *own = complete(call);
    KtTracer *t = own->c->tracer;

    out->id = own->ev.stack;
    out->frames = kt_tracer_stack(t, out->id, &out->n, &out->stop);
    out->era = kt_tracer_stack_era(t, out->id);
    return out->frames;
}

static bool read_task(void *call, KtCallTask *out)
{
    KtHookCall *own = complete(call);
    KtTaskAt at;

    kt_guest_find_task(own->boot->guest, kt_vcpu_reg(own->v, GS_REG_BASE),
                       &at);
    out->va = at.va;
    out->id = own->ev.task;
    return kt_tracer_task(own->c->tracer, out->id, &out->pid, out->comm);
}

static bool read_cache(void *call, uint64_t va, KtCacheInfo *out)
{
    const KtHookCall *m = ((const Asked *)call)->m;
    const KtGuestCache *cache = kt_guest_cache(m->boot->guest, &m->v->seen, va);

    return cache && kt_tracer_cache(m->c->tracer, cache->id, out);
}

static bool read_memory(void *call, uint64_t va, void *buf, size_t len)
{
    return kt_guest_read(((const Asked *)call)->m->boot->guest, va, buf, len);
}

static uint64_t read_us(void *call)
{
    return qemu_plugin_get_virtual_ns(((const Asked *)call)->m->insns_left) /
           1000;
}

static KtAnswer read_irq(void *call)
{
    const KtHookCall *m = ((const Asked *)call)->m;

    return kt_guest_in_interrupt(m->boot->guest,
                                 kt_vcpu_reg(m->v, GS_REG_BASE));
}

static const KtCallOps ops = {
    .word = read_word, .stack = read_stack, .task = read_task,
    .read = read_memory, .irq = read_irq, .us = read_us, .cache = read_cache,
};

/* ---- the return --------------------------------------------------------- */

static bool read_return(const KtHookCall *m, uint64_t *to)
{
    if (m->v->reg[GS_REG_LINK]) {
        *to = kt_vcpu_reg(m->v, GS_REG_LINK);
        return true;
    }
    return kt_guest_u64(m->boot->guest, kt_vcpu_reg(m->v, GS_REG_SP), to);
}

/* Find where the function would return to. A tracer of the guest may have
 * replaced that address; then the call has to return to the tracer. If nothing
 * is there, the call is left to the guest: a vCPU of KVM cannot be set to an
 * address that is not canonical, and would be here again at once. */
static bool find_return(const KtHookCall *m, uint64_t *to)
{
    uint8_t code;

    return read_return(m, to) && kt_guest_read(m->boot->guest, *to, &code, 1);
}

/* Set the registers as they are after a return of @value. */
static bool set_registers(const KtHookCall *m, uint64_t value)
{
    return kt_vcpu_write_reg(m->v, GS_REG_RESULT, value) &&
           (m->v->reg[GS_REG_LINK] ||
            kt_vcpu_write_reg(m->v, GS_REG_SP, m->sp_after));
}

KtLeave kt_inject_fault(KtHookCall *m, const KtCallPoint *point)
{
    Asked asked = { .m = m };
    KtFaultCall call = {
        .facts = {
            .ops = &ops, .opaque = &asked, .kernel = m->c->kernel,
            .ra = m->ra, .sp = kt_vcpu_reg(m->v, GS_REG_SP),
            .cpu = m->v->index,
        },
    };
    KtFaultVerdict verdict = { 0 };
    KtLeave leave = { .to = point->va };

    if (!find_return(m, &call.to) ||
        !kt_faults_decide(point, &call, &verdict)) {
        return leave;
    }
    if (verdict.stop) {
        leave.how = KT_LEAVE_STOP;
    } else if (verdict.fail && set_registers(m, verdict.value)) {
        kt_record_point_failed(m, point->id, verdict.value, verdict.rule);
        leave.how = KT_LEAVE_RETURN;
        leave.to = call.to;
    }
    return leave;
}

void kt_leave_call(KtLeave leave)
{
    if (leave.how == KT_LEAVE_STOP) {
        qemu_plugin_request_vm_stop();
    }
    qemu_plugin_set_pc(leave.to);
}
