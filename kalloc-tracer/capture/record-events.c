/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Record: backtrace, task and time, which all events of a callback share.
 *
 * A walk of the guest's stack is the dearest part of an event, and most stacks
 * were seen before. So the unwinder caches walks: gs_unwind_find() compares
 * the stack with the cached walk and returns a value that we stored for it.
 * That value is the stack's id in the depot, the wrapper and the reason why the
 * walk stopped.
 */
#include "kalloc-tracer/capture/record-internal.h"
#include "kalloc-tracer/hooks/hooks.h"

static const void *stack_page(void *opaque, uint64_t va)
{
    size_t avail;

    return qemu_plugin_vaddr_to_host(va & ~0xfffull, &avail);
}

static void count_stop(KtVcpu *v, GsStop stop)
{
    static const KtCounter counter[GS_STOP__COUNT] = {
        [GS_STOP_END] = KT_CNT_STACK_END,
        [GS_STOP_USER] = KT_CNT_STACK_USER,
        [GS_STOP_UNKNOWN_PC] = KT_CNT_STACK_UNKNOWN_PC,
        [GS_STOP_BAD_FRAME] = KT_CNT_STACK_BAD_FRAME,
        [GS_STOP_DEPTH] = KT_CNT_STACK_DEPTH,
        [GS_STOP_NO_UNWINDER] = KT_CNT_STACK_NO_UNWINDER,
        [GS_STOP_REPLACED] = KT_CNT_STACK_REPLACED,
    };

    kt_vcpu_count(v, counter[stop], 1);
}

/* A wrapper without a size is recognised from outside: the frame behind it is
 * where calls of it return to. */
static void find_unsized_wrapper(KtHookCall *m, const uint64_t *frames,
                                 unsigned n)
{
    KtHookId callee = { 0 };

    if (!m->wrapper.v && !m->pages && n > 1) {
        callee = kt_return_sites_callee(m->c->sites, frames[1]);
    }
    if (callee.v && frames[0] > kt_hooks_va(m->boot->hooks, callee)) {
        m->wrapper = callee;
    }
}

/* The value that gs_unwind_remember() stores for a stack. */
static uint64_t pack_stack(const KtHookCall *m, GsStop stop)
{
    return m->ev.stack.v | (uint64_t)m->wrapper.v << 32 |
           (uint64_t)stop << 40;
}

static GsStop unpack_stack(KtHookCall *m, uint64_t value)
{
    m->ev.stack.v = value;
    m->wrapper.v = value >> 32;
    return value >> 40;
}

static void walk_stack(KtHookCall *m, const GsRegs *regs, uint32_t kind)
{
    uint64_t frames[KT_MAX_FRAMES];
    unsigned n = 0, skip;
    GsStop stop = gs_unwind(m->v->unwinder, regs, stack_page, NULL, frames,
                            KT_MAX_FRAMES, &n);

    count_stop(m->v, stop);
    find_unsized_wrapper(m, frames, n);
    skip = kt_wrapper_frames(m->boot->hooks, m->c->kernel, &m->wrapper,
                             m->pages, frames, n);
    m->ev.stack = kt_tracer_intern_stack_of(
        m->c->tracer, frames + skip, n - skip, stop,
        gs_kernel_era(m->c->kernel, frames + skip, n - skip));
    if (m->ev.stack.v) {
        gs_unwind_remember(m->v->unwinder, kind, pack_stack(m, stop));
    }
}

static GsRegs caller_regs(const KtHookCall *m)
{
    return (GsRegs) {
        .ip = m->ra,
        .sp = m->sp_after,
        .bp = kt_vcpu_reg(m->v, GS_REG_FP),
    };
}

static uint32_t stack_kind(const KtHookCall *m)
{
    return m->wrapper.v << 1 | m->pages;
}

/* A cached walk needs neither the frames nor the depot. */
GS_HOT
static void find_stack(KtHookCall *m, const GsRegs *regs, const GsExpected *e)
{
    uint64_t value;

    if (gs_unwind_find(m->v->unwinder, regs, stack_page, NULL, e, &value)) {
        count_stop(m->v, unpack_stack(m, value));
    } else {
        walk_stack(m, regs, e->kind);
    }
}

void kt_record_true_return(KtHookCall *m)
{
    GsRegs regs = caller_regs(m);
    KtTaskAt task;

    kt_guest_find_task(m->boot->guest, kt_vcpu_reg(m->v, GS_REG_BASE), &task);
    regs.task = task.va;
    m->ra = gs_unwind_return(m->v->unwinder, &regs, stack_page, NULL);
}

/* The task is found while the host loads what the stack is compared with. */
GS_HOT
void kt_record_complete(KtHookCall *m)
{
    GsRegs regs = caller_regs(m);
    GsExpected expected;
    KtTaskAt task;

    if (m->have_stack) {
        return;
    }
    expected = gs_unwind_expect_walk(m->v->unwinder, &regs, stack_page, NULL,
                                     stack_kind(m));
    kt_guest_find_task(m->boot->guest, kt_vcpu_reg(m->v, GS_REG_BASE), &task);
    regs.task = task.va;
    m->ev.task = kt_guest_task(m->boot->guest, &m->v->seen, &task);
    if (!m->ev.task.v && !m->c->profile) {
        kt_vcpu_count(m->v, KT_CNT_TASK_UNKNOWN, 1);
    }
    m->ev.us = qemu_plugin_get_virtual_ns(m->insns_left) / 1000;
    m->ev.cpu = m->v->index;
    find_stack(m, &regs, &expected);
    m->have_stack = true;
}

void kt_record_event(KtHookCall *m, KtEventKind kind, KtHookId hook,
                     uint64_t va)
{
    kt_record_complete(m);
    kt_record_push(m, kind, hook, va);
}
