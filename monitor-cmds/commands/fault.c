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

#define FIGURES_MAX 32

/** struct Row - an object that is being made. @strings: (owned) of figures */
typedef struct Row {
    McStat figure[FIGURES_MAX];
    unsigned n;
    GPtrArray *strings;
} Row;

static void row_init(Row *r)
{
    r->n = 0;
    r->strings = g_ptr_array_new_with_free_func(g_free);
}

static void row_deinit(Row *r)
{
    g_ptr_array_unref(r->strings);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Row, row_deinit)

static void put(Row *r, const char *key, uint64_t value)
{
    r->figure[r->n++] = (McStat) { .key = key, .u = value };
}

static void put_hex(Row *r, const char *key, uint64_t value)
{
    r->figure[r->n++] = (McStat) { .key = key, .u = value, .hex = true };
}

/* @text: (owned by the row, nullable) */
static void put_own(Row *r, const char *key, char *text)
{
    g_ptr_array_add(r->strings, text);
    r->figure[r->n++] = (McStat) { .key = key, .s = text, .unknown = !text };
}

static void put_text(Row *r, const char *key, const char *text)
{
    put_own(r, key, g_strdup(text));
}

static void print(McOut *out, McObjectId id, const Row *r, const char *text)
{
    out->format->sum(out, id, r->figure, r->n, text);
}

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

static void print_point(McOut *out, const McArgs *args,
                        const KtFaultPointInfo *point)
{
    g_autoptr(GString) list = g_string_new(NULL);
    g_autofree char *text = NULL;
    g_auto(Row) row;
    Functions f = { list, 0, NULL };

    kt_fault_point_each(out->ctx->tracer, mc_symbols(out->ctx), point->name,
                        add_function, &f);
    row_init(&row);
    put_text(&row, "name", point->name);
    put(&row, "functions", f.n);
    put_text(&row, "names", list->len ? list->str + 1 : "");
    text = g_strdup_printf("%-8s  %s (%u function%s%s%s%s%s", point->name,
                           point->help, f.n, f.n == 1 ? "" : "s",
                           mc_symbols(out->ctx) ? " in this kernel" : "",
                           out->verbose && f.n ? ":" : "",
                           out->verbose ? list->str : "", ")");
    print(out, MC_OBJ_FAULT_POINT, &row, text);
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

bool mc_cmd_fault_add(McOut *out, const McArgs *args, GError **errp)
{
    const McFilter *f = &args->filter;
    g_autofree char *task =
        f->has_pid ? g_strdup_printf("%" PRIu64, f->pid) : g_strdup(f->task);
    KtFaultSpec spec = spec_of(args, task);
    g_autofree char *command = kt_fault_spec_command(&spec);
    g_autofree char *text = NULL;
    g_auto(Row) row;
    uint32_t id;

    row_init(&row);
    id = may_change(out, errp) && may_do(out, spec.action, errp) ?
             kt_faults_add(out->ctx->tracer, mc_symbols(out->ctx), &spec,
                           errp) : 0;
    if (!id) {
        return false;
    }
    put(&row, "rule", id);
    put_text(&row, "command", command);
    text = g_strdup_printf("rule %u: %s", id, command);
    print(out, MC_OBJ_FAULT_ADDED, &row, text);
    return true;
}

bool mc_cmd_fault_del(McOut *out, const McArgs *args, GError **errp)
{
    g_autofree char *quoted = mc_quote(args->name);
    g_autofree char *text = NULL;
    g_auto(Row) row;
    bool all = !strcmp(args->name, "all");
    char *end;
    unsigned long id = strtoul(args->name, &end, 10);
    unsigned n = 0;

    row_init(&row);
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
    put(&row, "deleted", n);
    text = g_strdup_printf("%u rule%s deleted; the log stays", n,
                           n == 1 ? "" : "s");
    print(out, MC_OBJ_FAULT_DELETED, &row, text);
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

/* Append " name=value" for each counter that is not 0. */
static void append_refusals(GString *s, const KtFaultRule *r)
{
    for (unsigned i = 0; i < KT_REFUSED__COUNT; i++) {
        if (r->refused[i]) {
            g_string_append_printf(s, " %s=%" PRIu64, kt_fault_refusal_name(i),
                                   r->refused[i]);
        }
    }
}

static uint64_t sum_refused(const KtFaultRule *r)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < KT_REFUSED__COUNT; i++) {
        n += r->refused[i];
    }
    return n;
}

static char *rule_text(const McOut *out, const RuleRow *row)
{
    const KtFaultRule *r = &row->rule;
    GString *s = g_string_new(NULL);

    g_string_append_printf(s, "%u: %s  # calls=%" PRIu64 " selected=%" PRIu64
                           " done=%" PRIu64 " refused=%" PRIu64, r->id,
                           row->command, r->calls, r->selected, r->done,
                           sum_refused(r));
    if (out->verbose) {
        g_string_append_printf(s, " unknown=%" PRIu64 " divided=%" PRIu64
                               " stacks=%u functions=%u left_out=%u fails=%s",
                               r->unknown, r->divided, r->stacks,
                               r->n_functions, r->left_out, r->fails);
        append_refusals(s, r);
    }
    return g_string_free(s, FALSE);
}

