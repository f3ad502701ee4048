/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Record: lines of the kernel's log (KT_ROLE_LOG). They are no events; they go
 * to the tracer's lines, see printk-log.h.
 *
 * All ways to print end in vprintk_store(): it returns when the record is in
 * the kernel's ring, before any console prints it. Its return is on the
 * writer's vCPU, so task, stack and time are those of the writer.
 *
 * kt_capture_read_log() runs on QEMU's main thread, everything else on the
 * vCPU's own thread.
 */
#include "kalloc-tracer/capture/capture-internal.h"
#include "kalloc-tracer/capture/record-internal.h"

/* Reads that follow each other, of a log that has many new records: the kernel
 * has just been found, or a snapshot was loaded. */
#define READS_MAX 64

static bool read_guest(void *opaque, uint64_t va, void *buf, size_t len)
{
    return kt_guest_read(opaque, va, buf, len);
}

static GsMem memory(const KtBoot *boot)
{
    return (GsMem) { .read = read_guest, .opaque = boot->guest };
}

void kt_record_enter_log(KtHookCall *m, const KtHookRow *hook, KtHookId id)
{
    const GsMem mem = memory(m->boot);
    KtPendingCall call = { .sp = m->sp_after, .ra = m->ra, .hook = id };

    if (m->boot->log) {
        call.size = kt_printk_log_end(m->boot->log, &mem);
        kt_record_await(m, &call);
    }
}

void kt_record_return_log(KtHookCall *m, const KtPendingCall *call,
                          uint64_t result)
{
    const GsMem mem = memory(m->boot);
    KtPrintkWriter w;

    if (!m->boot->log) {
        return;         /* a snapshot that was made with log=on */
    }
    kt_record_complete(m);
    w = (KtPrintkWriter) {
        .us = m->ev.us, .since = call->size, .task = m->ev.task,
        .stack = m->ev.stack, .pid = m->v->seen.pid, .cpu = m->ev.cpu,
        .known = m->ev.task.v,
        .irq = kt_guest_in_interrupt(m->boot->guest,
                                     kt_vcpu_reg(m->v, GS_REG_BASE)) != KT_NO,
    };
    kt_printk_log_read(m->boot->log, &mem, &w, &(KtPrintkNow) { .us = w.us });
}

static void read_all(KtPrintkLog *l, const GsMem *mem, bool stopped)
{
    const KtPrintkNow when = {
        .us = qemu_plugin_get_virtual_ns(0) / 1000, .stopped = stopped,
    };
    unsigned i = 0;

    while (i++ < READS_MAX && kt_printk_log_read(l, mem, NULL, &when)) {
    }
}

void kt_record_log_found(KtBoot *boot)
{
    const GsMem mem = memory(boot);

    if (boot->log) {
        read_all(boot->log, &mem, false);
    }
}

/* ---- without a writer ---------------------------------------------------- */

/** struct AnyVcpu - memory as the first vCPU maps it that maps the kernel */
typedef struct AnyVcpu {
    KtVm vm;
    unsigned vcpu;
} AnyVcpu;

static bool read_any(void *opaque, uint64_t va, void *buf, size_t len)
{
    AnyVcpu *a = opaque;

    for (; a->vcpu < a->vm.n_vcpus; a->vcpu++) {
        if (a->vm.read(a->vm.opaque, a->vcpu, va, buf, len)) {
            return true;
        }
    }
    return false;
}

void kt_capture_read_log(KtCapture *c)
{
    AnyVcpu any;
    GsMem mem = { .read = read_any, .opaque = &any };

    if (c->boot && c->boot->log) {
        any = (AnyVcpu) { .vm = kt_capture_vm(c) };
        read_all(c->boot->log, &mem, !qemu_plugin_vm_is_running());
    }
}

void kt_capture_set_log(KtCapture *c, bool on)
{
    c->log = on;
}

const char *kt_capture_why_no_log(const KtCapture *c)
{
    if (!c->boot) {
        return "no kernel was found yet";
    }
    return c->boot->log ? kt_printk_log_why_not(c->boot->log) :
           c->shared.profile ? "it is no Linux kernel" :
           "the plugin has the option log=off";
}
