/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A fault rule: made of what the user gave. On the thread of the command.
 */
#include <stdlib.h>
#include <string.h>

#include "kalloc-tracer/calls/function-sets.h"
#include "kalloc-tracer/calls/point-match.h"
#include "kalloc-tracer/conditions/code-names.h"
#include "kalloc-tracer/faults/faults-internal.h"
#include "kalloc-tracer/tracer/tracer.h"

#define FORK_FUNCTION "wake_up_new_task"

/* ---- what the user gave -------------------------------------------------- */

KtFaultSpec *kt_fault_spec_copy(const KtFaultSpec *spec)
{
    KtFaultSpec *s = g_atomic_rc_box_new(KtFaultSpec);

    *s = *spec;
    s->what = g_strdup(spec->what);
    s->condition = g_strdup(spec->condition);
    s->value = g_strdup(spec->value);
    s->module = g_strdup(spec->module);
    s->task = g_strdup(spec->task);
    return s;
}

static void clear_spec(gpointer spec)
{
    const KtFaultSpec *s = spec;

    g_free((char *)s->what);
    g_free((char *)s->condition);
    g_free((char *)s->value);
    g_free((char *)s->module);
    g_free((char *)s->task);
}

void kt_fault_spec_unref(const KtFaultSpec *spec)
{
    g_atomic_rc_box_release_full((gpointer)spec, clear_spec);
}

/* ---- functions ---------------------------------------------------------- */

static bool is_set(const KtRule *r)
{
    return *r->spec->what == '@';
}

/* A copy that the compiler made ("f.isra.0") can have another result than
 * @f. */
static bool is_copy(const char *name)
{
    return strchr(name, '.');
}

/* Return true if the rule can be about a function of its set. Before the kernel
 * is known it is about all of them. */
static bool can_fail(const KtRule *r, const KtFaultFunction *f)
{
    const KtFaultSpec *s = r->spec;

    if (s->action != KT_FAULT_DO_FAIL) {
        return true;
    }
    return (f->kind != KT_FAILS_UNKNOWN || s->value) &&
           (s->force || (f->kind != KT_FAILS_VOID && !is_copy(f->name)));
}

/* (owned, nullable) List the functions of the set that can fail. */
static GArray *set_functions(KtRule *r, const GsKernel *k)
{
    GArray *a = kt_fault_set_functions(kt_tracer_hooks(r->faults->tracer), k,
                                       r->spec->what);

    r->left_out = 0;
    for (unsigned i = a && k ? a->len : 0; i--;) {
        if (!can_fail(r, &g_array_index(a, KtFaultFunction, i))) {
            g_array_remove_index(a, i);
            r->left_out++;
        }
    }
    return a;
}

static GArray *one_function(const KtRule *r, const GsKernel *k,
                            const char *what)
{
    const char *colon = strchr(what, ':');
    g_autofree char *module = colon ? g_strndup(what, colon - what) : NULL;
    GArray *a = kt_fault_functions_new();
    KtFaultFunction f = kt_fault_function(kt_tracer_hooks(r->faults->tracer),
                                          k, module, colon ? colon + 1 : what);

    f.allocates = false;        /* the user wants this function's calls */
    g_array_append_val(a, f);
    return a;
}

static void add_fork(KtRule *r, GArray *functions, const GsKernel *k)
{
    KtFaultFunction f = kt_fault_function(kt_tracer_hooks(r->faults->tracer),
                                          k, NULL, FORK_FUNCTION);

    f.forks = true;
    g_array_append_val(functions, f);
}

void kt_rule_find_functions(KtRule *r, const GsKernel *k)
{
    const char *what = r->spec->what;
    GArray *a = is_set(r) ? set_functions(r, k) :
                            kt_fault_point_functions(
                                kt_tracer_hooks(r->faults->tracer), k, what);
    const char *colon = strchr(what, ':');
    g_autofree char *module = colon ? g_strndup(what, colon - what) : NULL;

    if (!a) {
        a = one_function(r, k, what);
        g_clear_pointer(&r->prototype, gs_prototype_free);
        r->prototype = k ? gs_kernel_prototype(k, module,
                                               colon ? colon + 1 : what,
                                               NULL) : NULL;
    }
    if (kt_task_filter_has_processes(r->condition->tasks)) {
        add_fork(r, a, k);
    }
    g_clear_pointer(&r->functions, g_array_unref);
    r->functions = a;
    memset(r->seen, 0, sizeof(r->seen));
}

char *kt_rule_points(const KtRule *r)
{
    GString *s = g_string_new(NULL);
    const char *what = r->spec->what;
    const char *colon = strchr(what, ':');

    for (unsigned i = 0; i < r->functions->len; i++) {
        const KtFaultFunction *f = &g_array_index(r->functions,
                                                  KtFaultFunction, i);

        g_string_append_printf(s, "%s%.*s%s", s->len ? "," : "",
                               colon && !f->forks ? (int)(colon - what) + 1 : 0,
                               what, f->name);
    }
    return g_string_free(s, FALSE);
}