static void print_rule(McOut *out, const RuleRow *rule)
{
    const KtFaultRule *r = &rule->rule;
    g_autofree char *text = rule_text(out, rule);
    g_auto(Row) row;

    row_init(&row);
    put(&row, "rule", r->id);
    put_text(&row, "command", rule->command);
    put(&row, "calls", r->calls);
    put(&row, "selected", r->selected);
    put(&row, "done", r->done);
    put(&row, "refused", sum_refused(r));
    put(&row, "unknown", r->unknown);
    put(&row, "divided", r->divided);
    put(&row, "stacks", r->stacks);
    put(&row, "functions", r->n_functions);
    put(&row, "left_out", r->left_out);
    put_text(&row, "fails", r->fails);
    for (unsigned i = 0; i < KT_REFUSED__COUNT; i++) {
        put_own(&row, NULL, g_strconcat("refused_", kt_fault_refusal_name(i),
                                        NULL));
        row.figure[row.n - 1] = (McStat) {
            .key = row.figure[row.n - 1].s, .u = r->refused[i] };
    }
    print(out, MC_OBJ_FAULT_RULE, &row, text);
}

bool mc_cmd_fault_list(McOut *out, const McArgs *args, GError **errp)
{
    g_autoptr(GArray) rows = g_array_new(FALSE, FALSE, sizeof(RuleRow));

    g_array_set_clear_func(rows, rule_row_clear);
    if (!has_vm(out, errp)) {
        return false;
    }
    kt_faults_foreach(out->ctx->tracer, copy_rule, rows);
    for (unsigned i = 0; i < rows->len && !out->closed; i++) {
        print_rule(out, &g_array_index(rows, RuleRow, i));
    }
    if (!rows->len) {
        out->format->none(out, "no rules; ka fault add makes one");
    }
    if (kt_faults_log_is_full(out->ctx->tracer)) {
        out->format->none(out, "the log is full, so no more calls are made to "
                          "fail");
    }
    return true;
}

bool mc_cmd_fault_seed(McOut *out, const McArgs *args, GError **errp)
{
    KtTracer *t = out->ctx->tracer;
    g_autofree char *text = NULL;
    uint64_t seed;
    g_auto(Row) row;

    row_init(&row);
    if (!(args->name ? may_change(out, errp) : has_vm(out, errp))) {
        return false;
    }
    if (args->name) {
        if (!mc_parse_decimal(args->name, "", &seed, errp)) {
            return false;
        }
        kt_faults_set_seed(t, seed);
    }
    seed = kt_faults_seed(t);
    put(&row, "seed", seed);
    text = g_strdup_printf("seed %" PRIu64, seed);
    print(out, MC_OBJ_FAULT_SEED, &row, text);
    return true;
}

/* ---- the log ------------------------------------------------------------ */

/* Return (owned) the frames of a stack, a blank between. */
static char *frames_text(const McOut *out, KtStackId id)
{
    McStack stack = mc_stack(out->ctx->tracer, id);
    GString *s = g_string_new(NULL);

    for (unsigned i = 0; i < stack.n; i++) {
        McFrame f = mc_frame(&stack, i);

        g_string_append(s, i ? " " : "");
        mc_put_pc(s, out->symbols, &f);
    }
    return g_string_free(s, FALSE);
}

static void put_task(const McOut *out, Row *row, GString *s, KtTaskId id)
{
    g_autoptr(GString) name = g_string_new(NULL);
    char comm[17];
    uint32_t pid;

    if (kt_tracer_task(out->ctx->tracer, id, &pid, comm)) {
        put(row, "pid", pid);
        put_text(row, "comm", comm);
        mc_put_word(name, comm);
        g_string_append_printf(s, " task=%s/%u", name->str, pid);
    } else {
        put_own(row, "pid", NULL);
        put_own(row, "comm", NULL);
        g_string_append(s, " task=?");
    }
}

static void put_record(Row *row, const KtFaultRecord *r)
{
    g_autoptr(GString) args = g_string_new(NULL);

    for (unsigned i = 0; i < KT_FAULT_ARGS; i++) {
        g_string_append_printf(args, "%s0x%" PRIx64, i ? " " : "", r->arg[i]);
    }
    put(row, "rule", r->rule);
    put_text(row, "action", kt_fault_action_name(r->action));
    put_text(row, "function", r->function);
    put(row, "us", r->us);
    put(row, "cpu", r->cpu);
    put_hex(row, "stackid", r->hash);
    put(row, "n", r->n);
    put(row, "times", r->times);
    put(row, "cut", r->cut);
    put(row, "size", r->size);
    put_hex(row, "flags", r->flags);
    put_hex(row, "value", r->value);
    put_text(row, "chance", kt_fault_chance_name(r->chance));
    put_own(row, "args", g_strdup(args->str));
}

