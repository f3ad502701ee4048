/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka task: tasks of the guest, and the objects of one task.
 *
 * Called through mc_run(). The tasks are copied first, and printed without a
 * lock. The guest may run meanwhile.
 */
#include "monitor-cmds/commands/object-row.h"
#include "monitor-cmds/commands/task-choice.h"

#include <string.h>

/** struct Listing - @chosen: (borrowed) KtTask, those to print; @one: print the
 *  objects of the task, too */
typedef struct Listing {
    McOut *out;
    const McArgs *args;
    KtTasks *tasks;
    GPtrArray *chosen;
    bool one;
} Listing;

static void listing_deinit(Listing *l)
{
    g_clear_pointer(&l->tasks, kt_tasks_free);
    g_clear_pointer(&l->chosen, g_ptr_array_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Listing, listing_deinit)

/* ---- the order ----------------------------------------------------------- */

static uint64_t sort_value(const KtTask *t, McTaskSort by)
{
    static const KtTaskFact fact[MC_TASK_BY__COUNT] = {
        [MC_TASK_BY_PID] = KT_TASK_PID, [MC_TASK_BY_TGID] = KT_TASK_TGID,
        [MC_TASK_BY_PPID] = KT_TASK_PPID, [MC_TASK_BY_UID] = KT_TASK_UID,
        [MC_TASK_BY_CPU] = KT_TASK_CPU,
    };

    switch (by) {
    case MC_TASK_BY_LIVE:
        return t->bytes;
    case MC_TASK_BY_BLOCKS:
        return t->blocks;
    case MC_TASK_BY_ALLOCS:
        return t->allocs;
    case MC_TASK_BY_BORN:
        return t->block.alloc_us;
    default:
        return t->fact[fact[by]];
    }
}

static gint compare(gconstpointer a, gconstpointer b, gpointer args)
{
    const KtTask *x = *(KtTask *const *)a, *y = *(KtTask *const *)b;
    bool sorted = mc_given(args, MC_OPT_SORT);
    McTaskSort by = sorted ? ((const McArgs *)args)->task_sort :
                             MC_TASK_BY_PID;
    uint64_t p = sort_value(x, by), q = sort_value(y, by);

    if (p != q) {
        return (p > q) == sorted ? -1 : 1;
    }
    p = sort_value(x, MC_TASK_BY_PID);
    q = sort_value(y, MC_TASK_BY_PID);
    return p != q ? (p > q ? 1 : -1) : (x->va > y->va) - (x->va < y->va);
}

/* ---- a task -------------------------------------------------------------- */

static void put_number(McObjectRow *r, const KtTask *t, KtTaskFact fact)
{
    uint64_t v;
    bool known = kt_task_fact(t, fact, &v);

    mc_object_put_number(r, kt_task_fact_name(fact), known, v);
}

static void put_address(McObjectRow *r, const KtTask *t, KtTaskFact fact)
{
    uint64_t v;
    bool known = kt_task_fact(t, fact, &v);

    mc_object_put_address(r, kt_task_fact_name(fact), known, v);
}

static void put_state(McObjectRow *r, const KtTask *t)
{
    char state[2] = { kt_task_state(t), 0 };

    g_string_append_printf(r->text, " %s", state);
    mc_object_add_word(r, "state", *state == '-' ? NULL : state);
}

static void put_allocations(McObjectRow *r, const KtTask *t)
{
    bool known = t->known & 1u << KT_TASK_PID;

    if (known) {
        g_string_append_printf(r->text, " live=%" PRIu64 "/%" PRIu64
                               " allocs=%" PRIu64, t->blocks, t->bytes,
                               t->allocs);
    } else {
        g_string_append(r->text, " live=- allocs=-");
    }
    mc_object_add(r, "blocks", known, t->blocks);
    mc_object_add(r, "live", known, t->bytes);
    mc_object_add(r, "allocs", known, t->allocs);
}

static void put_born(McObjectRow *r, const KtTask *t)
{
    if (t->in_map) {
        g_string_append_printf(r->text, " born@%" PRIu64 "us",
                               t->block.alloc_us);
    } else {
        g_string_append(r->text, " born=-");
    }
    mc_object_add(r, "born_us", t->in_map, t->block.alloc_us);
}

/* Return where the task is: in the map, in the kernel's list; NULL: the list
 * was not walked. */
static const char *where_is(const Listing *l, const KtTask *t)
{
    if (l->tasks->why_no_list) {
        return NULL;
    }
    return t->in_image ? "image" : t->in_map && t->in_list ? "both" :
           t->in_map ? "map" : "list";
}

static void put_marks(const Listing *l, McObjectRow *r, const KtTask *t)
{
    const char *where = where_is(l, t);
    uint64_t on_cpu;
    bool known = kt_task_fact(t, KT_TASK_ON_CPU, &on_cpu);

    if (known && on_cpu) {
        g_string_append(r->text, " running");
    }
    mc_object_add_word(r, "running", !known ? NULL : on_cpu ? "yes" : "no");
    if (!g_strcmp0(where, "list") ||
        (!g_strcmp0(where, "map") && !mc_task_has_pid(t, 0))) {
        g_string_append_printf(r->text, " only-in-%s", where);
    }
    mc_object_add_word(r, "where", where);
}

static void put_details(McObjectRow *r, const KtTask *t)
{
    uint64_t flags;
    bool known = kt_task_fact(t, KT_TASK_FLAGS, &flags);

    mc_object_put_hex(r, "flags", known, flags);
    put_address(r, t, KT_TASK_PARENT);
    for (unsigned i = 0; i < KT_TASK__COUNT; i++) {
        if (kt_task_fact_is_object(i) && i != KT_TASK_MM) {
            put_address(r, t, i);
        }
    }
}

static void print_task(const Listing *l, const KtTask *t)
{
    g_auto(McObjectRow) r;

    mc_object_row_init(&r);
    mc_put_hex(r.text, t->va, 16);
    r.figure[r.n++] = (McStat) { .key = "va", .u = t->va, .hex = true };
    put_number(&r, t, KT_TASK_PID);
    put_number(&r, t, KT_TASK_TGID);
    put_number(&r, t, KT_TASK_PPID);
    put_state(&r, t);
    put_number(&r, t, KT_TASK_CPU);
    put_number(&r, t, KT_TASK_UID);
    mc_object_put_word(&r, "comm", *t->comm ? t->comm : NULL);
    put_address(&r, t, KT_TASK_MM);
    put_allocations(&r, t);
    put_born(&r, t);
    put_marks(l, &r, t);
    if (l->out->verbose) {
        put_details(&r, t);
    }
    mc_object_print(l->out, MC_OBJ_TASK, &r);
}

/* ---- its objects --------------------------------------------------------- */

static void print_objects(McOut *out, const KtTask *t)
{
    for (unsigned i = 0; i < KT_TASK__COUNT; i++) {
        uint64_t va;

        if (kt_task_fact_is_object(i) && kt_task_fact(t, i, &va) && va) {
            mc_object_print_block(out, kt_task_fact_name(i), va);
        }
    }
}

/* ---- the end ------------------------------------------------------------- */

/* Append the names of facts that the kernel's types do not say. */
static void put_unknown(GString *text, const KtTasks *tasks)
{
    const char *before = "; not known: ";

    for (unsigned i = 0; i < KT_TASK__COUNT; i++) {
        if (tasks->unknown & 1u << i) {
            g_string_append_printf(text, "%s%s", before, kt_task_fact_name(i));
            before = ", ";
        }
    }
}

/* Say what is known of a kernel without types. */
static void put_no_types(GString *text, const KtTasks *tasks)
{
    g_string_append_printf(text, "; this kernel has no types "
                           "(CONFIG_DEBUG_INFO_BTF), see types=FILE: of a task "
                           "only its address%s known",
                           strcmp(tasks->types, "learned") ? " is" :
                           ", and what was learned of pid and comm, are");
}

/* Say how the map and the kernel's list differ. */
static void put_difference(GString *text, const Listing *l)
{
    const KtTasks *tasks = l->tasks;

    if (!l->out->ctx->vm) {
        return;
    }
    if (tasks->why_no_list && strcmp(tasks->types, "BTF") &&
        strcmp(tasks->types, "file")) {
        g_string_append(text, "; the kernel's list was not compared");
    } else if (tasks->why_no_list) {
        g_string_append_printf(text, "; the kernel's list was not compared: "
                               "%s", tasks->why_no_list);
    } else if (tasks->only_map || tasks->only_list) {
        g_string_append_printf(text, "; %" PRIu64 " only in the map, %" PRIu64
                               " only in the kernel's list",
                               tasks->only_map, tasks->only_list);
    } else {
        g_string_append(text, "; the kernel's list has the same");
    }
    if (l->out->ctx->vm->running) {
        g_string_append(text, "; the VM runs: values of different moments");
    }
}

static void put_types(GString *text, const Listing *l)
{
    const KtTasks *tasks = l->tasks;

    if (!l->out->ctx->vm) {
        g_string_append(text, "; a journal has no memory: only blocks");
        return;
    }
    if (!strcmp(tasks->types, "none") || !strcmp(tasks->types, "learned")) {
        put_no_types(text, tasks);
    } else {
        put_unknown(text, tasks);
    }
}

static uint64_t count_threads(const KtTasks *tasks)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < tasks->task->len; i++) {
        n += mc_task_is_thread(&g_array_index(tasks->task, KtTask, i));
    }
    return n;
}

