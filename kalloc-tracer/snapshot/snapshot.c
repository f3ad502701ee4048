/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Snapshot of a tracer: see snapshot.h.
 *
 * The stream has, in this order: magic and version; tables that blocks refer to
 * by id (hooks, stacks, tasks, caches); counters; the running boot; the boot
 * before it, if there is one; other names of caches.
 *
 * kt_snapshot_unpack() keeps the stream's ids. kt_snapshot_install() interns
 * stacks, tasks and caches in the tracer's tables and renumbers the blocks.
 * Entries of these tables that no block refers to any more stay, as they do
 * after `ka clear`.
 */
#include "kalloc-tracer/snapshot/snapshot-internal.h"

#include <string.h>

#include "kalloc-tracer/base/budget.h"
#include "kalloc-tracer/base/stack-tag.h"
#include "kalloc-tracer/hooks/hook-table.h"
#include "guest-symbols/base/printable.h"
#include "kalloc-tracer/journal/journal.h"
#include "kalloc-tracer/tracer/tracer.h"

#define MAGIC       "ka state"
#define CACHE_NAME  (KT_CACHE_NAME_MAX * 4 + 1)
#define CNT_NAME    64

typedef struct Task {
    uint32_t pid;
    char comm[KT_COMM_LEN];
} Task;

struct KtSnapshot {
    KtSnapshotIds ids;
    KtDepot *stacks;            /* by the ids of the stream */
    KtBudget *for_stacks;       /* limits @stacks */
    GArray *tasks;              /* Task, from id 1 on */
    GArray *caches;             /* KtCacheInfo, from id 1 on; owns names */
    GArray *aliases;            /* see kt_aliases_unpack() */
    uint64_t count[KT_CNT__COUNT];
    KtModel *model, *previous;  /* @previous: NULL for none */
    uint64_t previous_live;
    KtBudget *budget;           /* borrowed */
    uint64_t lent[KT_MEM__COUNT]; /* see lend_memory() */
    bool enabled;
    uint64_t events;
    uint64_t last_us;
    uint16_t *cache_id;         /* by the ids of the stream; NULL until the
                                 * snapshot is installed */
};

/* Return true for counters of this process and its costs: a load does not
 * change them, because they do not describe the guest. */
static bool is_of_process(KtCounter c)
{
    static const KtCounter mine[] = {
        KT_CNT_JOURNAL_LOST, KT_CNT_LOADS, KT_CNT_LOADS_BLIND,
        KT_CNT_CHECK_ROUNDS, KT_CNT_CHECK_WHOLE, KT_CNT_CHECK_VIOLATIONS,
        KT_CNT_TRACE_EVENTS, KT_CNT_TRACE_OVERWRITTEN,
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(mine); i++) {
        if (c == mine[i]) {
            return true;
        }
    }
    return g_str_has_prefix(kt_counter_name(c), "cost.") ||
           g_str_has_prefix(kt_counter_name(c), "kvm.");
}

/* ---- writing ------------------------------------------------------------ */

static void pack_hooks(const KtHookTable *hooks, GsOut *p)
{
    unsigned n = kt_hook_table_count(hooks);

    gs_out_varint(p, n);
    for (unsigned id = 1; id <= n; id++) {
        gs_out_text(p, kt_hook_table_name(hooks, (KtHookId) { id }));
    }
}

static void pack_stacks(const KtDepot *d, uint32_t n_stacks, GsOut *p)
{
    gs_out_varint(p, n_stacks);
    for (uint32_t id = 1; id <= n_stacks; id++) {
        unsigned n;
        uint64_t tag;
        const uint64_t *pc = kt_depot_get(d, id, &n, &tag);
        GsStackEra era = kt_stack_tag_era(tag);

        gs_out_varint(p, n);
        gs_out_varint(p, kt_stack_tag_stop(tag));
        gs_out_varint(p, era.all);
        gs_out_varint(p, era.first);
        for (unsigned i = 0; i < n; i++) {
            gs_out_step(p, i ? pc[i - 1] : 0, pc[i]);
        }
    }
}

static void pack_tasks(const KtTasksCaches *names, GsOut *p)
{
    uint32_t n = kt_tasks_caches_n_tasks(names);

    gs_out_varint(p, n);
    for (uint32_t id = 1; id <= n; id++) {
        char comm[KT_COMM_LEN + 1];
        uint32_t pid = 0;

        kt_tasks_caches_task(names, (KtTaskId) { id }, &pid, comm);
        gs_out_varint(p, pid);
        gs_out_text(p, comm);
    }
}

