/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One vCPU as capture sees it: registers, caches, counters. Used by the
 * vCPU's own thread; others only read the counters.
 */
#ifndef KT_VCPU_H
#define KT_VCPU_H

#include "kalloc-tracer/kernel/guest.h"
#include "kalloc-tracer/hooks/hooks.h"
#include "kalloc-tracer/capture/plugin-api.h"

/* The last page free that may leave its work to another hook. */
typedef struct KtPageFree {
    uint64_t sp, ra, va, len;
    KtHookId id;
} KtPageFree;

/* What tells one call of a hooked function from another. */
typedef struct KtEntered {
    uint64_t id, sp, top, arg0, arg1;
} KtEntered;

/* A register for people; @name is the API's. */
typedef struct KtVcpuReg {
    const char *name;
    const uint64_t *at;
} KtVcpuReg;

/* What every event needs comes first, in as few cache lines as it takes. */
typedef struct KtVcpu {
    const uint64_t *reg[GS_REG__COUNT];
    GsUnwinder *unwinder;                   /* NULL: no kernel, or not @ready */
    unsigned index;
    unsigned cost_tick:30;
    unsigned ready:1;                       /* @reg is set */
    unsigned trapped:1;                     /* @trap is the last entry */
    KtGuestCpu seen;
    KtReturnSiteWrapper free_site[256];
    uint64_t return_site[1024];             /* known to be ready, by address */
    KtPageFree page_free;
    KtEntered trap;
    uint64_t hits[256];                     /* by hook id */
    uint64_t count[KT_CNT__COUNT];
    uint64_t counted[KT_CNT__COUNT];        /* of it, told to the tracer */
    GArray *shown;                          /* KtVcpuReg; NULL: not there */
} __attribute__((aligned(64))) KtVcpu;

/**
 * kt_vcpu_init() - from the vCPU's init callback
 * @v: zeroed
 * @arch: the guest's
 * Returns: false when a register is not to be had from this QEMU or target.
 */
bool kt_vcpu_init(KtVcpu *v, unsigned index, const GsArch *arch);
/** kt_vcpu_unplug() - it is unplugged: its registers are gone. Counters stay.
 * */
void kt_vcpu_unplug(KtVcpu *v);
/** kt_vcpu_set_kernel() - @k: (borrowed) runs on it from now on, until
 *  kt_vcpu_forget(). */
void kt_vcpu_set_kernel(KtVcpu *v, const GsKernel *k);
/** kt_vcpu_forget() - drop what is known of the boot, and of its kernel. */
void kt_vcpu_forget(KtVcpu *v);

static inline uint64_t kt_vcpu_reg(const KtVcpu *v, GsReg r)
{
    return *v->reg[r];
}

/** kt_vcpu_arg() - argument @n (0-5) at a function's entry. */
static inline uint64_t kt_vcpu_arg(const KtVcpu *v, int n)
{
    static const uint8_t order[] = {
        GS_REG_ARG0, GS_REG_ARG1, GS_REG_ARG2, GS_REG_ARG3, GS_REG_ARG4,
        GS_REG_ARG5
    };

    return n >= 0 && n < 6 ? kt_vcpu_reg(v, order[n]) : 0;
}

/* single writer: a plain add, stored so that readers see whole values */
static inline void kt_vcpu_count(KtVcpu *v, KtCounter c, uint64_t n)
{
    __atomic_store_n(&v->count[c], v->count[c] + n, __ATOMIC_RELAXED);
}

#endif /* KT_VCPU_H */
