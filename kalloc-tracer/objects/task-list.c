/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * All tasks: those of the map, and the kernel's own list as a check. The public
 * header is api/kt-tasks.h. Called on any thread; takes the tracer's lock for
 * one batch of blocks at a time.
 *
 * The kernel's list (all offsets are those of its types):
 *
 *     init_task.tasks <-> task.tasks <-> task.tasks <-> ...   one a process
 *                            |
 *             signal.thread_head <-> task.thread_node <-> ... its threads
 *
 * Everything there is untrusted: a list ends at its head, after a limit of
 * steps, or where memory is unreadable.
 */

#include <string.h>

#include "kalloc-tracer/api/kt-accounts.h"
#include "kalloc-tracer/objects/objects-internal.h"

/* Limits: of tasks; of those that only the list has, and of steps beyond the
 * tasks of the map. */
#define TASKS_MAX (1u << 20)
#define EXTRA_MAX 4096u
#define BATCH 65536u

/* ---- the map ------------------------------------------------------------- */

/** struct Collecting - @is_task: by cache id; @behind: blocks that begin there
 *  or before were visited; @last: begin of the block that was visited last */
typedef struct Collecting {
    GArray *task;
    bool *is_task;
    bool resumed, stopped;
    uint64_t behind, last;
    unsigned visits;
} Collecting;

static bool add_block(const KtBlock *b, void *opaque)
{
    Collecting *c = opaque;

    if (c->resumed && b->va <= c->behind) {
        return true;
    }
    /* all blocks of one address belong to one batch */
    if (c->visits >= BATCH && b->va != c->last) {
        c->stopped = true;
        return false;
    }
    c->visits++;
    c->last = b->va;
    if (b->state == KT_BLOCK_ALLOCATED && b->layer == KT_LAYER_CACHE &&
        c->is_task[b->cache.v]) {
        KtTask t = { .va = b->va, .in_map = true, .block = *b };

        g_array_append_val(c->task, t);
    }
    return c->task->len < TASKS_MAX;
}

/* Return (owned) an array by cache id: does the cache have task_structs? */
static bool *caches_of_tasks(KtTracer *t)
{
    bool *is = g_new0(bool, UINT16_MAX + 1);
    KtCacheInfo info;

    for (unsigned id = 1; id <= UINT16_MAX &&
         kt_tracer_cache(t, (KtCacheId) { id }, &info); id++) {
        is[id] = !strcmp(info.name, "task_struct");
    }
    return is;
}

static void add_tasks_of_map(KtTasks *tasks, KtTracer *t)
{
    g_autofree bool *is_task = caches_of_tasks(t);
    Collecting c = { .task = tasks->task, .is_task = is_task };

    do {
        c.visits = 0;
        c.stopped = false;
        kt_query_begin(t);
        kt_query_range(t, c.resumed ? c.behind + 1 : 0, UINT64_MAX, add_block,
                       &c);
        kt_query_end(t);
        c.resumed = true;
        c.behind = c.last;
    } while (c.stopped);
    tasks->cut = tasks->task->len >= TASKS_MAX;
}

/* ---- the kernel's list --------------------------------------------------- */

/** struct Walk - @by_va: address of a task_struct -> index in @tasks plus one;
 *  @reached: tasks of the list; @steps: so many links may still be followed */
typedef struct Walk {
    const KtObjects *o;
    const KtTaskLayout *at;
    KtTasks *tasks;
    GHashTable *by_va;
    uint64_t steps;
} Walk;

static KtTask *task_at(const Walk *w, uint64_t va)
{
    guint i = GPOINTER_TO_UINT(g_hash_table_lookup(w->by_va,
                                                   GSIZE_TO_POINTER(va)));

    return i ? &g_array_index(w->tasks->task, KtTask, i - 1) : NULL;
}

static void add_task(Walk *w, KtTask *t)
{
    kt_task_read_others(w->o, w->at, t);
    g_array_append_vals(w->tasks->task, t, 1);
    g_hash_table_insert(w->by_va, GSIZE_TO_POINTER(t->va),
                        GUINT_TO_POINTER(w->tasks->task->len));
}

