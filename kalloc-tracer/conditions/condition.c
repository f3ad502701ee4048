/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Condition: evaluation. It runs on vCPU threads, in the callback of a call.
 *
 * The compiler has checked that the stack suffices and that all jumps go
 * forward, so the loop needs no checks.
 */
#include "kalloc-tracer/conditions/condition-internal.h"

#include <string.h>

/**
 * struct Run - one evaluation
 * @fetched: bit n: @value[n] is set
 */
typedef struct Run {
    const KtCondition *c;
    KtConditionFetch *fetch;
    void *opaque;
    uint64_t fetched;
    int64_t value[64];
    int64_t stack[KT_CONDITION_STACK];
    unsigned top;
} Run;

static bool push_value(Run *r, unsigned i)
{
    uint64_t bit = 1ull << i;
    bool known = true;

    if (!(r->fetched & bit)) {
        r->value[i] = r->fetch(r->opaque, r->c->var[i], &known);
        r->fetched |= known ? bit : 0;
    }
    r->stack[r->top++] = r->value[i];
    return known;
}

static int64_t unary(KtConditionOp op, int64_t a)
{
    switch (op) {
    case OP_NOT:
        return !a;
    case OP_INVERT:
        return ~a;
    case OP_NEGATE:
        return (int64_t)-(uint64_t)a;
    default:
        return a != 0;
    }
}

static int64_t compare(KtConditionOp op, int64_t a, int64_t b)
{
    switch (op) {
    case OP_LT:
        return a < b;
    case OP_LE:
        return a <= b;
    case OP_GT:
        return a > b;
    case OP_GE:
        return a >= b;
    case OP_EQ:
        return a == b;
    default:
        return a != b;
    }
}

/* The one quotient that does not fit, INT64_MIN / -1, wraps. */
static int64_t divide(KtConditionOp op, int64_t a, int64_t b)
{
    if (b == -1) {
        return op == OP_DIV ? (int64_t)-(uint64_t)a : 0;
    }
    return op == OP_DIV ? a / b : a % b;
}

static int64_t binary(KtConditionOp op, int64_t a, int64_t b)
{
    uint64_t x = a, y = b;

    switch (op) {
    case OP_MUL:
        return x * y;
    case OP_DIV:
    case OP_MOD:
        return divide(op, a, b);
    case OP_ADD:
        return x + y;
    case OP_SUB:
        return x - y;
    case OP_SHL:
        return x << (y & 63);
    case OP_SHR:
        return a >> (y & 63);
    case OP_BIT_AND:
        return x & y;
    case OP_BIT_XOR:
        return x ^ y;
    case OP_BIT_OR:
        return x | y;
    default:
        return compare(op, a, b);
    }
}

/* Execute a jump. Return the number of the next word. */
static unsigned jump(Run *r, KtConditionWord w, unsigned next)
{
    int64_t top = w.op == OP_JUMP ? 0 : r->stack[r->top - 1];

    switch (w.op) {
    case OP_JUMP:
        return w.arg;
    case OP_JZ:
        r->top--;
        return top ? next : w.arg;
    default:
        if (!top == (w.op == OP_AND)) {
            r->stack[r->top - 1] = top != 0;
            return w.arg;
        }
        r->top--;
        return next;
    }
}

/* Execute an operator on the stack. Return false if it divides by zero. */
static bool operate(Run *r, KtConditionOp op)
{
    int64_t *top = &r->stack[r->top - 1];

    if (op <= OP_BOOL) {
        *top = unary(op, *top);
        return true;
    }
    if ((op == OP_DIV || op == OP_MOD) && !*top) {
        return false;
    }
    top[-1] = binary(op, top[-1], top[0]);
    r->top--;
    return true;
}

KtTruth kt_condition_value(const KtCondition *c, KtConditionFetch *fetch,
                             void *opaque, int64_t *value)
{
    Run r;
    unsigned i = 0;

    r.c = c;
    r.fetch = fetch;
    r.opaque = opaque;
    r.fetched = 0;
    r.top = 0;
    memset(r.stack, 0, sizeof(r.stack));
    while (i < c->n_code) {
        KtConditionWord w = c->code[i++];

        if (w.op == OP_CONST) {
            r.stack[r.top++] = c->constant[w.arg];
        } else if (w.op == OP_VALUE) {
            if (!push_value(&r, w.arg)) {
                return KT_TRUTH_UNKNOWN;
            }
        } else if (w.op >= OP_AND) {
            i = jump(&r, w, i);
        } else if (!operate(&r, w.op)) {
            return KT_TRUTH_DIVIDED;
        }
    }
    *value = r.stack[0];
    return *value ? KT_TRUTH_TRUE : KT_TRUTH_FALSE;
}

KtTruth kt_condition_eval(const KtCondition *c, KtConditionFetch *fetch,
                            void *opaque)
{
    int64_t value;

    return kt_condition_value(c, fetch, opaque, &value);
}

bool kt_condition_uses(const KtCondition *c, unsigned var)
{
    for (unsigned i = 0; i < c->n_vars; i++) {
        if (c->var[i] == var) {
            return true;
        }
    }
    return false;
}

const char *kt_condition_text(const KtCondition *c)
{
    return c->text;
}

void kt_condition_free(KtCondition *c)
{
    if (c) {
        g_free(c->text);
        g_free(c);
    }
}
