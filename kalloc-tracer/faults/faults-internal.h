/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The inside of faults: rules, and what a tracer has of them.
 *
 *     request of call points ----> KtRule ---- text
 *                                               | (each has a reference)
 *     KtFaults ---- log[] ----------------------'
 *
 * The table of call points has the rules: a rule belongs to its request, which
 * lives as long as a published set of call points has it.
 */
#ifndef KT_FAULTS_INTERNAL_H
#define KT_FAULTS_INTERNAL_H

#include "kalloc-tracer/calls/calls.h"
#include "kalloc-tracer/faults/fault-points.h"
#include "kalloc-tracer/faults/fault-rules.h"

/** struct KtRuleText - the strings of a rule (g_atomic_rc_box) */
typedef struct KtRuleText {
    KtFaultSpec spec;
    char *what, *condition, *value, *module, *task;
} KtRuleText;
KtRuleText *kt_rule_text_new(const KtFaultSpec *spec);
void kt_rule_text_unref(KtRuleText *text);

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
    KtRuleText *text;
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
 * @log: KtFaultRecord*; @log_text: the KtRuleText of each
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
    GPtrArray *log, *log_text;
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
/** kt_faults_append() - Append a record to the log, with a reference to the
 *  rule's text. Returns: false if the log is full. */
bool kt_faults_append(KtFaults *f, KtRuleText *text, const KtFaultRecord *rec);

#endif /* KT_FAULTS_INTERNAL_H */