/* What a line says beside the command, as a comment of a shell. */
static GString *comment_of(const KtFaultRecord *r)
{
    GString *s = g_string_new(NULL);

    g_string_append_printf(s, "  # %" PRIu64 "us cpu=%u", r->us, r->cpu);
    return s;
}

static void end_comment(GString *s, const KtFaultRecord *r)
{
    g_string_append_printf(s, " rule=%u %s %s", r->rule,
                           kt_fault_action_name(r->action), r->function);
    if (r->action == KT_FAULT_DO_FAIL) {
        g_string_append_printf(s, "=0x%" PRIx64, r->value);
    }
    g_string_append_printf(s, " size=%" PRIu64 " flags=0x%x %s%s", r->size,
                           r->flags, kt_fault_chance_name(r->chance),
                           r->cut ? " cut" : "");
}

static void print_record(McOut *out, const McArgs *args,
                         const KtFaultRecord *r)
{
    g_autofree char *command = kt_fault_command(r);
    g_autofree char *frames = frames_text(out, r->stack);
    g_autofree char *text = NULL;
    g_autoptr(GString) comment = comment_of(r);
    g_auto(Row) row;

    row_init(&row);
    put_record(&row, r);
    put_task(out, &row, comment, r->task);
    end_comment(comment, r);
    put_text(&row, "command", command);
    put_text(&row, "frames", frames);
    if (mc_given(args, MC_OPT_SYMBOLS) || out->verbose) {
        g_string_append_printf(comment, " [%s]", frames);
    }
    text = g_strconcat(command, comment->str, NULL);
    print(out, MC_OBJ_FAULT, &row, text);
}

static unsigned count_log(KtTracer *t)
{
    unsigned lo = 0, hi = KT_FAULT_LOG_MAX;
    KtFaultRecord r;

    while (lo < hi) {
        unsigned mid = (lo + hi) / 2;

        if (kt_faults_log(t, mid, &r)) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

/* The newest @limit records. */
bool mc_cmd_fault_log(McOut *out, const McArgs *args, GError **errp)
{
    KtTracer *t = out->ctx->tracer;
    unsigned n = count_log(t);
    unsigned first = args->limit < n ? n - args->limit : 0;
    KtFaultRecord r;

    if (first) {
        g_autofree char *text = g_strdup_printf("%u older ones are not shown",
                                                first);

        out->format->none(out, text);
    }
    for (unsigned i = first; i < n && !out->closed; i++) {
        if (kt_faults_log(t, i, &r)) {
            print_record(out, args, &r);
        }
    }
    if (!n) {
        out->format->none(out, "no call was made to fail");
    }
    if (kt_faults_log_is_full(t)) {
        out->format->none(out, "the log is full, so no more calls are made to "
                          "fail");
    }
    return true;
}

/* ---- stacks ------------------------------------------------------------- */

static bool copy_stack(const KtFaultStack *s, void *opaque)
{
    g_array_append_vals(opaque, s, 1);
    return true;
}

static void print_stack(McOut *out, const McArgs *args, const KtFaultStack *s)
{
    g_autofree char *frames = frames_text(out, s->first.stack);
    g_autofree char *text = NULL;
    g_auto(Row) row;

    row_init(&row);
    put(&row, "rule", s->rule);
    put_hex(&row, "stackid", s->hash);
    put(&row, "selected", s->selected);
    put(&row, "calls", s->calls);
    put_text(&row, "function", s->first.function);
    put(&row, "size", s->first.size);
    put_hex(&row, "flags", s->first.flags);
    put_text(&row, "chance", kt_fault_chance_name(s->first.chance));
    put(&row, "cut", s->first.cut);
    put_text(&row, "frames", frames);
    text = g_strdup_printf("0x%016" PRIx64 " selected=%" PRIu64 " rule=%u %s "
                           "size=%" PRIu64 " flags=0x%x %s%s [%s]", s->hash,
                           s->selected, s->rule, s->first.function,
                           s->first.size, s->first.flags,
                           kt_fault_chance_name(s->first.chance),
                           s->first.cut ? " cut" : "", frames);
    print(out, MC_OBJ_FAULT_STACK, &row, text);
}

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

bool mc_cmd_fault_stacks(McOut *out, const McArgs *args, GError **errp)
{
    g_autoptr(GArray) rows = g_array_new(FALSE, FALSE, sizeof(KtFaultStack));
    uint64_t shown = 0, more = 0;

    if (!has_vm(out, errp)) {
        return false;
    }
    kt_faults_stacks(out->ctx->tracer, copy_stack, rows);
    for (unsigned i = 0; i < rows->len && !out->closed; i++) {
        const KtFaultStack *s = &g_array_index(rows, KtFaultStack, i);

        if (args->module && !is_of_module(out, s->first.stack, args->module)) {
            continue;
        }
        if (shown++ < args->limit) {
            print_stack(out, args, s);
        } else {
            more++;
        }
    }
    if (more) {
        out->format->more(out, more);
    }
    if (!shown) {
        out->format->none(out, "no rule has selected a call");
    }
    return true;
}
