/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ids of backtraces, tasks and caches. Producers intern them before they push
 * an event that refers to them.
 *
 * Threads: any; the tables are thread-safe by themselves. If a table is full,
 * the id is 0, and a counter grows.
 */
#include "kalloc-tracer/base/stack-tag.h"
#include "kalloc-tracer/tracer/tracer.h"

KtStackId kt_tracer_intern_stack_of(KtTracer *t, const uint64_t *frames,
                                    unsigned n, GsStop stop, GsStackEra era)
{
    KtStackId id = { 0 };

    if (n == 0) {
        return id;
    }
    if (n > KT_MAX_FRAMES) {
        n = KT_MAX_FRAMES;
        stop = GS_STOP_DEPTH;
    }
    id.v = kt_depot_intern(t->stacks, frames, n, kt_stack_tag(stop, era));
    if (!id.v) {
        kt_counters_add(t->counters, KT_CNT_DROP_STACK, 1);
    }
    return id;
}

KtStackId kt_tracer_intern_stack(KtTracer *t, const uint64_t *frames,
                                 unsigned n, GsStop stop)
{
    return kt_tracer_intern_stack_of(t, frames, n, stop, kt_era_unknown);
}

const uint64_t *kt_tracer_stack(KtTracer *t, KtStackId id, unsigned *n,
                                GsStop *stop)
{
    uint64_t tag;
    const uint64_t *frames = kt_depot_get(t->stacks, id.v, n, &tag);

    *stop = kt_stack_tag_stop(tag);
    return frames;
}

GsStackEra kt_tracer_stack_era(KtTracer *t, KtStackId id)
{
    uint64_t tag;
    unsigned n;

    kt_depot_get(t->stacks, id.v, &n, &tag);
    return kt_stack_tag_era(tag);
}

KtTaskId kt_tracer_intern_task(KtTracer *t, uint32_t pid,
                               const char comm[16])
{
    KtTaskId id = kt_tasks_caches_intern_task(t->names, pid, comm);

    if (!id.v) {
        kt_counters_add(t->counters, KT_CNT_TASK_UNKNOWN, 1);
    }
    return id;
}

bool kt_tracer_task(KtTracer *t, KtTaskId id, uint32_t *pid, char comm[17])
{
    return kt_tasks_caches_task(t->names, id, pid, comm);
}

KtCacheId kt_tracer_add_cache(KtTracer *t, uint64_t cache_va,
                              const char *name, uint32_t object_size,
                              uint32_t size)
{
    const KtCacheInfo info = {
        .va = cache_va,
        .name = name,
        .object_size = object_size,
        .size = size,
    };
    KtCacheId id = kt_tasks_caches_add_cache(t->names, &info);

    if (!id.v) {
        kt_counters_add(t->counters, KT_CNT_DROP_CACHE, 1);
    }
    return id;
}

uint32_t kt_tracer_n_caches(const KtTracer *t)
{
    return kt_tasks_caches_n_caches(t->names);
}

bool kt_tracer_cache(KtTracer *t, KtCacheId id, KtCacheInfo *out)
{
    return kt_tasks_caches_cache(t->names, id, out);
}

void kt_tracer_cache_destroyed(KtTracer *t, KtCacheId id)
{
    kt_tasks_caches_cache_destroyed(t->names, id);
}

KtHookTable *kt_tracer_hooks(KtTracer *t)
{
    return t->hooks;
}

const char *kt_tracer_hook_name(const KtTracer *t, KtHookId id)
{
    return kt_hook_table_name(t->hooks, id);
}

bool kt_tracer_hook_has_gfp(const KtTracer *t, KtHookId id)
{
    return kt_hook_table_has_gfp(t->hooks, id);
}
