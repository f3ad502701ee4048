/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The status frame of a journal: what `ka stat` prints and events do not say.
 *
 * The tracer writes one each second, the replay reads the last. Pure functions:
 * any thread.
 */
#ifndef KT_STATUS_FRAME_H
#define KT_STATUS_FRAME_H

#include "kalloc-tracer/api/kt-journal.h"
#include "kalloc-tracer/api/kt-query.h"
#include "guest-symbols/base/bytes.h"

/** kt_status_put() - append @s, and the sizes and counters of @stats. */
void kt_status_put(GsOut *out, const KtStatus *s, const KtStats *stats);

/** struct KtStoredStatus - a status that was read; all strings are owned */
typedef struct KtStoredStatus {
    bool kernel_found;
    char *why_no_kernel;        /* nullable */
    KtStats stats;              /* what a status has; the rest is 0 */
    uint64_t counter[KT_CNT__COUNT];
    unsigned n_hooks;
    KtHookStatus *hook;         /* strings in @strings */
    GStringChunk *strings;
} KtStoredStatus;

/** kt_status_get() - read a status (owned); NULL if it is malformed. Counters
 *  that this version does not know are skipped. */
KtStoredStatus *kt_status_get(GsBytes *in);
void kt_status_free(KtStoredStatus *s);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtStoredStatus, kt_status_free)

#endif /* KT_STATUS_FRAME_H */
