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
#include "kalloc-tracer/journal/journal-format.h"
#include "kalloc-tracer/tracer/tracer.h"

#define TORN_MAX    (3 * KT_RUN_EVENTS)     /* stack, task, cache of each */

struct KtReplayIds {
    KtTracer *tracer;
    GArray *pc;                     /* program counters, by number less 1 */
    KtLastStack last;
    const GsKernel *kernel;         /* during a call; NULL if it is unknown */
    uint64_t left;                  /* definitions that may follow */
    GArray *stack, *task, *cache;   /* [file's id - 1]: the tracer's id */
    bool *cache_named;              /* [tracer's id]: the file has an id */
};

/* ---- definitions -------------------------------------------------------- */

static bool may_define(KtReplayIds *ids)
{
    if (!ids->left) {
        return false;
    }
    ids->left--;
    return true;
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

static uint64_t read_pc(KtReplayIds *ids, GsBytes *in)
{
    uint64_t number = gs_bytes_varint(in, ids->pc->len);

    if (number) {
        return g_array_index(ids->pc, uint64_t, number - 1);
    }
    ids->last.pc += gs_unzigzag(gs_bytes_varint(in, UINT64_MAX));
    if (ids->pc->len < KT_NAMED_PCS) {
        g_array_append_val(ids->pc, ids->last.pc);
    }
    return ids->last.pc;
}

/* The event that uses a stack for the first time follows, so the modules of its
 * frames are those of now. */
static bool define_stack(KtReplayIds *ids, uint32_t id, const uint64_t *pc,
                         unsigned n, GsStop stop)
{
    GsStackEra era = ids->kernel ? gs_kernel_era(ids->kernel, pc, n) :
                                   kt_era_unknown;

    return may_define(ids) &&
           set_id(ids->stack, id, kt_tracer_intern_stack_of(
                      ids->tracer, pc, n, stop, era).v);
}

static bool read_stack(KtReplayIds *ids, GsBytes *in)
{
    KtLastStack *last = &ids->last;
    uint64_t id = last->id + gs_unzigzag(gs_bytes_varint(in, UINT64_MAX));
    unsigned n = gs_bytes_u8(in);
    unsigned stop = gs_bytes_u8(in);
    unsigned same = gs_bytes_u8(in);
    uint64_t pc[KT_MAX_FRAMES];

    if (in->failed || !id || id > KT_MAX_STACKS || !n || n > KT_MAX_FRAMES ||
        stop >= GS_STOP__COUNT || same > n || same > last->n) {
        return false;
    }
    for (unsigned i = 0; i < n - same; i++) {
        pc[i] = read_pc(ids, in);
    }
    memcpy(pc + n - same, last->frame + last->n - same, same * sizeof(*pc));
    kt_last_stack_set(last, id, pc, n);
    return !in->failed && define_stack(ids, id, pc, n, stop);
}

static bool read_task(KtReplayIds *ids, GsBytes *in)
{
    uint32_t id = gs_bytes_varint(in, KT_MAX_TASKS);
    uint32_t pid = gs_bytes_varint(in, UINT32_MAX);
    const char *text = gs_bytes_str(in, KT_COMM_LEN, NULL);
    char comm[KT_COMM_LEN + 1] = { 0 };

    if (in->failed || !id || !text || !may_define(ids)) {
        return false;
    }
    g_strlcpy(comm, text, sizeof(comm));
    return set_id(ids->task, id,
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
static bool read_cache(KtReplayIds *ids, GsBytes *in)
{
    uint16_t id = gs_bytes_varint(in, UINT16_MAX);
    KtCacheInfo info = { .va = gs_bytes_u64(in) };
    KtCacheId ours;

    info.object_size = gs_bytes_varint(in, UINT32_MAX);
    info.size = gs_bytes_varint(in, UINT32_MAX);
    info.name = gs_bytes_str(in, KT_CACHE_ESCAPED_MAX, NULL);
    if (in->failed || !id || !may_define(ids)) {
        return false;
    }
    if (get_id(ids->cache, id)) {
        return true;
    }
    ours = our_cache(ids, &info);
    ids->cache_named[ours.v] = true;
    return set_id(ids->cache, id, ours.v);
}

static bool read_one(KtReplayIds *ids, GsBytes *in)
{
    switch (gs_bytes_u8(in)) {
    case KT_DEF_ANEW:
        g_array_set_size(ids->pc, 0);
        ids->last = (KtLastStack) { 0 };
        return true;
    case KT_DEF_STACK:
        return read_stack(ids, in);
    case KT_DEF_TASK:
        return read_task(ids, in);
    case KT_DEF_CACHE:
        return read_cache(ids, in);
    default:
        return false;
    }
}

bool kt_replay_ids_define(KtReplayIds *ids, const GsKernel *k, GsBytes *in)
{
    bool ok = true;

    ids->kernel = k;
    while (ok && gs_bytes_left(in)) {
        ok = read_one(ids, in);
    }
    return ok && !in->failed;
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

/* ---- hooks --------------------------------------------------------------- */

static bool same_names(const KtHookTable *table, GPtrArray *names)
{
    for (guint i = 0; i < names->len; i++) {
        if (strcmp(names->pdata[i],
                   kt_hook_table_name(table, (KtHookId) { i + 1 }))) {
            return false;
        }
    }
    return names->len == kt_hook_table_count(table);
}

/* Rows of a journal have a name only, and say if GFP flags are known. */
static void set_names(KtHookTable *table, GPtrArray *names,
                      const GByteArray *has_gfp)
{
    KtHook rows[KT_HOOKS_MAX] = { 0 };

    for (guint i = 0; i < names->len; i++) {
        rows[i].symbol = names->pdata[i];
        rows[i].role = KT_ROLE_ALLOC;
        rows[i].gfp = has_gfp->data[i] ? 0 : KT_NO_ARG;
    }
    kt_hook_table_set(table, rows, names->len);
}

bool kt_replay_ids_hooks(KtHookTable *table, GsBytes *in)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    g_autoptr(GByteArray) has_gfp = g_byte_array_new();

    while (gs_bytes_left(in) && names->len < KT_HOOKS_MAX) {
        const char *name;

        gs_out_u8(&GS_OUT(has_gfp), gs_bytes_u8(in));
        name = gs_bytes_str(in, GS_SYMBOL_NAME_MAX, NULL);
        if (!name) {
            return false;
        }
        g_ptr_array_add(names, (char *)name);
    }
    if (!same_names(table, names)) {
        set_names(table, names, has_gfp);
    }
    return !in->failed;
}

/* ---- life --------------------------------------------------------------- */

static GArray *new_map(void)
{
    return g_array_new(FALSE, TRUE, sizeof(uint32_t));
}

KtReplayIds *kt_replay_ids_new(KtTracer *t, uint64_t bytes)
{
    KtReplayIds *ids = g_new0(KtReplayIds, 1);

    ids->tracer = t;
    ids->pc = g_array_new(FALSE, FALSE, sizeof(uint64_t));
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
        g_array_free(ids->pc, TRUE);
        g_array_free(ids->stack, TRUE);
        g_array_free(ids->task, TRUE);
        g_array_free(ids->cache, TRUE);
        g_free(ids->cache_named);
        g_free(ids);
    }
}
