/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of conditions about calls: see call-names.h. */
#include "kalloc-tracer/conditions/call-names.h"

#include <stdlib.h>
#include <string.h>

enum {
    ANY = 7,
    FAULT = 1 << KT_CALL_AT_FAULT,
    RETURN = 1 << KT_CALL_AT_RETURN,
};

static const struct {
    const char *name, *help;
    unsigned when;              /* bits by KtCallWhen */
} variables[KT_CALL_VAR__COUNT] = {
#define KT_CALL_VARIABLE(id, name, when, help) { name, help, when },
#include "kalloc-tracer/conditions/call-variables.def"
};

static const char *const functions[] = {
    "stack", "caller", "mod", "task", "child", "cache",
};

const char *kt_call_variable_name(KtCallVariable v)
{
    return variables[v].name;
}

const char *kt_call_variable_help(KtCallVariable v)
{
    return variables[v].help;
}

/* ---- names -------------------------------------------------------------- */

int kt_call_variable_find(const char *name, KtCallWhen when)
{
    for (unsigned i = 0; i < KT_CALL_VAR__COUNT; i++) {
        if (variables[i].when >> when & 1 && !strcmp(name, variables[i].name)) {
            return i;
        }
    }
    return -1;
}

static bool find(void *opaque, const char *name, KtConditionName *out)
{
    const KtCallNames *n = opaque;
    int var = n->arg ? n->arg(n->opaque, name) : -1;

    *out = (KtConditionName) { 0 };
    if (var < 0 || (var > KT_CALL_VAR_ARG7 && var < (int)KT_CALL_NAMED_ARG)) {
        var = kt_call_variable_find(name, n->when);
    }
    if (var >= 0) {
        out->var = var;
        return true;
    }
    out->constant = true;
    return kt_constant_find(n->gfp, name, &out->value);
}

static void each(void *opaque, KtConditionOffer *offer, void *to)
{
    const KtCallNames *n = opaque;

    for (unsigned i = 0; i < KT_CALL_VAR__COUNT; i++) {
        if (variables[i].when >> n->when & 1) {
            offer(to, variables[i].name);
        }
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(functions); i++) {
        offer(to, functions[i]);
    }
    if (n->each_arg) {
        n->each_arg(n->opaque, offer, to);
    }
    kt_constant_each(offer, to);
}

/* ---- functions ---------------------------------------------------------- */

/* Set the variable number @at of those that begin with @base. */
static bool number(KtConditionName *out, unsigned base, int at, char **why)
{
    if (at < 0) {
        *why = g_strdup("fewer of these in one condition");
        return false;
    }
    *out = (KtConditionName) { .var = base + at };
    return true;
}

static bool call_stack(KtCallNames *n, const char *arg, KtConditionName *out,
                       char **why)
{
    bool module = g_str_has_prefix(arg, "mod:");

    return number(out, KT_CALL_STACK_RULE,
                  kt_stack_rules_add(n->stacks,
                                     module ? KT_STACK_MODULE : KT_STACK_FRAME,
                                     module ? arg + 4 : arg), why);
}

static bool call_child(KtCallNames *n, const char *arg, KtConditionName *out,
                       char **why)
{
    char *end;
    unsigned long pid = strtoul(arg, &end, 10);

    if (!g_ascii_isdigit(*arg) || *end || !pid || pid > INT32_MAX) {
        *why = g_strdup("the pid of a process, in decimal");
        return false;
    }
    return number(out, KT_CALL_TASK_CHILD,
                  kt_task_filter_add_process(n->tasks, pid), why);
}

static bool call_cache(KtCallNames *n, const char *arg, KtConditionName *out,
                       char **why)
{
    if (n->caches->len == KT_CALL_CACHES_MAX) {
        return number(out, 0, -1, why);
    }
    g_ptr_array_add(n->caches, g_pattern_spec_new(arg));
    return number(out, KT_CALL_CACHE, n->caches->len - 1, why);
}

static bool call(void *opaque, const char *function, const char *arg,
                 KtConditionName *out, char **why)
{
    KtCallNames *n = opaque;

    if (!strcmp(function, "stack")) {
        return call_stack(n, arg, out, why);
    }
    if (!strcmp(function, "caller") || !strcmp(function, "mod")) {
        return number(out, KT_CALL_STACK_RULE, kt_stack_rules_add(n->stacks,
                      *function == 'c' ? KT_STACK_CALLER :
                                         KT_STACK_CALLER_MODULE, arg), why);
    }
    if (!strcmp(function, "task")) {
        return number(out, KT_CALL_TASK_NAME,
                      kt_task_filter_add_name(n->tasks, arg), why);
    }
    if (!strcmp(function, "child")) {
        return call_child(n, arg, out, why);
    }
    return !strcmp(function, "cache") && n->caches &&
           call_cache(n, arg, out, why);
}

KtCondition *kt_call_condition_new(const char *text, KtCallNames *names,
                                   GError **errp)
{
    return kt_condition_new(text, &(KtConditionNames) {
        .find = find, .call = call, .each = each, .opaque = names }, errp);
}

/* ---- constants ---------------------------------------------------------- */

static bool find_constant(void *opaque, const char *name, KtConditionName *out)
{
    *out = (KtConditionName) { .constant = true };
    return kt_constant_find(opaque, name, &out->value);
}

static void each_constant(void *opaque, KtConditionOffer *offer, void *to)
{
    kt_constant_each(offer, to);
}

static int64_t no_variable(void *opaque, unsigned var, bool *known)
{
    *known = false;
    return 0;
}

bool kt_constant_value(const char *text, const KtGfp *gfp, int64_t *value,
                       GError **errp)
{
    const KtConditionNames names = {
        .find = find_constant, .each = each_constant, .opaque = (void *)gfp,
    };
    g_autoptr(KtCondition) c = kt_condition_new(text, &names, errp);

    if (c && kt_condition_value(c, no_variable, NULL, value) >
                 KT_TRUTH_TRUE) {
        g_set_error_literal(errp, GS_ERROR, GS_ERROR_FORMAT,
                            "division by zero");
        return false;
    }
    return c;
}
