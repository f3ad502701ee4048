/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: conditions of any bytes.
 *
 * Checks: a text is compiled, or refused with one printable line. A condition
 * that compiled is evaluated to the same verdict twice, asks for no variable
 * twice and only for those that it has, and means the same with a pair of
 * parentheses and a double negation around it.
 */
#include "tests/fuzz/fuzz.h"
#include "kalloc-tracer/conditions/condition.h"

#define N_VARS 1024

static bool find(void *opaque, const char *name, KtConditionName *out)
{
    *out = (KtConditionName) {
        .constant = g_ascii_isupper(*name),
        .value = (int64_t)(uint8_t)*name << 55 ^ -1000,
        .var = (uint8_t)*name,
    };
    return strlen(name) < 8;
}

static bool call(void *opaque, const char *function, const char *arg,
                 KtConditionName *out, char **why)
{
    if (*arg == '!') {
        *why = g_strdup("no mark");
        return false;
    }
    return find(opaque, function, out);
}

static void each(void *opaque, KtConditionOffer *offer, void *to)
{
    offer(to, "caller_address");
    offer(to, "in_init");
}

static const KtConditionNames names = { find, call, each, NULL };

/** struct Calls - what is fetched: @c (nullable) may have no other variable */
typedef struct Calls {
    const KtCondition *c;
    bool seen[N_VARS];
} Calls;

static int64_t fetch(void *opaque, unsigned var, bool *known)
{
    Calls *calls = opaque;

    g_assert_true(var < N_VARS && !calls->seen[var]);
    g_assert_true(kt_condition_uses(calls->c, var));
    calls->seen[var] = true;
    *known = var != 'u';
    return var % 3 ? (int64_t)(var * 0x9e3779b97f4a7c15ull) : var % 2;
}

static KtTruth evaluate(const KtCondition *c)
{
    Calls calls = { .c = c };

    return kt_condition_eval(c, fetch, &calls);
}

static void one_line(const char *why)
{
    g_assert_true(*why);
    for (; *why; why++) {
        g_assert_true(*why >= 0x20 && *why < 0x7f);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree char *text = g_strndup(size ? (const char *)data : "", size);
    g_autofree char *around = g_strdup_printf("!!(%s)", text);
    g_autoptr(GError) err = NULL;
    g_autoptr(KtCondition) c = kt_condition_new(text, &names, &err);
    g_autoptr(KtCondition) again = NULL;
    KtTruth v;

    if (!c) {
        one_line(err->message);
        return 0;
    }
    v = evaluate(c);
    g_assert_cmpint(evaluate(c), ==, v);
    again = kt_condition_new(around, &names, NULL);
    if (again) {                        /* it may have become too long */
        g_assert_cmpint(evaluate(again), ==, v);
    }
    return 0;
}
