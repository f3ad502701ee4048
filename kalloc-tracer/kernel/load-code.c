/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Load code: see load-code.h.
 */
#include "kalloc-tracer/kernel/load-code.h"

#include "kalloc-tracer/base/budget.h"
#include "kalloc-tracer/tracer/tracer.h"

/* At most 1/SHARE of the memory limit is copied from the guest at once. */
#define SHARE 64

static bool read_guest(void *opaque, uint64_t va, void *buf, size_t len)
{
    return kt_guest_read(opaque, va, buf, len);
}

/* Return the memory to load from, after limiting what the code may take. */
static GsMem begin(KtTracer *t, GsKernel *k, KtGuest *g)
{
    KtBudget *budget = kt_tracer_budget(t);

    gs_kernel_set_module_room(k, kt_budget_room(budget, KT_MEM_KERNEL));
    return (GsMem) {
        .read = read_guest,
        .opaque = g,
        .room = kt_budget_bounded(budget) ? kt_budget_max(budget) / SHARE : 0,
    };
}

static void charge(KtTracer *t, GsKernel *k)
{
    uint64_t bytes;

    do {
        bytes = gs_kernel_bytes(k);
        kt_budget_set(kt_tracer_budget(t), KT_MEM_KERNEL, bytes);
        /* another vCPU may have added code meanwhile: then publish again */
    } while (gs_kernel_bytes(k) != bytes);
    kt_tracer_count(t, KT_CNT_MODULES_EVICTED,
                    gs_kernel_n_evicted_modules(k));
    kt_tracer_count(t, KT_CNT_MODULES_UNTYPED,
                    gs_kernel_n_untyped_modules(k));
}

bool kt_load_code(KtTracer *t, GsKernel *k, KtGuest *g, KtLoadFn add,
                  uint64_t va)
{
    const GsMem mem = begin(t, k, g);
    bool added = add(k, &mem, va, NULL);

    charge(t, k);
    return added;
}

bool kt_load_module(KtTracer *t, GsKernel *k, KtGuest *g, uint64_t va,
                    const GsModuleFile *file)
{
    const GsMem mem = begin(t, k, g);
    bool added = gs_kernel_add_module(k, &mem, va, file, NULL);

    charge(t, k);
    return added;
}

void kt_load_modules(KtTracer *t, GsKernel *k, GsBytes *u, bool loads)
{
    KtBudget *budget = kt_tracer_budget(t);
    uint64_t room = kt_budget_room(budget, KT_MEM_KERNEL);

    kt_tracer_count(t, KT_CNT_MODULES_FAILED,
                    gs_kernel_unpack_modules(k, u, room, loads));
    kt_budget_set(budget, KT_MEM_KERNEL, gs_kernel_bytes(k));
}
