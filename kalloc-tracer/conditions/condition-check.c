/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Check a condition without the function that it is about: the names of its
 * arguments are not known, but operators, functions and constants are.
 */
#include <string.h>

#include "kalloc-tracer/api/kt-derefs.h"
#include "kalloc-tracer/conditions/condition.h"
#include "kalloc-tracer/conditions/constants.h"

typedef struct Search {
    const char *name;
    bool found;
} Search;

static void compare(void *to, const char *name)
{
    Search *s = to;

    s->found |= !strcmp(s->name, name);
}

/* Names of arguments and variables are in lower case, constants in upper
 * case. */
static bool find(void *opaque, const char *name, KtConditionName *out)
{
    Search s = { .name = name, .found = !g_ascii_isupper(*name) };

    kt_constant_each(compare, &s);
    *out = (KtConditionName) { .var = 0 };
    return s.found;
}

static bool call(void *opaque, const char *function, const char *arg,
                 KtConditionName *out, char **why)
{
    static const char *const functions[] = {
        "stack", "caller", "mod", "task", "child", "cache", NULL,
    };

    *out = (KtConditionName) { .var = 0 };
    return g_strv_contains(functions, function);
}

static void each(void *opaque, KtConditionOffer *offer, void *to)
{
    kt_constant_each(offer, to);
}

bool kt_condition_check(const char *text, GError **errp)
{
    const KtConditionNames names = { .find = find, .call = call, .each = each };
    g_autoptr(KtCondition) c = kt_condition_new(text, &names, errp);

    return c != NULL;
}
