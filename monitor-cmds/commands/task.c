/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka task: tasks of the guest, and the objects of one task.
 *
 * Called through mc_run(). The tasks are copied first, and printed without a
 * lock. The guest may run meanwhile.
 */
#include "monitor-cmds/commands/commands.h"

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

/** struct Row - @where: (nullable) in the map, in the kernel's list; NULL: the
 *  list was not walked; @only_in: (nullable) the same, if only one has it */
typedef struct Row {
    const KtTask *t;
    const char *where, *only_in;
} Row;

static const KtTask *task_of(const void *row)
{
    return ((const Row *)row)->t;
}

MC_GETTER(fact)
{
    return kt_task_fact(task_of(row), c->at, &v->u);
}

MC_GETTER(state)
{
    v->u = (unsigned char)kt_task_state(task_of(row));
    return v->u != '-';
}

MC_GETTER(blocks)
{
    v->u = task_of(row)->blocks;
    return task_of(row)->counted;
}

MC_GETTER(live)
{
    v->u = task_of(row)->bytes;
    return task_of(row)->counted;
}

MC_GETTER(allocs)
{
    v->u = task_of(row)->allocs;
    return task_of(row)->counted;
}

MC_GETTER(born)
{
    v->u = task_of(row)->block.alloc_us;
    return task_of(row)->in_map;
}

MC_WHEN(is_not_in_map)
{
    return !task_of(row)->in_map;
}

#define FACT(key_, fact_, look_, text_, help_, ...) \
    MC_GET(key_, get_fact, look_, text_, help_, .at = KT_TASK_##fact_, \
           __VA_ARGS__)
#define OBJECT(key_, fact_, help_) \
    FACT(key_, fact_, POINTER, " " key_ "=%", help_, .flags = MC_V)

static const McObject task_object = MC_TABLE_OBJECT("task",
    "ka task; null: not known",
    MC_VIA("va", Row, t, va, POINTER, "%", "of the task_struct", .head = "va"),
    FACT("pid", PID, NUMBER, " pid=%", "its pid", .head = "pid"),
    FACT("tgid", TGID, NUMBER, " tgid=%", "pid of its process",
         .head = "tgid", .flags = MC_WIDE),
    FACT("ppid", PPID, NUMBER, " ppid=%", "pid of its parent", .head = "ppid"),
    MC_GET("state", get_state, LETTER, " %", "the letter of /proc/PID/stat",
           .head = "st"),
    FACT("cpu", CPU, NUMBER, " cpu=%", "its CPU", .head = "cpu"),
    FACT("uid", UID, NUMBER, " uid=%", "its user", .head = "uid"),
    MC_VIA("comm", Row, t, comm, CHARS, " comm=%", "its name",
           .head = "comm"),
    FACT("mm", MM, POINTER, " mm=%", "its mm_struct", .head = "mm",
         .flags = MC_WIDE),
    MC_GET("blocks", get_blocks, NUMBER, " live=%",
           "live blocks that it allocated", .head = "blocks"),
    MC_GET("live", get_live, NUMBER, NULL, "their bytes", .head = "live",
           .unit = MC_SIZE),
    MC_GET(NULL, get_live, NUMBER, "/%", NULL, .flags = MC_OMIT, .head = ""),
    MC_GET("allocs", get_allocs, NUMBER, " allocs=%", "its allocations",
           .head = "allocs"),
    MC_GET("born_us", get_born, NUMBER, NULL,
           "time when its task_struct was allocated", .head = "born",
           .unit = MC_AGE),
    MC_GET(NULL, get_born, NUMBER, " born@%us", NULL, .flags = MC_OMIT,
           .head = ""),
    MC_ONLY_TEXT(" born=-", .when = is_not_in_map, .head = ""),
    FACT("running", ON_CPU, YES_NO, " running",
         "yes, if a CPU executes it, or no", .flags = MC_IF_SET),
    MC_COLUMN(Row, where, TEXT, NULL,
              "both, map, list (in the map, in the kernel's list) or image "
              "(the first task)"),
    MC_KEY(NULL, Row, only_in, TEXT, " only-in-%", NULL, .flags = MC_OMIT),
    FACT("flags", FLAGS, HEX, " flags=%", "its flags", .flags = MC_V),
    OBJECT("parent", PARENT, "its parent"),
    OBJECT("files", FILES, "its open files"),
    OBJECT("fs", FS, "its root and current folder"),
    OBJECT("cred", CRED, "its credentials"),
    OBJECT("signal", SIGNAL, "what its process shares"),
    OBJECT("sighand", SIGHAND, "its handlers of signals"),
    OBJECT("stack", STACK, "its kernel stack"));

typedef struct SumRow {
    const KtTasks *tasks;
    uint64_t processes, threads;
    uint64_t only_map, only_list;
} SumRow;

static const McObject sum_object = MC_LINE_OBJECT("tasks",
    "ka task, at the end",
    MC_KEY("tasks", SumRow, processes, NUMBER, NULL, "how many there are"),
    MC_COLUMN(SumRow, threads, NUMBER, NULL, "further threads"),
    MC_COLUMN(SumRow, only_map, NUMBER, NULL,
              "tasks that are only in the map", .flags = MC_MOST),
    MC_COLUMN(SumRow, only_list, NUMBER, NULL,
              "tasks that are only in the kernel's list", .flags = MC_MOST),
    MC_VIA("types", SumRow, tasks, types, TEXT, NULL,
           "where offsets are from: BTF, file, learned, none"));

MC_OBJECTS(mc_task_objects,
           &task_object, &mc_part_object, &mc_no_block_object, &sum_object);

static const char *where_is(const Listing *l, const KtTask *t)
{
    if (l->tasks->why_no_list) {
        return NULL;
    }
    return t->in_image ? "image" : t->in_map && t->in_list ? "both" :
           t->in_map ? "map" : "list";
}

static void print_task(const Listing *l, const KtTask *t)
{
    const char *where = where_is(l, t);
    bool only = !g_strcmp0(where, "list") ||
                (!g_strcmp0(where, "map") && !mc_task_has_pid(t, 0));

    mc_print(l->out, &task_object, &(Row) { t, where, only ? where : NULL });
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

static const char no_memory[] =
    "-: not known, because a journal has no memory of the guest; of a task "
    "only the block is known";

static void put_types(GString *text, const Listing *l)
{
    const KtTasks *tasks = l->tasks;

    if (!l->out->ctx->vm) {
        g_string_append_printf(text, "; %s", no_memory);
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

    mc_print_line(l->out, &sum_object, &(SumRow) {
        tasks, tasks->task->len - threads, threads,
        tasks->why_no_list ? UINT64_MAX : tasks->only_map,
        tasks->why_no_list ? UINT64_MAX : tasks->only_list }, text);
}

/* ---- the command --------------------------------------------------------- */

static void print_list(Listing *l)
{
    g_ptr_array_sort_with_data(l->chosen, compare, (gpointer)l->args);
    for (unsigned i = 0;
         mc_goes_on(l->out, i, l->chosen->len, l->args->limit); i++) {
        print_task(l, l->chosen->pdata[i]);
        if (l->one) {
            print_objects(l->out, l->chosen->pdata[i]);
        }
    }
}

bool mc_cmd_task(McOut *out, const McArgs *args, GError **errp)
{
    KtObjects o = mc_objects(out);
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

        mc_remarkf(out, "no tasks%s", why);
        return true;
    }
    print_list(&l);
    if (!l.one && !out->closed) {
        print_summary(&l);
    } else if (!out->ctx->vm && !out->closed) {
        mc_remark(out, no_memory);
    }
    return true;
}
