/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Errors: the rules that tell them, and the list of those found.
 *
 * A rule sees a call and the block it hits and says what it thinks; the
 * model acts on it. No rule accuses on the strength of what it cannot know:
 * a block that was here before events went unrecorded may be another one by
 * now. No locking: the tracer's lock covers the list.
 */
#ifndef KT_ERRORS_H
#define KT_ERRORS_H

#include "kalloc-tracer/api/kt-query.h"
#include "kalloc-tracer/model/blocks.h"

/* The list's length; later errors are dropped and counted. */
#define KT_MAX_ERRORS 65536

/** What a rule says of a call. */
typedef enum KtVerdict {
    KT_OK,
    KT_OK_UNKNOWN,      /* nothing is known of that address: counted */
    KT_BAD,             /* an error: its kind is told */
} KtVerdict;

/**
 * struct KtCase - a call and what it hits
 * @ev: the call
 * @rec: the block that contains its address, NULL for none
 * @requested: (KT_EVF_SIZED) the size that was asked for of @rec
 * @certain: every allocation since boot was seen
 * @unseen: what was freed may have been handed out again, and nobody saw it
 * @whole: (pages) the block ends where the freed range ends
 * @again: (pages) the call that freed the block tells so once more
 */
typedef struct KtCase {
    const KtEvent *ev;
    const KtRec *rec;
    uint64_t requested;
    bool certain;
    bool unseen;
    bool whole;
    bool again;
} KtCase;

/** kt_rule_free() - of a KT_EV_FREE. */
KtVerdict kt_rule_free(const KtCase *c, KtErrorKind *kind);
/** kt_rule_free_pages() - the same by the family of pages. */
KtVerdict kt_rule_free_pages(const KtCase *c, KtErrorKind *kind);
/** kt_rule_queue() - of a KT_EV_RCU_QUEUE. Only tells what the free that
 *  follows it could not: that the block was queued or freed before. */
KtVerdict kt_rule_queue(const KtCase *c, KtErrorKind *kind);

/** struct KtErrors - the list, by id */
typedef struct KtErrors {
    GArray *list;       /* KtError */
    unsigned room;      /* so many are paid for */
    KtBudget *budget;   /* borrowed */
} KtErrors;

void kt_errors_init(KtErrors *e, KtBudget *budget);
void kt_errors_deinit(KtErrors *e);
/** kt_errors_add() - @ev was caught; false when the list is full. @block:
 *  (nullable, copied) the block as it was. */
bool kt_errors_add(KtErrors *e, KtErrorKind kind, const KtEvent *ev,
                   const KtBlock *block);
/** kt_errors_keep() - likewise an error that was told elsewhere, but for its
 *  id (copied). */
bool kt_errors_keep(KtErrors *e, const KtError *err);

#endif /* KT_ERRORS_H */
