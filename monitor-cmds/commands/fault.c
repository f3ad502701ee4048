/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka fault: rules that make calls fail, and the log of the calls that failed.
 *
 * Called through mc_run(). A row is one object in JSON; in text it is the
 * command that makes the rule, or that repeats the fault, so that it can be
 * pasted. Rows are copied under the locks of kt-faults.h and printed without
 * one.
 */
#include "monitor-cmds/commands/commands.h"

#include <stdlib.h>
#include <string.h>

/* Return true if there is a VM: of the faults only the log is in a journal. */
static bool has_vm(const McOut *out, GError **errp)
{
    if (out->ctx->journal) {
        g_set_error(errp, MC_ERROR, MC_ERROR_UNKNOWN,
                    "a journal has the log of faults (ka fault log), and no "
                    "rules: ask the monitor of the VM");
        return false;
    }
    return true;
}

/* Return true if a command may change what the guest does. A recording has no
 * commands of a monitor; a script runs at the same instruction in both runs. */
static bool may_change(const McOut *out, GError **errp)
{
    const char *rr = out->ctx->rr;

    if (rr && !out->ctx->in_script) {
        g_set_error(errp, MC_ERROR, MC_ERROR_UNKNOWN,
                    "rr=%s: a recording has no commands of a monitor; put the "
                    "rules into script=FILE, which both runs must have", rr);
        return false;
    }
    return has_vm(out, errp);
}

/* A recording does not have the stop, and the one who continues. */
static bool may_do(const McOut *out, KtFaultAction action, GError **errp)
{
    if (out->ctx->rr && action == KT_FAULT_DO_STOP) {
        g_set_error(errp, MC_ERROR, MC_ERROR_UNKNOWN,
                    "--do stop: not while a run is recorded or replayed "
                    "(rr=%s); use --do log, or a breakpoint of gdb",
                    out->ctx->rr);
        return false;
    }
    return true;
}

/* ---- points ------------------------------------------------------------- */

typedef struct Functions {
    GString *list;
    unsigned n;
    const char *fails;
} Functions;

static void add_function(void *opaque, const char *function, const char *fails)
{
    Functions *f = opaque;

    g_string_append_printf(f->list, " %s", function);
    f->fails = f->fails ? f->fails : fails;
    f->n++;
}

typedef struct PointRow {
    const char *name, *names;
    unsigned functions;
} PointRow;

static const McObject point_object = MC_LINE_OBJECT("fault_point",
    "ka fault points",
    MC_COLUMN(PointRow, name, TEXT, NULL, "its name"),
    MC_COLUMN(PointRow, functions, NUMBER, NULL, "number of its functions"),
    MC_COLUMN(PointRow, names, TEXT, NULL, "their names"));
MC_OBJECTS(mc_fault_points_objects, &point_object);

static void print_point(McOut *out, const McArgs *args,
                        const KtFaultPointInfo *point)
{
    g_autoptr(GString) list = g_string_new(NULL);
    g_autofree char *text = NULL;
    Functions f = { list, 0, NULL };

    kt_fault_point_each(out->ctx->tracer, mc_symbols(out->ctx), point->name,
                        add_function, &f);
    text = g_strdup_printf("%-8s  %s (%u function%s%s%s%s%s", point->name,
                           point->help, f.n, f.n == 1 ? "" : "s",
                           mc_symbols(out->ctx) ? " in this kernel" : "",
                           out->verbose && f.n ? ":" : "",
                           out->verbose ? list->str : "", ")");
    mc_print_line(out, &point_object, &(PointRow) {
        point->name, list->len ? list->str + 1 : "", f.n }, text);
}

bool mc_cmd_fault_points(McOut *out, const McArgs *args, GError **errp)
{
    KtFaultPointInfo point;

    for (unsigned i = 0; kt_fault_point_nth(i, &point) && !out->closed; i++) {
        print_point(out, args, &point);
    }
    return true;
}

/* ---- rules -------------------------------------------------------------- */

/* @task: (borrowed, nullable) value of --task */
static KtFaultSpec spec_of(const McArgs *args, const char *task)
{
    return (KtFaultSpec) {
        .what = args->name, .condition = args->condition,
        .value = args->value, .module = args->module,
        .task = task, .times = args->times,
        .action = args->action, .early = mc_given(args, MC_OPT_EARLY),
        .force = mc_given(args, MC_OPT_FORCE),
    };
}

typedef struct AddedRow {
    uint32_t rule;
    const char *command;
} AddedRow;

