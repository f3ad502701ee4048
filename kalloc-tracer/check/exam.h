/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Self-check: compare what the tracer knows with itself. A violation is a bug
 * of ka, or damaged host memory.
 *
 * An examination compares the map, the blocks, their lists by stack, past
 * lives, errors and counts with each other. The rules are the rows of
 * checks.def. An examination changes nothing, and does not crash on damaged
 * data: it checks every index before it follows it.
 *
 * kt_check_whole() visits everything once, and compares sums. kt_check_part()
 * continues where the last call ended, compares neighbours, and skips all that
 * needs a sum; it takes a fraction of a millisecond.
 *
 * Threads: any, with the tracer's lock. checker.c decides when to run.
 */
#ifndef KT_EXAM_H
#define KT_EXAM_H

#include "kalloc-tracer/api/kt-check.h"
#include "kalloc-tracer/base/depot.h"
#include "kalloc-tracer/base/tasks-and-caches.h"
#include "kalloc-tracer/model/model.h"

/**
 * struct KtIndexSet - a set of record numbers, as a bitmap
 * @size: numbers are below it
 * @n: how many numbers are in the set
 */
typedef struct KtIndexSet {
    uint8_t *bits;
    uint64_t size;
    uint64_t n;
} KtIndexSet;

void kt_index_set_init(KtIndexSet *s, uint64_t size);
void kt_index_set_deinit(KtIndexSet *s);
bool kt_index_set_has(const KtIndexSet *s, uint64_t i);
/** kt_index_set_add() - Add a number. Returns: false if it is in the set
 *  already, or not below the size. */
bool kt_index_set_add(KtIndexSet *s, uint64_t i);

/**
 * struct KtExam - an examination of one boot
 * @m: (borrowed) the boot
 * @stacks, @names: (borrowed) the tables that its ids refer to
 * @last_us: time of the newest event
 * @boot: prefix of messages: "", or which boot it is
 * @fns: (borrowed) callbacks for violations and progress
 * @whole: everything is visited, and the members from @recs to @in_rcu count
 * @recs, @ends, @rcus, @nodes: records that were visited
 * @recount: accounts, counted again from the live blocks
 * @live, @freed, @live_bytes, @huge: counted from the blocks
 * @in_alloc, @in_free, @in_rcu: how many blocks must be in the lists by stack
 * @total, @done: parts in all and examined, for progress
 * @report: what was examined and found so far
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
    KtIndexSet recs, ends, rcus, nodes;
    KtAccounts recount;
    uint64_t live, freed, live_bytes, huge;
    uint64_t in_alloc, in_free, in_rcu;
    uint64_t total;
    uint64_t done;
    KtCheckReport report;
    uint64_t found[KT_CHECK__COUNT];
} KtExam;

/** kt_exam_found() - Count a violation of @rule; report the first of each rule
 *  to @x->fns, with the formatted text as the place. */
void kt_exam_found(KtExam *x, KtCheckRule rule, const char *fmt, ...)
    G_GNUC_PRINTF(3, 4);
/** kt_exam_step() - Count @n more examined parts, for progress. */
void kt_exam_step(KtExam *x, uint64_t n);

/** kt_exam_ids() - Return false if one of the ids is not in its table. Id 0 is
 *  always valid. */
bool kt_exam_ids(const KtExam *x, uint32_t stack, uint32_t task,
                 uint32_t cache);

/* ---- check-map.c -------------------------------------------------------- */

/**
 * struct KtLeafWalk - a walk over the leaves of a map, by address
 * @key: a key in the next leaf
 * @next: number of the leaf that the last leaf links to, 0 if unknown
 * @has_last, @last_start, @last: first and last byte of the block before
 */
typedef struct KtLeafWalk {
    KtMapId map;
    uint64_t key;
    uint32_t next;
    bool has_last;
    uint64_t last;
    uint64_t last_start;
} KtLeafWalk;

/** kt_exam_leaf() - Examine the leaf of @w->key, the nodes above it and its
 *  blocks, and advance @w. Returns: false if it was the last leaf. */
bool kt_exam_leaf(KtExam *x, KtLeafWalk *w);
/** kt_exam_map_end() - Compare counts after the last leaf of a map. */
void kt_exam_map_end(KtExam *x, KtMapId id, uint64_t entries);

/* ---- check-block.c ------------------------------------------------------ */

/** kt_exam_entry() - Examine one block of the map. */
void kt_exam_entry(KtExam *x, KtLeafWalk *w, KtMapEntry e);

/* ---- check-index.c ------------------------------------------------------ */

/** kt_exam_free_list() - Each record of pool @p must be either in @seen or in
 *  the pool's list of free records. @what: name of the pool, for messages. */
void kt_exam_free_list(KtExam *x, const KtPool *p, const KtIndexSet *seen,
                       KtCheckRule rule, const char *what);
/** kt_exam_links() - Examine the neighbours of a block in the lists of its
 *  stacks. */
void kt_exam_links(KtExam *x, uint32_t index);
/** kt_exam_lists() - Examine the list of every stack, from its head to its
 *  end. */
void kt_exam_lists(KtExam *x);

/* ---- check-history.c ---------------------------------------------------- */

/** kt_exam_history() - Examine all rows, and that each is found by its
 *  address. */
void kt_exam_history(KtExam *x);
/** kt_exam_history_rows() - Examine @n rows from number *@at on, and advance
 *  *@at. Returns: false if there are no more rows. */
bool kt_exam_history_rows(KtExam *x, uint64_t *at, unsigned n);

/* ---- check.c ------------------------------------------------------------ */

/** struct KtCheckAt - where a partial examination continues; all 0: at the
 *  beginning */
typedef struct KtCheckAt {
    unsigned map;
    uint64_t key;
    uint64_t row;           /* row of the history; 0: the oldest */
} KtCheckAt;

/** kt_check_whole() - Examine all of a boot. */
void kt_check_whole(KtExam *x);
/** kt_check_part() - Examine the next part of a boot. Returns: false if the end
 *  was reached; then @at is the beginning. */
bool kt_check_part(KtExam *x, KtCheckAt *at);

#endif /* KT_EXAM_H */
