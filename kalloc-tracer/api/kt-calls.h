/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Calls: functions of the kernel and of its modules that the user watches, and
 * the records of their calls.
 *
 *     kt_calls_add("kfree,mutex_*") --> points --> a record for each call
 *                                                       |
 *     kt_query_calls()  <-------------------------------'
 *
 * A record is made when the call returns. Calls that have not returned yet are
 * listed as well. The newest records are kept (calls=SIZE).
 *
 * Threads: any, unless a function says something else. Functions that change
 * points are called with the kernel unchanged, as monitor commands are.
 */
#ifndef KT_API_CALLS_H
#define KT_API_CALLS_H

#include "kalloc-tracer/api/kt-types.h"

/** struct KtPointId - number of a call point: one function in one boot. Numbers
 *  are not used again in that boot. 0: none */
typedef struct KtPointId {
    uint16_t v;
} KtPointId;

/** What a call point is for: bits. */
typedef enum KtPointUse {
    KT_POINT_WATCH = 1,     /* its calls are recorded */
    KT_POINT_FAULT = 2,     /* its calls may be made to fail */
} KtPointUse;

/* Most functions that one request may match. */
#define KT_POINT_MATCHES_MAX 4096u
/* Most requests that may exist at one time. */
#define KT_POINT_REQUESTS_MAX 256u
/* Most arguments of a call that are recorded. */
#define KT_CALL_ARGS_MAX 8u
/* Bytes behind the arguments of a record, at most. */
#define KT_CALL_EXTRA_MAX 256u

/** Bits of KtCall.flags. */
typedef enum KtCallFlag {
    KT_CALL_UNFINISHED = 1, /* did not return, or not yet; no result */
    KT_CALL_INJECTED = 2,   /* did not run: a fault rule made it return */
    KT_CALL_IRQ = 4,        /* in an interrupt */
    KT_CALL_IRQ_UNKNOWN = 8,
    KT_CALL_BEGIN = 16,     /* no call: the session of a module begins */
    KT_CALL_END = 32,       /* no call: the session ends */
} KtCallFlag;

/**
 * struct KtCall - the record of a call
 * @start_ns: the VM's clock at the entry
 * @took_ns: until the return
 * @result: the result register at the return; for a session mark the number of
 *          the load of the module
 * @caller: return address
 * @cpu, @return_cpu: vCPUs of the entry and of the return
 * @era: when @caller was taken, see gs_kernel_era()
 * @rule: the fault rule that made it return; 0: none
 * @n_args, @n_extra: what follows: arguments, and bytes
 */
typedef struct KtCall {
    uint64_t start_ns, took_ns;
    uint64_t result;
    uint64_t caller;
    uint64_t seq;
    KtTaskId task;
    KtStackId stack;
    uint32_t era;
    KtPointId point;
    uint16_t cpu, return_cpu;
    uint16_t rule;
    uint16_t n_extra;
    uint8_t flags;
    uint8_t n_args;
} KtCall;

/** struct KtCallView - a record and what follows it, borrowed for the call */
typedef struct KtCallView {
    const KtCall *call;
    const uint64_t *args;
    const uint8_t *extra;
} KtCallView;

/** kt_call_arg_of() - Return which argument of a record @reg is, -1: none. */
int kt_call_arg_of(GsReg reg);

/** struct KtPointName - names of a point, also of a deleted one; borrowed until
 *  the end of the boot. @module: NULL for the kernel proper. @proto: NULL if it
 *  is not known; @why_not (static) says why */
typedef struct KtPointName {
    const char *name, *module;
    const GsPrototype *proto;
    const char *why_not;
} KtPointName;

/**
 * struct KtWatchSpec - which calls to record
 * @functions: patterns joined by ","
 * @module: (nullable) only calls from this module; also makes session marks
 * @condition: (nullable) only calls for which it is true
 * @derefs: (nullable) values to read as well, see kt-derefs.h
 * @longer_ns: only calls that take longer
 * @errors: only calls that return an error
 * @stack: record the stack of the caller
 */
typedef struct KtWatchSpec {
    const char *functions;
    const char *module;
    const char *condition;
    const char *derefs;
    uint64_t longer_ns;
    bool errors;
    bool stack;
} KtWatchSpec;

/** kt_calls_configure() - Set the memory for records (calls=SIZE, 0: calls
 *  cannot be watched) and the number of vCPUs. Call once, before vCPUs run. */
