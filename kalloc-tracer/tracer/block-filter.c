/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Block filter: see kt-block-filter.h.
 *
 * A memo has a byte for each id, in zeroed pages that the host provides when
 * they are first written. Ids beyond a memo's end are compared each time.
 */
#include "kalloc-tracer/api/kt-block-filter.h"

#include "kalloc-tracer/kt.h"

#define TASKS_MAX   (1u << 18)
#define CACHES_MAX  (UINT16_MAX + 1u)
#define STACKS_MAX  (1u << 20)

enum { UNKNOWN, NO, YES };

/* What was found of ids. @known: (owned, nullable) a byte for each id, NULL:
 * the filter does not ask */
typedef struct Memo {
    uint8_t *known;
    uint32_t size;
    bool (*ask)(const KtBlockSpec *s, KtTracer *t, uint32_t id);
} Memo;

struct KtBlockFilter {
    KtTracer *t;
    KtBlockSpec spec;       /* a copy */
    Memo tasks, caches, stacks;
    unsigned aliases;       /* (atomic) kt_cache_aliases_epoch() of @caches */
};

/* ---- specs --------------------------------------------------------------- */

KtBlockSpec kt_block_spec_copy(const KtBlockSpec *spec)
{
    KtBlockSpec own = *spec;

    own.task = g_strdup(spec->task);
    own.cache = g_strdup(spec->cache);
    own.code = g_memdup2(spec->code, spec->n_code * sizeof(*spec->code));
    return own;
}

void kt_block_spec_deinit(KtBlockSpec *spec)
{
    g_free((char *)spec->task);
    g_free((char *)spec->cache);
    g_free((KtCodeRange *)spec->code);
    *spec = (KtBlockSpec) { 0 };
}

static bool asks_tasks(const KtBlockSpec *s)
{
    return s->has_pid || s->task;
}

bool kt_block_spec_is_set(const KtBlockSpec *s)
{
    return s->has_size || s->has_time || asks_tasks(s) || s->state ||
           s->layer != KT_LAYER_NONE || s->cache || s->n_code;
}

bool kt_block_spec_state(const KtBlockSpec *s, const KtBlock *b)
{
    return !s->state || b->past ||
           s->state == (b->state == KT_BLOCK_ALLOCATED ? 'A' : 'F');
}

/* ---- one id -------------------------------------------------------------- */

static bool ask_task(const KtBlockSpec *s, KtTracer *t, uint32_t id)
{
    char comm[17];
    uint32_t pid;

    return kt_tracer_task(t, (KtTaskId) { id }, &pid, comm) &&
           (s->has_pid ? pid == s->pid : kt_name_matches(s->task, comm));
}

static bool ask_cache(const KtBlockSpec *s, KtTracer *t, uint32_t id)
{
    KtCacheInfo info;

    return kt_tracer_cache(t, (KtCacheId) { id }, &info) &&
           kt_cache_is_named(t, &info, s->cache);
}

static bool is_in_code(const KtBlockSpec *s, uint64_t pc)
{
    for (unsigned i = 0; i < s->n_code; i++) {
        if (pc >= s->code[i].lo && pc <= s->code[i].hi) {
            return true;
        }
    }
    return false;
}

static bool ask_stack(const KtBlockSpec *s, KtTracer *t, uint32_t id)
{
    unsigned n = 0;
    GsStop stop;
    const uint64_t *pc = kt_tracer_stack(t, (KtStackId) { id }, &n, &stop);

    for (unsigned i = 0; pc && i < n; i++) {
        if (is_in_code(s, pc[i])) {
            return true;
        }
    }
    return false;
}

bool kt_block_spec_knows_cache(const KtBlockSpec *s, KtTracer *t)
{
    uint32_t n = s->cache ? kt_tracer_n_caches(t) : 0;

    for (uint32_t i = 1; i <= n; i++) {
        if (ask_cache(s, t, i)) {
            return true;
        }
    }
    return !s->cache;
}

