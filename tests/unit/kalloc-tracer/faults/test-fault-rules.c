/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fault rules in a made-up kernel: which calls fail, what is counted, what is
 * refused and why, and that the command of a record repeats it.
 */
#include <string.h>

#include "kalloc-tracer/api/kt-derefs.h"
#include "kalloc-tracer/calls/calls.h"
#include "kalloc-tracer/tracer/tracer.h"
#include "tests/lib/fault-calls.h"
#include "tests/lib/test-main.h"

static void expect(FaultWorld *w, const char *condition, const char *pattern)
{
    g_autofree char *got = NULL;

    fault_add(w, condition);
    got = fault_calls(w, strlen(pattern));
    g_assert_cmpstr(got, ==, pattern);
    fault_clear(w);
}

/* ---- conditions --------------------------------------------------------- */

TEST(conditions, "/fault-rules/conditions")
{
    static const char *const rows[][2] = {
        { "1", "FFF" }, { "0", "..." }, { "size == 320", "FFF" },
        { "size > 320", "..." }, { "flags == GFP_KERNEL", "FFF" },
        { "times == 1", "F.." }, { "times % 3 = 0", "..F..F" },
        { "n == 2", ".F." }, { "n % 2 == 0", ".F.F" }, { "in_init", "..." },
        { "caller(ka_test:alloc)", "FFF" }, { "stack(alloc[ka-test])", "FFF" },
        { "caller(alloc)", "FFF" }, { "caller(do_work)", "..." },
        { "stack(do_work)", "FFF" }, { "mod(\"ka_test\")", "FFF" },
        { "stack(\"mod:ka_test\")", "FFF" }, { "pid == 7", "FFF" },
        { "task(\"ins*\")", "FFF" }, { "task(\"rm*\")", "..." },
        { "cpu == 1 && us == 123 && !irq", "FFF" }, { "arg0 == 320", "FFF" },
        { "arg7", "..." }, { "1 / 0", "..." }, { "order", "..." },
        { "caller_address == 0xffffffffc0000010", "FFF" },
        { "cache(\"dentry\")", "..." }, { "rnd100 < 100", "FFF" },
        { "rnd100 >= 100", "..." },
    };
    g_autoptr(FaultWorld) w = fault_world_new();

    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        expect(w, rows[i][0], rows[i][1]);
    }
}

FAULT_TEST(caches, "/fault-rules/caches")
{
    uint64_t value;

    fault_add(w, "cache(\"den*\") && size == 192");
    w->reg[GS_REG_ARG0] = 0x5000;
    g_assert_true(fault_call_at(w, TEXT + 0x2000, 0, &value));
    w->reg[GS_REG_ARG0] = 0x6000;
    g_assert_false(fault_call_at(w, TEXT + 0x2000, 0, &value));
    g_assert_cmpuint(fault_rule(w).unknown, ==, 1);
}

FAULT_TEST(unknown_is_counted, "/fault-rules/unknown-is-counted")
{
    fault_add(w, "arg7 || 1 / 0");
    fault_call(w, 0);
    fault_clear(w);
    fault_add(w, "1 / 0");
    fault_call(w, 0);
    g_assert_cmpuint(fault_rule(w).divided, ==, 1);
    g_assert_cmpuint(kt_tracer_counter(w->t, KT_CNT_FAULTS_UNKNOWN), ==, 1);
    g_assert_cmpuint(kt_tracer_counter(w->t, KT_CNT_FAULTS_DIVIDED), ==, 1);
}

/* Each stack has its own n; the seed decides, not the order of stacks. */
FAULT_TEST(numbers_of_stacks, "/fault-rules/numbers-of-stacks")
{
    g_autofree char *one = NULL, *two = NULL, *other = NULL;

    fault_add(w, "n == 2");
    g_assert_false(fault_call(w, 0));
    g_assert_false(fault_call(w, 0x20));
    g_assert_true(fault_call(w, 0));
    g_assert_true(fault_call(w, 0x20));
    g_assert_cmpuint(fault_rule(w).stacks, ==, 2);
    fault_clear(w);
    fault_add(w, "rnd100 < 50");
    one = fault_calls(w, 64);
    fault_clear(w);
    fault_add(w, "rnd100 < 50");
    fault_call(w, 0x20);
    two = fault_calls(w, 64);
    fault_clear(w);
    kt_faults_set_seed(w->t, 5);
    fault_add(w, "rnd100 < 50");
    other = fault_calls(w, 64);
    g_assert_cmpstr(one, ==, two);
    g_assert_cmpstr(one, !=, other);
}

