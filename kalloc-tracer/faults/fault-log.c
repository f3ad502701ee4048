/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The log of faults: records are never dropped. If the log is full, no more
 * calls are made to fail. And the stacks that rules counted.
 */
#include <string.h>

#include "kalloc-tracer/faults/faults-internal.h"

#define GROW_BY 512             /* records that are charged at once */

static const char *const actions[KT_FAULT_DO__COUNT] = {
    [KT_FAULT_DO_FAIL] = "fail",
    [KT_FAULT_DO_LOG] = "log",
    [KT_FAULT_DO_STOP] = "stop",
};

static const char *const refusals[KT_REFUSED__COUNT] = {
#define KT_FAULT_REFUSAL(id, name, help) [KT_REFUSED_##id] = name,
#include "kalloc-tracer/api/fault-refusals.def"
};

const char *kt_fault_action_name(KtFaultAction action)
{
    return (unsigned)action < KT_FAULT_DO__COUNT ? actions[action] : "?";
}

bool kt_fault_action_parse(const char *name, KtFaultAction *out)
{
    for (unsigned i = 0; i < KT_FAULT_DO__COUNT; i++) {
        if (!strcmp(name, actions[i])) {
            *out = i;
            return true;
        }
    }
    return false;
}

const char *kt_fault_refusal_name(KtFaultRefusal why)
{
    return (unsigned)why < KT_REFUSED__COUNT ? refusals[why] : "?";
}

const char *kt_fault_chance_name(KtFaultChance chance)
{
    static const char *const names[] = { "-", "rare", "cgroup", "likely" };

    return (unsigned)chance < G_N_ELEMENTS(names) ? names[chance] : "?";
}

/* ---- records ------------------------------------------------------------ */

static void free_record(gpointer record)
{
    kt_fault_spec_unref(((KtFaultRecord *)record)->spec);
    g_free(record);
}

GPtrArray *kt_fault_records_new(void)
{
    return g_ptr_array_new_with_free_func(free_record);
}

void kt_fault_records_add(GPtrArray *records, const KtFaultRecord *r)
{
    g_atomic_rc_box_acquire((KtFaultSpec *)r->spec);
    g_ptr_array_add(records, g_memdup2(r, sizeof(*r)));
}

static bool has_room(KtFaults *f)
{
    if (f->log->len >= KT_FAULT_LOG_MAX) {
        return false;
    }
    return f->log->len % GROW_BY ||
           kt_budget_take(f->budget, KT_MEM_FAULTS,
                          GROW_BY * (sizeof(KtFaultRecord) + 16));
}

bool kt_faults_append(KtFaults *f, const KtFaultRecord *rec)
{
    bool room, first;

    g_mutex_lock(&f->lock);
    room = has_room(f);
    if (room) {
        kt_fault_records_add(f->log, rec);
    }
    first = !room && !f->log_full;
    f->log_full |= !room;
    g_mutex_unlock(&f->lock);
    if (first && f->warn) {
        f->warn("the log of faults is full (ka fault log): no more calls are "
                "made to fail; ka fault list -v counts them (log_full)");
    }
    return room;
}

bool kt_faults_log(KtTracer *t, unsigned i, KtFaultRecord *out)
{
    KtFaults *f = kt_faults_of(t);
    bool found;

    g_mutex_lock(&f->lock);
    found = i < f->log->len;
    if (found) {
        *out = *(const KtFaultRecord *)g_ptr_array_index(f->log, i);
    }
    g_mutex_unlock(&f->lock);
    return found;
}

unsigned kt_faults_log_count(KtTracer *t, bool *full)
{
    KtFaults *f = kt_faults_of(t);
    unsigned n;

    g_mutex_lock(&f->lock);
    *full = f->log_full;
    n = f->log->len;
    g_mutex_unlock(&f->lock);
    return n;
}

/* ---- commands ----------------------------------------------------------- */

/* Append an option with a value; in quotes if the value has blanks. */
static void append_option(GString *s, const char *option, const char *value)
{
    bool plain = !strpbrk(value, " \t\"'");

    g_string_append_printf(s, plain ? " %s %s" : " %s '%s'", option, value);
}

static GString *begin_command(const KtFaultSpec *spec, const char *condition)
{
    GString *s = g_string_new("ka fault add ");

    g_string_append(s, spec->what);
    if (condition) {
        append_option(s, "--if", condition);
    }
    if (spec->value) {
        append_option(s, "--return", spec->value);
    }
    if (spec->module) {
        append_option(s, "--module", spec->module);
    }
    if (spec->task) {
        append_option(s, "--task", spec->task);
    }
    return s;
}