/* Ids of tasks run from 1 on. */
bool kt_block_spec_knows_task(const KtBlockSpec *s, KtTracer *t)
{
    char comm[17];
    uint32_t pid;

    for (uint32_t i = 1; asks_tasks(s) &&
                         kt_tracer_task(t, (KtTaskId) { i }, &pid, comm); i++) {
        if (ask_task(s, t, i)) {
            return true;
        }
    }
    return !asks_tasks(s);
}

/* Return true if the filter does not ask for such ids, or @id matches. */
static bool passes(const KtBlockFilter *f, const Memo *m, uint32_t id)
{
    uint8_t known;

    if (!m->known || id >= m->size) {
        return !m->known || m->ask(&f->spec, f->t, id);
    }
    known = __atomic_load_n(&m->known[id], __ATOMIC_RELAXED);
    if (known == UNKNOWN) {
        known = m->ask(&f->spec, f->t, id) ? YES : NO;
        __atomic_store_n(&m->known[id], known, __ATOMIC_RELAXED);
    }
    return known == YES;
}

/* A cache that another name was asked for has it from then on. */
static void update_names(KtBlockFilter *f)
{
    unsigned epoch = f->caches.known ? kt_cache_aliases_epoch(f->t) : 0;

    if (epoch == __atomic_load_n(&f->aliases, __ATOMIC_RELAXED)) {
        return;
    }
    __atomic_store_n(&f->aliases, epoch, __ATOMIC_RELAXED);
    for (uint32_t id = 0; id < f->caches.size; id++) {
        __atomic_store_n(&f->caches.known[id], UNKNOWN, __ATOMIC_RELAXED);
    }
}

/* ---- the filter ---------------------------------------------------------- */

static Memo new_memo(bool needed, uint32_t size,
                     bool (*ask)(const KtBlockSpec *s, KtTracer *t,
                                 uint32_t id))
{
    return (Memo) { needed ? g_malloc0(size) : NULL, size, ask };
}

KtBlockFilter *kt_block_filter_new(KtTracer *t, const KtBlockSpec *spec)
{
    KtBlockFilter *f = g_new0(KtBlockFilter, 1);

    f->t = t;
    f->spec = kt_block_spec_copy(spec);
    f->tasks = new_memo(asks_tasks(spec), TASKS_MAX, ask_task);
    f->caches = new_memo(spec->cache, CACHES_MAX, ask_cache);
    f->stacks = new_memo(spec->n_code, STACKS_MAX, ask_stack);
    return f;
}

void kt_block_filter_free(KtBlockFilter *f)
{
    if (f) {
        g_free(f->tasks.known);
        g_free(f->caches.known);
        g_free(f->stacks.known);
        kt_block_spec_deinit(&f->spec);
        g_free(f);
    }
}

uint64_t kt_block_filter_bytes(const KtBlockSpec *s)
{
    return (asks_tasks(s) ? TASKS_MAX : 0) + (s->cache ? CACHES_MAX : 0) +
           (s->n_code ? STACKS_MAX : 0) + s->n_code * sizeof(*s->code);
}

const KtBlockSpec *kt_block_filter_spec(const KtBlockFilter *f)
{
    return &f->spec;
}

bool kt_block_filter_task(KtBlockFilter *f, KtTaskId task)
{
    return passes(f, &f->tasks, task.v);
}

bool kt_block_filter_cache(KtBlockFilter *f, KtCacheId cache)
{
    update_names(f);
    return passes(f, &f->caches, cache.v);
}

bool kt_block_filter_stack(KtBlockFilter *f, KtStackId stack)
{
    return passes(f, &f->stacks, stack.v);
}

bool kt_block_filter_time(const KtBlockFilter *f, uint64_t us)
{
    return !f->spec.has_time || (us && kt_block_spec_time(&f->spec, us));
}

bool kt_block_filter_block(KtBlockFilter *f, const KtBlock *b, bool by_free)
{
    const KtBlockSpec *s = &f->spec;

    return kt_block_spec_size(s, b->requested) && kt_block_spec_state(s, b) &&
           kt_block_spec_layer(s, b->layer) &&
           kt_block_filter_cache(f, b->cache) &&
           kt_block_filter_time(f, by_free ? b->free_us : b->alloc_us) &&
           kt_block_filter_task(f, by_free ? b->free_task : b->alloc_task);
}