/* A function of a module that is not loaded yet is known when it is loaded. */
FAULT_TEST(code_names, "/fault-rules/code-names")
{
    static const char *const bad[][2] = {
        { "stack(do_wrk)", "column 7: stack(): expected a function of this "
          "kernel or of a loaded module, which have no 'do_wrk'; one of "
          "another module is MODULE:do_wrk; did you mean do_work?" },
        { "1 && caller(ka-test:aloc)", "column 13: caller(): expected a "
          "function of module ka_test, which has no 'aloc'; did you mean "
          "ka_test:alloc?" },
        { "stack(system_state)", "which have no 'system_state'" },
    };
    GsModuleSymbol sym = { 0xffffffffc0100000, "work", 't' };
    g_autofree char *waits =
        kt_condition_waits("stack(la-ter:work) || mod(\"la_ter\") || "
                           "caller(work[next]) || stack(ka_test:alloc) || "
                           "stack(\"mod:more\") || unknown == 3", w->k);

    g_assert_cmpstr(waits, ==, "la_ter, next, more");
    g_assert_null(kt_condition_waits("n == 1 || caller(alloc)", w->k));
    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) err = NULL;

        g_assert_cmpuint(kt_faults_add(w->t, w->k, &(KtFaultSpec) {
            .what = "kmalloc", .condition = bad[i][0] }, &err), ==, 0);
        g_assert_nonnull(strstr(err->message, bad[i][1]));
    }
    fault_add(w, "caller(la-ter:work)");
    g_assert_false(fault_call(w, 0));
    gs_kernel_add_module_data(w->k, 0xffff888000001000, "la_ter", sym.va,
                              0x1000, &sym, 1, 0, NULL, NULL, 0, NULL);
    g_assert_false(fault_call(w, 0));
    g_assert_true(fault_call(w, sym.va + 0x10));
}

/* ---- filters and refusals ----------------------------------------------- */

FAULT_TEST(filters, "/fault-rules/filters")
{
    fault_add_spec(w, &(KtFaultSpec) { .what = "kmalloc",
                                       .module = "ka_test" });
    g_assert_true(fault_call(w, 0));
    g_assert_false(fault_call(w, TEXT + 0x5010));
    g_assert_cmpuint(fault_rule(w).calls, ==, 1);
    fault_clear(w);
    fault_add_spec(w, &(KtFaultSpec) { .what = "kmalloc", .task = "ins*" });
    g_assert_true(fault_call(w, 0));
    w->comm = "sh";
    g_assert_false(fault_call(w, 0));
    g_assert_cmpuint(fault_rule(w).calls, ==, 1);
}

FAULT_TEST(inner_calls, "/fault-rules/inner-calls")
{
    fault_add(w, NULL);
    g_assert_false(fault_call(w, KMALLOC + 0x20));
    g_assert_cmpuint(fault_rule(w).calls, ==, 0);
    w->n = 3;
    w->frames[1] = KMALLOC + 0x20;
    w->frames[2] = TEXT + 0x6010;
    g_assert_false(fault_call(w, TEXT + 0x1110));
    g_assert_cmpuint(fault_rule(w).refused[KT_REFUSED_INNER], ==, 1);
    g_assert_cmpuint(fault_rule(w).done, ==, 0);
}

FAULT_TEST(refusals, "/fault-rules/refusals")
{
    w->state = 1;
    fault_add(w, NULL);
    g_assert_false(fault_call(w, 0));
    g_assert_cmpuint(fault_rule(w).refused[KT_REFUSED_EARLY], ==, 1);
    fault_clear(w);
    fault_add_spec(w, &(KtFaultSpec) { .what = "kmalloc", .early = true });
    g_assert_true(fault_call(w, 0));
    fault_clear(w);
    w->state = 2;
    w->reg[GS_REG_ARG1] = 0x8cc0;
    fault_add(w, NULL);
    g_assert_false(fault_call(w, 0));
    g_assert_cmpuint(fault_rule(w).refused[KT_REFUSED_NOFAIL], ==, 1);
    fault_clear(w);
    fault_add_spec(w, &(KtFaultSpec) { .what = "kmalloc", .force = true });
    g_assert_true(fault_call(w, 0));
    /* No code returns there. */
    g_assert_false(fault_call(w, 0xffff888000000000));
    g_assert_cmpuint(fault_rule(w).refused[KT_REFUSED_UNSAFE], ==, 1);
    fault_clear(w);
    fault_add_spec(w, &(KtFaultSpec) { .what = "kmalloc", .times = 2 });
    w->reg[GS_REG_ARG1] = 0xcc0;
    g_assert_true(fault_call(w, 0) && fault_call(w, 0));
    g_assert_false(fault_call(w, 0));
    g_assert_cmpuint(fault_rule(w).refused[KT_REFUSED_TIMES], ==, 1);
}