static void pack_caches(const KtTasksCaches *names, GsOut *p)
{
    uint32_t n = kt_tasks_caches_n_caches(names);

    gs_out_varint(p, n);
    for (uint32_t id = 1; id <= n; id++) {
        KtCacheInfo info = { 0 };

        kt_tasks_caches_cache(names, (KtCacheId) { id }, &info);
        gs_out_varint(p, info.va);
        gs_out_text(p, info.name);
        gs_out_varint(p, info.object_size);
        gs_out_varint(p, info.size);
        gs_out_varint(p, info.destroyed);
    }
}

static void pack_counters(const KtTracer *t, GsOut *p)
{
    gs_out_varint(p, KT_CNT__COUNT);
    for (unsigned i = 0; i < KT_CNT__COUNT; i++) {
        gs_out_text(p, kt_counter_name(i));
        gs_out_varint(p, kt_counters_get(t->counters, i));
    }
}

void kt_snapshot_pack(KtTracer *t, GsOut *p)
{
    g_autoptr(GByteArray) aliases = kt_aliases_pack(t);

    kt_tracer_lock_drained(t);
    gs_out_text(p, MAGIC);
    gs_out_varint(p, KT_SNAPSHOT_VERSION);
    pack_hooks(t->hooks, p);
    pack_stacks(t->stacks, kt_depot_count(t->stacks), p);
    pack_tasks(t->names, p);
    pack_caches(t->names, p);
    pack_counters(t, p);
    gs_out_varint(p, kt_tracer_enabled(t));
    gs_out_varint(p, t->events);
    gs_out_varint(p, t->last_us);
    kt_model_pack(t->model, p);
    gs_out_varint(p, t->previous != NULL);
    if (t->previous) {
        kt_model_pack(t->previous, p);
    }
    gs_out_varint(p, t->previous_live);
    gs_out_bytes(p, aliases->data, aliases->len);
    pthread_mutex_unlock(&t->lock);
}

/* ---- reading ------------------------------------------------------------ */

static void unpack_hooks(KtSnapshot *s, GsBytes *u, const KtHookTable *hooks)
{
    char name[KT_HOOK_NAME_MAX + 1];

    s->ids.max[HOOKS] = gs_bytes_upto(u, UINT8_MAX, "the number of hooks");
    for (unsigned i = 1; i <= s->ids.max[HOOKS]; i++) {
        gs_bytes_text(u, name, sizeof(name), "a hook's name");
        s->ids.hook[i] = kt_hook_table_find(hooks, name);
    }
}

/* Refuse a stack that is there twice: both would get one id. */
static void keep_stack(KtSnapshot *s, GsBytes *u, uint32_t id,
                       const uint64_t *pc, unsigned n, uint64_t tag)
{
    uint32_t got = n ? kt_depot_intern(s->stacks, pc, n, tag) : id;

    if (!got) {
        gs_bytes_fail(u, "its backtraces take more memory than mem= has for "
                       "backtraces");
    } else if (!n || got != id) {
        gs_bytes_fail(u, "a backtrace is empty or there twice");
    }
}

static GsStackEra unpack_era(const KtSnapshot *s, GsBytes *u)
{
    GsStackEra era = kt_era_unknown;

    if (kt_snapshot_has_eras(s)) {
        era.all = gs_bytes_upto(u, GS_ERA_NOW, "the number of a load");
        era.first = gs_bytes_upto(u, GS_ERA_NOW, "the number of a load");
    }
    return era;
}

static void unpack_stack(KtSnapshot *s, GsBytes *u, uint32_t id)
{
    unsigned n = gs_bytes_upto(u, KT_MAX_FRAMES, "a backtrace's length");
    GsStop stop = gs_bytes_upto(u, GS_STOP__COUNT - 1, "a backtrace's end");
    GsStackEra era = unpack_era(s, u);
    uint64_t pc[KT_MAX_FRAMES];

    for (unsigned i = 0; i < n; i++) {
        pc[i] = gs_bytes_step(u, i ? pc[i - 1] : 0);
    }
    if (gs_bytes_ok(u)) {
        keep_stack(s, u, id, pc, n, kt_stack_tag(stop, era));
    }
}

/* The stacks of the stream are freed after they are interned in the tracer.
 * Until then they have a budget of their own, as large as the tracer's. */
static void unpack_stacks(KtSnapshot *s, GsBytes *u, uint64_t mem_bytes)
{
    uint64_t n = gs_bytes_upto(u, KT_MAX_STACKS, "the number of backtraces");

    s->for_stacks = kt_budget_new(mem_bytes);
    s->stacks = kt_depot_new(n);
    kt_depot_charge(s->stacks, s->for_stacks, KT_MEM_STACKS);
    s->ids.max[STACKS] = n;
    for (uint32_t id = 1; id <= n && gs_bytes_ok(u); id++) {
        unpack_stack(s, u, id);
    }
}

