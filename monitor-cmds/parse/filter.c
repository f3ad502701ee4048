/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Compare blocks and errors with the filter options.
 *
 * Called by the listing commands for each row, under the tracer's lock (between
 * kt_query_begin() and kt_query_end()): no output, and no allocation except in
 * mc_filter_prepare().
 */
#include "monitor-cmds/parse/filter.h"

#define CACHE_ID_BYTES ((UINT16_MAX + 1) / 8)

void mc_filter_init(McFilter *f)
{
    *f = (McFilter) { .until = UINT64_MAX };
}

void mc_filter_deinit(McFilter *f)
{
    g_clear_pointer(&f->task, g_free);
    g_clear_pointer(&f->cache, g_free);
    g_clear_pointer(&f->cache_ids, g_free);
}

bool mc_filter_prepare(McFilter *f, KtTracer *t, GError **errp)
{
    bool any = false;

    if (!f->cache) {
        return true;
    }
    f->cache_ids = g_malloc0(CACHE_ID_BYTES);
    for (unsigned i = 1; i <= UINT16_MAX; i++) {
        KtCacheInfo info;

        if (kt_tracer_cache(t, (KtCacheId) { i }, &info) &&
            kt_cache_is_named(t, &info, f->cache)) {
            f->cache_ids[i / 8] |= 1u << (i % 8);
            any = true;
        }
    }
    if (!any) {
        g_autofree char *quoted = mc_quote(f->cache);

        g_set_error(errp, MC_ERROR, MC_ERROR_UNKNOWN,
                    "--cache %s: no cache of this name is known; "
                    "/proc/slabinfo has the names; * and ? match any "
                    "characters",
                    quoted);
    }
    return any;
}

bool mc_filter_knows_cache(const McFilter *f, KtTracer *t)
{
    uint32_t n = f->cache ? kt_tracer_n_caches(t) : 0;
    KtCacheInfo info;

    for (uint32_t i = 1; i <= n; i++) {
        if (kt_tracer_cache(t, (KtCacheId) { i }, &info) &&
            kt_cache_is_named(t, &info, f->cache)) {
            return true;
        }
    }
    return !f->cache;
}

bool mc_filter_is_set(const McFilter *f)
{
    return f->has_size || f->has_time || f->has_pid || f->has_kind ||
           f->state || f->layer != KT_LAYER_NONE || f->task || f->cache;
}

static bool pass_time(const McFilter *f, uint64_t us)
{
    return !f->has_time || (us && us >= f->since && us <= f->until);
}

static bool pass_task(const McFilter *f, KtTracer *t, KtTaskId task)
{
    uint32_t pid;
    char comm[17];

    if (!f->has_pid && !f->task) {
        return true;
    }
    if (!kt_tracer_task(t, task, &pid, comm)) {
        return false;
    }
    return f->has_pid ? pid == f->pid : kt_name_matches(f->task, comm);
}

/* Ids of tasks run from 1 on. */
bool mc_filter_knows_task(const McFilter *f, KtTracer *t)
{
    uint32_t pid;
    char comm[17];

    for (uint32_t i = 1; kt_tracer_task(t, (KtTaskId) { i }, &pid, comm); i++) {
        if (pass_task(f, t, (KtTaskId) { i })) {
            return true;
        }
    }
    return !f->has_pid && !f->task;
}

bool mc_filter_time(const McFilter *f, uint64_t us)
{
    return pass_time(f, us);
}

bool mc_filter_task(const McFilter *f, KtTracer *t, KtTaskId task, int64_t pid)
{
    return !task.v && f->has_pid ? pid >= 0 && (uint64_t)pid == f->pid :
                                   pass_task(f, t, task);
}

static bool pass_cache(const McFilter *f, KtCacheId cache)
{
    return !f->cache_ids ||
           (f->cache_ids[cache.v / 8] & (1u << (cache.v % 8)));
}

static bool pass_size(const McFilter *f, uint64_t size)
{
    return !f->has_size || (size >= f->size.lo && size <= f->size.hi);
}

static bool pass_state(const McFilter *f, const KtBlock *b)
{
    return !f->state || b->past ||
           f->state == (b->state == KT_BLOCK_ALLOCATED ? 'A' : 'F');
}

static bool pass_layer(const McFilter *f, const KtBlock *b)
{
    return f->layer == KT_LAYER_NONE || f->layer == b->layer;
}

bool mc_filter_block(const McFilter *f, KtTracer *t, const KtBlock *b,
                     bool by_free)
{
    return pass_size(f, b->requested) && pass_state(f, b) &&
           pass_layer(f, b) && pass_cache(f, b->cache) &&
           pass_time(f, by_free ? b->free_us : b->alloc_us) &&
           pass_task(f, t, by_free ? b->free_task : b->alloc_task);
}

/* Compare what only a block has. An error at an address without a block passes
 * only if no such condition is set. */
static bool pass_error_block(const McFilter *f, const KtError *e)
{
    if (!f->has_size && !f->state && f->layer == KT_LAYER_NONE) {
        return true;
    }
    return e->has_block && pass_size(f, e->block.requested) &&
           pass_state(f, &e->block) && pass_layer(f, &e->block);
}

/* An error of an access passes if it was made between its first time and its
 * last one. */
static bool pass_error_time(const McFilter *f, const KtError *e)
{
    uint64_t last = kt_error_is_access(e->kind) ? e->access.last_us : e->us;

    return !f->has_time || (e->us && last >= f->since && e->us <= f->until);
}

bool mc_filter_error(const McFilter *f, KtTracer *t, const KtError *e)
{
    return (!f->has_kind || f->kind == e->kind) && pass_error_block(f, e) &&
           (pass_cache(f, e->cache) ||
            (e->has_block && pass_cache(f, e->block.cache))) &&
           pass_error_time(f, e) && pass_task(f, t, e->task);
}
