/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Access to the guest for commands that search its memory (ka leak, ka refs):
 * the VM, its memory, and the progress lines of a long search.
 *
 * Called by the commands, on their thread; no locks.
 */
#include "monitor-cmds/commands/commands.h"

const KtVm *mc_vm(const McOut *out, const char *word, GError **errp)
{
    if (!out->ctx->vm) {
        mc_fail_unknown(errp, "\"%s\" needs the memory of a VM; a journal has "
                        "none", word);
    }
    return out->ctx->vm;
}

KtObjects mc_objects(const McOut *out)
{
    return (KtObjects) {
        .tracer = out->ctx->tracer, .kernel = mc_symbols(out->ctx),
        .vm = out->ctx->vm,
    };
}

bool mc_find_block(const McOut *out, uint64_t va, KtBlock *b)
{
    KtTracer *t = out->ctx->tracer;
    bool found;

    kt_query_begin(t);
    found = kt_query_find(t, va, b);
    kt_query_end(t);
    return found;
}

KtStats mc_stats(const McOut *out)
{
    KtStats s;

    kt_query_begin(out->ctx->tracer);
    kt_query_stats(out->ctx->tracer, &s);
    kt_query_end(out->ctx->tracer);
    return s;
}

bool mc_read_guest(const McOut *out, uint64_t va, void *buf, size_t len)
{
    const KtVm *vm = out->ctx->vm;

    for (unsigned i = 0; vm && i < vm->n_vcpus; i++) {
        if (vm->read(vm->opaque, i, va, buf, len)) {
            return true;
        }
    }
    return false;
}

bool mc_on_progress(void *opaque, uint64_t bytes)
{
    McProgress *p = opaque;
    gint64 now = g_get_monotonic_time();

    if (!p->quiet && now - p->printed_at >= MC_PROGRESS_US) {
        p->printed_at = now;
        mc_out_printf(p->out, "... %" PRIu64 " MiB", bytes >> 20);
        mc_out_flush(p->out);
    }
    return !p->out->closed;
}

KtLeakPlan mc_leak_plan(McOut *out, const KtVm *vm, bool quiet, McProgress *p)
{
    *p = (McProgress) { out, quiet, g_get_monotonic_time() };
    return (KtLeakPlan) {
        .vm = vm, .kernel = out->ctx->kernel_found ? out->ctx->kernel : NULL,
        .progress = mc_on_progress, .opaque = p,
    };
}
