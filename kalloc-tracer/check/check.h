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
#ifndef KT_CHECK_H
#define KT_CHECK_H

#include "kalloc-tracer/check/exam.h"

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

#endif /* KT_CHECK_H */
