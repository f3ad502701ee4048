/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * KtVcpu: registers, caches and counters of one vCPU. Only the vCPU's own
 * thread uses it; other threads may read the counters. The array of KtVcpu
 * lives as long as QEMU.
 */
#ifndef KT_VCPU_H
#define KT_VCPU_H

#include "kalloc-tracer/kernel/guest.h"
#include "kalloc-tracer/hooks/hooks.h"
#include "kalloc-tracer/capture/plugin-api.h"

/** struct KtPageFree - the last free of pages, see record-pages.c */
typedef struct KtPageFree {
    uint64_t sp, ra, va, len;
    KtHookId id;
} KtPageFree;

/** struct KtMisuse - the last error pointer that a function with
 *  KT_ROLE_FREE_OUTER or KT_ROLE_REALLOC got, see record-frees.c */
typedef struct KtMisuse {
    uint64_t sp, ra, va;
} KtMisuse;

/** struct KtAllocating - the last call that this vCPU entered, while accesses
 *  are checked, of a function that allocates from a cache: the key of its
 *  KtPendingCall, which is gone when the call has returned, on any vCPU */
typedef struct KtAllocating {
    uint64_t sp, ra;
} KtAllocating;

/** struct KtEntry - what identifies one call of a hooked function */
typedef struct KtEntry {
    uint64_t id, sp, top, arg0, arg1;
} KtEntry;

/** struct KtVcpuReg - a register for `ka regs`; @name: (borrowed) from QEMU */
typedef struct KtVcpuReg {
    const char *name;
    const uint64_t *at;
} KtVcpuReg;

/**
 * struct KtVcpu - a vCPU; what each event needs comes first
 * @reg: (borrowed) QEMU's copies of the registers
 * @unwinder: NULL: the kernel is unknown, or not @ready
 * @tag_bits: of pointers, see gs_untag()
 * @cost_tick: counts callbacks, to time one in 64
 * @ready: @reg is set
 * @trapped: the last entry was at a breakpoint; @trap describes it
 * @point_trapped: the same of the last call point, and @point_trap
 * @point_stopped: a fault rule stopped the VM at the call of @point_trap
 * @free_site: caches kt_hooks_wrapper() by the return address of frees
 * @return_site: addresses of return sites of hooks that are ready
 * @point_site: the same of call points
 * @hits: entries, by hook id
 * @count: counters of this vCPU
 * @counted: the part of @count that was added to the tracer's counters
 * @suspects, @suspects_ms: suspects of access checks not long ago, and when
 * @recorded_us: time of the last event or suspect, while accesses are checked
 * @code_walks, @code_walks_at: walks by code not long ago, and when
 * @handle: QEMU's handles of @reg, to write registers
 * @shown: of KtVcpuReg; NULL: there is no such vCPU
 */
typedef struct KtVcpu {
    const uint64_t *reg[GS_REG__COUNT];
    GsUnwinder *unwinder;
    uint64_t tag_bits;
    unsigned index;
    unsigned cost_tick:28;
    unsigned ready:1;
    unsigned trapped:1;
    unsigned point_trapped:1;
    unsigned point_stopped:1;
    KtGuestCpu seen;
    KtWrapperCache free_site[256];
    uint64_t return_site[1024];
    uint64_t point_site[1024];
    KtPageFree page_free;
    KtMisuse misused;
    KtEntry trap, point_trap;
    uint64_t hits[256];
    uint64_t count[KT_CNT__COUNT];
    uint64_t counted[KT_CNT__COUNT];
    KtAllocating allocating;
    unsigned suspects;
    uint64_t suspects_ms;
    uint64_t recorded_us;
    unsigned code_walks;
    uint64_t code_walks_at;
    struct qemu_plugin_register *handle[GS_REG__COUNT];
    GArray *shown;
} __attribute__((aligned(64))) KtVcpu;

/**
 * kt_vcpu_init() - Find the registers of a vCPU
 * @v: zeroed
 * @arch: the guest's architecture
 *
 * Call from QEMU's callback for a new vCPU, on the vCPU's thread.
 *
 * Returns: false if QEMU does not have a register that @arch needs.
 */