static const char unreadable[] = "it leads to unreadable memory";
static const char endless[] = "it has no end";
static const char circle[] = "it leads back into itself";

/* Note that the list has a task. Return why that cannot be, or NULL. */
static const char *reach(Walk *w, uint64_t va)
{
    KtTask *t = task_at(w, va);
    KtTask new = {
        .va = va, .in_image = gs_kernel_in_image(w->o->kernel, va),
        .in_list = true,
    };

    if (t) {
        const char *why = t->in_list ? circle : NULL;

        t->in_list = true;
        return why;
    }
    kt_task_read(w->o, w->at, &new);
    if (!new.known) {
        return unreadable;
    }
    add_task(w, &new);
    return NULL;
}

/* Follow a link: @at is the address of a list_head, @to where its next one
 * is. Return why that is impossible, or NULL. */
static const char *follow(Walk *w, uint64_t at, uint64_t *to)
{
    if (!w->steps) {
        return endless;
    }
    w->steps--;
    return kt_objects_pointer(w->o, at, to) && *to ? NULL : unreadable;
}

static const char *walk_threads(Walk *w, uint64_t leader)
{
    uint64_t signal, head, at;
    const char *why;

    if (!kt_task_fact(task_at(w, leader), KT_TASK_SIGNAL, &signal) ||
        !signal || w->at->node == KT_TASK_UNKNOWN ||
        w->at->signal_head == KT_TASK_UNKNOWN) {
        return NULL;            /* its last thread has ended */
    }
    head = signal + w->at->signal_head;
    why = follow(w, head, &at);
    while (!why && at != head) {
        uint64_t thread = at - w->at->node;

        why = thread == leader ? NULL : reach(w, thread);
        why = why ? why : follow(w, at, &at);
    }
    return why;
}

static const char *walk_processes(Walk *w, uint64_t first)
{
    uint64_t head = first + w->at->tasks, at = head;
    const char *why;

    do {
        why = reach(w, at - w->at->tasks);
        why = why ? why : walk_threads(w, at - w->at->tasks);
        why = why ? why : follow(w, at, &at);
    } while (!why && at != head);
    return why;
}

/* Return the address of a task that is certainly on the list, 0 if none is
 * known: init_task, or the process with pid 1, which never ends. */
static uint64_t first_task(const Walk *w)
{
    GsSymbol sym;
    uint64_t pid;

    if (gs_kernel_lookup(w->o->kernel, "init_task", &sym) ||
        gs_kernel_variable(w->o->kernel, "init_task", &sym)) {
        return sym.va;
    }
    for (unsigned i = 0; i < w->tasks->task->len; i++) {
        const KtTask *t = &g_array_index(w->tasks->task, KtTask, i);

        if (kt_task_fact(t, KT_TASK_PID, &pid) && pid == 1) {
            return t->va;
        }
    }
    return 0;
}

static void count_sides(KtTasks *tasks)
{
    for (unsigned i = 0; i < tasks->task->len; i++) {
        const KtTask *t = &g_array_index(tasks->task, KtTask, i);
        uint64_t pid;
        bool idle = kt_task_fact(t, KT_TASK_PID, &pid) && !pid;

        tasks->only_map += t->in_map && !t->in_list && !idle;
        tasks->only_list += t->in_list && !t->in_map && !t->in_image;
    }
}

/* Return why the list was not walked to its end, NULL if it was. */
static const char *walk_list(Walk *w)
{
    uint64_t first;

    if (!w->o->vm) {
        return "it needs the memory of a VM";
    }
    if (!w->o->kernel) {
        return "the kernel is not known";
    }
    first = first_task(w);
    if (first && !task_at(w, first)) {
        KtTask t = { .va = first, .in_image = true };

        kt_task_read(w->o, w->at, &t);
        add_task(w, &t);
    }
    if (w->at->tasks == KT_TASK_UNKNOWN) {
        return "the kernel has no types";
    }
    return first ? walk_processes(w, first) :
                   "neither init_task nor the task with pid 1 is known";
}

