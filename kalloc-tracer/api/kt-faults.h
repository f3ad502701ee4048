/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Faults: rules that make calls of kernel functions fail, and the log of what
 * was made to fail.
 *
 *     kt_faults_add() --> rule --> call points of its functions
 *     a call          --> decide: filters, condition, refusals --> record
 *
 * A decision depends on the rule, the stack's hash and the number of the call
 * among those of this stack. So the same rule gives the same faults in each run
 * in which the guest makes the same calls.
 *
 * Threads: any; locks inside.
 */
#ifndef KT_API_FAULTS_H
#define KT_API_FAULTS_H

#include "kalloc-tracer/api/kt-tracer.h"

/* Rules, records, and stacks that one rule counts, at most. */
#define KT_FAULT_RULES_MAX  64
#define KT_FAULT_LOG_MAX    (1u << 16)
#define KT_FAULT_STACKS_MAX (1u << 16)
#define KT_FAULT_ARGS       6

/** What a rule does with a call that it selects. */
typedef enum KtFaultAction {
    KT_FAULT_DO_FAIL,           /* the call returns an error at once */
    KT_FAULT_DO_LOG,            /* the call goes on; there is a record of it */
    KT_FAULT_DO_STOP,           /* the VM stops at the call, which goes on */
    KT_FAULT_DO__COUNT
} KtFaultAction;
const char *kt_fault_action_name(KtFaultAction action);
bool kt_fault_action_parse(const char *name, KtFaultAction *out);

/** Why ka did not fail a call that a rule selected: the rows of
 *  fault-refusals.def. */
typedef enum KtFaultRefusal {
#define KT_FAULT_REFUSAL(id, name, help) KT_REFUSED_##id,
#include "kalloc-tracer/api/fault-refusals.def"
    KT_REFUSED__COUNT
} KtFaultRefusal;
const char *kt_fault_refusal_name(KtFaultRefusal why);

/** Could the call fail without a rule? */
typedef enum KtFaultChance {
    KT_CHANCE_NONE,             /* the function allocates nothing */
    KT_CHANCE_RARE,             /* GFP_KERNEL of up to 8 pages: hardly ever */
    KT_CHANCE_CGROUP,           /* when a memory cgroup is at its limit */
    KT_CHANCE_LIKELY,           /* it may not wait, or asks for much */
} KtFaultChance;
const char *kt_fault_chance_name(KtFaultChance chance);

/**
 * struct KtFaultSpec - a rule, as the user gives it; all borrowed
 * @what: a point ("kmalloc"), a set ("@mutex"), or a function ("device_add",
 *        "module:func", "func[module]"). A function that the kernel has not is
 *        that of the one loaded module that has it
 * @condition: (nullable) see conditions/condition.h
 * @value: (nullable) what the call returns, an expression of constants; NULL:
 *         what the function's type or the table says
 * @module: (nullable) only calls from code of this module
 * @task: (nullable) only calls of this process and its descendants (a pid), or
 *        of tasks whose name matches (a glob)
 * @times: at most so many faults; 0: any number
 * @early: also while the kernel boots
 * @force: also what is refused for the user's good
 */
typedef struct KtFaultSpec {
    const char *what, *condition, *value, *module, *task;
    uint64_t times;
    KtFaultAction action;
    bool early, force;
} KtFaultSpec;

/**
 * kt_faults_add() - Add a rule
 * @k: (nullable) the running kernel; NULL: it is not found yet
 * @errp: one line: what is wrong with which part of the rule
 *
 * Returns: the rule's number; 0 on error, then nothing has changed.
 */
uint32_t kt_faults_add(KtTracer *t, const GsKernel *k, const KtFaultSpec *spec,
                       GError **errp);
/** kt_faults_remove() - Delete rule @id, all rules if it is 0. Returns: how
 *  many there were. The log stays. */
unsigned kt_faults_remove(KtTracer *t, uint32_t id);
/** kt_faults_set_seed() - Set what rnd100 and rnd10000 depend on;
 *  kt_faults_seed() returns it. */
void kt_faults_set_seed(KtTracer *t, uint64_t seed);
uint64_t kt_faults_seed(KtTracer *t);
/** kt_faults_set_warn() - Have @fn called once, with one line, when the log is
 *  full. @fn: on any thread, without locks. Before the VM runs. */
void kt_faults_set_warn(KtTracer *t, void (*fn)(const char *line));
/** kt_faults_set_off() - Refuse rules from now on (faults=off). */
void kt_faults_set_off(KtTracer *t);