static char *end_command(GString *s, const KtFaultSpec *spec,
                         KtFaultAction action, uint64_t times)
{
    if (times) {
        g_string_append_printf(s, " --times %" G_GUINT64_FORMAT, times);
    }
    if (action != KT_FAULT_DO_FAIL) {
        append_option(s, "--do", kt_fault_action_name(action));
    }
    g_string_append(s, spec->early ? " --early" : "");
    g_string_append(s, spec->force ? " --force" : "");
    return g_string_free(s, FALSE);
}

char *kt_fault_spec_command(const KtFaultSpec *spec)
{
    return end_command(begin_command(spec, spec->condition), spec,
                       spec->action, spec->times);
}

/* Return true if the parenthesis at text[0] is closed at text[len - 1]. */
static bool is_in_parentheses(const char *text, size_t len)
{
    int depth = 0;

    for (size_t i = 0; i < len; i++) {
        depth += (text[i] == '(') - (text[i] == ')');
        if (depth <= 0) {
            return i && i + 1 == len;
        }
    }
    return false;
}

/* Return true if @had is @call, or "(CONDITION) && " and @call: the condition
 * of a command that was made here, for the same call. */
static bool selects_call(const char *had, const char *call)
{
    size_t len = strlen(had), end = strlen(call);
    const size_t join = strlen(" && ");

    if (!g_str_has_suffix(had, call)) {
        return false;
    }
    len -= end;
    return !len || (len > join && !strncmp(had + len - join, " && ", join) &&
                    is_in_parentheses(had, len - join));
}

/* The rule's own condition stays: n counts the calls that get to it. */
char *kt_fault_command(const KtFaultRecord *r)
{
    const char *had = r->spec->condition;
    g_autofree char *call = g_strdup_printf(
        "stackid == 0x%016" G_GINT64_MODIFIER "x && n == %" G_GUINT64_FORMAT,
        r->hash, r->n);
    g_autofree char *condition =
        !had ? g_strdup(call) : selects_call(had, call) ? g_strdup(had) :
        g_strdup_printf("(%s) && %s", had, call);
    KtFaultAction action = r->action == KT_FAULT_DO_STOP ? r->action :
                                                          KT_FAULT_DO_FAIL;

    return end_command(begin_command(r->spec, condition), r->spec, action, 1);
}

/* ---- stacks ------------------------------------------------------------- */

static gint by_hash(gconstpointer a, gconstpointer b)
{
    const KtRuleCount *x = *(KtRuleCount *const *)a;
    const KtRuleCount *y = *(KtRuleCount *const *)b;

    return (x->of.hash > y->of.hash) - (x->of.hash < y->of.hash);
}

/* (owned) Return the KtRuleCounts of a rule that selected calls. The lock is
 * held. */
static GPtrArray *list_counts(KtStackTable *t)
{
    GPtrArray *list = g_ptr_array_new();
    GHashTableIter iter;
    gpointer c;

    g_hash_table_iter_init(&iter, t->entries);
    while (g_hash_table_iter_next(&iter, NULL, &c)) {
        if (((KtRuleCount *)c)->selected) {
            g_ptr_array_add(list, c);
        }
    }
    g_ptr_array_sort(list, by_hash);
    return list;
}

typedef struct EachStack {
    KtFaultStackFn fn;
    void *opaque;
} EachStack;

static bool each_stack(const KtPointRequestInfo *info, void *opaque)
{
    const EachStack *each = opaque;
    KtRule *r = info->request->opaque;
    KtStackTable *t = &r->condition->counts;
    g_autoptr(GPtrArray) list = NULL;
    bool more = true;

    g_mutex_lock(&t->lock);
    list = list_counts(t);
    for (unsigned i = 0; i < list->len && more; i++) {
        const KtRuleCount *c = g_ptr_array_index(list, i);

        more = each->fn(&(KtFaultStack) { r->id, c->of.hash, c->of.calls,
                                          c->selected, c->first },
                        each->opaque);
    }
    g_mutex_unlock(&t->lock);
    return more;
}

void kt_faults_stacks(KtTracer *t, KtFaultStackFn fn, void *opaque)
{
    kt_faults_rules(t, each_stack, &(EachStack) { fn, opaque });
}
