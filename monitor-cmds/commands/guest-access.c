/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What several commands ask of the VM and of the tracer: the guest's memory,
 * the progress lines of a long search, blocks, figures, and why there are none.
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

/* ---- nothing to list ----------------------------------------------------- */

static const char *why_no_events(const McContext *ctx)
{
    if (!ctx->kernel) {
        return mc_why_no_kernel(ctx);
    }
    if (!ctx->kernel_found) {
        return "the running kernel is not recognised yet";
    }
    return kt_tracer_enabled(ctx->tracer) ? "the guest has not allocated yet" :
                                            "tracing is off";
}

char *mc_why_nothing(McOut *out)
{
    if (mc_stats(out).events) {
        return g_strdup("");
    }
    return g_strconcat("; no events were recorded: ",
                       why_no_events(out->ctx), NULL);
}

char *mc_why_missing(McOut *out)
{
    KtStats stats = mc_stats(out);
    const char *const reasons[] = {
        stats.blind ? "the kernel's symbols are only those that it exports" :
        stats.complete ? "" :
        out->ctx->kernel_found ? "tracing began late" :
                                 "the running kernel is not recognised",
        stats.gap ? "events were not recorded (gaps, block.dropped)" : "",
        stats.unseen ? "calls that hand out memory were not recorded "
                       "(call.dropped, call.unreadable)" : "",
        stats.counter[KT_CNT_FREE_UNHOOKED] ?
            "the kernel's symbols lack functions that allocate "
            "(free.unhooked)" : "",
        kt_tracer_enabled(out->ctx->tracer) ? "" : "tracing is off",
    };
    GString *s = g_string_new(NULL);

    for (unsigned i = 0; i < G_N_ELEMENTS(reasons); i++) {
        g_string_append_printf(s, "%s%s", s->len && *reasons[i] ? "; " : "",
                               reasons[i]);
    }
    return g_string_free(s, !s->len);
}

void mc_remark_missing(McOut *out)
{
    g_autofree char *why = mc_why_missing(out);

    if (why) {
        mc_remarkf(out, "blocks may be missing: %s", why);
    }
}

char *mc_range_text(const McRange *r)
{
    if (r->lo == r->hi) {
        return g_strdup_printf(" at %016" PRIx64, r->lo);
    }
    return g_strdup_printf(" in %016" PRIx64 "-%016" PRIx64, r->lo, r->hi);
}

/* ---- walks --------------------------------------------------------------- */

static bool visit_block(const KtBlock *b, void *opaque)
{
    McBlockWalk *w = opaque;

    if (w->resumed && b->va <= w->behind) {
        return true;
    }
    /* the next batch starts after this address, so all blocks of one address
     * must be in the same batch */
    if (w->visits >= MC_BATCH_VISITS && b->va != w->last) {
        w->stopped = true;
        return false;
    }
    w->visits++;
    w->last = b->va;
    w->visit(w->opaque, b);
    return true;
}

void mc_block_walk_batch(McBlockWalk *w, KtTracer *t)
{
    w->visits = 0;
    w->stopped = false;
    kt_query_range(t, w->resumed ? w->behind + 1 : 0, UINT64_MAX, visit_block,
                   w);
    w->resumed = true;
    w->behind = w->last;
}