/* ---- a new rule --------------------------------------------------------- */

static bool fail(GError **errp, const char *format, ...) G_GNUC_PRINTF(2, 3);
static bool fail(GError **errp, const char *format, ...)
{
    g_autofree char *text = NULL;
    va_list args;

    va_start(args, format);
    text = g_strdup_vprintf(format, args);
    va_end(args);
    g_set_error_literal(errp, GS_ERROR, GS_ERROR_FORMAT, text);
    return false;
}

static bool set_condition(KtRule *r, const GsKernel *k, GError **errp)
{
    g_autoptr(GPtrArray) protos = g_ptr_array_new();
    const KtCallFunctions functions = { .protos = protos, .kernel = k };
    KtCallCondition *c = r->condition;

    r->inner = kt_stack_rules_add_set(c->stacks, r->faults->allocators);
    r->inside = kt_stack_rules_add_set(c->stacks, r->faults->insides);
    if (r->prototype) {
        g_ptr_array_add(protos, r->prototype);
    }
    return !r->spec->condition ||
           kt_call_condition_compile(c, r->spec->condition, KT_CALL_AT_FAULT,
                                     &r->faults->gfp, &functions, errp);
}

/* --task: a number is a process, anything else a name. */
static void set_task(KtRule *r)
{
    const char *task = r->spec->task;
    char *end = NULL;
    unsigned long pid = task ? strtoul(task, &end, 10) : 0;

    r->task_name = r->task_child = -1;
    if (task && g_ascii_isdigit(*task) && !*end && pid <= INT32_MAX) {
        r->task_child = kt_task_filter_add_process(r->condition->tasks, pid);
    } else if (task) {
        r->task_name = kt_task_filter_add_name(r->condition->tasks, task);
    }
}

static bool has_no_error(const KtFaultFunction *f, GError **errp)
{
    return fail(errp, "%s: ka does not know what this function returns when "
                "it fails (no prototype, or a type of many meanings); add "
                "--return VALUE", f->name);
}

static bool check_kind(const KtRule *r, const KtFaultFunction *f, GError **errp)
{
    bool force = r->spec->force;

    if (r->spec->action != KT_FAULT_DO_FAIL) {
        return true;
    }
    if (f->kind == KT_FAILS_VOID && !force) {
        return fail(errp, "%s returns nothing, so a failed call would only be "
                    "a call that is missing; --force makes it so", f->name);
    }
    if (is_copy(f->name) && !force) {
        return fail(errp, "%s is a copy that the compiler made: its arguments "
                    "and its result may differ from the function's; --force "
                    "uses it nevertheless", f->name);
    }
    if (f->kind == KT_FAILS_UNKNOWN && !r->has_value) {
        return has_no_error(f, errp);
    }
    return !r->has_value || force || kt_fault_fits(f, r->value) ||
           fail(errp, "--return %s: %s returns %s%.0u, which cannot be this "
                "value", r->spec->value, f->name,
                f->kind == KT_FAILS_FALSE ? "true or false" :
                                            "a number of fewer bits", f->bits);
}

static bool check_set(const KtRule *r, GError **errp)
{
    const char *what = r->spec->what;
    g_autofree char *sets = NULL;

    if (!kt_function_set_find(what)) {
        sets = kt_function_set_names();
        return fail(errp, "%s: no such set; there are %s", what, sets);
    }
    return r->functions->len ||
           fail(errp, "%s: no function of this set in this kernel has a known "
                "error; --return VALUE names one, and --force includes "
                "functions that return nothing", what);
}

static bool check_module(const char *what, const GsKernel *k, GError **errp)
{
    g_autofree char *expected = kt_code_missing(k, what);

    return !expected || fail(errp, "%s: expected %s", what, expected);
}

static bool check_function(const char *what, const GsKernel *k, GError **errp)
{
    g_auto(GStrv) near = NULL;
    g_autofree char *list = NULL;
    GsSymbol sym;

    if (k && strchr(what, ':')) {
        return check_module(what, k, errp);
    }
    if (!k || gs_kernel_lookup(k, what, &sym)) {
        return true;
    }
    near = gs_kernel_suggest(k, what, 3);
    list = g_strjoinv(", ", near);
    return fail(errp, "%s: no such point, and no function of this kernel%s%s;"
                " ka fault points lists the points", what,
                near[0] ? "; near it: " : "", list);
}

