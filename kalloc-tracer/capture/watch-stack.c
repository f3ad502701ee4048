/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The stack and the task of an access: see watch-internal.h. */
#include "kalloc-tracer/capture/watch-internal.h"

#include "kalloc-tracer/capture/capture-internal.h"
#include "kalloc-tracer/tracer/tracer.h"

static const void *stack_page(void *opaque, uint64_t va)
{
    size_t avail;

    return qemu_plugin_vaddr_to_host(va & ~0xfffull, &avail);
}

/* Walks by code of one vCPU: so many at once, and then one each CODE_MS. */
#define CODE_BURST  256u
#define CODE_MS     4u

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

/* The guest can make errors at will, and a walk by code takes milliseconds. */
static bool has_time(KtVcpu *v)
{
    uint64_t now = kt_clock_ns(CLOCK_MONOTONIC) / (1000000 * CODE_MS);
    uint64_t past = now - v->code_walks_at;

    v->code_walks = past < v->code_walks ? v->code_walks - (unsigned)past : 0;
    v->code_walks_at = now;
    if (v->code_walks >= CODE_BURST) {
        return false;
    }
    v->code_walks++;
    return true;
}

/* Return false if stacks of the architecture are walked otherwise.
 * @reg: (out) those that code saves first, by DWARF's numbers */
static bool general_regs(const KtVcpu *v, const GsArch *arch, uint64_t *reg)
{
    if (!arch->dwarf.link) {
        return false;
    }
    reg[arch->dwarf.sp] = kt_vcpu_reg(v, GS_REG_SP);
    reg[arch->dwarf.fp] = kt_vcpu_reg(v, GS_REG_FP);
    reg[arch->dwarf.link] = kt_vcpu_reg(v, GS_REG_LINK);
    return true;
}

void kt_watch_walk_code(KtHookCall *m, uint64_t pc, uint64_t task,
                        KtWatchStack *out)
{
    const GsKernel *k = m->c->kernel;
    uint64_t reg[GS_GENERAL_REGS] = { 0 };
    g_autoptr(GsUnwinder) u = NULL;
    const GsRegs regs = {
        .ip = pc, .sp = kt_vcpu_reg(m->v, GS_REG_SP),
        .bp = kt_vcpu_reg(m->v, GS_REG_FP), .exact_ip = true, .task = task,
    };

    if (!general_regs(m->v, gs_kernel_arch(k), reg) || !has_time(m->v)) {
        return;
    }
    u = gs_unwinder_new(k);
    gs_unwinder_use_code(u, reg, 0);
    out->stop = gs_unwind(u, &regs, stack_page, NULL, out->frame, KT_MAX_FRAMES,
                          &out->n);
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