static void unpack_tasks(KtSnapshot *s, GsBytes *u)
{
    uint64_t n = gs_bytes_upto(u, KT_MAX_TASKS, "the number of tasks");

    s->ids.max[TASKS] = n;
    for (uint64_t i = 0; i < n && gs_bytes_ok(u); i++) {
        char comm[KT_COMM_LEN + 1];
        Task task;

        task.pid = gs_bytes_upto(u, UINT32_MAX, "a pid");
        gs_bytes_text(u, comm, sizeof(comm), "a task's name");
        memcpy(task.comm, comm, sizeof(task.comm));
        g_array_append_val(s->tasks, task);
    }
}

static void unpack_caches(KtSnapshot *s, GsBytes *u)
{
    uint64_t n = gs_bytes_upto(u, UINT16_MAX, "the number of caches");

    s->ids.max[CACHES] = n;
    for (uint64_t i = 0; i < n && gs_bytes_ok(u); i++) {
        char name[CACHE_NAME];
        KtCacheInfo info = { .va = gs_bytes_varint(u, UINT64_MAX) };

        gs_bytes_text(u, name, sizeof(name), "a cache's name");
        if (!gs_is_printable(name)) {
            gs_bytes_fail(u, "a cache's name has what cannot be printed");
        }
        info.name = g_strdup(name);
        info.object_size = gs_bytes_upto(u, UINT32_MAX, "a size");
        info.size = gs_bytes_upto(u, UINT32_MAX, "a size");
        info.destroyed = gs_bytes_upto(u, 1, "a flag");
        g_array_append_val(s->caches, info);
    }
}

/* Counters with unknown names belong to another version of ka: skip them. */
static void unpack_counters(KtSnapshot *s, GsBytes *u)
{
    uint64_t n = gs_bytes_upto(u, 1024, "the number of counters");

    for (uint64_t i = 0; i < n && gs_bytes_ok(u); i++) {
        char name[CNT_NAME];
        uint64_t value;

        gs_bytes_text(u, name, sizeof(name), "a counter's name");
        value = gs_bytes_varint(u, UINT64_MAX);
        for (unsigned c = 0; c < KT_CNT__COUNT; c++) {
            if (!strcmp(name, kt_counter_name(c))) {
                s->count[c] = value;
            }
        }
    }
}

static void clear_cache(gpointer at)
{
    g_free((char *)((KtCacheInfo *)at)->name);
}

static unsigned unpack_version(GsBytes *u)
{
    char magic[sizeof(MAGIC)];
    uint64_t version;

    gs_bytes_text(u, magic, sizeof(magic), "its first word");
    if (strcmp(magic, MAGIC)) {
        gs_bytes_fail(u, "it is no state of ka's");
    }
    version = gs_bytes_varint(u, UINT64_MAX);
    if (version < 1 || version > KT_SNAPSHOT_VERSION) {
        gs_bytes_fail(u,
                      "it is of version %" G_GUINT64_FORMAT ", version %d "
                      "is known here",
                      version, KT_SNAPSHOT_VERSION);
    }
    return version;
}

static KtModel *unpack_model(KtTracer *t, GsBytes *u, const KtSnapshot *s,
                             bool previous)
{
    KtModel *m = kt_model_new(t->counters, t->budget, s->stacks,
                              previous ? 0 : t->config.history_bytes);

    if (gs_bytes_ok(u)) {
        kt_model_unpack(m, u, &s->ids);
    }
    if (previous) {
        kt_accounts_end(&m->accounts);
    }
    return m;
}

/* The boots that are read replace the boots of the tracer. Until these are
 * freed both exist: lend the new ones as much memory as the old ones use. So
 * the limit holds again after the load. */
static void lend_memory(KtSnapshot *s, KtBudget *b)
{
    static const KtMemoryPart replaced[] = {
        KT_MEM_BLOCKS,
        KT_MEM_HISTORY,
        KT_MEM_ERRORS,
        KT_MEM_ACCOUNTS,
    };

    s->budget = b;
    for (unsigned i = 0; i < G_N_ELEMENTS(replaced); i++) {
        KtMemoryPart part = replaced[i];

        s->lent[part] = kt_budget_used(b, part);
        kt_budget_lend(b, part, s->lent[part]);
    }
}

