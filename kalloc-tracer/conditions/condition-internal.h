/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Code of a condition: words in postfix order.
 *
 *     size > 4k && pid == 7
 *
 *     VALUE 0 | CONST 4096 | GT | AND ->9 | VALUE 1 | CONST 7 | EQ | BOOL | .
 *     0         1            2    3         4         5         6    7      8
 *
 * AND and OR jump with the left side as result, else drop it. JZ drops the
 * value and jumps if it is 0. VALUE n is the n-th variable of the condition.
 */
#ifndef KT_CONDITION_INTERNAL_H
#define KT_CONDITION_INTERNAL_H

#include "kalloc-tracer/conditions/condition.h"

typedef enum KtConditionOp {
    OP_CONST, OP_VALUE,
    OP_NOT, OP_INVERT, OP_NEGATE, OP_BOOL,
    OP_MUL, OP_DIV, OP_MOD, OP_ADD, OP_SUB, OP_SHL, OP_SHR,
    OP_LT, OP_LE, OP_GT, OP_GE, OP_EQ, OP_NE,
    OP_BIT_AND, OP_BIT_XOR, OP_BIT_OR,
    OP_AND, OP_OR,              /* jump to @arg */
    OP_JZ, OP_JUMP,
} KtConditionOp;

/** struct KtConditionWord - an operation; @arg: index of a constant, of a
 *  variable, or of the word to jump to */
typedef struct KtConditionWord {
    uint8_t op, arg;
} KtConditionWord;
G_STATIC_ASSERT(KT_CONDITION_CODE <= UINT8_MAX);

struct KtCondition {
    unsigned n_code, n_constants, n_vars;
    KtConditionWord code[KT_CONDITION_CODE];
    int64_t constant[KT_CONDITION_CODE];
    unsigned var[64];
    char *text;
};

#endif /* KT_CONDITION_INTERNAL_H */
