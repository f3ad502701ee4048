/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Filter of the live trace: see trace-filter.h. No state. */
#include "kalloc-tracer/trace/trace-filter.h"

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
