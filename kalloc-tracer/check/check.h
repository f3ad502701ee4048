/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Checker: does what the tracer holds fit together? QEMU-free.
 *
 * An examination compares the map, the blocks, their index by stack, past
 * lives, errors and counts with each other. What must hold are the rows of
 * checks.def. It changes nothing, and survives what it finds: every number
 * is looked at before it is followed. The tracer's lock covers it.
 *
 * A whole examination visits everything once and counts along. A partial one
 * goes on where the last ended, compares what is close together, and leaves
 * out what only a sum tells.
 */
#ifndef KT_CHECK_H
#define KT_CHECK_H

#include "kalloc-tracer/capture/pending-calls.h"
#include "kalloc-tracer/base/depot.h"
#include "kalloc-tracer/model/model.h"
#include "kalloc-tracer/base/tasks-and-caches.h"
#include "kalloc-tracer/tracer/queue.h"

/** struct KtSeen - a set of record numbers; @n: how many are in it */
typedef struct KtSeen {
    uint8_t *bits;
    uint64_t size;
    uint64_t n;
} KtSeen;

void kt_seen_init(KtSeen *s, uint64_t size);
void kt_seen_deinit(KtSeen *s);
bool kt_seen_has(const KtSeen *s, uint64_t i);
/** kt_seen_add() - false when it is in there already, or beyond the size. */
bool kt_seen_add(KtSeen *s, uint64_t i);

/**
 * struct KtExam - an examination of one boot
 * @m: (borrowed) the boot; @stacks, @names: (borrowed) what it may refer to
 * @last_us: time of the newest event
 * @boot: which boot it is, for messages
 * @fns: (borrowed) who is told
 * @whole: everything is visited; the sets and sums are kept
 * @recs, @ends, @rcus, @nodes: records visited
 * @recount: (whole) what accounts the live blocks make
 * @report: what was looked at and found
 * @found: violations, by rule
 */
typedef struct KtExam {
    const KtModel *m;
    const KtDepot *stacks;
    const KtTasksCaches *names;
    uint64_t last_us;
    const char *boot;
    const KtCheckFns *fns;
    bool whole;
    KtSeen recs, ends, rcus, nodes;
    KtAccounts recount;
    uint64_t live, freed, live_bytes, huge;
    uint64_t in_alloc, in_free, in_rcu;     /* that are to be in lists */
    uint64_t total;                         /* parts, for progress */
    uint64_t done;
    KtCheckReport report;
    uint64_t found[KT_CHECK__COUNT];
} KtExam;

/** struct KtCheckAt - where a partial examination goes on; all 0: anew */
typedef struct KtCheckAt {
    unsigned map;
    uint64_t key;
    uint64_t row;           /* of history; 0: the oldest */
} KtCheckAt;

/** kt_exam_whole() - all of the boot. */
void kt_exam_whole(KtExam *x);
/** kt_exam_part() - some of it; false when the end was reached: @at is then
 *  the beginning. */
bool kt_exam_part(KtExam *x, KtCheckAt *at);

/** kt_exam_found() - a violation: the first of a rule is told. */
void kt_exam_found(KtExam *x, KtCheckRule rule, const char *fmt, ...)
    G_GNUC_PRINTF(3, 4);
/** kt_exam_step() - @n more parts were looked at. */
void kt_exam_step(KtExam *x, uint64_t n);

/* ---- parts of it, check-*.c --------------------------------------------- */

/** struct KtLeafWalk - the leaves of a map, in their order
 *  @key: one of the leaf to come; @next: number that its predecessor links
 *  to, 0 unknown; @last_va, @has_last: where the block before ended */
typedef struct KtLeafWalk {
    KtMapId map;
    uint64_t key;
    uint32_t next;
    bool has_key;           /* the last key, in @key_before */
    uint64_t key_before;
    bool has_last;
    uint64_t last;
    uint64_t last_start;
} KtLeafWalk;

/** kt_exam_leaf() - the leaf of @w->key, the nodes above it and its blocks;
 *  false when there is none after it. */
bool kt_exam_leaf(KtExam *x, KtLeafWalk *w);
/** kt_exam_map_end() - after the last leaf of a map. */
void kt_exam_map_end(KtExam *x, KtMapId id, uint64_t entries);
/** kt_exam_entry() - a block as the map has it. */
void kt_exam_entry(KtExam *x, KtLeafWalk *w, KtMapEntry e);
/** kt_exam_free_list() - what is free in @p is not in @seen, all else is. */
void kt_exam_free_list(KtExam *x, const KtPool *p, const KtSeen *seen,
                       KtCheckRule rule, const char *what);
/** kt_exam_links() - the neighbours of a block in the lists of its stacks. */
void kt_exam_links(KtExam *x, uint32_t index);
/** kt_exam_lists() - every list from its head to its end. */
void kt_exam_lists(KtExam *x);

/** kt_exam_ids() - false when one of these is not known. */
bool kt_exam_ids(const KtExam *x, uint32_t stack, uint32_t task,
                 uint32_t cache);

/* ---- the tracer's ------------------------------------------------------- */

typedef struct KtChecker KtChecker;

/**
 * kt_checker_new() - (owned) checks at run time
 * @fn: (nullable) is told of the first violation of each rule, on the thread
 *      that found it, with the tracer's lock held
 */
KtChecker *kt_checker_new(KtCheckFn fn, void *opaque);
void kt_checker_free(KtChecker *c);

/** kt_checker_run() - a part of it, and all of it where that is due; the
 *  tracer's lock is held. */
void kt_checker_run(KtTracer *t);

/** kt_tracer_set_calls() - (borrowed for the tracer's life) the table of calls
 *  under way; before kt_tracer_start(). */
void kt_tracer_set_calls(KtTracer *t, KtPendingCalls *calls);

#endif /* KT_CHECK_H */