/* Return (owned) the last line. */
static char *summary(const Listing *l)
{
    const KtTasks *tasks = l->tasks;
    GString *text = g_string_new(NULL);
    uint64_t threads = count_threads(tasks);
    uint64_t n = tasks->task->len - threads;

    g_string_append_printf(text, "%" PRIu64 " %s", n,
                           n == 1 ? "task" : "tasks");
    if (threads) {
        g_string_append_printf(text, " and %" PRIu64 " more %s", threads,
                               threads == 1 ? "thread" : "threads");
    }
    if (tasks->cut) {
        g_string_append(text, ", the limit");
    }
    put_difference(text, l);
    put_types(text, l);
    return g_string_free(text, FALSE);
}

static void print_summary(const Listing *l)
{
    g_autofree char *text = summary(l);
    const KtTasks *tasks = l->tasks;
    uint64_t threads = count_threads(tasks);

    l->out->format->sum(l->out, MC_OBJ_TASKS, (McStat[]) {
        { .key = "tasks", .u = tasks->task->len - threads },
        { .key = "threads", .u = threads },
        { .key = "only_map", .u = tasks->only_map,
          .unknown = tasks->why_no_list },
        { .key = "only_list", .u = tasks->only_list,
          .unknown = tasks->why_no_list },
        { .key = "types", .s = tasks->types },
    }, 5, text);
}

