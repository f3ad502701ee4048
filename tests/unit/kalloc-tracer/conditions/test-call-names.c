/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The names of conditions about calls: each row of the tables, constants of
 * kernels with and without types, functions and their errors.
 */
#include <string.h>

#include "guest-symbols/arch/arch.h"
#include "guest-symbols/types/prototype.h"
#include "kalloc-tracer/conditions/call-condition.h"
#include "tests/lib/deref-types.h"
#include "tests/lib/test-main.h"
#include "tests/lib/types-writer.h"

static KtCallCondition *condition;
static KtCallWhen at;

static void begin(KtCallWhen when)
{
    g_clear_pointer(&condition, kt_call_condition_free);
    condition = kt_call_condition_new(NULL, KT_MEM_CALLS, sizeof(KtCallCount));
    at = when;
}

/* (owned) do_filp_open(int dfd, const char *name, struct page *page) */
static GsPrototype *prototype(void)
{
    g_autoptr(GBytes) bytes = deref_types();
    g_autoptr(GsBtf) btf = gs_btf_new(g_bytes_get_data(bytes, NULL),
                                      g_bytes_get_size(bytes), NULL);
    const char *why;

    return gs_prototype_new(btf, &gs_arch_x86_64, "do_filp_open", &why);
}

static bool compile(const char *text, GError **errp)
{
    const KtGfp gfp = kt_gfp_find(NULL);
    g_autoptr(GPtrArray) protos = g_ptr_array_new_with_free_func(
        (GDestroyNotify)gs_prototype_free);
    const KtCallFunctions functions = { .protos = protos };

    g_clear_pointer(&condition->code, kt_condition_free);
    g_ptr_array_add(protos, prototype());
    return kt_call_condition_compile(condition, text, at, &gfp, &functions,
                                     errp);
}

static bool uses(const char *text, unsigned var)
{
    g_autoptr(GError) err = NULL;

    compile(text, &err);
    g_assert_no_error(err);
    return kt_condition_uses(condition->code, var);
}

static void refused(const char *text, const char *why)
{
    g_autoptr(GError) err = NULL;

    g_assert_false(compile(text, &err));
    if (!strstr(err->message, why)) {
        g_error("%s: '%s' is not in '%s'", text, why, err->message);
    }
}

TEST(variables, "/call-names/variables")
{
    begin(KT_CALL_AT_FAULT);
    for (unsigned i = 0; i < KT_CALL_VAR_RET; i++) {
        g_assert_true(uses(kt_call_variable_name(i), i));
        g_assert_cmpuint(strlen(kt_call_variable_help(i)), >, 0);
    }
    g_assert_true(uses("name", KT_CALL_VAR_ARG1));
    refused("ret", "no name 'ret'");
    refused("siez > 1", "did you mean size");
    begin(KT_CALL_AT_RETURN);
    g_assert_true(uses("failed", KT_CALL_VAR_FAILED));
    g_assert_true(uses("name", KT_CALL_NAMED_ARG));
    refused("times == 1", "no name 'times'");
    g_clear_pointer(&condition, kt_call_condition_free);
}

TEST(functions, "/call-names/functions")
{
    begin(KT_CALL_AT_FAULT);
    g_assert_true(uses("caller(f)", KT_CALL_STACK_RULE));
    g_assert_true(uses("stack(f)", KT_CALL_STACK_RULE + 1));
    g_assert_true(uses("stack(\"mod:m\")", KT_CALL_STACK_RULE + 2));
    g_assert_true(uses("mod(\"m\")", KT_CALL_STACK_RULE + 3));
    g_assert_true(uses("!caller(f)", KT_CALL_STACK_RULE));
    g_assert_true(uses("task(\"ins*\")", KT_CALL_TASK_NAME));
    g_assert_true(uses("child(12)", KT_CALL_TASK_CHILD));
    g_assert_true(uses("cache(\"kmalloc-*\")", KT_CALL_CACHE));
    refused("child(x)", "child(): expected the pid of a process");
    refused("child(0)", "child(): expected the pid of a process");
    refused("chidl(1)", "did you mean child");
    g_clear_pointer(&condition, kt_call_condition_free);
}

TEST(constants, "/call-names/constants")
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

TEST(no_constants, "/call-names/no-constants")
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
