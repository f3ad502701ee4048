/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Filter of the live trace: see trace-filter.h.
 *
 * A memo has a byte for each id, zeroed pages that the host provides when they
 * are first written. Ids beyond a memo's end are compared each time.
 */
#include "kalloc-tracer/trace/trace-filter.h"

#include <string.h>

#include "kalloc-tracer/api/kt-aliases.h"

#define TASKS_MAX   (1u << 18)
#define CACHES_MAX  (UINT16_MAX + 1u)
#define STACKS_MAX  (1u << 20)

enum { UNKNOWN, NO, YES };

/* What was found of ids. @known: (owned) NULL: the filter does not ask */
typedef struct Memo {
    uint8_t *known;
    uint32_t size;
    bool (*ask)(const KtTraceFilter *f, uint32_t id);
} Memo;

struct KtTraceFilter {
    KtTracer *t;
    KtTraceSpec spec;       /* owns its names and @code */
    Memo tasks, caches, stacks;
    unsigned aliases;       /* kt_cache_aliases_epoch() of @caches */
};

/* ---- one id -------------------------------------------------------------- */

static bool ask_task(const KtTraceFilter *f, uint32_t id)
{
    char comm[17];
    uint32_t pid;

    return kt_tracer_task(f->t, (KtTaskId) { id }, &pid, comm) &&
           (f->spec.has_pid ? pid == f->spec.pid :
                              kt_name_matches(f->spec.task, comm));
}

static bool ask_cache(const KtTraceFilter *f, uint32_t id)
{
    KtCacheInfo info;

    return kt_tracer_cache(f->t, (KtCacheId) { id }, &info) &&
           kt_cache_is_named(f->t, &info, f->spec.cache);
}

static bool is_in_code(const KtTraceSpec *spec, uint64_t pc)
{
    for (unsigned i = 0; i < spec->n_code; i++) {
        if (pc >= spec->code[i].lo && pc <= spec->code[i].hi) {
            return true;
        }
    }
    return false;
}

static bool ask_stack(const KtTraceFilter *f, uint32_t id)
{
    unsigned n = 0;
    GsStop stop;
    const uint64_t *pc = kt_tracer_stack(f->t, (KtStackId) { id }, &n, &stop);

    for (unsigned i = 0; pc && i < n; i++) {
        if (is_in_code(&f->spec, pc[i])) {
            return true;
        }
    }
    return false;
}

/* Return true if the filter does not ask for such ids, or @id matches. */
static bool passes(KtTraceFilter *f, Memo *m, uint32_t id)
{
    if (!m->known || id >= m->size) {
        return !m->ask || m->ask(f, id);
    }
    if (m->known[id] == UNKNOWN) {
        m->known[id] = m->ask(f, id) ? YES : NO;
    }
    return m->known[id] == YES;
}

/* ---- an event ------------------------------------------------------------ */

static bool passes_layer(const KtTraceSpec *s, const KtTraced *e)
{
    unsigned layer = e->ev.kind == KT_EV_ALLOC ? e->ev.layer : e->block.layer;

    return s->layer == KT_LAYER_NONE || s->layer == layer;
}

static bool is_size(const KtTraceSpec *s, uint64_t size)
{
    return size >= s->size_lo && size <= s->size_hi;
}

/* A resized block passes by its old size or by its new one. */
static bool passes_size(const KtTraceSpec *s, const KtTraced *e)
{
    bool has_own = e->ev.kind == KT_EV_ALLOC || e->ev.kind == KT_EV_RESIZE;

    return !s->has_size || (has_own && is_size(s, e->ev.size)) ||
           (e->block.known && is_size(s, e->block.size));
}

static bool passes_task(KtTraceFilter *f, const KtTraced *e)
{
    return passes(f, &f->tasks, e->ev.task.v) ||
           (e->block.known && passes(f, &f->tasks, e->block.task.v));
}

/* A cache that another name was asked for has it from then on. */
static void update_names(KtTraceFilter *f)
{
    unsigned epoch = kt_cache_aliases_epoch(f->t);

    if (f->caches.known && epoch != f->aliases) {
        memset(f->caches.known, UNKNOWN, f->caches.size);
        f->aliases = epoch;
    }
}

static bool passes_cache(KtTraceFilter *f, const KtTraced *e)
{
    update_names(f);
    return passes(f, &f->caches, e->ev.cache.v) ||
           (e->block.known && passes(f, &f->caches, e->block.cache.v));
}

static bool passes_code(KtTraceFilter *f, const KtTraced *e)
{
    bool alloc = e->ev.kind == KT_EV_ALLOC;

    return passes(f, &f->stacks, alloc ? e->ev.stack.v : e->block.stack.v);
}

bool kt_trace_filter_passes(KtTraceFilter *f, const KtTraced *e)
{
    return e->ev.kind == KT_EV_GAP ||
           (passes_layer(&f->spec, e) && passes_size(&f->spec, e) &&
            passes_task(f, e) && passes_cache(f, e) && passes_code(f, e));
}

/* ---- making -------------------------------------------------------------- */

static bool asks_tasks(const KtTraceSpec *s)
{
    return s->has_pid || s->task;
}

static Memo memo(bool asked, uint32_t size,
                 bool (*ask)(const KtTraceFilter *f, uint32_t id))
{
    return asked ? (Memo) { g_malloc0(size), size, ask } : (Memo) { 0 };
}

KtTraceFilter *kt_trace_filter_new(KtTracer *t, const KtTraceSpec *spec)
{
    KtTraceFilter *f = g_new0(KtTraceFilter, 1);

    f->t = t;
    f->spec = *spec;
    f->spec.task = g_strdup(spec->task);
    f->spec.cache = g_strdup(spec->cache);
    f->spec.code = g_memdup2(spec->code, spec->n_code * sizeof(*spec->code));
    f->tasks = memo(asks_tasks(spec), TASKS_MAX, ask_task);
    f->caches = memo(spec->cache, CACHES_MAX, ask_cache);
    f->stacks = memo(spec->n_code, STACKS_MAX, ask_stack);
    return f;
}

void kt_trace_filter_free(KtTraceFilter *f)
{
    if (!f) {
        return;
    }
    g_free((char *)f->spec.task);
    g_free((char *)f->spec.cache);
    g_free((KtTraceCode *)f->spec.code);
    g_free(f->tasks.known);
    g_free(f->caches.known);
    g_free(f->stacks.known);
    g_free(f);
}

uint64_t kt_trace_filter_bytes(const KtTraceSpec *spec)
{
    return (asks_tasks(spec) ? TASKS_MAX : 0) +
           (spec->cache ? CACHES_MAX : 0) + (spec->n_code ? STACKS_MAX : 0) +
           spec->n_code * sizeof(*spec->code);
}