/* ---- the command --------------------------------------------------------- */

static void print_list(Listing *l)
{
    uint64_t n = MIN(l->chosen->len, l->args->limit);

    g_ptr_array_sort_with_data(l->chosen, compare, (gpointer)l->args);
    for (unsigned i = 0; i < n && !l->out->closed; i++) {
        print_task(l, l->chosen->pdata[i]);
        if (l->one) {
            print_objects(l->out, l->chosen->pdata[i]);
        }
    }
    if (n < l->chosen->len && !l->out->closed) {
        l->out->format->more(l->out, l->chosen->len - n);
    }
}

bool mc_cmd_task(McOut *out, const McArgs *args, GError **errp)
{
    KtObjects o = { out->ctx->tracer, mc_symbols(out->ctx), out->ctx->vm };
    g_auto(Listing) l = {
        .out = out, .args = args, .tasks = kt_tasks_new(&o),
        .chosen = g_ptr_array_new(),
    };
    bool any = mc_tasks_choose(out->ctx, l.tasks, args->name,
                               mc_given(args, MC_OPT_THREADS), l.chosen,
                               &l.one);

    if (!any && args->name) {
        return mc_tasks_none(out->ctx, l.tasks, args->name, errp);
    }
    if (!any) {
        g_autofree char *why = mc_why_nothing(out);
        g_autofree char *text = g_strconcat("no tasks", why, NULL);

        out->format->none(out, text);
        return true;
    }
    print_list(&l);
    if (!l.one && !out->closed) {
        print_summary(&l);
    }
    return true;
}