/**
 * struct KtFaultRule - a rule, for listings
 * @spec: (borrowed for the callback)
 * @fails: (borrowed for the callback) what a call that fails returns
 * @n_functions: functions that it is about, in this kernel; @left_out: other
 *               functions of its set, which return nothing, or no error that is
 *               known
 * @calls: calls that --module and --task let through
 * @selected: those whose condition held
 * @done: those that were made to fail, logged or stopped
 * @unknown, @divided: conditions that were false because a value was not
 *                     known, or by a division by zero
 * @stacks: different stacks that were counted
 */
typedef struct KtFaultRule {
    uint32_t id;
    KtFaultSpec spec;
    const char *fails;
    unsigned n_functions, left_out;
    uint64_t calls, selected, done, unknown, divided;
    uint64_t refused[KT_REFUSED__COUNT];
    unsigned stacks;
} KtFaultRule;
typedef bool (*KtFaultRuleFn)(const KtFaultRule *rule, void *opaque);
/** kt_faults_foreach() - Call @fn for each rule, the oldest first, until it
 *  returns false; under a lock. */
void kt_faults_foreach(KtTracer *t, KtFaultRuleFn fn, void *opaque);

/**
 * struct KtFaultRecord - a call that a rule selected
 * @rule: number of the rule
 * @spec: (borrowed as long as the log has it) the rule
 * @function: (borrowed, for the life of the process) the function that was
 *            called
 * @action: what was done
 * @chance: could it have failed by itself?
 * @cut: @hash is of a part of the stack
 * @hash, @n: the stack, and the number of this call of it
 * @times: the number of this call among the rule's calls
 * @value: what the call returned, if it failed
 * @size, @flags: what was requested; 0: unknown, or none
 * @arg: the registers of the arguments
 */
typedef struct KtFaultRecord {
    uint32_t rule;
    const KtFaultSpec *spec;
    const char *function;
    KtFaultAction action;
    KtFaultChance chance;
    bool cut;
    uint64_t us, hash, n, times, value, size;
    uint32_t flags;
    KtStackId stack;
    KtTaskId task;
    uint16_t cpu;
    uint64_t arg[KT_FAULT_ARGS];
} KtFaultRecord;
/** kt_faults_log() - Copy record @i, from 0, the oldest first. Returns: false
 *  behind the last. */
bool kt_faults_log(KtTracer *t, unsigned i, KtFaultRecord *out);
/** kt_faults_log_count() - Return the number of records. @full: (out) calls
 *  were not made to fail, because the log is full */
unsigned kt_faults_log_count(KtTracer *t, bool *full);
/** kt_faults_save() - Write the records that are not in the journal yet to it,
 *  in their place among the events. Any thread that does not hold the tracer's
 *  lock; nothing happens without a journal. */
void kt_faults_save(KtTracer *t);
/** kt_fault_command() - (owned) Return the command that makes the recorded call
 *  fail again: "ka fault add kmalloc --if '...' --times 1". */
char *kt_fault_command(const KtFaultRecord *r);
/** kt_fault_spec_command() - (owned) Return the command that adds a rule. */
char *kt_fault_spec_command(const KtFaultSpec *spec);

/** struct KtFaultStack - a stack that a rule counted. @calls: calls whose
 *  condition was evaluated up to n, or that were selected; @selected: calls
 *  that the rule selected; @first: the first of these, all 0 if there was
 *  none */
typedef struct KtFaultStack {
    uint32_t rule;
    uint64_t hash, calls, selected;
    KtFaultRecord first;
} KtFaultStack;
typedef bool (*KtFaultStackFn)(const KtFaultStack *s, void *opaque);
/** kt_faults_stacks() - Call @fn for each stack of each rule from which it
 *  selected calls, in the order of the hashes, until it returns false; under a
 *  lock. */
void kt_faults_stacks(KtTracer *t, KtFaultStackFn fn, void *opaque);

/** struct KtFaultPointInfo - a point; both strings are static */
typedef struct KtFaultPointInfo {
    const char *name, *help;
} KtFaultPointInfo;
/** kt_fault_point_nth() - Describe point @i, from 0. Returns: false behind the
 *  last. */
bool kt_fault_point_nth(unsigned i, KtFaultPointInfo *out);
/** kt_fault_point_each() - Call @fn for each function of a point that kernel
 *  @k (nullable: all) has, with what a failed call returns. */
void kt_fault_point_each(KtTracer *t, const GsKernel *k, const char *point,
                         void (*fn)(void *opaque, const char *function,
                                    const char *fails), void *opaque);

#endif /* KT_API_FAULTS_H */
