/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The names that conditions about calls have: see call-condition.h. */
#include <stdlib.h>
#include <string.h>

#include "kalloc-tracer/api/kt-derefs.h"
#include "kalloc-tracer/conditions/call-condition.h"
#include "kalloc-tracer/conditions/code-names.h"

enum {
    FAULT = 1 << KT_CALL_AT_FAULT,
    RETURN = 1 << KT_CALL_AT_RETURN,
    ANY = FAULT | RETURN,
};

static const struct {
    const char *name, *help;
    unsigned when;              /* bits by KtCallWhen */
} variables[KT_CALL_VAR__COUNT] = {
#define KT_CALL_VARIABLE(id, name, when, help) { name, help, when },
#include "kalloc-tracer/conditions/call-variables.def"
};

/** struct Function - a function of conditions; @base: the first of its
 *  variables; @kind: of a stack rule */
typedef struct Function {
    const char *name;
    unsigned base;
    KtStackRuleKind kind;
} Function;

static const Function functions[] = {
    { "stack", KT_CALL_STACK_RULE, KT_STACK_FRAME },
    { "caller", KT_CALL_STACK_RULE, KT_STACK_CALLER },
    { "mod", KT_CALL_STACK_RULE, KT_STACK_CALLER_MODULE },
    { "task", KT_CALL_TASK_NAME, 0 },
    { "child", KT_CALL_TASK_CHILD, 0 },
    { "cache", KT_CALL_CACHE, 0 },
};

const char *kt_call_variable_name(KtCallVariable v)
{
    return variables[v].name;
}

const char *kt_call_variable_help(KtCallVariable v)
{
    return variables[v].help;
}

/* (nullable) Find a function. */
static const Function *find_function(const char *name)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(functions); i++) {
        if (!strcmp(functions[i].name, name)) {
            return &functions[i];
        }
    }
    return NULL;
}

/* ---- the object --------------------------------------------------------- */

static void clear_name(void *name)
{
    g_free(((KtCallName *)name)->name);
}

KtCallCondition *kt_call_condition_new(KtBudget *budget, KtMemoryPart part,
                                       size_t bytes)
{
    KtCallCondition *c = g_new0(KtCallCondition, 1);

    c->stacks = kt_stack_rules_new(budget, part);
    c->tasks = kt_task_filter_new();
    c->caches = g_ptr_array_new_with_free_func(g_free);
    c->names = g_array_new(false, false, sizeof(KtCallName));
    g_array_set_clear_func(c->names, clear_name);
    kt_stack_table_init(&c->counts, budget, part, bytes);
    return c;
}

void kt_call_condition_free(KtCallCondition *c)
{
    if (c) {
        kt_condition_free(c->code);
        kt_stack_rules_free(c->stacks);
        kt_task_filter_free(c->tasks);
        g_ptr_array_unref(c->caches);
        g_array_unref(c->names);
        kt_stack_table_deinit(&c->counts);
    }
    g_free(c);
}

/* ---- names -------------------------------------------------------------- */

/** struct Compiler - a condition on its way */
typedef struct Compiler {
    KtCallCondition *c;
    KtCallWhen when;
    const KtGfp *gfp;
    const KtCallFunctions *f;
} Compiler;

static int find_variable(const char *name, KtCallWhen when)
{
    for (unsigned i = 0; i < KT_CALL_VAR__COUNT; i++) {
        if (variables[i].when >> when & 1 && !strcmp(name, variables[i].name)) {
            return i;
        }
    }
    return -1;
}

/* Return the place of an argument in the functions that have it, -1: none has
 * it. */
static int find_place(const KtCallFunctions *f, const char *name)
{
    int at = -1;

    for (unsigned i = 0; at < 0 && i < f->protos->len; i++) {
        at = gs_prototype_find(f->protos->pdata[i], name);
    }
    return at;
}

/* Add the name of an argument; return its variable, -1: it is no argument.
 * Without the prototypes any name can be one, if it means nothing else. */
static int add_name(const Compiler *k, const char *name, int place)
{
    KtCallName new = { .var = find_variable(name, k->when) };
    GArray *names = k->c->names;
    int64_t value;

    if (names->len == KT_CALL_NAMES_MAX || (place < 0 && !k->f->pending) ||
        (k->f->pending &&
         (new.var >= 0 || kt_constant_find(k->gfp, name, &value)))) {
        return -1;
    }
    new.name = g_strdup(name);
    g_array_append_val(names, new);
    return KT_CALL_NAMED_ARG + names->len - 1;
}

