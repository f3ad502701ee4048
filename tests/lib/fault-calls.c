/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls for fault rules: see fault-calls.h. */
#include "tests/lib/fault-calls.h"

#include <string.h>

#include "kalloc-tracer/tracer/tracer.h"

#define MAP "ffffffff81000000 T _stext\n" \
            "ffffffff81001000 T __kmalloc\n" \
            "ffffffff81001100 T new_slab\n" \
            "ffffffff81002000 T kmem_cache_alloc\n" \
            "ffffffff81003000 T wake_up_new_task\n" \
            "ffffffff81004000 T device_add\n" \
            "ffffffff81005000 T do_work\n" \
            "ffffffff81006000 T entry_SYSCALL_64_after_hwframe\n" \
            "ffffffff81007000 T kfree\n" \
            "ffffffff81008000 T kmem_cache_create\n" \
            "ffffffff81010000 T _etext\n" \
            "ffffffff81020000 D system_state\n" \
            "ffffffff81030000 D _end\n"

static bool word(void *call, GsReg reg, uint64_t *out)
{
    *out = ((FaultWorld *)call)->reg[reg];
    return reg != GS_REG_ARG6 && reg != GS_REG_ARG7;
}

static bool stack(void *call, KtCallStack *out)
{
    FaultWorld *w = call;

    *out = (KtCallStack) {
        .frames = w->frames, .n = w->n, .stop = GS_STOP_USER,
        .era = gs_kernel_era(w->k, w->frames, w->n),
    };
    out->id = kt_tracer_intern_stack_of(w->t, w->frames, w->n, out->stop,
                                        out->era);
    return true;
}

static bool task(void *call, KtCallTask *out)
{
    FaultWorld *w = call;
    char comm[16] = { 0 };

    memcpy(comm, w->comm, strlen(w->comm));
    *out = (KtCallTask) { kt_tracer_intern_task(w->t, w->pid, comm), 0x1000,
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
    const FaultWorld *w = call;

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

static const KtCallOps ops = {
    word, stack, task, read_memory, irq, us, cache,
};

FaultWorld *fault_world_new(void)
{
    return fault_world_new_at(NULL);
}

FaultWorld *fault_world_new_at(const char *journal)
{
    KtConfig config = KT_CONFIG_DEFAULT;
    const GsModuleSymbol sym = { MODULE, "alloc", 't' };
    g_autoptr(GError) err = NULL;
    FaultWorld *w = g_new0(FaultWorld, 1);

    config.journal = journal;
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

void fault_world_free(FaultWorld *w)
{
    kt_tracer_free(w->t);
    gs_kernel_free(w->k);
    g_free(w);
}

uint32_t fault_add_spec(FaultWorld *w, const KtFaultSpec *spec)
{
    g_autoptr(GError) err = NULL;
    uint32_t id = kt_faults_add(w->t, w->k, spec, &err);

    g_assert_no_error(err);
    kt_call_points_reclaim(w->points);
    return id;
}

uint32_t fault_add(FaultWorld *w, const char *condition)
{
    return fault_add_spec(w, &(KtFaultSpec) { .what = "kmalloc",
                                        .condition = condition });
}

void fault_clear(FaultWorld *w)
{
    kt_faults_remove(w->t, 0);
    kt_call_points_reclaim(w->points);
}

bool fault_call_at(FaultWorld *w, uint64_t va, uint64_t place, uint64_t *value)
{
    const KtPointSet *set = kt_call_points_set(w->points);
    const KtCallPoint *point = set ? kt_point_set_at(set, va) : NULL;
    uint64_t ra = place < TEXT ? MODULE + 0x10 + place : place;
    KtFaultCall call = {
        .facts = { .ops = &ops, .opaque = w, .kernel = w->k, .ra = ra,
                   .sp = 0x9000, .cpu = 1 },
        .to = ra,
    };
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

bool fault_call(FaultWorld *w, uint64_t place)
{
    uint64_t value;

    return fault_call_at(w, KMALLOC, place, &value);
}

char *fault_calls(FaultWorld *w, unsigned n)
{
    GString *s = g_string_new(NULL);

    for (unsigned i = 0; i < n; i++) {
        g_string_append_c(s, fault_call(w, 0) ? 'F' : '.');
    }
    return g_string_free(s, FALSE);
}

static bool copy_rule(const KtFaultRule *rule, void *opaque)
{
    *(KtFaultRule *)opaque = *rule;
    return true;
}

KtFaultRule fault_rule(FaultWorld *w)
{
    KtFaultRule r = { 0 };

    kt_faults_foreach(w->t, copy_rule, &r);
    return r;
}
