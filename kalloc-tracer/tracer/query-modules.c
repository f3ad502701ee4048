/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Queries of what unloaded modules did not free: kt-modules.h. They run between
 * kt_query_begin() and kt_query_end().
 *
 * A report lists the blocks that were not freed when the module was unloaded.
 * Blocks that were freed since are skipped here: each one is searched in the
 * map again.
 */
#include "kalloc-tracer/tracer/tracer.h"

void kt_query_modules(KtTracer *t, KtModuleFn fn, void *opaque)
{
    const GPtrArray *reports = kt_modules_reports(kt_tracer_modules(t));

    for (guint i = 0; i < reports->len; i++) {
        const KtReport *r = reports->pdata[i];

        if (!fn(&r->head, opaque)) {
            return;
        }
    }
}

static const KtReport *find_report(KtTracer *t, uint64_t id)
{
    const GPtrArray *reports = kt_modules_reports(kt_tracer_modules(t));

    for (guint i = 0; i < reports->len; i++) {
        const KtReport *r = reports->pdata[i];

        if (r->head.id == id) {
            return r;
        }
    }
    return NULL;
}

/** struct Same - search for a block of a report; @b: (out) the block */
typedef struct Same {
    const KtUnfreed *leak;
    KtBlock *b;
    bool found;
} Same;

static bool is_same(const KtBlock *b, void *opaque)
{
    Same *s = opaque;

    s->found = b->va == s->leak->va && b->state == KT_BLOCK_ALLOCATED &&
               !b->rcu_queued && b->alloc_us == s->leak->us &&
               b->alloc_stack.v == s->leak->stack.v;
    if (s->found) {
        *s->b = *b;
    }
    return !s->found;
}

/* Find the same block, not another one at the same address: a freed block of a
 * layer above can still be known in a page that is live. */
static bool is_still_there(KtTracer *t, const KtUnfreed *leak, KtBlock *b)
{
    Same s = { .leak = leak, .b = b };

    kt_query_range(t, leak->va, leak->va, is_same, &s);
    return s.found;
}

void kt_query_module_leaks(KtTracer *t, uint64_t id, KtBlockFn fn,
                           void *opaque)
{
    const KtReport *r = find_report(t, id);

    for (guint i = 0; r && i < r->leaks->len; i++) {
        KtBlock b;

        if (is_still_there(t, &g_array_index(r->leaks, KtUnfreed, i), &b) &&
            !fn(&b, opaque)) {
            return;
        }
    }
}

static bool has_id(const KtReport *r, uint64_t id)
{
    for (guint i = 0; i < r->errors->len; i++) {
        if (g_array_index(r->errors, uint64_t, i) == id) {
            return true;
        }
    }
    return false;
}

void kt_query_module_frees(KtTracer *t, uint64_t id, KtErrorFn fn,
                           void *opaque)
{
    const GArray *errors = t->model->errors.list;
    const KtReport *r = find_report(t, id);

    for (guint i = 0; r && r->errors->len && i < errors->len; i++) {
        const KtError *e = &g_array_index(errors, KtError, i);

        if (has_id(r, e->id) && !fn(e, opaque)) {
            return;
        }
    }
}

bool kt_query_module_loaded(KtTracer *t, const char *name)
{
    return kt_modules_is_loaded(kt_tracer_modules(t), name);
}