static void end_loan(KtSnapshot *s)
{
    for (unsigned part = 0; part < KT_MEM__COUNT; part++) {
        kt_budget_unlend(s->budget, part, s->lent[part]);
        s->lent[part] = 0;
    }
}

KtSnapshot *kt_snapshot_unpack(KtTracer *t, GsBytes *u)
{
    KtSnapshot *s = g_new0(KtSnapshot, 1);

    lend_memory(s, t->budget);
    s->tasks = g_array_new(FALSE, FALSE, sizeof(Task));
    s->caches = g_array_new(FALSE, FALSE, sizeof(KtCacheInfo));
    g_array_set_clear_func(s->caches, clear_cache);
    s->ids.version = unpack_version(u);
    unpack_hooks(s, u, t->hooks);
    unpack_stacks(s, u, t->config.mem_bytes);
    unpack_tasks(s, u);
    unpack_caches(s, u);
    unpack_counters(s, u);
    s->enabled = gs_bytes_upto(u, 1, "a flag");
    s->events = gs_bytes_varint(u, UINT64_MAX);
    s->last_us = gs_bytes_varint(u, UINT64_MAX);
    s->model = unpack_model(t, u, s, false);
    if (gs_bytes_upto(u, 1, "a flag")) {
        s->previous = unpack_model(t, u, s, true);
    }
    s->previous_live = gs_bytes_varint(u, UINT64_MAX);
    s->aliases = kt_aliases_unpack(u, &s->ids);
    if (kt_budget_bounded(t->budget)) {
        g_clear_pointer(&s->previous, kt_model_free);
    }
    return s;
}

void kt_snapshot_free(KtSnapshot *s)
{
    if (!s) {
        return;
    }
    kt_depot_free(s->stacks);
    kt_budget_free(s->for_stacks);
    g_array_unref(s->tasks);
    g_array_unref(s->caches);
    g_array_unref(s->aliases);
    kt_model_free(s->model);
    kt_model_free(s->previous);
    end_loan(s);
    g_free(s->cache_id);
    g_free(s);
}

bool kt_snapshot_has_eras(const KtSnapshot *s)
{
    return s->ids.version >= KT_SNAPSHOT_ERAS;
}

void kt_snapshot_drop_pages(KtSnapshot *s)
{
    kt_model_drop_pages(s->model);
    if (s->previous) {
        kt_model_drop_pages(s->previous);
    }
}

KtIdMap kt_snapshot_ids(const KtSnapshot *s)
{
    return (KtIdMap) {
        .hook = s->ids.hook,
        .n_hooks = s->ids.max[HOOKS],
        .cache = s->cache_id,
        .n_caches = s->cache_id ? s->ids.max[CACHES] : 0,
    };
}

/* ---- checkpoints -------------------------------------------------------- */

/* Write one frame: a byte, 1 if more frames follow, then a part of the
 * stream. */
static void part_locked(KtTracer *t, const GByteArray *all, size_t at,
                        size_t len)
{
    GByteArray *data = g_byte_array_new();

    gs_out_u8(&GS_OUT(data), at + len < all->len);
    g_byte_array_append(data, all->data + at, len);
    kt_journal_add_frame(t->journal, KT_FRAME_CHECKPOINT, data);
}

/* Write all that the tracer knows into its journal, if it has one. The events
 * in the journal did not lead to that, because a snapshot was loaded: whoever
 * reads the journal continues from this frame. No lock of the tracer is held,
 * and no events are pushed meanwhile. */
static void write_checkpoint(KtTracer *t)
{
    g_autoptr(GByteArray) all = NULL;

    if (!t->journal) {
        return;
    }
    all = g_byte_array_new();
    kt_snapshot_save(t, gs_stream_to_array, all);
    kt_tracer_lock_drained(t);
    for (size_t at = 0; at < all->len; at += KT_MEM_BYTES) {
        part_locked(t, all, at, MIN(KT_MEM_BYTES, all->len - at));
    }
    pthread_mutex_unlock(&t->lock);
}

/* ---- installing --------------------------------------------------------- */

/* A stack that finds no room in the depot gets id 0: unknown. */
static uint32_t *intern_stacks(KtTracer *t, const KtSnapshot *s)
{
    uint32_t *ids = g_new0(uint32_t, s->ids.max[STACKS] + 1);

    for (uint32_t id = 1; id <= s->ids.max[STACKS]; id++) {
        unsigned n;
        uint64_t tag;
        const uint64_t *pc = kt_depot_get(s->stacks, id, &n, &tag);

        ids[id] = kt_tracer_intern_stack_of(t, pc, n, kt_stack_tag_stop(tag),
                                            kt_stack_tag_era(tag)).v;
    }
    return ids;
}

