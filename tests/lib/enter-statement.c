/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The statement "enter": fault rules decide about it, without a VM. */
#include "tests/lib/statements.h"

#include <stdlib.h>
#include <string.h>

#include "kalloc-tracer/calls/calls.h"
#include "kalloc-tracer/faults/fault-rules.h"

/** struct Call - a call; @stack: its direct caller first */
typedef struct Call {
    KtTracer *t;
    uint64_t us, arg[KT_FAULT_ARGS];
    KtStackId stack;
    KtTaskId task;
} Call;

static bool word(void *opaque, GsReg reg, uint64_t *out)
{
    static const GsReg args[KT_FAULT_ARGS] = {
        GS_REG_ARG0, GS_REG_ARG1, GS_REG_ARG2, GS_REG_ARG3, GS_REG_ARG4,
        GS_REG_ARG5,
    };
    const Call *c = opaque;

    for (unsigned i = 0; i < KT_FAULT_ARGS; i++) {
        if (args[i] == reg) {
            *out = c->arg[i];
            return true;
        }
    }
    return false;
}

static bool stack(void *opaque, KtCallStack *out)
{
    const Call *c = opaque;

    out->id = c->stack;
    out->frames = kt_tracer_stack(c->t, out->id, &out->n, &out->stop);
    out->era = kt_tracer_stack_era(c->t, out->id);
    return out->frames;
}

static bool task(void *opaque, KtCallTask *out)
{
    const Call *c = opaque;

    *out = (KtCallTask) { .id = c->task };
    return kt_tracer_task(c->t, out->id, &out->pid, out->comm);
}

static bool cache(void *opaque, uint64_t va, KtCacheInfo *out)
{
    return false;
}

static bool read_memory(void *opaque, uint64_t va, void *buf, size_t len)
{
    return false;
}

static uint64_t us(void *opaque)
{
    return ((const Call *)opaque)->us;
}

static KtAnswer irq(void *opaque)
{
    return KT_NO;
}

static const KtCallOps ops = {
    word, stack, task, read_memory, irq, us, cache,
};

/* The first call finds the functions of the kernel. */
static const KtPointSet *find_points(KtTracer *t, const GsKernel *k)
{
    KtCallPoints *points = kt_tracer_calls(t)->points;
    const KtPointSet *set = kt_call_points_set(points);

    if (!set) {
        kt_faults_begin_boot(t, k);
        kt_call_points_begin_boot(points, k);
        set = kt_call_points_set(points);
    }
    return set;
}

void enter_statement(TestWorld *w, GHashTable *a)
{
    KtTracer *t = test_world_tracer(w);
    const GsKernel *k = test_world_context(w)->kernel;
    const KtPointSet *set = find_points(t, k);
    const KtCallPoint *point = set ? kt_point_set_at(set, arg_hex(a, "va")) :
                                     NULL;
    Call call = {
        .t = t, .us = arg_dec(a, "us"), .stack = arg_stack(t, a),
        .task = arg_task(t, a),
        .arg = { arg_hex(a, "size"), arg_hex(a, "gfp") },
    };
    KtFaultVerdict verdict;
    KtCallStack at;

    if (point && stack(&call, &at)) {
        kt_faults_decide(point, &(KtFaultCall) {
            .facts = { .ops = &ops, .opaque = &call, .kernel = k,
                       .ra = at.frames[0], .cpu = arg_dec(a, "cpu") },
            .to = at.frames[0] }, &verdict);
    }
}
