/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fault rules in a made-up kernel: which calls fail, what is counted, what is
 * refused and why, and that the command of a record repeats it. A call is what
 * the test says: its registers, its stack, its task.
 */
#include <string.h>

#include "kalloc-tracer/calls/calls.h"
#include "kalloc-tracer/faults/fault-rules.h"
#include "kalloc-tracer/tracer/tracer.h"
#include "tests/lib/test-main.h"

#define TEXT    0xffffffff81000000ull
#define KMALLOC (TEXT + 0x1000)
#define ERRNO   (TEXT + 0x4000)
#define STATE   (TEXT + 0x20000)
#define MODULE  0xffffffffc0000000ull
#define MAP "ffffffff81000000 T _stext\n" \
            "ffffffff81001000 T __kmalloc\n" \
            "ffffffff81001100 T new_slab\n" \
            "ffffffff81002000 T kmem_cache_alloc\n" \
            "ffffffff81003000 T wake_up_new_task\n" \
            "ffffffff81004000 T device_add\n" \
            "ffffffff81005000 T do_work\n" \
            "ffffffff81006000 T entry_SYSCALL_64_after_hwframe\n" \
            "ffffffff81007000 T kfree\n" \
            "ffffffff81010000 T _etext\n" \
            "ffffffff81020000 D system_state\n" \
            "ffffffff81030000 D _end\n"

/**
 * struct World - a tracer, and the next call
 * @frames: @n of them, the direct caller first
 */
typedef struct World {
    KtTracer *t;
    GsKernel *k;
    KtCallPoints *points;
    uint64_t reg[GS_REG__COUNT];
    uint64_t frames[8];
    unsigned n;
    uint32_t state, pid;
    const char *comm;
} World;

static bool word(void *call, GsReg reg, uint64_t *out)
{
    *out = ((World *)call)->reg[reg];
    return reg != GS_REG_ARG6 && reg != GS_REG_ARG7;
}

static bool stack(void *call, KtCallStack *out)
{
    World *w = call;

    *out = (KtCallStack) {
        .frames = w->frames, .n = w->n, .stop = GS_STOP_USER,
        .era = gs_kernel_era(w->k, w->frames, w->n),
    };
    out->id = kt_tracer_intern_stack_of(w->t, w->frames, w->n, out->stop,
                                        out->era);
    return true;
}

static bool task(void *call, KtFaultTask *out)
{
    World *w = call;
    char comm[16] = { 0 };

    memcpy(comm, w->comm, strlen(w->comm));
    *out = (KtFaultTask) { kt_tracer_intern_task(w->t, w->pid, comm), 0x1000,
                           w->pid, { 0 } };
    memcpy(out->comm, comm, sizeof(comm));
    return true;
}

static bool cache(void *call, uint64_t va, KtCacheInfo *out)
{
    *out = (KtCacheInfo) { .va = va, .name = "dentry", .object_size = 192 };
    return va == 0x5000;
}

static bool read_memory(void *call, uint64_t va, void *buf, size_t len)
{
    const World *w = call;

    if (va == STATE && len == sizeof(w->state)) {
        memcpy(buf, &w->state, len);
        return true;
    }
    return false;
}

static uint64_t us(void *call)
{
    return 123;
}

static KtAnswer irq(void *call)
{
    return KT_NO;
}

static const KtFaultOps ops = {
    word, stack, task, cache, read_memory, us, irq,
};

static World *world_new(void)
{
    const KtConfig config = KT_CONFIG_DEFAULT;
    const GsModuleSymbol sym = { MODULE, "alloc", 't' };
    g_autoptr(GError) err = NULL;
    World *w = g_new0(World, 1);

    w->t = kt_tracer_new(&config, &err);
    g_assert_no_error(err);
    w->k = gs_kernel_new_from_data(MAP, strlen(MAP), "map", &err);
    g_assert_no_error(err);
    gs_kernel_set_slide(w->k, 0);
    gs_kernel_add_module_data(w->k, 0x7000, "ka_test", MODULE, 0x1000, &sym, 1,
                              0, NULL, NULL, 0, &err);
    g_assert_no_error(err);
    w->points = kt_tracer_calls(w->t)->points;
    kt_faults_begin_boot(w->t, w->k);
    kt_call_points_begin_boot(w->points, w->k);
    w->state = 2;
    w->pid = 7;
    w->comm = "insmod";
    w->reg[GS_REG_ARG0] = 320;
    w->reg[GS_REG_ARG1] = 0xcc0;
    return w;
}

