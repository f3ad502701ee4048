/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The inside of faults: rules, and what a tracer has of them.
 *
 *     request of call points ----> KtRule ---- spec
 *                                               | (each has a reference)
 *     KtFaults ---- log[] ----------------------'
 *
 * The table of call points has the rules: a rule belongs to its request, which
 * lives as long as a published set of call points has it.
 */
#ifndef KT_FAULTS_INTERNAL_H
#define KT_FAULTS_INTERNAL_H

#include "kalloc-tracer/calls/calls.h"
#include "kalloc-tracer/faults/fault-rules.h"
#include "kalloc-tracer/hooks/hook-table.h"

/* ---- the functions of a point (fault-points.c) --------------------------- *
 *
 * The tables are faults.def and the hook table. Any thread; the results do not
 * change. */

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

/* ---- rules --------------------------------------------------------------- */

/** kt_fault_spec_copy() - (owned) Copy a spec; the copy has a reference count
 *  (g_atomic_rc_box), and its strings are its own. */
KtFaultSpec *kt_fault_spec_copy(const KtFaultSpec *spec);
void kt_fault_spec_unref(const KtFaultSpec *spec);
/** kt_fault_records_new() - (owned, g_ptr_array_unref) Make an empty array of
 *  KtFaultRecord. */
GPtrArray *kt_fault_records_new(void);
/** kt_fault_records_add() - Append a copy of a record, with a reference on its
 *  spec, which is of kt_fault_spec_copy(). */
void kt_fault_records_add(GPtrArray *records, const KtFaultRecord *r);

/** struct KtRuleCount - the calls of one stack, see KtFaultStack */
typedef struct KtRuleCount {
    KtCallCount of;
    uint64_t selected;
    KtFaultRecord first;
} KtRuleCount;

/**
 * struct KtRule - a rule
 * @faults: not used when the rule is freed, which can be after them
 * @condition: its counts are KtRuleCount. @inner, @inside, @task_name,
 *             @task_child: numbers of its rules; -1: none
 * @left_out: functions of its set that it is not about
 * @prototype: (nullable) of its one function
 * @functions: KtFaultFunction; replaced at a boot, while no vCPU reads it
 * @seen: cache: point id -> index in @functions + 1; atomic
 * @calls ... @refused: atomic
 */
typedef struct KtRule {
    uint32_t id;
    struct KtFaults *faults;
    KtFaultSpec *spec;
    KtCallCondition *condition;
    int inner, inside, task_name, task_child;
    unsigned left_out;
    bool has_value;
    int64_t value;
    GsPrototype *prototype;
    GArray *functions;
    uint32_t seen[256];
    uint64_t calls, selected, done, unknown, divided;
    uint64_t refused[KT_REFUSED__COUNT];
} KtRule;

typedef struct KtFaultCode {
    uint64_t start, end;
} KtFaultCode;

/**
 * struct KtFaults - the faults of a tracer
 * @allocators, @insides: sets of names of functions
 * @lock: of @next, the number of the next rule, and of the log
 * @log: of kt_fault_records_new()
 * @save_lock: only one thread writes to the journal; locked before @lock
 * @saved, @saved_full: what is in the journal: the first records, that the log
 *                      is full
 * @warn: (nullable) is called when the log is full
 * @seed: atomic
 * The rest belongs to the boot:
 * @layout: what conditions need to know of the kernel
 * @ranges: KtFaultCode, sorted: code of @allocators
 * @slab_panic: the flag SLAB_PANIC
 * @running: value of system_state from which on the kernel runs
 * @system_state: its address, 0: unknown
 * @up: (atomic) system_state was @running
 */
typedef struct KtFaults {
    KtTracer *tracer;
    KtBudget *budget;
    bool off;
    GHashTable *allocators, *insides;
    GMutex lock;
    uint32_t next;
    GPtrArray *log;
    bool log_full;
    GMutex save_lock;
    unsigned saved;
    bool saved_full;
    void (*warn)(const char *line);
    uint64_t seed;
    KtGfp gfp;
    KtCallLayout layout;
    GArray *ranges;
    uint32_t slab_panic;
    uint64_t system_state;
    uint32_t running;
    bool up;
} KtFaults;

/** kt_faults_of() - (borrowed for the tracer's life) Return the faults. */
KtFaults *kt_faults_of(KtTracer *t);

/** kt_rule_new() - (owned) Make a rule of @spec, without a number. */
KtRule *kt_rule_new(KtFaults *f, const GsKernel *k, const KtFaultSpec *spec,
                    GError **errp);
/** kt_fault_rule_free() - Free a rule; a GDestroyNotify. */
void kt_fault_rule_free(void *rule);
/** kt_rule_find_functions() - Find the rule's functions in a kernel. */
void kt_rule_find_functions(KtRule *r, const GsKernel *k);
/** kt_rule_points() - (owned) Return the text of its request of points. */
char *kt_rule_points(const KtRule *r);

/** kt_faults_rules() - Call @fn for each rule (the @opaque of its request),
 *  until it returns false; under the lock of the call points. */
void kt_faults_rules(KtTracer *t, KtPointRequestFn fn, void *opaque);
/** kt_faults_append() - Append a record to the log, with a reference on its
 *  spec. Returns: false if the log is full. */
bool kt_faults_append(KtFaults *f, const KtFaultRecord *rec);

#endif /* KT_FAULTS_INTERNAL_H */
