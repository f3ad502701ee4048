/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls of a tracer: see calls.h and kt-calls.h. */
#include "kalloc-tracer/calls/calls.h"

#include <string.h>

#include "kalloc-tracer/calls/deref-plan.h"
#include "kalloc-tracer/tracer/tracer.h"

#define AFTER_BYTES (1u << 20)  /* of records, in one kt_query_calls_after() */

static void *calls_new(KtBudget *budget)
{
    KtCalls *c = g_new0(KtCalls, 1);

    c->points = kt_call_points_new(budget);
    c->records = kt_call_records_new(budget);
    c->saver = kt_call_saver_new();
    c->plans = kt_deref_table_new(budget);
    c->layout = kt_call_layout_find(NULL);
    c->budget = budget;
    return c;
}

static void calls_free(void *calls)
{
    KtCalls *c = calls;

    kt_call_points_free(c->points);
    kt_call_records_free(c->records);
    kt_call_saver_free(c->saver);
    kt_deref_table_free(c->plans);
    g_free(c);
}

KtCalls *kt_tracer_calls(KtTracer *t)
{
    static const KtBootPart part = {
        .name = "calls", .new = calls_new, .free = calls_free,
    };

    return kt_tracer_part(t, &part);
}

void kt_calls_configure(KtTracer *t, uint64_t bytes, unsigned n_cpus)
{
    kt_call_records_configure(kt_tracer_calls(t)->records, bytes, n_cpus);
}

/* ---- boots and modules --------------------------------------------------- */

static bool begin_watch(const KtPointRequestInfo *info, void *opaque)
{
    kt_watch_begin_boot(info->request->opaque, opaque);
    return true;
}

void kt_calls_begin_boot(KtCalls *c, const GsKernel *k)
{
    c->layout = kt_call_layout_find(k);
    kt_call_points_foreach_request(c->points, KT_POINT_WATCH, begin_watch,
                                   (void *)k);
    kt_call_points_begin_boot(c->points, k);
}

void kt_calls_end_boot(KtCalls *c)
{
    kt_call_saver_lock(c->saver);
    kt_call_points_end_boot(c->points);
    kt_call_records_end_boot(c->records);
    kt_deref_table_clear(c->plans);
    kt_call_saver_unlock(c->saver);
}

KtOpenCalls *kt_calls_open(const KtCalls *c)
{
    return kt_point_set_uses(kt_call_points_set(c->points)) & KT_POINT_WATCH ?
               kt_call_records_calls(c->records) : NULL;
}

void kt_calls_reclaim(KtCalls *c)
{
    KtOpenCalls *calls = kt_call_records_calls(c->records);

    kt_call_points_reclaim(c->points);
    if (calls && !kt_calls_open(c)) {
        kt_open_calls_clear(calls);
    }
}

typedef struct ModuleChange {
    const GsModule *module;
    bool watched;
} ModuleChange;

static bool change_module(const KtPointRequestInfo *info, void *opaque)
{
    ModuleChange *change = opaque;

    KtWatch *w = info->request->opaque;

    kt_watch_set_module(w, change->module);
    change->watched |= w->module && !strcmp(w->module, change->module->name);
    return true;
}

bool kt_calls_module(KtCalls *c, const GsKernel *k, uint64_t module_va,
                     bool added)
{
    GsModule module;
    ModuleChange change = { &module };

    if (!gs_kernel_module(k, module_va, &module)) {
        return false;
    }
    module.live = added;
    kt_call_points_foreach_request(c->points, KT_POINT_WATCH, change_module,
                                   &change);
    if (added) {
        kt_call_points_add_module(c->points, module_va);
    } else {
        kt_call_points_remove_module(c->points, module_va);
    }
    return change.watched;
}

/* ---- requests ------------------------------------------------------------ */

/* The module may be loaded already. */
static void find_module(const GsKernel *k, KtWatch *w)
{
    GsModule module;

    for (unsigned i = 0; k && gs_kernel_nth_module(k, i, &module); i++) {
        if (module.live) {
            kt_watch_set_module(w, &module);
        }
    }
}

uint32_t kt_calls_add(KtTracer *t, const GsKernel *k, const KtWatchSpec *spec,
                      GError **errp)
{
    KtCalls *c = kt_tracer_calls(t);
    KtWatch *w = kt_watch_new(spec, k, c->budget, c->plans, errp);
    KtPointSpec point = {
        .text = spec->functions, .use = KT_POINT_WATCH, .opaque = w,
        .free = kt_watch_free, .plan = kt_watch_plan,
    };

    if (!w) {
        return 0;
    }
    if (!kt_call_records_open(c->records, errp)) {
        kt_watch_free(w);
        return 0;
    }
    find_module(k, w);
    return kt_call_points_add(c->points, &point, errp);
}

unsigned kt_calls_remove(KtTracer *t, uint32_t id)
{
    return kt_call_points_remove(kt_tracer_calls(t)->points, KT_POINT_WATCH,
                                 id);
}

