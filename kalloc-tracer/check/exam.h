/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An examination of one boot: what its parts (check-*.c) share.
 */
#ifndef KT_EXAM_H
#define KT_EXAM_H

#include "kalloc-tracer/api/kt-check.h"
#include "kalloc-tracer/base/depot.h"
#include "kalloc-tracer/base/tasks-and-caches.h"
#include "kalloc-tracer/model/model.h"

/** struct KtIndexSet - a set of record numbers; @n: how many are in it */
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
    KtIndexSet recs, ends, rcus, nodes;
    KtAccounts recount;
    uint64_t live, freed, live_bytes, huge;
    uint64_t in_alloc, in_free, in_rcu;     /* that are to be in lists */
    uint64_t total;                         /* parts, for progress */
    uint64_t done;
    KtCheckReport report;
    uint64_t found[KT_CHECK__COUNT];
} KtExam;

/** kt_exam_found() - a violation: the first of a rule is told. */
void kt_exam_found(KtExam *x, KtCheckRule rule, const char *fmt, ...)
    G_GNUC_PRINTF(3, 4);
/** kt_exam_step() - @n more parts were looked at. */
void kt_exam_step(KtExam *x, uint64_t n);

/** kt_exam_ids() - false when one of these is not known. */
bool kt_exam_ids(const KtExam *x, uint32_t stack, uint32_t task,
                 uint32_t cache);

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
void kt_exam_free_list(KtExam *x, const KtPool *p, const KtIndexSet *seen,
                       KtCheckRule rule, const char *what);
/** kt_exam_links() - the neighbours of a block in the lists of its stacks. */
void kt_exam_links(KtExam *x, uint32_t index);
/** kt_exam_lists() - every list from its head to its end. */
void kt_exam_lists(KtExam *x);
/** kt_exam_history() - all rows, and that each is found by its address. */
void kt_exam_history(KtExam *x);
/** kt_exam_history_rows() - @n rows from number @at on, which moves; false
 *  when there is none left. */
bool kt_exam_history_rows(KtExam *x, uint64_t *at, unsigned n);

#endif /* KT_EXAM_H */
