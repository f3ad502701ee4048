/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The condition of a request for call records: see watch-condition.h. */
#include "kalloc-tracer/calls/watch-condition.h"

#include <string.h>

#include "guest-symbols/api/gs-types.h"

#define GROW_BY     256u        /* counts that are charged at once */
#define STACKS_MAX  (1u << 16)

/* A name of an argument. @var: the variable of that name, -1: there is none */
typedef struct ArgName {
    char *name;
    int var;
} ArgName;

struct KtWatchCondition {
    KtCondition *code;
    bool at_return, has_stack;
    KtStackRules *stacks;
    KtTaskFilter *tasks;
    GArray *names;              /* of ArgName */
    KtBudget *budget;
    GMutex lock;                /* of @counts: hash of a stack -> calls */
    GHashTable *counts;
    unsigned charged;
};

/* ---- names --------------------------------------------------------------- */

typedef struct Compiler {
    KtWatchCondition *c;
    const KtWatchFunctions *functions;
    const KtGfp *gfp;
} Compiler;

static void clear_name(void *name)
{
    g_free(((ArgName *)name)->name);
}

/* Without the prototypes any name can be an argument, if it means nothing
 * else. */
static bool is_arg(const Compiler *k, const char *name, int var)
{
    int64_t value;

    return kt_watch_functions_has_arg(k->functions, name) &&
           !(k->functions->pending &&
             (var >= 0 || kt_constant_find(k->gfp, name, &value)));
}

static int find_arg(void *opaque, const char *name)
{
    const Compiler *k = opaque;
    GArray *names = k->c->names;
    ArgName new = { .var = kt_call_variable_find(name, KT_CALL_AT_RETURN) };

    if (!is_arg(k, name, new.var) || names->len == KT_CALL_NAMED_ARGS_MAX) {
        return -1;
    }
    new.name = g_strdup(name);
    g_array_append_val(names, new);
    return KT_CALL_NAMED_ARG + names->len - 1;
}

static void each_arg(void *opaque, KtConditionOffer *offer, void *to)
{
    const Compiler *k = opaque;

    for (unsigned i = 0; i < k->functions->protos->len; i++) {
        const GsPrototype *p = k->functions->protos->pdata[i];
        const GsParam *param;

        for (unsigned j = 0; (param = gs_prototype_param(p, j)); j++) {
            if (param->name) {
                offer(to, param->name);
            }
        }
    }
}

static bool compile(KtWatchCondition *c, const char *text,
                    const KtWatchFunctions *functions, const GsKernel *k,
                    GError **errp)
{
    const KtGfp gfp = kt_gfp_find(k);
    Compiler compiler = { c, functions, &gfp };
    KtCallNames names = {
        .when = KT_CALL_AT_RETURN, .gfp = &gfp, .arg = find_arg,
        .each_arg = each_arg, .opaque = &compiler, .stacks = c->stacks,
        .tasks = c->tasks,
    };

    c->code = kt_call_condition_new(text, &names, errp);
    return c->code;
}

/* ---- the object ---------------------------------------------------------- */

static void find_needs(KtWatchCondition *c)
{
    static const KtCallVariable of_result[] = {
        KT_CALL_VAR_RET, KT_CALL_VAR_FAILED, KT_CALL_VAR_TOOK,
    };
    static const KtCallVariable of_stack[] = {
        KT_CALL_VAR_STACKID, KT_CALL_VAR_IN_INIT, KT_CALL_VAR_N,
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(of_result); i++) {
        c->at_return |= kt_condition_uses(c->code, of_result[i]);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(of_stack); i++) {
        c->has_stack |= kt_condition_uses(c->code, of_stack[i]);
    }
    for (unsigned i = 0; i < KT_STACK_RULES_MAX; i++) {
        c->has_stack |= kt_condition_uses(c->code, KT_CALL_STACK_RULE + i);
    }
}

KtWatchCondition *kt_watch_condition_new(const char *text,
                                         const KtWatchFunctions *functions,
                                         const GsKernel *k, KtBudget *budget,
                                         GError **errp)
{
    KtWatchCondition *c = g_new0(KtWatchCondition, 1);

    c->budget = budget;
    c->stacks = kt_stack_rules_new(budget);
    c->tasks = kt_task_filter_new();
    c->names = g_array_new(false, false, sizeof(ArgName));
    g_array_set_clear_func(c->names, clear_name);
    c->counts = g_hash_table_new_full(gs_number_hash, g_int64_equal, g_free,
                                      NULL);
    g_mutex_init(&c->lock);
    if (!compile(c, text, functions, k, errp)) {
        kt_watch_condition_free(c);
        return NULL;
    }
    find_needs(c);
    return c;
}