void kt_calls_clear(KtTracer *t)
{
    kt_calls_save(t);
    kt_calls_save_clear(t);
    kt_call_records_clear(kt_tracer_calls(t)->records);
}

int kt_call_arg_of(GsReg reg)
{
    static const GsReg order[KT_CALL_ARGS_MAX] = {
        GS_REG_ARG0, GS_REG_ARG1, GS_REG_ARG2, GS_REG_ARG3, GS_REG_ARG4,
        GS_REG_ARG5, GS_REG_ARG6, GS_REG_ARG7,
    };

    for (unsigned i = 0; i < KT_CALL_ARGS_MAX; i++) {
        if (order[i] == reg) {
            return i;
        }
    }
    return -1;
}

/* ---- queries ------------------------------------------------------------- */

typedef struct ListWatches {
    KtWatchFn fn;
    void *opaque;
} ListWatches;

static bool list_watch(const KtPointRequestInfo *info, void *opaque)
{
    const ListWatches *l = opaque;
    const KtWatch *w = info->request->opaque;

    return l->fn(&(KtWatchInfo) { info->request->id, w->text, info->n_points },
                 l->opaque);
}

void kt_calls_requests(KtTracer *t, KtWatchFn fn, void *opaque)
{
    ListWatches l = { fn, opaque };

    kt_call_points_foreach_request(kt_tracer_calls(t)->points, KT_POINT_WATCH,
                                   list_watch, &l);
}

typedef struct ListPoints {
    const KtCallRecords *records;
    KtPointInfoFn fn;
    void *opaque;
} ListPoints;

static bool list_point(const KtCallPoint *point, void *opaque)
{
    const ListPoints *l = opaque;
    const KtPointRequest *r = kt_call_point_watch(point);
    KtPointInfo info = {
        .id = point->id, .va = point->va, .clone = point->clone,
        .name = { point->name, point->module, point->proto },
        .n_derefs = point->plan ? point->plan->n : 0,
    };

    if (!r) {
        return true;
    }
    info.request = r->id;
    info.calls = kt_call_records_entered(l->records, point->id,
                                         &info.since_ns);
    return l->fn(&info, l->opaque);
}

void kt_calls_points(KtTracer *t, KtPointInfoFn fn, void *opaque)
{
    const KtCalls *c = kt_tracer_calls(t);
    ListPoints l = { c->records, fn, opaque };

    kt_call_points_foreach(c->points, list_point, &l);
}

void kt_calls_stats(KtTracer *t, KtCallsStats *out)
{
    kt_call_records_stats(kt_tracer_calls(t)->records, out);
    out->recorded = kt_tracer_counter(t, KT_CNT_CALLS_RECORDED);
    out->dropped = kt_tracer_counter(t, KT_CNT_CALLS_DROPPED);
}

uint64_t kt_calls_last_ns(KtTracer *t)
{
    return kt_call_records_last_ns(kt_tracer_calls(t)->records);
}

void kt_query_calls(KtTracer *t, KtCallList *out)
{
    *out = kt_call_records_list(
        kt_call_records_copy(kt_tracer_calls(t)->records));
}

/* Read from one ring until @bytes has @limit bytes. Return true if there are
 * more. */
static bool read_some(KtCallRecords *r, unsigned ring, uint64_t *seq,
                      GByteArray *bytes, uint64_t limit, uint64_t *lost)
{
    bool more = true;

    while (more && bytes->len < limit) {
        more = kt_call_records_read(r, ring, seq, UINT64_MAX, bytes, lost);
    }
    return more;
}

uint64_t kt_query_calls_after(KtTracer *t, uint64_t *seq, unsigned n,
                              bool *more, KtCallList *out)
{
    KtCallRecords *r = kt_tracer_calls(t)->records;
    GByteArray *bytes = g_byte_array_new();
    unsigned rings = MIN(n, kt_call_records_rings(r));
    uint64_t lost = 0;

    *more = false;
    for (unsigned i = 0; i < rings; i++) {
        *more |= read_some(r, i, &seq[i], bytes,
                           bytes->len + AFTER_BYTES / rings, &lost);
    }
    *out = kt_call_records_list(bytes);
    return lost;
}

bool kt_call_point_name(KtTracer *t, KtPointId id, KtPointName *out)
{
    return kt_point_names_get(kt_call_points_names(kt_tracer_calls(t)->points),
                              id, out);
}

void kt_call_foreach_deref(KtTracer *t, const KtCallView *view,
                           KtCallDerefFn fn, void *opaque)
{
    uint16_t id = kt_deref_plan_of(view);
    const KtDerefPlan *p =
        id ? kt_deref_table_find(kt_tracer_calls(t)->plans, id) : NULL;

    if (p) {
        kt_deref_foreach(p, view, fn, opaque);
    }
}