bool kt_vcpu_init(KtVcpu *v, unsigned index, const GsArch *arch);
/** kt_vcpu_unplug() - Drop the registers of a vCPU that is unplugged. Counters
 *  stay. */
void kt_vcpu_unplug(KtVcpu *v);
/** kt_vcpu_set_kernel() - Set the kernel whose stacks are walked. @k: (borrowed
 *  until kt_vcpu_reset()) */
void kt_vcpu_set_kernel(KtVcpu *v, const GsKernel *k);
/** kt_vcpu_end_points() - Drop the cache of return sites of call points. No
 *  vCPU executes. */
void kt_vcpu_end_points(KtVcpu *v);
/** kt_vcpu_reset() - Drop the kernel and all caches of its boot. */
void kt_vcpu_reset(KtVcpu *v);

/** kt_vcpu_entry() - Return what identifies the call that is at its entry. @id:
 *  of the hook or call point */
KtEntry kt_vcpu_entry(const KtVcpu *v, uint64_t id);

/** kt_vcpu_reg() - Return the value of a register. */
static inline uint64_t kt_vcpu_reg(const KtVcpu *v, GsReg r)
{
    return *v->reg[r];
}

/** kt_vcpu_write_reg() - Set a register. In a callback that may write. Returns:
 *  false if it may not. */
bool kt_vcpu_write_reg(const KtVcpu *v, GsReg r, uint64_t value);

/** Registers that kt_vcpu_write_regs() writes at most. */
#define KT_VCPU_WRITES 2

/** struct KtRegValue - what a register is set to */
typedef struct KtRegValue {
    GsReg reg;
    uint64_t value;
} KtRegValue;

/** What kt_vcpu_write_regs() has done. */
typedef enum KtWritten {
    KT_WRITTEN_NONE,    /* all registers are as before */
    KT_WRITTEN_SOME,    /* those in front are set, and cannot be set back */
    KT_WRITTEN_ALL,
} KtWritten;

/** kt_vcpu_write_regs() - Set @n registers, all or none if QEMU lets them be
 *  set back. In a callback that may write. */
KtWritten kt_vcpu_write_regs(const KtVcpu *v, const KtRegValue *to, unsigned n);

/** kt_vcpu_arg_reg() - Return the register of argument @n, 0 to 7. */
static inline GsReg kt_vcpu_arg_reg(unsigned n)
{
    static const uint8_t order[] = {
        GS_REG_ARG0, GS_REG_ARG1, GS_REG_ARG2, GS_REG_ARG3, GS_REG_ARG4,
        GS_REG_ARG5, GS_REG_ARG6, GS_REG_ARG7
    };

    return (GsReg)order[n];
}

/** kt_vcpu_arg() - Return argument @n, 0 to 5, at a function's entry; 0 if @n
 *  is KT_NO_ARG. */
static inline uint64_t kt_vcpu_arg(const KtVcpu *v, int n)
{
    return n >= 0 && n < 6 ? kt_vcpu_reg(v, kt_vcpu_arg_reg(n)) : 0;
}

/** kt_vcpu_untag() - Return an address without its tag. */
static inline uint64_t kt_vcpu_untag(const KtVcpu *v, uint64_t va)
{
    return gs_untag(v->tag_bits, va);
}

/** kt_vcpu_tag() - Return the tag of an address, see gs_tag_of(). */
static inline uint8_t kt_vcpu_tag(const KtVcpu *v, uint64_t va)
{
    return gs_tag_of(v->tag_bits, va);
}

/** kt_vcpu_pointer() - As kt_vcpu_arg(), for an argument that is an address:
 *  without its tag. */
static inline uint64_t kt_vcpu_pointer(const KtVcpu *v, int n)
{
    return kt_vcpu_untag(v, kt_vcpu_arg(v, n));
}

/** kt_vcpu_count() - Add to a counter. The vCPU is the only writer, so the add
 *  is not atomic; the store is, for readers on other threads. */
static inline void kt_vcpu_count(KtVcpu *v, KtCounter c, uint64_t n)
{
    __atomic_store_n(&v->count[c], v->count[c] + n, __ATOMIC_RELAXED);
}

#endif /* KT_VCPU_H */