static const McObject added_object = MC_LINE_OBJECT("fault_added",
    "ka fault add",
    MC_COLUMN(AddedRow, rule, NUMBER, "rule %: ", "its number"),
    MC_COLUMN(AddedRow, command, TEXT, "%", "the command that adds it"));
MC_OBJECTS(mc_fault_add_objects, &added_object);

/** struct Added - a search; @command: (owned, nullable) of rule @id */
typedef struct Added {
    uint32_t id;
    char *command;
} Added;

static bool find_added(const KtFaultRule *rule, void *opaque)
{
    Added *a = opaque;

    if (rule->id == a->id) {
        a->command = kt_fault_spec_command(&rule->spec);
    }
    return !a->command;
}

/* Print the rule as it is now: it can have the name of a module. */
static void print_added(McOut *out, uint32_t id)
{
    Added a = { id, NULL };

    kt_faults_foreach(out->ctx->tracer, find_added, &a);
    mc_print(out, &added_object, &(AddedRow) { id, a.command });
    g_free(a.command);
}

bool mc_cmd_fault_add(McOut *out, const McArgs *args, GError **errp)
{
    const KtBlockSpec *f = &args->filter.spec;
    g_autofree char *task =
        f->has_pid ? g_strdup_printf("%" PRIu64, f->pid) : g_strdup(f->task);
    KtFaultSpec spec = spec_of(args, task);
    uint32_t id;

    id = may_change(out, errp) && may_do(out, spec.action, errp) ?
             kt_faults_add(out->ctx->tracer, mc_symbols(out->ctx), &spec,
                           errp) : 0;
    if (!id) {
        return false;
    }
    print_added(out, id);
    mc_remark_waits(out, spec.condition);
    mc_remark_module(out, spec.module);
    return true;
}

typedef struct CountRow {
    uint64_t n;
} CountRow;

static const McObject deleted_object = MC_LINE_OBJECT("fault_deleted",
    "ka fault del",
    MC_KEY("deleted", CountRow, n, NUMBER,
           "% rule{|s} deleted; the log stays", "number of rules"));
MC_OBJECTS(mc_fault_del_objects, &deleted_object);

bool mc_cmd_fault_del(McOut *out, const McArgs *args, GError **errp)
{
    g_autofree char *quoted = mc_quote(args->name);
    bool all = !strcmp(args->name, "all");
    char *end;
    unsigned long id = strtoul(args->name, &end, 10);
    unsigned n = 0;

    if (!may_change(out, errp)) {
        return false;
    }
    if (all || (g_ascii_isdigit(*args->name) && !*end && id &&
                id <= UINT32_MAX)) {
        n = kt_faults_remove(out->ctx->tracer, all ? 0 : id);
    }
    if (!n && !all) {
        g_set_error(errp, MC_ERROR, MC_ERROR_UNKNOWN,
                    "%s: no such rule; ka fault list has their numbers, or use "
                    "all", quoted);
        return false;
    }
    mc_print(out, &deleted_object, &(CountRow) { n });
    return true;
}

/** struct RuleRow - a copy of a rule */
typedef struct RuleRow {
    KtFaultRule rule;
    char *command;
} RuleRow;

static void rule_row_clear(gpointer p)
{
    g_free(((RuleRow *)p)->command);
}

static bool copy_rule(const KtFaultRule *rule, void *opaque)
{
    RuleRow row = { *rule, kt_fault_spec_command(&rule->spec) };

    g_array_append_val((GArray *)opaque, row);
    return true;
}

static uint64_t sum_refused(const KtFaultRule *r)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < KT_REFUSED__COUNT; i++) {
        n += r->refused[i];
    }
    return n;
}

MC_GETTER(refused)
{
    v->u = sum_refused(&((const RuleRow *)row)->rule);
    return true;
}

#define R(key_, member_, look_, text_, help_, ...) \
    MC_KEY(key_, RuleRow, rule.member_, look_, text_, help_, __VA_ARGS__)

