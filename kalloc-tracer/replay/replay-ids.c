/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Translation of ids: see replay-ids.h.
 *
 * A tracer's ids are 1, 2, 3 and so on, so arrays are used. The number of
 * definitions is bounded by the size of the file: an event follows that uses
 * the definition for the first time, and an event is at least one byte. So a
 * small file that unpacks to much cannot make its reader allocate without
 * limit. A torn file may end between the definitions of a run and its events:
 * TORN_MAX more are allowed.
 */
#include "kalloc-tracer/replay/replay-ids.h"

#include "kalloc-tracer/base/stack-tag.h"
#include "kalloc-tracer/journal/event-codec.h"
#include "kalloc-tracer/journal/definitions.h"
#include "kalloc-tracer/tracer/tracer.h"

#define TORN_MAX    (3 * KT_RUN_EVENTS)     /* stack, task, cache of each */

struct KtReplayIds {
    KtTracer *tracer;
    KtDefinitionsReader *defs;
    const GsKernel *kernel;         /* during a call; NULL if it is unknown */
    uint64_t left;                  /* definitions that may follow */
    GArray *stack, *task, *cache;   /* [file's id - 1]: the tracer's id */
    bool *cache_named;              /* [tracer's id]: the file has an id */
};

/* ---- definitions -------------------------------------------------------- */

static bool may_define(KtReplayIds *ids)
{
    return ids->left && ids->left--;
}

static bool set_id(GArray *map, uint32_t theirs, uint32_t ours)
{
    if (theirs > map->len) {
        g_array_set_size(map, theirs);
    }
    g_array_index(map, uint32_t, theirs - 1) = ours;
    return ours != 0;
}

/* Return the tracer's id, 0 if the file's id is not defined. */
static uint32_t get_id(const GArray *map, uint32_t theirs)
{
    return theirs && theirs <= map->len ?
           g_array_index(map, uint32_t, theirs - 1) : 0;
}

/* The event that uses a stack for the first time follows, so the modules of its
 * frames are those of now. */
static bool define_stack(void *opaque, uint32_t id, const uint64_t *pc,
                         unsigned n, GsStop stop)
{
    KtReplayIds *ids = opaque;
    GsStackEra era = ids->kernel ? gs_kernel_era(ids->kernel, pc, n) :
                                   kt_era_unknown;

    return may_define(ids) &&
           set_id(ids->stack, id, kt_tracer_intern_stack_of(
                      ids->tracer, pc, n, stop, era).v);
}

static bool define_task(void *opaque, uint32_t id, uint32_t pid,
                        const char comm[KT_COMM_LEN])
{
    KtReplayIds *ids = opaque;

    return may_define(ids) &&
           set_id(ids->task, id,
                  kt_tracer_intern_task(ids->tracer, pid, comm).v);
}

/* A cache that came with a checkpoint is in the tracer already, but the file
 * has no id for it yet: then this definition is that cache. */
static KtCacheId our_cache(const KtReplayIds *ids, const KtCacheInfo *info)
{
    KtCacheId known = kt_tasks_caches_find_cache(ids->tracer->names, info);

    return known.v && !ids->cache_named[known.v] ?
               known :
               kt_tasks_caches_restore_cache(ids->tracer->names, info);
}

/* After a gap the file defines ids again: an id that is defined stays. */
static bool define_cache(void *opaque, uint16_t id, const KtCacheInfo *info)
{
    KtReplayIds *ids = opaque;
    KtCacheId ours;

    if (!may_define(ids)) {
        return false;
    }
    if (get_id(ids->cache, id)) {
        return true;
    }
    ours = our_cache(ids, info);
    ids->cache_named[ours.v] = true;
    return set_id(ids->cache, id, ours.v);
}

bool kt_replay_ids_define(KtReplayIds *ids, const GsKernel *k, GsBytes *in)
{
    ids->kernel = k;
    return kt_definitions_read(ids->defs, in);
}

/* ---- events ------------------------------------------------------------- */

static bool translate_one(const GArray *map, uint32_t theirs, uint32_t *ours)
{
    *ours = get_id(map, theirs);
    return !theirs || *ours;
}

bool kt_replay_ids_translate(const KtReplayIds *ids, KtEvent *ev)
{
    uint32_t stack, task, cache;

    if (!translate_one(ids->stack, ev->stack.v, &stack) ||
        !translate_one(ids->task, ev->task.v, &task) ||
        !translate_one(ids->cache, ev->cache.v, &cache)) {
        return false;
    }
    ev->stack.v = stack;
    ev->task.v = task;
    ev->cache.v = cache;
    return true;
}

/* ---- life --------------------------------------------------------------- */

static GArray *new_map(void)
{
    return g_array_new(FALSE, TRUE, sizeof(uint32_t));
}

KtReplayIds *kt_replay_ids_new(KtTracer *t, uint64_t bytes)
{
    static const KtDefinitionsOps ops = { define_stack, define_task,
                                          define_cache };
    KtReplayIds *ids = g_new0(KtReplayIds, 1);

    ids->tracer = t;
    ids->defs = kt_definitions_reader_new(&ops, ids);
    ids->left = bytes + TORN_MAX;
    ids->stack = new_map();
    ids->task = new_map();
    ids->cache = new_map();
    ids->cache_named = g_new0(bool, UINT16_MAX + 1);
    return ids;
}

void kt_replay_ids_free(KtReplayIds *ids)
{
    if (ids) {
        kt_definitions_reader_free(ids->defs);
        g_array_free(ids->stack, TRUE);
        g_array_free(ids->task, TRUE);
        g_array_free(ids->cache, TRUE);
        g_free(ids->cache_named);
        g_free(ids);
    }
}
