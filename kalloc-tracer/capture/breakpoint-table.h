/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table of breakpoints in the guest's code, under KVM. seam-kvm.c decides
 * where they are; QEMU plants them, see qemu_plugin_add_code_hook().
 *
 *     table[hash(va)] -> va | uses | id | function | old byte | state
 *
 * Threads. kt_breakpoint_at() takes no lock: a vCPU calls it at each hit. One
 * thread at a time calls the others; seam-kvm.c says which. A row is never
 * removed while vCPUs execute: without uses it has no breakpoint, and is used
 * again if its address comes back.
 */
#ifndef KT_BREAKPOINT_TABLE_H
#define KT_BREAKPOINT_TABLE_H

#include "kalloc-tracer/kernel/guest.h"

/** What a breakpoint is for, as bits. KEPT: also while recording is off. */
typedef enum KtBreakpointUse {
    KT_AT_ENTRY = 1 << 0,               /* of a hook */
    KT_AT_RETURN = 1 << 1,              /* of a hook */
    KT_AT_SITE = 1 << 2,                /* a call inside an allocator */
    KT_AT_POINT = 1 << 3,               /* the entry of a call point */
    KT_AT_POINT_RETURN = 1 << 4,
    KT_AT_PATCHING = 1 << 5,            /* alternative_instructions() */
    KT_AT_PATCHED = 1 << 6,             /* alternatives_smp_module_add() */
    KT_AT_FOLLOWED = 1 << 7,            /* of a hook with KT_DOES_FOLLOW */
} KtBreakpointUse;

#define KT_AT_POINTS    (KT_AT_POINT | KT_AT_POINT_RETURN)
#define KT_AT_RETURNS   (KT_AT_RETURN | KT_AT_POINT_RETURN)
#define KT_AT_KEPT      (KT_AT_POINTS | KT_AT_PATCHING | KT_AT_PATCHED | \
                         KT_AT_FOLLOWED)

/**
 * struct KtBreakpoint - a breakpoint
 * @va: (atomic) address of the instruction; 0: a free row. Set last
 * @function: (atomic) where the function of a call point begins
 * @use: (atomic) bits of KtBreakpointUse
 * @id: (atomic) of the hook, or the number of the KtHookSite
 * @old: the guest's own byte
 * @added: QEMU has it
 * @disabled: QEMU has it, but the byte is the guest's own
 */
typedef struct KtBreakpoint {
    uint64_t va, function;
    uint32_t use, id;
    uint8_t old;
    bool added, disabled;
} KtBreakpoint;

/** kt_breakpoint_at() - (borrowed, nullable) Return the breakpoint at @va. Any
 *  thread. */
GS_HOT const KtBreakpoint *kt_breakpoint_at(uint64_t va);
/** kt_breakpoint_uses() - Return what a breakpoint is for now. Any thread. */
static inline uint32_t kt_breakpoint_uses(const KtBreakpoint *b)
{
    return __atomic_load_n(&b->use, __ATOMIC_ACQUIRE);
}

/** kt_breakpoints_add() - Note a use; kt_breakpoints_plant() plants it. @id,
 *  @function: 0: as before. Returns: false if the table is full. */
bool kt_breakpoints_add(uint64_t va, KtBreakpointUse use, uint32_t id,
                        uint64_t function);
/** kt_breakpoints_end_uses() - Remove uses; what has none afterwards is planted
 *  no longer after kt_breakpoints_plant(). */
void kt_breakpoints_end_uses(KtBreakpointUse uses);
/** kt_breakpoints_remove() - Remove breakpoints with one of @uses from the
 *  guest, until kt_breakpoints_plant(). */
void kt_breakpoints_remove(KtBreakpointUse uses);
/**
 * kt_breakpoints_plant() - Plant all that have a use and are not planted, and
 * remove those without
 * @refused: is called with the address of each that cannot be planted
 *
 * On a vCPU's thread, in a callback.
 */
void kt_breakpoints_plant(const KtGuest *g,
                          void (*refused)(void *opaque, uint64_t va),
                          void *opaque);
/** kt_breakpoints_replant() - Plant those again that QEMU has withdrawn. On a
 *  vCPU's thread, in a callback. */
void kt_breakpoints_replant(void);
/** kt_breakpoints_enable() - Have breakpoints without a use of KT_AT_KEPT in
 *  the guest or not. Those that are planted later are there in any case. */
void kt_breakpoints_enable(bool on);
/** kt_breakpoints_clear() - Remove all. No vCPU executes, or it finds none and
 *  goes on. */
void kt_breakpoints_clear(void);

/** kt_breakpoints_count() - Return how many there are in the guest. Any
 *  thread. */
unsigned kt_breakpoints_count(void);
/** kt_breakpoints_hide() - Put the guest's own bytes into @buf, which was read
 *  at @va. Any thread. */
void kt_breakpoints_hide(uint64_t va, void *buf, size_t len);

#endif /* KT_BREAKPOINT_TABLE_H */
