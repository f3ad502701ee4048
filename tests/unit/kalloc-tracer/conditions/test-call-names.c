/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The names of conditions about calls: each row of the tables, constants of
 * kernels with and without types, functions and their errors.
 */
#include <string.h>

#include "kalloc-tracer/conditions/call-names.h"
#include "tests/lib/test-main.h"

/** struct World - what a condition is compiled with */
typedef struct World {
    KtGfp gfp;
    KtStackRules *stacks;
    KtTaskFilter *tasks;
    GPtrArray *caches;
    KtCallNames names;
} World;

static int arg(void *opaque, const char *name)
{
    return !strcmp(name, "dev") ? 1 : -1;
}

static void world_init(World *w, KtCallWhen when)
{
    w->gfp = kt_gfp_find(NULL);
    w->stacks = kt_stack_rules_new(NULL);
    w->tasks = kt_task_filter_new();
    w->caches = g_ptr_array_new_with_free_func(
        (GDestroyNotify)g_pattern_spec_free);
    w->names = (KtCallNames) {
        .when = when, .gfp = &w->gfp, .arg = arg, .stacks = w->stacks,
        .tasks = w->tasks, .caches = w->caches,
    };
}

static void world_deinit(World *w)
{
    kt_stack_rules_free(w->stacks);
    kt_task_filter_free(w->tasks);
    g_ptr_array_unref(w->caches);
}

static bool uses(World *w, const char *text, unsigned var)
{
    g_autoptr(GError) err = NULL;
    g_autoptr(KtCondition) c = kt_call_condition_new(text, &w->names, &err);

    g_assert_no_error(err);
    return kt_condition_uses(c, var);
}

static void refused(World *w, const char *text, const char *why)
{
    g_autoptr(GError) err = NULL;
    KtCondition *c = kt_call_condition_new(text, &w->names, &err);

    g_assert_null(c);
    if (!strstr(err->message, why)) {
        g_error("%s: '%s' is not in '%s'", text, why, err->message);
    }
}

static void variables(void)
{
    World w;

    world_init(&w, KT_CALL_AT_FAULT);
    for (unsigned i = 0; i < KT_CALL_VAR_RET; i++) {
        g_assert_true(uses(&w, kt_call_variable_name(i), i));
        g_assert_cmpuint(strlen(kt_call_variable_help(i)), >, 0);
    }
    g_assert_true(uses(&w, "dev", KT_CALL_VAR_ARG1));
    refused(&w, "ret", "no name 'ret'");
    refused(&w, "siez > 1", "did you mean size");
    world_deinit(&w);
    world_init(&w, KT_CALL_AT_RETURN);
    g_assert_true(uses(&w, "failed", KT_CALL_VAR_FAILED));
    refused(&w, "times == 1", "no name 'times'");
    world_deinit(&w);
}

static void functions(void)
{
    World w;

    world_init(&w, KT_CALL_AT_FAULT);
    g_assert_true(uses(&w, "caller(f)", KT_CALL_STACK_RULE));
    g_assert_true(uses(&w, "stack(f)", KT_CALL_STACK_RULE + 1));
    g_assert_true(uses(&w, "stack(\"mod:m\")", KT_CALL_STACK_RULE + 2));
    g_assert_true(uses(&w, "mod(\"m\")", KT_CALL_STACK_RULE + 3));
    g_assert_true(uses(&w, "!caller(f)", KT_CALL_STACK_RULE));
    g_assert_true(uses(&w, "task(\"ins*\")", KT_CALL_TASK_NAME));
    g_assert_true(uses(&w, "child(12)", KT_CALL_TASK_CHILD));
    g_assert_true(uses(&w, "cache(\"kmalloc-*\")", KT_CALL_CACHE));
    refused(&w, "child(x)", "child(): expected the pid of a process");
    refused(&w, "child(0)", "child(): expected the pid of a process");
    refused(&w, "chidl(1)", "did you mean child");
    world_deinit(&w);
}

static void constants(void)
{
    static const struct {
        const char *text;
        int64_t value;
    } rows[] = {
        { "GFP_KERNEL", 0xcc0 }, { "GFP_ATOMIC", 0x820 },
        { "__GFP_NOFAIL", 0x8000 }, { "GFP_NOFS | __GFP_ZERO", 0xd40 },
        { "-ENOMEM", -12 }, { "-EPROBE_DEFER", -517 }, { "NULL", 0 },
        { "CAP_SYS_ADMIN", 21 }, { "true", 1 }, { "4k", 4096 },
        { "GFP_TRANSHUGE", 0x1c24ca }, { "GFP_HIGHUSER_MOVABLE", 0x100cca },
        { "__GFP_RECLAIM | GFP_DMA", 0xc01 }, { "-EHWPOISON", -133 },
    };
    KtGfp gfp = kt_gfp_find(NULL);

    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(GError) err = NULL;
        int64_t value;

        g_assert_true(kt_constant_value(rows[i].text, &gfp, &value, &err));
        g_assert_no_error(err);
        g_assert_cmpint(value, ==, rows[i].value);
    }
}

static void no_constants(void)
{
    KtGfp gfp = kt_gfp_find(NULL);
    static const char *const bad[] = { "-ENOMEN", "1 / 0", "size", "" };

    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) err = NULL;
        int64_t value;

        g_assert_false(kt_constant_value(bad[i], &gfp, &value, &err));
        g_assert_nonnull(err);
    }
}

int main(int argc, char **argv)
{
    static const TestCase cases[] = {
        { "/call-names/variables", variables },
        { "/call-names/functions", functions },
        { "/call-names/constants", constants },
        { "/call-names/no-constants", no_constants },
    };

    return test_main(argc, argv, cases, G_N_ELEMENTS(cases));
}