static uint64_t bytes_of(unsigned counts)
{
    return counts * (sizeof(uint64_t) + 3 * sizeof(void *));
}

void kt_watch_condition_free(KtWatchCondition *c)
{
    if (!c) {
        return;
    }
    kt_budget_release(c->budget, KT_MEM_CALLS, bytes_of(c->charged));
    kt_condition_free(c->code);
    kt_stack_rules_free(c->stacks);
    kt_task_filter_free(c->tasks);
    g_array_unref(c->names);
    g_hash_table_destroy(c->counts);
    g_mutex_clear(&c->lock);
    g_free(c);
}

const char *kt_watch_condition_text(const KtWatchCondition *c)
{
    return kt_condition_text(c->code);
}

bool kt_watch_condition_at_return(const KtWatchCondition *c)
{
    return c->at_return;
}

bool kt_watch_condition_has_stack(const KtWatchCondition *c)
{
    return c->has_stack;
}

/* ---- counts -------------------------------------------------------------- */

/* The lock is held. */
static bool has_room(KtWatchCondition *c)
{
    if (g_hash_table_size(c->counts) < c->charged) {
        return true;
    }
    if (c->charged >= STACKS_MAX ||
        !kt_budget_take(c->budget, KT_MEM_CALLS, bytes_of(GROW_BY))) {
        return false;
    }
    c->charged += GROW_BY;
    return true;
}

/* Count a call of a stack. Return 0 if there is no room for another stack. */
static uintptr_t count_locked(KtWatchCondition *c, uint64_t hash)
{
    uintptr_t n = (uintptr_t)g_hash_table_lookup(c->counts, &hash) + 1;

    if (n == 1 && !has_room(c)) {
        return 0;
    }
    g_hash_table_replace(c->counts, g_memdup2(&hash, sizeof(hash)),
                         (void *)n);
    return n;
}

static bool fetch_n(KtWatchCondition *c, KtCallValues *v, int64_t *out)
{
    if (!kt_call_need_stack(v)) {
        return false;
    }
    g_mutex_lock(&c->lock);
    *out = count_locked(c, v->facts.hash);
    g_mutex_unlock(&c->lock);
    return *out;
}

/* ---- evaluation ---------------------------------------------------------- */

typedef struct Evaluation {
    KtWatchCondition *c;
    const KtWatchFacts *f;
    KtCallValues v;
} Evaluation;

static bool fetch_named(Evaluation *e, unsigned i, int64_t *out)
{
    const ArgName *name = &g_array_index(e->c->names, ArgName, i);
    int arg = e->f->proto ? gs_prototype_find(e->f->proto, name->name) : -1;

    if (arg >= 0) {
        return kt_call_arg(&e->v, arg, out);
    }
    return name->var >= 0 && kt_call_value(&e->v, name->var, out);
}

static int64_t fetch(void *opaque, unsigned var, bool *known)
{
    Evaluation *e = opaque;
    const KtCall *call = e->f->call;
    int64_t value = 0;

    switch (var) {
    case KT_CALL_VAR_RET:
        return call->result;
    case KT_CALL_VAR_FAILED:
        return kt_call_failed(e->f->proto, call->result);
    case KT_CALL_VAR_TOOK:
        return call->took_ns / 1000;
    case KT_CALL_VAR_N:
        *known = fetch_n(e->c, &e->v, &value);
        return value;
    default:
        *known = var >= KT_CALL_NAMED_ARG ?
                     fetch_named(e, var - KT_CALL_NAMED_ARG, &value) :
                     kt_call_value(&e->v, var, &value);
        return value;
    }
}

bool kt_call_failed(const GsPrototype *proto, uint64_t result)
{
    uint32_t low = result;

    if (proto) {
        return gs_param_failed(gs_prototype_result(proto), result);
    }
    return result >= (uint64_t)-4095 ||
           (result <= UINT32_MAX && low >= (uint32_t)-4095);
}

KtAnswer kt_watch_condition_eval(KtWatchCondition *c, const KtWatchFacts *f)
{
    const KtCallScope scope = { c->stacks, c->tasks, f->layout };
    Evaluation e = {
        .c = c, .f = f,
        .v = {
            .ops = f->ops, .opaque = f->opaque, .scope = &scope,
            .kernel = f->kernel, .proto = f->proto, .ra = f->call->caller,
            .sp = f->sp, .us = f->call->start_ns / 1000, .cpu = f->call->cpu,
        },
    };

    switch (kt_condition_eval(c->code, fetch, &e)) {
    case KT_TRUTH_TRUE:
        return KT_YES;
    case KT_TRUTH_FALSE:
        return KT_NO;
    default:
        return KT_UNKNOWN;
    }
}