/* Where the types do not say it, SLAB_PANIC is 0x40000. */
TEST(panics, "/fault-rules/panics")
{
    static const KtFaultSpec spec = { .what = "kmem_cache_create" };
    g_autoptr(FaultWorld) w = fault_world_new();
    uint64_t value;

    fault_add_spec(w, &spec);
    w->reg[GS_REG_ARG3] = 0x40000;
    g_assert_false(fault_call_at(w, TEXT + 0x8000, 0, &value));
    g_assert_cmpuint(fault_rule(w).refused[KT_REFUSED_PANICS], ==, 1);
    w->reg[GS_REG_ARG3] = 0x2000;
    g_assert_true(fault_call_at(w, TEXT + 0x8000, 0, &value));
    fault_clear(w);
    w->reg[GS_REG_ARG3] = 0x40000;
    fault_add_spec(w, &(KtFaultSpec) { .what = spec.what, .force = true });
    g_assert_true(fault_call_at(w, TEXT + 0x8000, 0, &value));
}

/* Copy the words of the newest rule; the callback of a walk. */
static bool copy_command(const KtFaultRule *rule, void *opaque)
{
    g_free(*(char **)opaque);
    *(char **)opaque = kt_fault_spec_command(&rule->spec);
    return true;
}

static void expect_rule(FaultWorld *w, const char *what, const char *command)
{
    g_autofree char *got = NULL;

    fault_add_spec(w, &(KtFaultSpec) { .what = what, .value = "-12" });
    kt_faults_foreach(w->t, copy_command, &got);
    g_assert_cmpstr(got, ==, command);
    g_assert_cmpuint(fault_rule(w).n_functions, ==, 1);
    fault_clear(w);
}

static void refused(FaultWorld *w, const char *what, const char *why)
{
    g_autoptr(GError) err = NULL;

    g_assert_cmpuint(kt_faults_add(w->t, w->k, &(KtFaultSpec) {
        .what = what, .value = "-12" }, &err), ==, 0);
    g_assert_cmpstr(err->message, ==, why);
}

/* A function of a module needs no module if only one has it. */
FAULT_TEST(functions_of_modules, "/fault-rules/functions-of-modules")
{
    const GsModuleSymbol syms[] = {
        { 0xffffffffc0100000, "alloc", 't' },
        { 0xffffffffc0100100, "do_work", 't' },
    };

    expect_rule(w, "alloc", "ka fault add ka_test:alloc --return -12");
    expect_rule(w, "alloc[ka-test]", "ka fault add ka_test:alloc --return -12");
    expect_rule(w, "ka-test:alloc", "ka fault add ka_test:alloc --return -12");
    refused(w, "ka-test:aloc", "ka_test:aloc: expected a function of module "
            "ka_test, which has no 'aloc'; did you mean ka_test:alloc?");
    gs_kernel_add_module_data(w->k, 0xffff888000001000, "other", syms[0].va,
                              0x1000, syms, 2, 0, NULL, NULL, 0, NULL);
    expect_rule(w, "do_work", "ka fault add do_work --return -12");
    refused(w, "alloc", "alloc: several modules have this function; name one: "
            "ka_test:alloc, other:alloc");
    expect_rule(w, "later:alloc", "ka fault add later:alloc --return -12");
}

/* ---- the log ------------------------------------------------------------ */

FAULT_TEST(records, "/fault-rules/records")
{
    g_autofree char *command = NULL;
    KtFaultRecord r;
    char comm[17];
    uint32_t pid;

    fault_add(w, "size > 300");
    fault_call(w, 0);
    fault_call(w, 0);
    g_assert_true(kt_faults_log(w->t, 1, &r));
    g_assert_false(kt_faults_log(w->t, 2, &(KtFaultRecord) { 0 }));
    g_assert_cmpstr(r.function, ==, "__kmalloc");
    g_assert_cmpuint(r.size, ==, 320);
    g_assert_cmpuint(r.flags, ==, 0xcc0);
    g_assert_cmpuint(r.n, ==, 2);
    g_assert_cmpuint(r.times, ==, 2);
    g_assert_cmpuint(r.us, ==, 123);
    g_assert_cmpint(r.chance, ==, KT_CHANCE_RARE);
    g_assert_true(kt_tracer_task(w->t, r.task, &pid, comm));
    g_assert_cmpstr(comm, ==, "insmod");
    command = kt_fault_command(&r);
    g_assert_true(g_str_has_prefix(command, "ka fault add kmalloc --if "
                                   "'(size > 300) && stackid == 0x"));
    g_assert_true(g_str_has_suffix(command, " && n == 2' --times 1"));
    fault_clear(w);
    g_assert_true(kt_faults_log(w->t, 1, &r));      /* the log stays */
    g_assert_cmpstr(r.spec->what, ==, "kmalloc");
}

