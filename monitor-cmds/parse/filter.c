/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Compare blocks and errors with the filter options.
 *
 * Called by the listing commands for each row, under the tracer's lock (between
 * kt_query_begin() and kt_query_end()): no output, and no allocation except in
 * mc_filter_prepare().
 */
#include "monitor-cmds/parse/filter.h"

void mc_filter_init(McFilter *f)
{
    *f = (McFilter) { .spec.until = UINT64_MAX };
}

void mc_filter_deinit(McFilter *f)
{
    g_clear_pointer(&f->block, kt_block_filter_free);
    kt_block_spec_deinit(&f->spec);
}

bool mc_filter_prepare(McFilter *f, KtTracer *t, GError **errp)
{
    g_clear_pointer(&f->block, kt_block_filter_free);
    f->block = kt_block_filter_new(t, &f->spec);
    if (!kt_block_spec_knows_cache(&f->spec, t)) {
        g_autofree char *quoted = mc_quote(f->spec.cache);

        return mc_fail_unknown(errp, "--cache %s: no cache of this name is "
                               "known; /proc/slabinfo has the names; * and ? "
                               "match any characters", quoted);
    }
    return true;
}

bool mc_filter_is_set(const McFilter *f)
{
    return f->has_kind || kt_block_spec_is_set(&f->spec);
}

bool mc_filter_task(const McFilter *f, KtTaskId task, int64_t pid)
{
    return !task.v && f->spec.has_pid ?
               pid >= 0 && (uint64_t)pid == f->spec.pid :
               kt_block_filter_task(f->block, task);
}

/* Compare what only a block has. An error at an address without a block passes
 * only if no such condition is set. */
static bool pass_error_block(const KtBlockSpec *s, const KtError *e)
{
    if (!s->has_size && !s->state && s->layer == KT_LAYER_NONE) {
        return true;
    }
    return e->has_block && kt_block_spec_size(s, e->block.requested) &&
           kt_block_spec_state(s, &e->block) &&
           kt_block_spec_layer(s, e->block.layer);
}

/* An error of an access passes if it was made between its first time and its
 * last one. */
static bool pass_error_time(const KtBlockSpec *s, const KtError *e)
{
    uint64_t last = kt_error_is_access(e->kind) ? e->access.last_us : e->us;

    return !s->has_time || (e->us && last >= s->since && e->us <= s->until);
}

bool mc_filter_error(const McFilter *f, const KtError *e)
{
    return (!f->has_kind || f->kind == e->kind) &&
           pass_error_block(&f->spec, e) &&
           (kt_block_filter_cache(f->block, e->cache) ||
            (e->has_block &&
             kt_block_filter_cache(f->block, e->block.cache))) &&
           pass_error_time(&f->spec, e) &&
           kt_block_filter_task(f->block, e->task);
}
