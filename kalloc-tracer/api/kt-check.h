/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The self-check: `ka check` and check=on.
 */
#ifndef KT_CHECK_API_H
#define KT_CHECK_API_H

#include "kalloc-tracer/api/kt-types.h"

/** What must hold of the tracer's state, the rows of checks.def. */
typedef enum KtCheckRule {
#define KT_CHECK(id, name, text) KT_CHECK_##id,
#include "kalloc-tracer/api/checks.def"
    KT_CHECK__COUNT
} KtCheckRule;
const char *kt_check_name(KtCheckRule rule);
/** kt_check_text() - what is wrong when it does not hold. */
const char *kt_check_text(KtCheckRule rule);

/** Told of a rule that does not hold, and where; under the tracer's lock. */
typedef void (*KtCheckFn)(KtCheckRule rule, const char *where, void *opaque);

/** struct KtCheckFns - who is told: @violation of the first of each rule,
 *  @progress now and then (nullable both) */
typedef struct KtCheckFns {
    KtCheckFn violation;
    void (*progress)(uint64_t done, uint64_t total, void *opaque);
    void *opaque;
} KtCheckFns;

/** struct KtCheckReport - what was examined, and how often a rule did not
 *  hold: blocks, nodes of maps, places in the lists of stacks, past lives,
 *  errors, calls under way */
typedef struct KtCheckReport {
    uint64_t blocks, nodes, index, history, errors, calls;
    uint64_t violations;
} KtCheckReport;

/** kt_query_check() - examine everything; between kt_query_begin() and
 *  kt_query_end(). Some 10 million blocks take seconds. */
void kt_query_check(KtTracer *t, const KtCheckFns *fns, KtCheckReport *out);
/** kt_query_checked() - tell what check=on found before, the first of each
 *  rule; between them, too. */
void kt_query_checked(KtTracer *t, KtCheckFn fn, void *opaque);
/** kt_tracer_set_check() - check=on; before kt_tracer_start(). @fn is told of
 *  the first violation of each rule, on the tracer's own thread. */
void kt_tracer_set_check(KtTracer *t, KtCheckFn fn, void *opaque);

#endif /* KT_CHECK_API_H */
