/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Condition: an expression about a call, compiled once and evaluated at each
 * call. `ka fault add --if` and `ka calls add --if` use it. QEMU-free.
 *
 *     expr    = logic [ "?" expr ":" expr ]
 *     logic   = binary operators of C, with the precedence of C:
 *               ||  &&  |  ^  &  == = !=  < <= > >=  << >>  + -  * / %
 *     unary   = { "!" | "~" | "-" | "+" } primary
 *     primary = number | name | name "(" argument ")" | "(" expr ")"
 *     number  = decimal or 0x..., with k (1024) or M (1024 * 1024) behind it
 *     argument = "text" or a word of letters, digits, "_.:*?-[]"
 *
 * "=" means "==", since nothing can be assigned. Values are int64_t and wrap.
 * A shift uses the low 6 bits of its count; ">>" copies the sign. "&&", "||"
 * and "?:" evaluate only what they need.
 *
 * What a name means is up to the user of this file: KtConditionNames. There are
 * no loops, so an evaluation takes at most KT_CONDITION_OPS operators.
 */
#ifndef KT_CONDITION_H
#define KT_CONDITION_H

#include "kalloc-tracer/api/kt-types.h"

/* Operators, words of code, and values that are on the stack at once. */
#define KT_CONDITION_OPS    64
#define KT_CONDITION_CODE   192
#define KT_CONDITION_STACK  16
/* Bytes of a condition's text, and of a name or an argument. */
#define KT_CONDITION_TEXT   1024
#define KT_CONDITION_WORD   128

typedef struct KtCondition KtCondition;

/** struct KtConditionName - what a name or a call stands for
 *  @constant: it is @value; otherwise it is the variable number @var */
typedef struct KtConditionName {
    bool constant;
    int64_t value;
    unsigned var;
} KtConditionName;

/** KtConditionOffer - Offer a name that would be right */
typedef void KtConditionOffer(void *to, const char *name);

/**
 * struct KtConditionNames - the names that a condition may use
 * @find: find a name. Returns: false if there is none
 * @call: (nullable) find the value of a function with an argument, as a
 *        variable. Returns: false if there is no such function, or @arg is not
 *        right for it; then *@why (owned by the caller) says what is expected
 *        instead of the argument, NULL for no such function
 * @each: (nullable) offer all names and functions, for "did you mean"
 * @opaque: passed to all of them
 */
typedef struct KtConditionNames {
    bool (*find)(void *opaque, const char *name, KtConditionName *out);
    bool (*call)(void *opaque, const char *function, const char *arg,
                 KtConditionName *out, char **why);
    void (*each)(void *opaque, KtConditionOffer *offer, void *to);
    void *opaque;
} KtConditionNames;

/**
 * KtConditionFetch - Return the value of variable @var
 * @known: (out) true; set it to false if the value is not known
 *
 * Called at most once for each variable of an evaluation, when it is first
 * needed.
 */
typedef int64_t KtConditionFetch(void *opaque, unsigned var, bool *known);

/** enum KtTruth - the result of an evaluation. All but KT_TRUTH_TRUE count
 *  as false; the last two tell why. */
typedef enum KtTruth {
    KT_TRUTH_FALSE,
    KT_TRUTH_TRUE,
    KT_TRUTH_UNKNOWN,         /* a value that was needed is not known */
    KT_TRUTH_DIVIDED,         /* division by zero */
    KT_TRUTH__COUNT
} KtTruth;

/**
 * kt_condition_new() - Compile a condition
 * @text: (borrowed for the call) untrusted
 * @names: (borrowed for the call)
 * @errp: one line: the column, what is wrong, what was expected
 *
 * Returns: (owned) immutable, any thread may evaluate it; NULL on error.
 */
KtCondition *kt_condition_new(const char *text, const KtConditionNames *names,
                              GError **errp);
void kt_condition_free(KtCondition *c);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtCondition, kt_condition_free)

/** kt_condition_eval() - Evaluate a condition: no lock, no allocation, at most
 *  KT_CONDITION_OPS operators and the calls of @fetch. */
GS_HOT KtTruth kt_condition_eval(const KtCondition *c,
                                   KtConditionFetch *fetch, void *opaque);

/** kt_condition_value() - As kt_condition_eval(), with the value itself.
 *  @value: (out) undefined if the result is not FALSE or TRUE */
GS_HOT KtTruth kt_condition_value(const KtCondition *c,
                                    KtConditionFetch *fetch, void *opaque,
                                    int64_t *value);

/** kt_condition_uses() - Return true if the condition has the variable. */
bool kt_condition_uses(const KtCondition *c, unsigned var);
/** kt_condition_text() - (borrowed) Return the text it was compiled from. */
const char *kt_condition_text(const KtCondition *c);

#endif /* KT_CONDITION_H */