/* The condition of a record's command selects that call, and no other. The
 * command of the call that it repeats is the same again. */
FAULT_TEST(commands_repeat, "/fault-rules/commands-repeat")
{
    g_autofree char *got = NULL, *command = NULL, *again = NULL, *twice = NULL;
    bool full;
    const char *condition;
    KtFaultRecord r;

    fault_add(w, "rnd100 < 20");
    got = fault_calls(w, 40);
    fault_clear(w);
    g_assert_true(kt_faults_log(w->t, 2, &r));
    command = kt_fault_command(&r);
    condition = strchr(command, '\'') + 1;
    *strrchr(command, '\'') = 0;
    fault_add(w, condition);
    again = fault_calls(w, 40);
    for (unsigned i = 0; i < 40; i++) {
        g_assert_cmpint(again[i], ==, i + 1 == r.n ? 'F' : '.');
        g_assert_true(again[i] == '.' || got[i] == 'F');
    }
    g_assert_true(kt_faults_log(w->t, kt_faults_log_count(w->t, &full) - 1,
                                &r));
    twice = kt_fault_command(&r);
    g_assert_true(g_str_has_prefix(twice, command));
    g_assert_cmpstr(twice + strlen(command), ==, "' --times 1");
}

FAULT_TEST(only_logged, "/fault-rules/only-logged")
{
    KtFaultRecord r;

    fault_add_spec(w, &(KtFaultSpec) { .what = "kmalloc",
                                       .action = KT_FAULT_DO_LOG });
    g_assert_false(fault_call(w, 0));
    g_assert_true(kt_faults_log(w->t, 0, &r));
    g_assert_cmpint(r.action, ==, KT_FAULT_DO_LOG);
    g_assert_cmpuint(kt_tracer_counter(w->t, KT_CNT_FAULTS_LOGGED), ==, 1);
}

static unsigned warnings;

static void on_warning(const char *line)
{
    g_assert_nonnull(strstr(line, "the log of faults is full"));
    warnings++;
}

FAULT_TEST(full_log, "/fault-rules/full-log")
{
    bool full;

    kt_faults_set_warn(w->t, on_warning);
    fault_add(w, NULL);
    for (unsigned i = 0; i < KT_FAULT_LOG_MAX; i++) {
        g_assert_true(fault_call(w, 0));
    }
    g_assert_cmpuint(kt_faults_log_count(w->t, &full), ==, KT_FAULT_LOG_MAX);
    g_assert_false(full);
    g_assert_false(fault_call(w, 0));
    g_assert_cmpuint(warnings, ==, 1);
    g_assert_false(fault_call(w, 0));
    g_assert_cmpuint(warnings, ==, 1);
    kt_faults_log_count(w->t, &full);
    g_assert_true(full);
    g_assert_cmpuint(fault_rule(w).refused[KT_REFUSED_LOG_FULL], ==, 2);
    g_assert_cmpuint(fault_rule(w).done, ==, KT_FAULT_LOG_MAX);
}

static bool count_stack(const KtFaultStack *s, void *opaque)
{
    *(uint64_t *)opaque += s->selected;
    g_assert_cmpuint(s->hash, ==, s->first.hash);
    return true;
}

FAULT_TEST(stacks, "/fault-rules/stacks")
{
    uint64_t n = 0;

    fault_add(w, NULL);
    fault_call(w, 0);
    fault_call(w, 0x20);
    fault_call(w, 0x20);
    kt_faults_stacks(w->t, count_stack, &n);
    g_assert_cmpuint(n, ==, 3);
    g_assert_cmpuint(fault_rule(w).stacks, ==, 2);
}

/* ---- boots -------------------------------------------------------------- */

/* Rules are there before the kernel, and count anew at each boot. */
FAULT_TEST(boots, "/fault-rules/boots")
{
    g_autoptr(GError) err = NULL;

    kt_call_points_end_boot(w->points);
    g_assert_cmpuint(kt_faults_add(w->t, NULL, &(KtFaultSpec) {
                         .what = "kmalloc", .condition = "n == 1",
                     }, &err), ==, 1);
    g_assert_no_error(err);
    for (unsigned boot = 0; boot < 2; boot++) {
        kt_faults_begin_boot(w->t, w->k);
        kt_call_points_begin_boot(w->points, w->k);
        kt_call_points_reclaim(w->points);
        g_assert_true(fault_call(w, 0));
        g_assert_false(fault_call(w, 0));
        kt_call_points_end_boot(w->points);
    }
}
