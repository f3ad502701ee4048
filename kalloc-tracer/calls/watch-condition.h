/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Watch condition: the --if of a request for call records. QEMU-free.
 *
 * The functions of a request have different prototypes, so an argument is found
 * by its name at each call. A name that the function's prototype does not have
 * means the variable of that name (pid, cpu ...), or is not known.
 *
 * Threads: a condition does not change, except for the counts of its stacks,
 * which have a lock. Any thread evaluates.
 */
#ifndef KT_WATCH_CONDITION_H
#define KT_WATCH_CONDITION_H

#include "kalloc-tracer/api/kt-calls.h"
#include "kalloc-tracer/base/budget.h"
#include "kalloc-tracer/calls/watch-functions.h"
#include "kalloc-tracer/conditions/call-values.h"

typedef struct KtWatchCondition KtWatchCondition;

/**
 * struct KtWatchFacts - a call, for the options of a request
 * @call, @args: the record; the result is valid at the return
 * @proto: (nullable) of the function
 * @ops, @opaque, @kernel, @layout: for values that the record does not have
 * @sp: the stack pointer at the entry; 0 at the return
 */
typedef struct KtWatchFacts {
    const KtCall *call;
    const uint64_t *args;
    const GsPrototype *proto;
    const KtCallOps *ops;
    void *opaque;
    const GsKernel *kernel;
    const KtCallLayout *layout;
    uint64_t sp;
} KtWatchFacts;

/** kt_watch_condition_new() - (owned) Compile a condition. @k: (nullable) whose
 *  flags it uses; @budget: (borrowed, nullable) is charged for counts. @errp:
 *  one line. */
KtWatchCondition *kt_watch_condition_new(const char *text,
                                         const KtWatchFunctions *functions,
                                         const GsKernel *k, KtBudget *budget,
                                         GError **errp);
void kt_watch_condition_free(KtWatchCondition *c);
/** kt_watch_condition_text() - (borrowed) Return the text. */
const char *kt_watch_condition_text(const KtWatchCondition *c);

/** kt_watch_condition_at_return() - Return true if it needs the result. */
bool kt_watch_condition_at_return(const KtWatchCondition *c);
/** kt_watch_condition_has_stack() - Return true if it asks about the stack. */
bool kt_watch_condition_has_stack(const KtWatchCondition *c);
/** kt_watch_condition_eval() - Evaluate. Returns: KT_UNKNOWN if a value that is
 *  needed is not known, or for a division by zero. */
KtAnswer kt_watch_condition_eval(KtWatchCondition *c, const KtWatchFacts *f);

/** kt_call_failed() - Does the result mean an error by its type? Without a
 *  prototype: an error pointer, or a negative error number of 32 or 64
 *  bits. */
bool kt_call_failed(const GsPrototype *proto, uint64_t result);

#endif /* KT_WATCH_CONDITION_H */
