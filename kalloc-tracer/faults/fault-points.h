/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fault points: the functions of a point in one kernel, and what a failed call
 * of a function returns. The tables are faults.def and the hook table.
 *
 * Any thread; the results do not change.
 */
#ifndef KT_FAULT_POINTS_H
#define KT_FAULT_POINTS_H

#include "kalloc-tracer/api/kt-faults.h"
#include "kalloc-tracer/conditions/call-condition.h"
#include "kalloc-tracer/hooks/hook-table.h"

/** What a failed call returns. */
typedef enum KtFaultKind {
    KT_FAILS_UNKNOWN,           /* the result's type does not say */
    KT_FAILS_VOID,              /* there is no result */
    KT_FAILS_NULL,
    KT_FAILS_ZERO,              /* a count, or an address */
    KT_FAILS_FALSE,
    KT_FAILS_ERRNO,             /* -ENOMEM */
    KT_FAILS_ERRPTR,            /* -ENOMEM as a pointer */
    KT_FAILS_FAULT,             /* -EFAULT */
    KT_FAILS_INTR,              /* -EINTR */
    KT_FAILS_REST,              /* bytes that were not copied: role.size */
    KT_FAILS_ONES,              /* all bits set */
} KtFaultKind;

/**
 * struct KtFaultFunction - a function that can be made to fail
 * @name: (owned) its symbol, without the module
 * @va: its address; 0: not known yet
 * @role: numbers of arguments
 * @bits: of the result; 0: unknown
 * @allocates: of an allocator: only the outermost call fails
 * @forks: not to be failed: wake_up_new_task(), for child()
 */
typedef struct KtFaultFunction {
    char *name;
    uint64_t va;
    KtFaultKind kind;
    KtCallRoles role;
    uint8_t bits;
    bool allocates, forks;
} KtFaultFunction;

/** kt_fault_functions_new() - (owned, g_array_unref) Make an empty array of
 *  KtFaultFunction. */
GArray *kt_fault_functions_new(void);

/**
 * kt_fault_point_functions() - List the functions of a point
 * @hooks: (borrowed for the call)
 * @k: (nullable) only functions that this kernel has; NULL: all
 *
 * Returns: (owned) KtFaultFunction; NULL if no point has that name.
 */
GArray *kt_fault_point_functions(const KtHookTable *hooks, const GsKernel *k,
                                 const char *point);
/** kt_fault_set_functions() - List the functions of a set of
 *  function-sets.def, "@name". @k: as above. Returns: as above. */
GArray *kt_fault_set_functions(const KtHookTable *hooks, const GsKernel *k,
                               const char *set);

/** kt_fault_function() - Describe function @name of @module (nullable) in
 *  kernel @k (nullable): by faults.def and the hook table, else by its
 *  prototype. @hooks: (borrowed for the call) */
KtFaultFunction kt_fault_function(const KtHookTable *hooks, const GsKernel *k,
                                  const char *module, const char *name);

/** kt_fault_point_known() - Return true if there is a point of that name. */
bool kt_fault_point_known(const char *name);
/** kt_fault_kind_text() - (static) Describe what a failed call returns. */
const char *kt_fault_kind_text(KtFaultKind kind);
/** kt_fault_default() - Return what a failed call of that kind returns. @size:
 *  the value of role.size */
uint64_t kt_fault_default(KtFaultKind kind, uint64_t size);
/** kt_fault_fits() - Return true if a result of that kind and width can be
 *  @value. */
bool kt_fault_fits(const KtFaultFunction *f, int64_t value);

/** kt_fault_allocators() - (owned) Return the set of names of all functions
 *  that allocate; kt_fault_insides() those of KT_FAULT_INSIDE. */
GHashTable *kt_fault_allocators(const KtHookTable *hooks);
GHashTable *kt_fault_insides(void);

#endif /* KT_FAULT_POINTS_H */