static void world_free(World *w)
{
    kt_tracer_free(w->t);
    gs_kernel_free(w->k);
    g_free(w);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(World, world_free)

static uint32_t add_spec(World *w, const KtFaultSpec *spec)
{
    g_autoptr(GError) err = NULL;
    uint32_t id = kt_faults_add(w->t, w->k, spec, &err);

    g_assert_no_error(err);
    kt_call_points_reclaim(w->points);
    return id;
}

static uint32_t add(World *w, const char *condition)
{
    return add_spec(w, &(KtFaultSpec) { .what = "kmalloc",
                                        .condition = condition });
}

static void clear(World *w)
{
    kt_faults_remove(w->t, 0);
    kt_call_points_reclaim(w->points);
}

/* Call the function at @va from @place of the module, or of the kernel if it is
 * an address. Return true if the call is to fail. */
static bool call_at(World *w, uint64_t va, uint64_t place, uint64_t *value)
{
    const KtPointSet *set = kt_call_points_set(w->points);
    const KtCallPoint *point = set ? kt_point_set_at(set, va) : NULL;
    uint64_t ra = place < TEXT ? MODULE + 0x10 + place : place;
    KtFaultCall call = { &ops, w, w->k, ra, ra, 0x9000, 1 };
    KtFaultVerdict v = { 0 };
    bool any;

    if (!w->n) {
        w->frames[1] = TEXT + 0x5010;
        w->frames[2] = TEXT + 0x6010;
    }
    w->frames[0] = ra;
    w->n = w->n ? w->n : 3;
    any = point && kt_faults_decide(point, &call, &v);
    w->n = 0;
    *value = v.value;
    return any && v.fail;
}

static bool call(World *w, uint64_t place)
{
    uint64_t value;

    return call_at(w, KMALLOC, place, &value);
}

/* Make @n calls; return (owned) a letter for each. */
static char *calls(World *w, unsigned n)
{
    GString *s = g_string_new(NULL);

    for (unsigned i = 0; i < n; i++) {
        g_string_append_c(s, call(w, 0) ? 'F' : '.');
    }
    return g_string_free(s, FALSE);
}

static bool copy_rule(const KtFaultRule *rule, void *opaque)
{
    *(KtFaultRule *)opaque = *rule;
    return true;
}

/* The newest rule. */
static KtFaultRule rule(World *w)
{
    KtFaultRule r = { 0 };

    kt_faults_foreach(w->t, copy_rule, &r);
    return r;
}

static void expect(World *w, const char *condition, const char *pattern)
{
    g_autofree char *got = NULL;

    add(w, condition);
    got = calls(w, strlen(pattern));
    g_assert_cmpstr(got, ==, pattern);
    clear(w);
}

/* ---- conditions --------------------------------------------------------- */

static void conditions(void)
{
    static const char *const rows[][2] = {
        { "1", "FFF" }, { "0", "..." }, { "size == 320", "FFF" },
        { "size > 320", "..." }, { "flags == GFP_KERNEL", "FFF" },
        { "times == 1", "F.." }, { "times % 3 = 0", "..F..F" },
        { "n == 2", ".F." }, { "n % 2 == 0", ".F.F" }, { "in_init", "..." },
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
    g_autoptr(World) w = world_new();

    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        expect(w, rows[i][0], rows[i][1]);
    }
}

static void caches(void)
{
    g_autoptr(World) w = world_new();
    uint64_t value;

    add(w, "cache(\"den*\") && size == 192");
    w->reg[GS_REG_ARG0] = 0x5000;
    g_assert_true(call_at(w, TEXT + 0x2000, 0, &value));
    w->reg[GS_REG_ARG0] = 0x6000;
    g_assert_false(call_at(w, TEXT + 0x2000, 0, &value));
    g_assert_cmpuint(rule(w).unknown, ==, 1);
}

static void unknown_is_counted(void)
{
    g_autoptr(World) w = world_new();

    add(w, "arg7 || 1 / 0");
    call(w, 0);
    clear(w);
    add(w, "1 / 0");
    call(w, 0);
    g_assert_cmpuint(rule(w).divided, ==, 1);
    g_assert_cmpuint(kt_tracer_counter(w->t, KT_CNT_FAULTS_UNKNOWN), ==, 1);
    g_assert_cmpuint(kt_tracer_counter(w->t, KT_CNT_FAULTS_DIVIDED), ==, 1);
}

/* Each stack has its own n; the seed decides, not the order of stacks. */
static void numbers_of_stacks(void)
{
    g_autoptr(World) w = world_new();
    g_autofree char *one = NULL, *two = NULL, *other = NULL;

    add(w, "n == 2");
    g_assert_false(call(w, 0));
    g_assert_false(call(w, 0x20));
    g_assert_true(call(w, 0));
    g_assert_true(call(w, 0x20));
    g_assert_cmpuint(rule(w).stacks, ==, 2);
    clear(w);
    add(w, "rnd100 < 50");
    one = calls(w, 64);
    clear(w);
    add(w, "rnd100 < 50");
    call(w, 0x20);
    two = calls(w, 64);
    clear(w);
    kt_faults_set_seed(w->t, 5);
    add(w, "rnd100 < 50");
    other = calls(w, 64);
    g_assert_cmpstr(one, ==, two);
    g_assert_cmpstr(one, !=, other);
}

/* ---- filters and refusals ----------------------------------------------- */

static void filters(void)
{
    g_autoptr(World) w = world_new();

    add_spec(w, &(KtFaultSpec) { .what = "kmalloc", .module = "ka_test" });
    g_assert_true(call(w, 0));
    g_assert_false(call(w, TEXT + 0x5010));
    g_assert_cmpuint(rule(w).calls, ==, 1);
    clear(w);
    add_spec(w, &(KtFaultSpec) { .what = "kmalloc", .task = "ins*" });
    g_assert_true(call(w, 0));
    w->comm = "sh";
    g_assert_false(call(w, 0));
    g_assert_cmpuint(rule(w).calls, ==, 1);
}

static void inner_calls(void)
{
    g_autoptr(World) w = world_new();

    add(w, NULL);
    g_assert_false(call(w, KMALLOC + 0x20));
    g_assert_cmpuint(rule(w).calls, ==, 0);
    w->n = 3;
    w->frames[1] = KMALLOC + 0x20;
    w->frames[2] = TEXT + 0x6010;
    g_assert_false(call(w, TEXT + 0x1110));
    g_assert_cmpuint(rule(w).refused[KT_REFUSED_INNER], ==, 1);
    g_assert_cmpuint(rule(w).done, ==, 0);
}

static void refusals(void)
{
    g_autoptr(World) w = world_new();

    w->state = 1;
    add(w, NULL);
    g_assert_false(call(w, 0));
    g_assert_cmpuint(rule(w).refused[KT_REFUSED_EARLY], ==, 1);
    clear(w);
    add_spec(w, &(KtFaultSpec) { .what = "kmalloc", .early = true });
    g_assert_true(call(w, 0));
    clear(w);
    w->state = 2;
    w->reg[GS_REG_ARG1] = 0x8cc0;
    add(w, NULL);
    g_assert_false(call(w, 0));
    g_assert_cmpuint(rule(w).refused[KT_REFUSED_NOFAIL], ==, 1);
    clear(w);
    add_spec(w, &(KtFaultSpec) { .what = "kmalloc", .force = true });
    g_assert_true(call(w, 0));
    g_assert_false(call(w, 0xffff888000000000));    /* no code returns there */
    g_assert_cmpuint(rule(w).refused[KT_REFUSED_UNSAFE], ==, 1);
    clear(w);
    add_spec(w, &(KtFaultSpec) { .what = "kmalloc", .times = 2 });
    w->reg[GS_REG_ARG1] = 0xcc0;
    g_assert_true(call(w, 0) && call(w, 0));
    g_assert_false(call(w, 0));
    g_assert_cmpuint(rule(w).refused[KT_REFUSED_TIMES], ==, 1);
}

/* ---- the log ------------------------------------------------------------ */

static void records(void)
{
    g_autoptr(World) w = world_new();
    g_autofree char *command = NULL;
    KtFaultRecord r;
    char comm[17];
    uint32_t pid;

    add(w, "size > 300");
    call(w, 0);
    call(w, 0);
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
    clear(w);
    g_assert_true(kt_faults_log(w->t, 1, &r));      /* the log stays */
    g_assert_cmpstr(r.spec->what, ==, "kmalloc");
}

/* The condition of a record's command selects that call, and no other. */
static void commands_repeat(void)
{
    g_autoptr(World) w = world_new();
    g_autofree char *got = NULL, *command = NULL, *again = NULL;
    const char *condition;
    KtFaultRecord r;

    add(w, "rnd100 < 20");
    got = calls(w, 40);
    clear(w);
    g_assert_true(kt_faults_log(w->t, 2, &r));
    command = kt_fault_command(&r);
    condition = strchr(command, '\'') + 1;
    *strrchr(command, '\'') = 0;
    add(w, condition);
    again = calls(w, 40);
    for (unsigned i = 0; i < 40; i++) {
        g_assert_cmpint(again[i], ==, i + 1 == r.n ? 'F' : '.');
        g_assert_true(again[i] == '.' || got[i] == 'F');
    }
}

static void only_logged(void)
{
    g_autoptr(World) w = world_new();
    KtFaultRecord r;

    add_spec(w, &(KtFaultSpec) { .what = "kmalloc",
                                 .action = KT_FAULT_DO_LOG });
    g_assert_false(call(w, 0));
    g_assert_true(kt_faults_log(w->t, 0, &r));
    g_assert_cmpint(r.action, ==, KT_FAULT_DO_LOG);
    g_assert_cmpuint(kt_tracer_counter(w->t, KT_CNT_FAULTS_LOGGED), ==, 1);
}

static void full_log(void)
{
    g_autoptr(World) w = world_new();

    add(w, NULL);
    for (unsigned i = 0; i < KT_FAULT_LOG_MAX; i++) {
        g_assert_true(call(w, 0));
    }
    g_assert_false(kt_faults_log_is_full(w->t));
    g_assert_false(call(w, 0));
    g_assert_true(kt_faults_log_is_full(w->t));
    g_assert_cmpuint(rule(w).refused[KT_REFUSED_LOG_FULL], ==, 1);
    g_assert_cmpuint(rule(w).done, ==, KT_FAULT_LOG_MAX);
}

static bool count_stack(const KtFaultStack *s, void *opaque)
{
    *(uint64_t *)opaque += s->selected;
    g_assert_cmpuint(s->hash, ==, s->first.hash);
    return true;
}

static void stacks(void)
{
    g_autoptr(World) w = world_new();
    uint64_t n = 0;

    add(w, NULL);
    call(w, 0);
    call(w, 0x20);
    call(w, 0x20);
    kt_faults_stacks(w->t, count_stack, &n);
    g_assert_cmpuint(n, ==, 3);
    g_assert_cmpuint(rule(w).stacks, ==, 2);
}

/* ---- functions ---------------------------------------------------------- */

static void functions(void)
{
    g_autoptr(World) w = world_new();
    uint64_t value;

    add_spec(w, &(KtFaultSpec) { .what = "device_add",
                                 .value = "-ENOMEM" });
    g_assert_true(call_at(w, ERRNO, 0, &value));
    g_assert_cmphex(value, ==, (uint64_t)-12);
}

/* kfree() is of the set, and cannot fail. */
static void sets(void)
{
    g_autoptr(World) w = world_new();
    uint64_t value;

    add_spec(w, &(KtFaultSpec) { .what = "@common_mm" });
    g_assert_cmpuint(rule(w).n_functions, ==, 2);
    g_assert_cmpuint(rule(w).left_out, ==, 1);
    g_assert_true(call(w, 0));
    g_assert_true(call_at(w, TEXT + 0x2000, 0, &value));
    g_assert_false(call_at(w, TEXT + 0x7000, 0, &value));
    g_assert_false(call(w, KMALLOC + 0x20));        /* an inner call */
    g_assert_cmpuint(rule(w).calls, ==, 2);
    clear(w);
    add_spec(w, &(KtFaultSpec) { .what = "@common_mm",
                                 .action = KT_FAULT_DO_LOG });
    g_assert_cmpuint(rule(w).n_functions, ==, 3);
    g_assert_cmpuint(rule(w).left_out, ==, 0);
}

/* A set that was named before the kernel was found. */
static void early_sets(void)
{
    g_autoptr(World) w = world_new();
    g_autoptr(GError) err = NULL;

    kt_call_points_end_boot(w->points);
    g_assert_cmpuint(kt_faults_add(w->t, NULL, &(KtFaultSpec) {
                         .what = "@common_mm" }, &err), ==, 1);
    g_assert_no_error(err);
    kt_faults_begin_boot(w->t, w->k);
    kt_call_points_begin_boot(w->points, w->k);
    kt_call_points_reclaim(w->points);
    g_assert_true(call(w, 0));
    g_assert_cmpuint(rule(w).n_functions, ==, 2);
}

static void refused(World *w, const KtFaultSpec *spec, const char *why)
{
    g_autoptr(GError) err = NULL;

    g_assert_cmpuint(kt_faults_add(w->t, w->k, spec, &err), ==, 0);
    if (!strstr(err->message, why)) {
        g_error("'%s' is not in '%s'", why, err->message);
    }
    g_assert_cmpuint(rule(w).id, ==, 0);
}

static void bad_rules(void)
{
    g_autoptr(World) w = world_new();

    refused(w, &(KtFaultSpec) { .what = "device_ad" }, "near it: device_add");
    refused(w, &(KtFaultSpec) { .what = "device_add" }, "add --return VALUE");
    refused(w, &(KtFaultSpec) { .what = "vmalloc" }, "none of the functions");
    refused(w, &(KtFaultSpec) { .what = "kmalloc", .condition = "size >" },
            "column 7");
    refused(w, &(KtFaultSpec) { .what = "kmalloc", .value = "ENOMEN" },
            "--return: condition, column 1");
    refused(w, &(KtFaultSpec) { .what = "a*" }, "one @set or one function");
    refused(w, &(KtFaultSpec) { .what = "ka_test:@mutex" },
            "one @set or one function");
    refused(w, &(KtFaultSpec) { .what = "@mutecks" }, "there are @common_mm");
    refused(w, &(KtFaultSpec) { .what = "@mutex" }, "has a known error");
    for (unsigned i = 0; i < KT_FAULT_RULES_MAX; i++) {
        add(w, NULL);
    }
    g_assert_cmpuint(kt_faults_add(w->t, w->k, &(KtFaultSpec) {
                         .what = "kmalloc" }, NULL), ==, 0);
    clear(w);
    kt_faults_set_off(w->t);
    refused(w, &(KtFaultSpec) { .what = "kmalloc" }, "faults=off");
}

/* Rules are there before the kernel, and count anew at each boot. */
static void boots(void)
{
    g_autoptr(World) w = world_new();
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
        g_assert_true(call(w, 0));
        g_assert_false(call(w, 0));
        kt_call_points_end_boot(w->points);
    }
}

int main(int argc, char **argv)
{
    static const TestCase cases[] = {
        { "/fault-rules/conditions", conditions },
        { "/fault-rules/caches", caches },
        { "/fault-rules/unknown-is-counted", unknown_is_counted },
        { "/fault-rules/numbers-of-stacks", numbers_of_stacks },
        { "/fault-rules/filters", filters },
        { "/fault-rules/inner-calls", inner_calls },
        { "/fault-rules/refusals", refusals },
        { "/fault-rules/records", records },
        { "/fault-rules/commands-repeat", commands_repeat },
        { "/fault-rules/only-logged", only_logged },
        { "/fault-rules/full-log", full_log },
        { "/fault-rules/stacks", stacks },
        { "/fault-rules/functions", functions },
        { "/fault-rules/sets", sets },
        { "/fault-rules/early-sets", early_sets },
        { "/fault-rules/bad-rules", bad_rules },
        { "/fault-rules/boots", boots },
    };

    return test_main(argc, argv, cases, G_N_ELEMENTS(cases));
}