static int find_arg(const Compiler *k, const char *name)
{
    int place = find_place(k->f, name);

    if (k->when == KT_CALL_AT_RETURN) {
        return add_name(k, name, place);
    }
    return place <= KT_CALL_VAR_ARG7 ? place : -1;
}

static bool find(void *opaque, const char *name, KtConditionName *out)
{
    const Compiler *k = opaque;
    int var = find_arg(k, name);

    var = var < 0 ? find_variable(name, k->when) : var;
    *out = (KtConditionName) { .constant = var < 0, .var = MAX(var, 0) };
    return var >= 0 || kt_constant_find(k->gfp, name, &out->value);
}

static void each_arg(const GsPrototype *p, KtConditionOffer *offer, void *to)
{
    const GsParam *param;

    for (unsigned i = 0; (param = gs_prototype_param(p, i)); i++) {
        if (param->name) {
            offer(to, param->name);
        }
    }
}

static void each(void *opaque, KtConditionOffer *offer, void *to)
{
    const Compiler *k = opaque;

    for (unsigned i = 0; i < KT_CALL_VAR__COUNT; i++) {
        if (variables[i].when >> k->when & 1) {
            offer(to, variables[i].name);
        }
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(functions); i++) {
        offer(to, functions[i].name);
    }
    for (unsigned i = 0; i < k->f->protos->len; i++) {
        each_arg(k->f->protos->pdata[i], offer, to);
    }
    kt_constant_each(offer, to);
}

/* ---- functions ---------------------------------------------------------- */

static int add_child(KtCallCondition *c, const char *arg, char **why)
{
    char *end;
    unsigned long pid = strtoul(arg, &end, 10);

    if (!g_ascii_isdigit(*arg) || *end || !pid || pid > INT32_MAX) {
        *why = g_strdup("the pid of a process, in decimal");
        return -1;
    }
    return kt_task_filter_add_process(c->tasks, pid);
}

static int add_cache(KtCallCondition *c, const char *arg)
{
    if (c->caches->len == KT_CALL_NAMES_MAX) {
        return -1;
    }
    g_ptr_array_add(c->caches, g_strdup(arg));
    return c->caches->len - 1;
}

/* (nullable) Return the module that a stack rule is about. */
static const char *find_module(const Function *f, const char *arg)
{
    if (f->kind == KT_STACK_CALLER_MODULE) {
        return arg;
    }
    return f->kind == KT_STACK_FRAME && g_str_has_prefix(arg, "mod:") ?
           arg + strlen("mod:") : NULL;
}

static int add_stack_rule(const Compiler *k, const Function *f,
                          const char *arg, char **why)
{
    const char *module = find_module(f, arg);
    g_autofree char *name = module ? kt_code_module(module, strlen(module)) :
                                     kt_code_function(arg);

    *why = k->f->kernel && !module ? kt_code_missing(k->f->kernel, name) :
                                     NULL;
    return *why ? -1 :
           kt_stack_rules_add(k->c->stacks, module &&
                              f->kind == KT_STACK_FRAME ? KT_STACK_MODULE :
                                                          f->kind, name);
}

/* Return the number of the function's variable, -1: there is none. */
static int add_call(const Compiler *k, const Function *f, const char *arg,
                    char **why)
{
    KtCallCondition *c = k->c;

    switch (f->base) {
    case KT_CALL_STACK_RULE:
        return add_stack_rule(k, f, arg, why);
    case KT_CALL_TASK_NAME:
        return kt_task_filter_add_name(c->tasks, arg);
    case KT_CALL_TASK_CHILD:
        return add_child(c, arg, why);
    default:
        return add_cache(c, arg);
    }
}

static bool call(void *opaque, const char *function, const char *arg,
                 KtConditionName *out, char **why)
{
    const Compiler *k = opaque;
    const Function *f = find_function(function);
    int at;

    if (!f || (f->base == KT_CALL_CACHE && k->when != KT_CALL_AT_FAULT)) {
        return false;
    }
    at = add_call(k, f, arg, why);
    if (at < 0 && !*why) {
        *why = g_strdup("fewer of these in one condition");
    }
    *out = (KtConditionName) { .var = f->base + at };
    return at >= 0;
}

