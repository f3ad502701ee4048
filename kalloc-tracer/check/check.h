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

#include "kalloc-tracer/check/exam.h"

/** struct KtCheckAt - where a partial examination goes on; all 0: anew */
typedef struct KtCheckAt {
    unsigned map;
    uint64_t key;
    uint64_t row;           /* of history; 0: the oldest */
} KtCheckAt;

/** kt_check_whole() - all of the boot. */
void kt_check_whole(KtExam *x);
/** kt_check_part() - some of it; false when the end was reached: @at is then
 *  the beginning. */
bool kt_check_part(KtExam *x, KtCheckAt *at);

#endif /* KT_CHECK_H */
