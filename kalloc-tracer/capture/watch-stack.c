/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The stack and the task of an access: see watch-stack.h. */
#include "kalloc-tracer/capture/watch-stack.h"

#include "kalloc-tracer/tracer/tracer.h"

static const void *stack_page(void *opaque, uint64_t va)
{
    size_t avail;

    return qemu_plugin_vaddr_to_host(va & ~0xfffull, &avail);
}

uint64_t kt_watch_task(KtHookCall *m)
{
    KtTaskAt task;

    kt_guest_find_task(m->boot->guest, kt_vcpu_reg(m->v, GS_REG_BASE), &task);
    m->ev.task = kt_guest_task(m->boot->guest, &m->v->seen, &task);
    return task.va;
}

/* At a function's entry the caller is known, so the walk begins there. */
void kt_watch_walk(KtHookCall *m, uint64_t pc, bool entry, uint64_t task,
                   KtWatchStack *out)
{
    const GsRegs regs = {
        .ip = entry ? m->ra : pc,
        .sp = entry ? m->sp_after : kt_vcpu_reg(m->v, GS_REG_SP),
        .bp = kt_vcpu_reg(m->v, GS_REG_FP),
        .exact_ip = !entry,
        .task = task,
    };
    unsigned n = 0;

    out->frame[0] = pc;
    out->n = entry;
    out->stop = gs_unwind(m->v->unwinder, &regs, stack_page, NULL,
                          out->frame + out->n, KT_MAX_FRAMES - out->n, &n);
    out->n += n;
}

KtStackId kt_watch_intern(const KtHookCall *m, const KtWatchStack *st)
{
    return kt_tracer_intern_stack_of(
        m->c->tracer, st->frame, st->n, st->stop,
        gs_kernel_era(m->c->kernel, st->frame, st->n));
}

/* A return address can be the first byte behind its function. */
KtCodeClass kt_watch_frame_class(const KtCodeClasses *c, const KtWatchStack *st,
                                 unsigned i)
{
    return kt_watch_class(c, st->frame[i] - (i > 0));
}

unsigned kt_watch_first(const KtCodeClasses *c, const KtWatchStack *st)
{
    unsigned i = 0;

    while (i < st->n) {
        KtCodeClass class = kt_watch_frame_class(c, st, i);

        if (class != KT_CODE_LEAF && class != KT_CODE_RANGE) {
            break;
        }
        i++;
    }
    return i;
}