/* ---- compiling ---------------------------------------------------------- */

static void find_needs(KtCallCondition *c)
{
    static const KtCallVariable of_stack[] = {
        KT_CALL_VAR_STACKID, KT_CALL_VAR_IN_INIT, KT_CALL_VAR_N,
    };

    c->at_return = kt_condition_uses(c->code, KT_CALL_VAR_RET) ||
                   kt_condition_uses(c->code, KT_CALL_VAR_FAILED) ||
                   kt_condition_uses(c->code, KT_CALL_VAR_TOOK);
    for (unsigned i = 0; i < G_N_ELEMENTS(of_stack); i++) {
        c->has_stack |= kt_condition_uses(c->code, of_stack[i]);
    }
    for (unsigned i = 0; i < KT_STACK_RULES_MAX; i++) {
        c->has_stack |= kt_condition_uses(c->code, KT_CALL_STACK_RULE + i);
    }
}

bool kt_call_condition_compile(KtCallCondition *c, const char *text,
                               KtCallWhen when, const KtGfp *gfp,
                               const KtCallFunctions *f, GError **errp)
{
    Compiler k = { c, when, gfp, f };

    c->code = kt_condition_new(text, &(KtConditionNames) {
        .find = find, .call = call, .each = each, .opaque = &k }, errp);
    if (c->code) {
        find_needs(c);
    }
    return c->code;
}

/* ---- without a function ------------------------------------------------- */

static bool find_constant(void *gfp, const char *name, KtConditionName *out)
{
    *out = (KtConditionName) { .constant = true };
    return kt_constant_find(gfp, name, &out->value);
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

/* Names of arguments and variables are in lower case, constants in upper
 * case. */
static bool find_any(void *gfp, const char *name, KtConditionName *out)
{
    return find_constant(gfp, name, out) || !g_ascii_isupper(*name);
}

static bool call_any(void *opaque, const char *function, const char *arg,
                     KtConditionName *out, char **why)
{
    *out = (KtConditionName) { .var = 0 };
    return find_function(function);
}

/** struct Waits - a search; @list: names of modules that are not loaded */
typedef struct Waits {
    const GsKernel *k;
    GPtrArray *list;
} Waits;

static bool find_no_matter(void *opaque, const char *name, KtConditionName *out)
{
    *out = (KtConditionName) { .var = 0 };
    return true;
}

static void add_waiting(Waits *w, const char *module)
{
    if (!kt_code_is_loaded(w->k, module) &&
        !g_ptr_array_find_with_equal_func(w->list, module, g_str_equal, NULL)) {
        g_ptr_array_add(w->list, g_strdup(module));
    }
}

static bool call_waits(void *opaque, const char *function, const char *arg,
                       KtConditionName *out, char **why)
{
    const Function *f = find_function(function);

    *out = (KtConditionName) { .var = 0 };
    if (f && f->base == KT_CALL_STACK_RULE) {
        const char *module = find_module(f, arg);
        g_autofree char *name = module ? kt_code_module(module,
                                                        strlen(module)) :
                                         kt_code_function(arg);
        char *colon = module ? NULL : strchr(name, ':');

        if (module || colon) {
            *(colon ? colon : name + strlen(name)) = 0;
            add_waiting(opaque, name);
        }
    }
    return true;
}

char *kt_condition_waits(const char *text, const GsKernel *k)
{
    g_autoptr(GPtrArray) list = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(KtCondition) c = kt_condition_new(text, &(KtConditionNames) {
        .find = find_no_matter, .call = call_waits,
        .opaque = &(Waits) { k, list } }, NULL);

    g_ptr_array_add(list, NULL);
    return c && list->len > 1 ? g_strjoinv(", ", (char **)list->pdata) : NULL;
}

bool kt_condition_check(const char *text, GError **errp)
{
    KtGfp gfp = kt_gfp_find(NULL);
    g_autoptr(KtCondition) c = kt_condition_new(text, &(KtConditionNames) {
        .find = find_any, .call = call_any, .each = each_constant,
        .opaque = &gfp }, errp);

    return c;
}