static void check_list(KtTasks *tasks, const KtObjects *o,
                       const KtTaskLayout *at)
{
    g_autoptr(GHashTable) by_va = g_hash_table_new(gs_number_hash_direct,
                                                   NULL);
    Walk w = { o, at, tasks, by_va, 4ull * tasks->task->len + EXTRA_MAX };

    for (unsigned i = 0; i < tasks->task->len; i++) {
        uint64_t va = g_array_index(tasks->task, KtTask, i).va;

        g_hash_table_insert(by_va, GSIZE_TO_POINTER(va),
                            GUINT_TO_POINTER(i + 1));
    }
    tasks->why_no_list = walk_list(&w);
    if (!tasks->why_no_list) {
        count_sides(tasks);
    }
}

/* ---- what they allocated ------------------------------------------------- */

/** struct Sums - of the accounts of one pid */
typedef struct Sums {
    uint64_t blocks, bytes, allocs;
} Sums;

/** struct Summing - @sums: text of account_key() -> Sums */
typedef struct Summing {
    KtTracer *t;
    GHashTable *sums;
} Summing;

/* Return (owned) the key of an account: a task has the account of its pid,
 * whatever name it had. The idle tasks all have pid 0, but names of their
 * own. */
static char *account_key(uint32_t pid, const char *comm)
{
    return g_strdup_printf("%u %s", pid, pid ? "" : comm);
}

static bool add_account(const KtAccountKey *key, const KtAccount *a,
                        void *opaque)
{
    const Summing *s = opaque;
    g_autofree char *name = NULL;
    uint32_t pid;
    char comm[17];
    Sums *sums;

    if (!kt_tracer_task(s->t, key->task, &pid, comm)) {
        return true;
    }
    name = account_key(pid, comm);
    sums = g_hash_table_lookup(s->sums, name);
    if (!sums) {
        sums = g_new0(Sums, 1);
        g_hash_table_insert(s->sums, g_steal_pointer(&name), sums);
    }
    sums->blocks += a->allocs - a->frees;
    sums->bytes += a->reserved - a->freed_reserved;
    sums->allocs += a->allocs;
    return true;
}

static void add_sums(KtTasks *tasks, KtTracer *t)
{
    g_autoptr(GHashTable) table = g_hash_table_new_full(g_str_hash, g_str_equal,
                                                        g_free, g_free);
    Summing s = { t, table };

    kt_query_begin(t);
    kt_query_accounts(t, NULL, KT_BY_TASK, add_account, &s);
    kt_query_end(t);
    for (unsigned i = 0; i < tasks->task->len; i++) {
        KtTask *task = &g_array_index(tasks->task, KtTask, i);
        g_autofree char *key = account_key(task->fact[KT_TASK_PID],
                                           task->comm);
        const Sums *sums = g_hash_table_lookup(table, key);

        task->counted = task->known & 1u << KT_TASK_PID &&
                        g_hash_table_size(table);
        if (sums && task->counted) {
            task->blocks = sums->blocks;
            task->bytes = sums->bytes;
            task->allocs = sums->allocs;
        }
    }
}

/* ---- all ----------------------------------------------------------------- */

KtTasks *kt_tasks_new(const KtObjects *o)
{
    KtTasks *tasks = g_new0(KtTasks, 1);
    KtTaskLayout at;

    kt_task_layout_init(&at, o);
    tasks->task = g_array_new(FALSE, TRUE, sizeof(KtTask));
    tasks->types = at.types;
    tasks->unknown = kt_task_layout_unknown(&at);
    add_tasks_of_map(tasks, o->tracer);
    for (unsigned i = 0; i < tasks->task->len; i++) {
        KtTask *t = &g_array_index(tasks->task, KtTask, i);

        kt_task_read(o, &at, t);
        kt_task_read_others(o, &at, t);
    }
    check_list(tasks, o, &at);
    add_sums(tasks, o->tracer);
    g_array_sort(tasks->task, kt_objects_order);
    return tasks;
}

void kt_tasks_free(KtTasks *t)
{
    if (t) {
        g_array_unref(t->task);
        g_free(t);
    }
}
