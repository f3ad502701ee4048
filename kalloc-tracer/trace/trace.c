/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The live trace: a boot part with a filter and a ring. See kt-trace.h.
 *
 * While a trace is on, the part is the tracer's observer. Else the tracer has
 * none, and an event costs one branch.
 */
#include "kalloc-tracer/base/record-log.h"
#include "kalloc-tracer/trace/trace.h"
#include "kalloc-tracer/tracer/tracer.h"

/*
 * struct Trace - the part; the tracer's lock is held
 * @t: (borrowed) NULL: there was no trace yet
 * @observer: what the tracer calls
 * @filter: (owned) NULL: nothing is traced
 * @place, @boot: as in KtTraceInfo
 */
typedef struct Trace {
    KtTracer *t;
    KtObserver observer;
    KtBlockFilter *filter;
    KtRecordLog log;
    uint64_t place, boot;
} Trace;

/* ---- the filter ---------------------------------------------------------- */

static bool passes_layer(const KtBlockSpec *s, const KtTraced *e)
{
    return kt_block_spec_layer(s, e->ev.kind == KT_EV_ALLOC ? e->ev.layer :
                                                              e->block.layer);
}

/* A resized block passes by its old size or by its new one. */
static bool passes_size(const KtBlockSpec *s, const KtTraced *e)
{
    bool has_own = e->ev.kind == KT_EV_ALLOC || e->ev.kind == KT_EV_RESIZE;

    return !s->has_size ||
           (has_own && kt_block_spec_size(s, e->ev.size)) ||
           (e->block.known && kt_block_spec_size(s, e->block.size));
}

static bool passes_task(KtBlockFilter *f, const KtTraced *e)
{
    return kt_block_filter_task(f, e->ev.task) ||
           (e->block.known && kt_block_filter_task(f, e->block.task));
}

static bool passes_cache(KtBlockFilter *f, const KtTraced *e)
{
    return kt_block_filter_cache(f, e->ev.cache) ||
           (e->block.known && kt_block_filter_cache(f, e->block.cache));
}

bool kt_trace_filter_passes(KtBlockFilter *f, const KtTraced *e)
{
    const KtBlockSpec *s = kt_block_filter_spec(f);

    return e->ev.kind == KT_EV_GAP ||
           (passes_layer(s, e) && passes_size(s, e) && passes_task(f, e) &&
            passes_cache(f, e) &&
            kt_block_filter_stack(f, e->ev.kind == KT_EV_ALLOC ?
                                         e->ev.stack : e->block.stack));
}

/* ---- events -------------------------------------------------------------- */

static void add(Trace *tr, const KtTraced *entry)
{
    kt_tracer_count(tr->t, KT_CNT_TRACE_EVENTS, 1);
    if (kt_record_log_add(&tr->log, entry)) {
        kt_tracer_count(tr->t, KT_CNT_TRACE_OVERWRITTEN, 1);
    }
}

/* The address of a destroyed cache is that of its kmem_cache. */
static bool is_of_block(const KtEvent *ev)
{
    return ev->kind == KT_EV_FREE || ev->kind == KT_EV_RESIZE ||
           ev->kind == KT_EV_RCU_QUEUE || ev->kind == KT_EV_ACCESS;
}

static KtTracedBlock block_of(const KtModel *m, uint32_t index)
{
    const KtRec *r = kt_rec(&m->blocks, index);

    return (KtTracedBlock) {
        .size = kt_blocks_requested(&m->blocks, index),
        .stack = { r->stack }, .task = { r->task }, .cache = { r->cache },
        .layer = r->layer, .known = true,
    };
}

static void on_event(void *opaque, const KtModel *m, const KtEvent *ev,
                     uint32_t index)
{
    Trace *tr = opaque;
    KtTraced entry = { .ev = *ev, .kind = KT_TRACED_EVENT };

    if (index && is_of_block(ev)) {
        entry.block = block_of(m, index);
    }
    if (kt_trace_filter_passes(tr->filter, &entry)) {
        add(tr, &entry);
    }
}

/* ---- the part ------------------------------------------------------------ */

static void *trace_new(KtBudget *budget)
{
    Trace *tr = g_new0(Trace, 1);

    kt_record_log_init(&tr->log, sizeof(KtTraced), budget);
    tr->boot = 1;
    tr->observer = (KtObserver) { on_event, tr };
    return tr;
}

static void trace_free(void *part)
{
    Trace *tr = part;

    kt_record_log_deinit(&tr->log);
    kt_block_filter_free(tr->filter);
    g_free(tr);
}

/* The trace goes on in the next boot, with a mark between the two. */
static void trace_reset(void *part, KtBootEnd why)
{
    static const KtTracedKind kinds[] = {
        [KT_BOOT_RESET] = KT_TRACED_RESET, [KT_BOOT_CLEAR] = KT_TRACED_CLEAR,
        [KT_BOOT_LOAD] = KT_TRACED_LOAD,
    };
    Trace *tr = part;

    if (tr->filter) {
        add(tr, &(KtTraced) { .kind = kinds[why] });
    }
    if (why != KT_BOOT_CLEAR) {
        tr->boot = tr->log.last + 1;
    }
}

static const KtBootPart part_row = {
    .name = "trace", .new = trace_new, .free = trace_free,
    .reset = trace_reset,
};

static Trace *trace_of(KtTracer *t)
{
    return kt_tracer_part(t, &part_row);
}

/* ---- starting and stopping ----------------------------------------------- */

static void stop_locked(KtTracer *t, Trace *tr)
{
    kt_tracer_observe(t, NULL);
    g_clear_pointer(&tr->filter, kt_block_filter_free);
}

static void start_locked(KtTracer *t, Trace *tr, const KtTraceSpec *spec)
{
    stop_locked(t, tr);
    tr->place = tr->log.last;
    tr->t = t;
    tr->filter = kt_block_filter_new(t, &spec->block);
    kt_tracer_observe(t, &tr->observer);
}

bool kt_trace_start(KtTracer *t, const KtTraceSpec *spec, GError **errp)
{
    Trace *tr = trace_of(t);
    bool ok;

    kt_tracer_lock_drained(t);
    ok = kt_record_log_begin(&tr->log, spec->ring,
                             kt_block_filter_bytes(&spec->block), "entries",
                             errp);
    if (ok) {
        start_locked(t, tr, spec);
    }
    pthread_mutex_unlock(&t->lock);
    return ok;
}

bool kt_trace_stop(KtTracer *t)
{
    Trace *tr = trace_of(t);
    bool was_on;

    kt_tracer_lock_drained(t);
    was_on = tr->filter;
    stop_locked(t, tr);
    pthread_mutex_unlock(&t->lock);
    return was_on;
}

/* ---- queries ------------------------------------------------------------- */

void kt_query_trace_info(KtTracer *t, KtTraceInfo *out)
{
    const Trace *tr = trace_of(t);

    *out = (KtTraceInfo) {
        .on = tr->filter, .any = tr->t, .ring = tr->log.size,
        .last = tr->log.last, .place = tr->place, .boot = tr->boot,
    };
}

uint64_t kt_query_trace(KtTracer *t, uint64_t after, unsigned max, GArray *out,
                        uint64_t *missing)
{
    return kt_record_log_read(&trace_of(t)->log, after, max, out, missing);
}

void kt_trace_set_place(KtTracer *t, uint64_t number)
{
    trace_of(t)->place = number;
}
