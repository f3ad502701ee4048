/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Call names: the names that conditions about calls have in common, for
 * `ka fault` and `ka calls`.
 *
 * The compiled condition has variables of these numbers:
 *
 *     KtCallVariable                       a row of call-variables.def
 *     KT_CALL_STACK_RULE + i               rule i of the stack rules
 *     KT_CALL_TASK_NAME + i                pattern i of the task filter
 *     KT_CALL_TASK_CHILD + i               process i of the task filter
 *     KT_CALL_CACHE + i                    name i of the caches
 *     KT_CALL_NAMED_ARG + i                what @arg chose for a name
 */
#ifndef KT_CALL_NAMES_H
#define KT_CALL_NAMES_H

#include "kalloc-tracer/conditions/condition.h"
#include "kalloc-tracer/conditions/constants.h"
#include "kalloc-tracer/conditions/stack-rules.h"
#include "kalloc-tracer/conditions/task-filter.h"

typedef enum KtCallVariable {
#define KT_CALL_VARIABLE(id, ...) KT_CALL_VAR_##id,
#include "kalloc-tracer/conditions/call-variables.def"
    KT_CALL_VAR__COUNT
} KtCallVariable;

#define KT_CALL_STACK_RULE  0x100u
#define KT_CALL_TASK_NAME   0x200u
#define KT_CALL_TASK_CHILD  0x300u
#define KT_CALL_CACHE       0x400u
#define KT_CALL_CACHES_MAX  16
#define KT_CALL_NAMED_ARG   0x500u
#define KT_CALL_NAMED_ARGS_MAX 16

/** Where a condition is evaluated. */
typedef enum KtCallWhen {
    KT_CALL_AT_FAULT,           /* at the entry, for ka fault */
    KT_CALL_AT_ENTRY,
    KT_CALL_AT_RETURN,
} KtCallWhen;

/**
 * struct KtCallNames - what a condition is compiled with
 * @when: which names there are
 * @gfp: (borrowed) the kernel's GFP flags
 * @arg: (nullable) find an argument by its name. Returns: its position, or
 *       KT_CALL_NAMED_ARG + i if the position differs between functions; -1:
 *       none. @opaque is passed to it
 * @each_arg: (nullable) offer the names of arguments
 * @stacks, @tasks: (borrowed) get the rules that the condition needs
 * @caches: (borrowed, nullable) get the GPatternSpec of cache("name")
 */
typedef struct KtCallNames {
    KtCallWhen when;
    const KtGfp *gfp;
    int (*arg)(void *opaque, const char *name);
    void (*each_arg)(void *opaque, KtConditionOffer *offer, void *to);
    void *opaque;
    KtStackRules *stacks;
    KtTaskFilter *tasks;
    GPtrArray *caches;
} KtCallNames;

/** kt_call_condition_new() - (owned) Compile a condition about a call. @errp:
 *  one line, as kt_condition_new(). */
KtCondition *kt_call_condition_new(const char *text, KtCallNames *names,
                                   GError **errp);

/** kt_call_variable_name() - (static) Return the name of a row;
 *  kt_call_variable_help() its help. */
const char *kt_call_variable_name(KtCallVariable v);
const char *kt_call_variable_help(KtCallVariable v);

/** kt_call_variable_find() - Return the row of a name; -1 if conditions of
 *  @when have none of that name. */
int kt_call_variable_find(const char *name, KtCallWhen when);

/** kt_constant_value() - Evaluate an expression of constants, for example
 *  "-ENOMEM". @errp: one line. Returns: false if it is none. */
bool kt_constant_value(const char *text, const KtGfp *gfp, int64_t *value,
                       GError **errp);

#endif /* KT_CALL_NAMES_H */