/* Return true if the running kernel has the function, or it is not known. */
static bool check_exists(const KtRule *r, const GsKernel *k, GError **errp)
{
    const char *what = r->spec->what;

    if (is_set(r)) {
        return check_set(r, errp);
    }
    if (kt_fault_point_known(what)) {
        return r->functions->len ||
               fail(errp, "%s: this kernel has none of the functions of this "
                    "point, see ka fault points", what);
    }
    if (strpbrk(what, "*?,@")) {
        return fail(errp, "%s: a rule is about one point, one @set or one "
                    "function", what);
    }
    return check_function(what, k, errp);
}

static bool set_value(KtRule *r, GError **errp)
{
    g_autoptr(GError) why = NULL;

    if (!r->spec->value) {
        return true;
    }
    r->has_value = kt_constant_value(r->spec->value, &r->faults->gfp,
                                     &r->value, &why);
    return r->has_value || fail(errp, "--return: %s", why->message);
}

/* Which functions of a set are meant is not known before the kernel is. */
static bool check_functions(const KtRule *r, const GsKernel *k, GError **errp)
{
    if (is_set(r) && !k) {
        return true;
    }
    for (unsigned i = 0; i < r->functions->len; i++) {
        const KtFaultFunction *f = &g_array_index(r->functions,
                                                  KtFaultFunction, i);

        if (!f->forks && !check_kind(r, f, errp)) {
            return false;
        }
    }
    return true;
}

/* ---- functions of modules ------------------------------------------------ */

/* (owned) List those of @found whose name is @name, without doubles. */
static GPtrArray *names_in_modules(const GArray *found, const char *name)
{
    GPtrArray *list = g_ptr_array_new_with_free_func(g_free);

    for (unsigned i = 0; i < found->len; i++) {
        const KtFoundFunction *f = &g_array_index(found, KtFoundFunction, i);
        char *full = f->module && !strcmp(f->name, name) ?
                     g_strdup_printf("%s:%s", f->module, name) : NULL;

        if (full && g_ptr_array_find_with_equal_func(list, full, g_str_equal,
                                                     NULL)) {
            g_clear_pointer(&full, g_free);
        }
        if (full) {
            g_ptr_array_add(list, full);
        }
    }
    return list;
}

static bool kernel_has(const GsKernel *k, const char *name)
{
    GsSymbol sym;

    return gs_kernel_lookup(k, name, &sym) && !sym.module;
}

/* Return true if @what can only be a function of a module. */
static bool is_of_module(const char *what, const GsKernel *k)
{
    return !strpbrk(what, ":*?,@") && !kt_fault_point_known(what) &&
           !kernel_has(k, what);
}

/* Write the module to the name of a function that only one module has. */
static bool add_module(KtFaultSpec *s, const GsKernel *k, GError **errp)
{
    g_autoptr(GArray) found = kt_found_functions_new();
    g_autoptr(GPtrArray) names = NULL;
    g_autofree char *list = NULL;

    if (!k || !is_of_module(s->what, k) ||
        !kt_point_match(k, s->what, found, NULL)) {
        return true;
    }
    names = names_in_modules(found, s->what);
    if (names->len == 1) {
        g_free((char *)s->what);
        s->what = g_strdup(names->pdata[0]);
    } else if (names->len) {
        g_ptr_array_add(names, NULL);
        list = g_strjoinv(", ", (char **)names->pdata);
        return fail(errp, "%s: several modules have this function; name one: "
                    "%s", s->what, list);
    }
    return true;
}

static bool find_name(KtFaultSpec *s, const GsKernel *k, GError **errp)
{
    char *what = *s->what == '@' ? g_strdup(s->what) :
                                   kt_code_function(s->what);

    g_free((char *)s->what);
    s->what = what;
    return add_module(s, k, errp);
}

KtRule *kt_rule_new(KtFaults *f, const GsKernel *k, const KtFaultSpec *spec,
                    GError **errp)
{
    KtRule *r = g_new0(KtRule, 1);

    r->faults = f;
    r->spec = kt_fault_spec_copy(spec);
    r->condition = kt_call_condition_new(f->budget, KT_MEM_FAULTS,
                                         sizeof(KtRuleCount));
    if (!find_name(r->spec, k, errp)) {
        kt_fault_rule_free(r);
        return NULL;
    }
    kt_rule_find_functions(r, k);
    set_task(r);
    if (!check_exists(r, k, errp) || !set_value(r, errp) ||
        !set_condition(r, k, errp) || !check_functions(r, k, errp)) {
        kt_fault_rule_free(r);
        return NULL;
    }
    kt_rule_find_functions(r, k);       /* the condition may need forks */
    return r;
}

void kt_fault_rule_free(void *rule)
{
    KtRule *r = rule;

    kt_fault_spec_unref(r->spec);
    kt_call_condition_free(r->condition);
    g_clear_pointer(&r->prototype, gs_prototype_free);
    g_clear_pointer(&r->functions, g_array_unref);
    g_free(r);
}
