/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The self-check: `ka check` and the option check=on.
 *
 * It compares everything that the tracer keeps with each other: the map, the
 * blocks, their lists, the history, the errors, the sums. A violation is a bug
 * of ka, never of the guest.
 */
#ifndef KT_API_CHECK_H
#define KT_API_CHECK_H

#include "kalloc-tracer/api/kt-types.h"

/** What must hold: the rows of checks.def. */
typedef enum KtCheckRule {
#define KT_CHECK(id, name, text) KT_CHECK_##id,
#include "kalloc-tracer/api/checks.def"
    KT_CHECK__COUNT
} KtCheckRule;
const char *kt_check_name(KtCheckRule rule);
/** kt_check_text() - return one line that says what a violation is. */
const char *kt_check_text(KtCheckRule rule);

/** Called for a violation. @where: the block, node or row. The tracer's lock
 *  is held. */
typedef void (*KtCheckFn)(KtCheckRule rule, const char *where, void *opaque);

/**
 * struct KtCheckFns - callbacks of kt_query_check()
 * @violation: (nullable) called for the first violation of each rule
 * @progress: (nullable) called now and then
 */
typedef struct KtCheckFns {
    KtCheckFn violation;
    void (*progress)(uint64_t done, uint64_t total, void *opaque);
    void *opaque;
} KtCheckFns;

/**
 * struct KtCheckReport - what was checked
 * @blocks, @nodes: blocks, and nodes of the maps
 * @index: places in the lists of stacks
 * @history, @errors: past lives and errors
 * @calls: pending calls
 * @violations: how many there were, of all rules
 */
typedef struct KtCheckReport {
    uint64_t blocks, nodes, index, history, errors, calls;
    uint64_t violations;
} KtCheckReport;

/** kt_query_check() - check everything. Call it between kt_query_begin() and
 *  kt_query_end(). 10 million blocks take seconds. */
void kt_query_check(KtTracer *t, const KtCheckFns *fns, KtCheckReport *out);
/** kt_query_checked() - call @fn for what check=on found earlier, the first
 *  violation of each rule. Call it between kt_query_begin() and
 *  kt_query_end(). */
void kt_query_checked(KtTracer *t, KtCheckFn fn, void *opaque);
/** kt_tracer_set_check() - check while the VM runs (check=on), and call @fn on
 *  the consumer thread for the first violation of each rule. Call it before
 *  kt_tracer_start(). */
void kt_tracer_set_check(KtTracer *t, KtCheckFn fn, void *opaque);

#endif /* KT_API_CHECK_H */