void kt_calls_configure(KtTracer *t, uint64_t bytes, unsigned n_cpus);

/**
 * kt_calls_add() - Watch functions
 * @spec: (borrowed for the call)
 * @errp: one line: unknown function, wrong condition, no memory ...
 *
 * Returns: the number of the request, 0 on error; then nothing has changed.
 */
uint32_t kt_calls_add(KtTracer *t, const GsKernel *k, const KtWatchSpec *spec,
                      GError **errp);
/** kt_calls_remove() - End request @id, or all of them if @id is 0. Records
 *  stay. Returns: how many there were. */
unsigned kt_calls_remove(KtTracer *t, uint32_t id);
/** kt_calls_clear() - Drop all records. */
void kt_calls_clear(KtTracer *t);
/** kt_calls_save() - Write the calls that are not in the journal yet to it, in
 *  their place among the events. Any thread that does not hold the tracer's
 *  lock; nothing happens without a journal. */
void kt_calls_save(KtTracer *t);

/** struct KtWatchInfo - a request; strings are borrowed for the call. @text: as
 *  the user gave it, options included. @n_points: functions that it matches */
typedef struct KtWatchInfo {
    uint32_t id;
    const char *text;
    unsigned n_points;
} KtWatchInfo;
typedef bool (*KtWatchFn)(const KtWatchInfo *info, void *opaque);
/** kt_calls_requests() - Call @fn for each request, the oldest first. */
void kt_calls_requests(KtTracer *t, KtWatchFn fn, void *opaque);

/**
 * struct KtPointInfo - a watched function; strings are borrowed for the call
 * @request: the request whose options apply
 * @calls: calls that were entered since it is watched
 * @since_ns: when it was entered first, VM's clock
 * @clone: a copy by the compiler, whose arguments are not the prototype's
 * @n_derefs: values that are read for the request, see kt-derefs.h
 */
typedef struct KtPointInfo {
    KtPointId id;
    uint64_t va;
    KtPointName name;
    uint32_t request;
    uint64_t calls;
    uint64_t since_ns;
    bool clone;
    unsigned n_derefs;
} KtPointInfo;
typedef bool (*KtPointInfoFn)(const KtPointInfo *info, void *opaque);
/** kt_calls_points() - Call @fn for each watched function. */
void kt_calls_points(KtTracer *t, KtPointInfoFn fn, void *opaque);

/** struct KtCallsStats - sizes. @dropped: the oldest records were replaced by
 *  newer ones; @unfinished: calls under way */
typedef struct KtCallsStats {
    uint64_t recorded, dropped, kept, unfinished;
    uint64_t bytes;
    unsigned n_cpus;
} KtCallsStats;
/** kt_calls_stats() - Read the sizes. */
void kt_calls_stats(KtTracer *t, KtCallsStats *out);

/** kt_calls_last_ns() - Return the VM's clock at the last entry of a watched
 *  function; 0: there was none. */
uint64_t kt_calls_last_ns(KtTracer *t);

/** struct KtCallList - copies of calls: @calls, of KtCallView, in the order of
 *  their entries; @bytes: what they point at */
typedef struct KtCallList {
    GByteArray *bytes;
    GArray *calls;
} KtCallList;
void kt_call_list_deinit(KtCallList *l);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(KtCallList, kt_call_list_deinit)

/** kt_query_calls() - Copy all records, and the calls under way. @out: (out)
 *  No vCPU waits longer than a copy of some kilobytes takes. */
void kt_query_calls(KtTracer *t, KtCallList *out);
/**
 * kt_query_calls_after() - Copy the calls that have returned since the last
 * time, some at once
 * @seq: (in, out) @n numbers, one for each vCPU: where to go on; 0: at the
 *       first call
 * @more: (out) there are more, so call again
 *
 * If @more is false, all calls were read that had returned before. Any thread,
 * as kt_query_calls().
 *
 * Returns: how many from @seq on were replaced by newer ones before they were
 * read. Calls that were dropped otherwise are not counted.
 */
uint64_t kt_query_calls_after(KtTracer *t, uint64_t *seq, unsigned n,
                              bool *more, KtCallList *out);
/** kt_call_point_name() - Return the names of a point of this boot; false if
 *  there is none. */
bool kt_call_point_name(KtTracer *t, KtPointId id, KtPointName *out);

#endif /* KT_API_CALLS_H */