/* The names of the reasons are those of kt_fault_refusal_name(). */
#define REFUSED(key_, id_) \
    R("refused_" key_, refused[KT_REFUSED_##id_], NUMBER, " " key_ "=%", \
      "refused for this reason", .flags = MC_IF_SET | MC_TEXT_V)

static const McColumn rule_columns[] = {
    R("rule", id, NUMBER, "%: ", "its number"),
    MC_COLUMN(RuleRow, command, TEXT, "%  # ", "the command that adds it"),
    R("calls", calls, NUMBER, "calls=%", "calls that it looked at"),
    R("selected", selected, NUMBER, " selected=%", "calls that it means"),
    R("done", done, NUMBER, " done=%", "calls with which it did what it does"),
    MC_GET("refused", get_refused, NUMBER, " refused=%",
           "calls that were selected, and that it did nothing to"),
    R("unknown", unknown, NUMBER, " unknown=%",
      "calls whose condition could not be evaluated", .flags = MC_TEXT_V),
    R("divided", divided, NUMBER, " divided=%",
      "calls whose condition divided by 0", .flags = MC_TEXT_V),
    R("stacks", stacks, NUMBER, " stacks=%",
      "different stacks that were counted", .flags = MC_TEXT_V),
    R("functions", n_functions, NUMBER, " functions=%",
      "number of functions", .flags = MC_TEXT_V),
    R("left_out", left_out, NUMBER, " left_out=%",
      "others of the set, which cannot fail", .flags = MC_TEXT_V),
    R("fails", fails, TEXT, " fails=%", "what a failed call returns",
      .flags = MC_TEXT_V),
    REFUSED("inner", INNER), REFUSED("internal", INSIDE),
    REFUSED("nofail", NOFAIL), REFUSED("panics", PANICS),
    REFUSED("early", EARLY), REFUSED("times", TIMES),
    REFUSED("log_full", LOG_FULL), REFUSED("stacks_full", STACKS_FULL),
    REFUSED("unsafe", UNSAFE),
    MC_END
};
G_STATIC_ASSERT(KT_REFUSED__COUNT == 9);
static const McObject rule_object = {
    "fault_rule", "ka fault list", { rule_columns }, .line = true,
    .long_lines = true,
};
MC_OBJECTS(mc_fault_list_objects, &rule_object);

/* The short text: what fits a terminal. */
static const McObject rule_table = MC_TABLE_OBJECT(NULL, NULL,
    R(NULL, id, NUMBER, "%", NULL, .head = "rule"),
    R(NULL, calls, NUMBER, "%", NULL, .head = "calls"),
    R(NULL, selected, NUMBER, "%", NULL, .head = "selected"),
    R(NULL, done, NUMBER, "%", NULL, .head = "done"),
    MC_GET(NULL, get_refused, NUMBER, "%", NULL, .head = "refused"),
    MC_KEY(NULL, RuleRow, command, TEXT, "%", NULL, .head = "command"));

/* Return true if lines are printed whole: each is a command to copy. */
static bool as_commands(const McOut *out)
{
    return out->json || out->whole;
}

static void remark_full(McOut *out, bool full)
{
    if (full) {
        mc_remark(out, "the log is full, so no more calls are made to fail");
    }
}

bool mc_cmd_fault_list(McOut *out, const McArgs *args, GError **errp)
{
    g_autoptr(GArray) rows = g_array_new(FALSE, FALSE, sizeof(RuleRow));
    bool full;

    g_array_set_clear_func(rows, rule_row_clear);
    if (!has_vm(out, errp)) {
        return false;
    }
    kt_faults_foreach(out->ctx->tracer, copy_rule, rows);
    for (unsigned i = 0; i < rows->len && !out->closed; i++) {
        mc_print(out, as_commands(out) ? &rule_object : &rule_table,
                 &g_array_index(rows, RuleRow, i));
    }
    if (!rows->len) {
        mc_remark(out, "no rules; ka fault add makes one");
    }
    kt_faults_log_count(out->ctx->tracer, &full);
    remark_full(out, full);
    return true;
}

static const McObject seed_object = MC_LINE_OBJECT("fault_seed",
    "ka fault seed",
    MC_KEY("seed", CountRow, n, NUMBER, "seed %", "of chances"));
MC_OBJECTS(mc_fault_seed_objects, &seed_object);

bool mc_cmd_fault_seed(McOut *out, const McArgs *args, GError **errp)
{
    KtTracer *t = out->ctx->tracer;
    uint64_t seed;

    if (!(args->name ? may_change(out, errp) : has_vm(out, errp))) {
        return false;
    }
    if (args->name) {
        if (!mc_parse_decimal(args->name, "", &seed, errp)) {
            return false;
        }
        kt_faults_set_seed(t, seed);
    }
    mc_print(out, &seed_object, &(CountRow) { kt_faults_seed(t) });
    return true;
}

/* ---- the log ------------------------------------------------------------ */

/** struct RecordRow - @command: repeats the fault */
typedef struct RecordRow {
    KtFaultRecord r;
    const char *command, *args;
} RecordRow;

static void put_task(McOut *o, GString *s, const void *row, bool json)
{
    const KtTaskId id = ((const RecordRow *)row)->r.task;
    char comm[17];
    uint32_t pid;

    if (kt_tracer_task(o->ctx->tracer, id, &pid, comm)) {
        mc_put_word(s, comm);
        g_string_append_printf(s, "/%u", pid);
    } else {
        g_string_append_c(s, '?');
    }
}

MC_WHEN(shows_frames)
{
    return o->stacks || o->verbose;
}

#define F(key_, member_, look_, text_, help_, ...) \
    MC_KEY(key_, RecordRow, r.member_, look_, text_, help_, __VA_ARGS__)

/* In text: what a line says beside the command, as a comment of a shell. */
static const McObject record_object = MC_LONG_OBJECT("fault",
    "ka fault log", true,
    MC_KEY(NULL, RecordRow, command, TEXT, "%  # ", NULL),
    F(NULL, us, NUMBER, "%us", NULL),
    F(NULL, cpu, NUMBER, " cpu=%", NULL),
    MC_PUT(NULL, put_task, " task=%", NULL),
    F("rule", rule, NUMBER, " rule=%", "number of the rule"),
    F("action", action, TEXT, " %", "fail, log or stop",
      .name = kt_fault_action_name),
    F("function", function, TEXT, " %", "the function"),
    F(NULL, value, HEX, "=0x%", NULL,
      .only = { MC_MEMBER(RecordRow, r.action),
                .one_of = 1u << KT_FAULT_DO_FAIL }),
    F("us", us, NUMBER, NULL, "time"),
    F("cpu", cpu, NUMBER, NULL, "vCPU"),
    F("stackid", hash, HEX, NULL, "hash of the stack"),
    F("n", n, NUMBER, NULL, "as in conditions"),
    F("times", times, NUMBER, NULL, "as in conditions"),
    F("cut", cut, NUMBER, NULL, "1 if the hash is of a part of the stack"),
    F("size", size, NUMBER, " size=%", "requested bytes"),
    F("flags", flags, HEX, " flags=0x%", "gfp flags"),
    F("value", value, HEX, NULL, "what the call returned"),
    F("chance", chance, TEXT, " %", "likely, cgroup, rare or -",
      .name = kt_fault_chance_name),
    F(NULL, cut, NUMBER, " cut", NULL, .flags = MC_IF_SET),
    MC_COLUMN(RecordRow, args, TEXT, NULL, "registers of the arguments"),
    F("pid", task, PID, NULL, "task"),
    F("comm", task, COMM, NULL, "name of the task"),
    MC_COLUMN(RecordRow, command, TEXT, NULL, "repeats it"),
    F("frames", stack, FRAMES, NULL, "the stack"),
    F(NULL, stack, FRAMES, " [%]", NULL, .when = shows_frames));

static const McObject record_table = MC_TABLE_OBJECT(NULL, NULL,
    F(NULL, rule, NUMBER, "%", NULL, .head = "rule"),
    F(NULL, action, TEXT, "%", NULL, .name = kt_fault_action_name,
      .head = "action"),
    F(NULL, function, TEXT, "%", NULL, .head = "function"),
    F(NULL, size, NUMBER, "%", NULL, .unit = MC_SIZE, .flags = MC_ZERO,
      .head = "size"),
    F(NULL, flags, HEX, "%", NULL, .head = "flags"),
    F(NULL, chance, TEXT, "%", NULL, .name = kt_fault_chance_name,
      .head = "chance"),
    F(NULL, us, NUMBER, "%", NULL, .unit = MC_AGE, .head = "time"),
    F(NULL, cpu, NUMBER, "%", NULL, .head = "cpu"),
    MC_PUT(NULL, put_task, "%", NULL, .head = "task"),
    F(NULL, cut, NUMBER, " cut", NULL, .flags = MC_IF_SET),
    F(NULL, stack, FRAMES, " [%]", NULL, .when = shows_frames));

static void print_record(McOut *out, const KtFaultRecord *r)
{
    g_autofree char *command = kt_fault_command(r);
    g_autoptr(GString) args = g_string_new(NULL);

    for (unsigned i = 0; i < KT_FAULT_ARGS; i++) {
        g_string_append_printf(args, "%s0x%" PRIx64, i ? " " : "", r->arg[i]);
    }
    mc_print(out, as_commands(out) ? &record_object : &record_table,
             &(RecordRow) { *r, command, args->str });
}

/* ---- stacks ------------------------------------------------------------- */

static bool copy_stack(const KtFaultStack *s, void *opaque)
{
    g_array_append_vals(opaque, s, 1);
    return true;
}

#define S(key_, member_, look_, text_, help_, ...) \
    MC_KEY(key_, KtFaultStack, member_, look_, text_, help_, __VA_ARGS__)

static const McObject stack_object = MC_LINE_OBJECT("fault_stack",
    "ka fault log --by stack",
    S(NULL, hash, ADDRESS, "0x% ", NULL),
    S(NULL, selected, NUMBER, "selected=%", NULL),
    S("rule", rule, NUMBER, " rule=%", "number of the rule"),
    S("stackid", hash, HEX, NULL, "hash of the stack"),
    S("selected", selected, NUMBER, NULL, "number of calls"),
    S("calls", calls, NUMBER, NULL,
      "number of calls of the stack that were counted"),
    S("function", first.function, TEXT, " %", "of the first of them"),
    S("size", first.size, NUMBER, " size=%", "of the first of them"),
    S("flags", first.flags, HEX, " flags=0x%", "of the first of them"),
    S("chance", first.chance, TEXT, " %", "of the first of them",
      .name = kt_fault_chance_name),
    S("cut", first.cut, NUMBER, " cut", "as in fault", .flags = MC_IF_SET),
    S("frames", first.stack, FRAMES, " [%]", "the stack"));
MC_OBJECTS(mc_fault_log_objects, &record_object, &stack_object);

/* Return true if a frame of the stack is in module @name. */
static bool is_of_module(const McOut *out, KtStackId id, const char *name)
{
    McStack stack = mc_stack(out->ctx->tracer, id);
    const GsKernel *k = mc_symbols(out->ctx);
    GsSymbol sym;

    for (unsigned i = 0; k && i < stack.n; i++) {
        if (gs_kernel_symbolize_at(k, stack.pc[i] - 1, stack.era.all, &sym) &&
            sym.module && !strcmp(sym.module, name)) {
            return true;
        }
    }
    return false;
}

static void print_stacks(McOut *out, const McArgs *args)
{
    g_autoptr(GArray) rows = g_array_new(FALSE, FALSE, sizeof(KtFaultStack));
    uint64_t shown = 0, more = 0;

    kt_faults_stacks(out->ctx->tracer, copy_stack, rows);
    for (unsigned i = 0; i < rows->len && !out->closed; i++) {
        const KtFaultStack *s = &g_array_index(rows, KtFaultStack, i);

        if (args->module && !is_of_module(out, s->first.stack, args->module)) {
            continue;
        }
        if (shown++ < args->limit) {
            mc_print(out, &stack_object, s);
        } else {
            more++;
        }
    }
    if (more) {
        mc_more(out, more);
    }
    if (!shown) {
        mc_remark(out, "no rule has selected a call");
    }
}

/* ---- ka fault log ------------------------------------------------------- */

/* Return true if the rows of ka fault log can be grouped so. */
static bool check_by(const McArgs *args, GError **errp)
{
    return !mc_given(args, MC_OPT_BY) || args->by == MC_BY_STACK ||
           mc_fail_syntax(errp, "--by %s: calls that rules selected are "
                          "grouped by stack only", mc_by_name(args->by));
}

/* Return (owned) the records of the log, KtFaultRecord; of those through a
 * module if --module is given. */
static GArray *find_records(const McOut *out, const McArgs *args, bool *full)
{
    KtTracer *t = out->ctx->tracer;
    GArray *records = g_array_new(FALSE, FALSE, sizeof(KtFaultRecord));
    unsigned n = kt_faults_log_count(t, full);
    KtFaultRecord r;

    for (unsigned i = 0; i < n; i++) {
        if (kt_faults_log(t, i, &r) &&
            (!args->module || is_of_module(out, r.stack, args->module))) {
            g_array_append_val(records, r);
        }
    }
    return records;
}

/* Print the newest @limit records. */
static void print_log(McOut *out, const McArgs *args)
{
    bool full;
    g_autoptr(GArray) records = find_records(out, args, &full);
    unsigned n = records->len;
    unsigned first = args->limit < n ? n - args->limit : 0;

    if (first) {
        mc_remarkf(out, "%u older ones are not shown", first);
    }
    for (unsigned i = first; i < n && !out->closed; i++) {
        print_record(out, &g_array_index(records, KtFaultRecord, i));
    }
    if (!n) {
        mc_remark(out, "no call was made to fail");
    } else if (!out->whole) {
        mc_remark(out, "-w prints the commands that make the same calls fail "
                  "again");
    }
    remark_full(out, full);
}

bool mc_cmd_fault_log(McOut *out, const McArgs *args, GError **errp)
{
    bool by_stack = mc_given(args, MC_OPT_BY);

    if (!check_by(args, errp) || (by_stack && !has_vm(out, errp))) {
        return false;
    }
    mc_remark_module(out, args->module);
    if (by_stack) {
        print_stacks(out, args);
    } else {
        print_log(out, args);
    }
    return true;
}