static uint32_t *intern_tasks(KtTracer *t, const KtSnapshot *s)
{
    uint32_t *ids = g_new0(uint32_t, s->ids.max[TASKS] + 1);

    for (uint32_t i = 0; i < s->tasks->len; i++) {
        const Task *task = &g_array_index(s->tasks, Task, i);

        ids[i + 1] = kt_tracer_intern_task(t, task->pid, task->comm).v;
    }
    return ids;
}

/* A load drops the lines of the kernel's log. They are read again from the ring
 * that the loaded VM has, and counted again. */
static void set_counters(KtTracer *t, const KtSnapshot *s)
{
    for (unsigned i = 0; i < KT_CNT__COUNT; i++) {
        if (!is_of_process(i)) {
            bool again = g_str_has_prefix(kt_counter_name(i), "log.");

            kt_counters_set(t->counters, i, again ? 0 : s->count[i]);
        }
    }
}

static void renumber(KtTracer *t, KtSnapshot *s)
{
    g_autofree uint32_t *stack = intern_stacks(t, s);
    g_autofree uint32_t *task = intern_tasks(t, s);
    KtRenumber to = { stack, task, s->cache_id };

    kt_model_renumber(s->model, &to, t->stacks);
    if (s->previous) {
        kt_model_renumber(s->previous, &to, t->stacks);
    }
    kt_aliases_renumber(s->aliases, &to);
}

static void swap_models_locked(KtTracer *t, KtModel *model, KtModel *previous)
{
    kt_registry_reset(&t->registry, KT_BOOT_LOAD);
    kt_model_free(t->model);
    kt_model_free(t->previous);
    t->model = model;
    t->previous = previous;
    t->model->accounts.backing = t->backing;
    kt_tracer_observe(t, t->observer);
}

void kt_snapshot_install(KtTracer *t, KtSnapshot *s)
{
    s->cache_id = g_new0(uint16_t, s->ids.max[CACHES] + 1);
    kt_tracer_lock_drained(t);
    kt_tasks_caches_set_caches(t->names, (KtCacheInfo *)s->caches->data,
                               s->caches->len, s->cache_id + 1);
    set_counters(t, s);
    renumber(t, s);
    swap_models_locked(t, g_steal_pointer(&s->model),
                       g_steal_pointer(&s->previous));
    kt_aliases_install(t, s->aliases);
    kt_model_publish(t->model);     /* what found no room when it was read */
    end_loan(s);
    t->previous_live = s->previous_live;
    t->errors_before = 0;           /* not in the stream: count all drops */
    t->events = s->events;
    t->last_us = s->last_us;
    __atomic_store_n(&t->enabled, s->enabled, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&t->lock);
    kt_tracer_count(t, KT_CNT_LOADS, 1);
    write_checkpoint(t);
}

void kt_tracer_reset_unknown(KtTracer *t)
{
    const KtEvent gap = { .kind = KT_EV_GAP };

    kt_tracer_lock_drained(t);
    kt_tasks_caches_set_caches(t->names, NULL, 0, NULL);
    kt_model_count_forgotten(t->model);
    swap_models_locked(t, kt_model_new(t->counters, t->budget, t->stacks,
                                       t->config.history_bytes), NULL);
    t->previous_live = 0;
    t->errors_before = kt_tracer_counter(t, KT_CNT_DROP_ERROR);
    t->last_us = 0;
    kt_model_apply(t->model, &gap, 1);
    t->events++;
    pthread_mutex_unlock(&t->lock);
    kt_tracer_count(t, KT_CNT_LOADS_BLIND, 1);
    write_checkpoint(t);
}

/* ---- the whole of it ---------------------------------------------------- */

void kt_snapshot_save(KtTracer *t, GsStreamSink sink, void *opaque)
{
    GsStreamOut *writer = gs_stream_out_new(sink, opaque);
    GsOut *p = gs_stream_out(writer);

    kt_snapshot_pack(t, p);
    gs_stream_out_end(writer);
}

bool kt_snapshot_load(KtTracer *t, GsStreamSource source, void *opaque,
                      GError **errp)
{
    g_autoptr(GsStreamIn) reader =
        gs_stream_in_new(source, opaque, KT_SNAPSHOT_MAX_BYTES);
    GsBytes *u = gs_stream_in(reader);
    g_autoptr(KtSnapshot) s = kt_snapshot_unpack(t, u);

    if (!gs_stream_in_end(reader, errp)) {
        return false;
    }
    kt_snapshot_install(t, s);
    return true;
}
