/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Errors: the rules that decide whether a call is an error, and the list of
 * errors.
 *
 * The model calls a rule with a call and the block at its address, and acts on
 * the result. A rule reports only what is certain. Example: a block that was
 * allocated before a gap may have been freed and handed out again in the gap;
 * then freeing its address is right, so nothing is reported.
 *
 * No lock: the tracer's lock is held. Rules are pure functions.
 */
#ifndef KT_ERRORS_H
#define KT_ERRORS_H

#include "kalloc-tracer/api/kt-query.h"
#include "kalloc-tracer/model/blocks.h"

/* Length of the list; later errors are dropped, and counted. */
#define KT_MAX_ERRORS 65536

/** The result of a rule. */
typedef enum KtVerdict {
    KT_OK,
    KT_OK_UNKNOWN,      /* nothing is known of the address; is counted */
    KT_BAD,             /* an error; @kind says which */
} KtVerdict;

/**
 * struct KtCase - what a rule decides on
 * @ev: the call
 * @rec: (nullable) the block that contains the call's address
 * @requested: KT_EVF_SIZED: requested bytes of @rec
 * @certain: every allocation since boot was recorded
 * @unseen: freed memory may have been handed out again by a call that was not
 *          recorded
 * @last: pages: the last address that is freed
 * @block_last: pages: the last address of the block
 * @tag: tag of the pointer to @rec that the allocator returned; 0: unknown
 * @gfp: pages: flags of the block's allocation; 0: unknown
 * @again: pages: the call that freed the block may report it once more
 * @removed: pages: the block was not freed, its memory was removed
 */
typedef struct KtCase {
    const KtEvent *ev;
    const KtRec *rec;
    uint64_t requested;
    bool certain;
    bool unseen;
    bool again;
    bool removed;
    uint8_t tag;
    uint32_t gfp;
    uint64_t last;
    uint64_t block_last;
} KtCase;

/** kt_rule_free() - decide on a KT_EV_FREE of any family but pages. */
KtVerdict kt_rule_free(const KtCase *c, KtErrorKind *kind);
/** kt_rule_frees() - return true if a live block is free after the KT_EV_FREE
 *  on which kt_rule_free() decided @v and, if it is KT_BAD, @kind. The kernel
 *  refuses some wrong frees: then the block stays live. */
bool kt_rule_frees(const KtCase *c, KtVerdict v, KtErrorKind kind);
/** kt_rule_free_pages() - decide on a KT_EV_FREE of pages. */
KtVerdict kt_rule_free_pages(const KtCase *c, KtErrorKind *kind);
/** kt_rule_queue() - decide on a KT_EV_RCU_QUEUE. Only reports a block that was
 *  queued or freed before; everything else is found when the free follows. */
KtVerdict kt_rule_queue(const KtCase *c, KtErrorKind *kind);

/** struct KtErrors - the errors of a boot, by id */
typedef struct KtErrors {
    GArray *list;       /* KtError */
    GHashTable *same;   /* what errors of accesses have in common -> id */
    unsigned room;      /* entries that are charged to @budget */
    KtBudget *budget;   /* borrowed */
} KtErrors;

void kt_errors_init(KtErrors *e, KtBudget *budget);
void kt_errors_deinit(KtErrors *e);
/** kt_errors_add() - add the error that @ev made. @block: (nullable, copied)
 *  the block before @ev. Return false if the list is full. */
bool kt_errors_add(KtErrors *e, KtErrorKind kind, const KtEvent *ev,
                   const KtBlock *block);
/** kt_errors_add_access() - add the error of an access, or count it as a repeat
 *  of one with the same instruction and stacks. @err: (copied) @access.count is
 *  set here. As kt_errors_add(). */
bool kt_errors_add_access(KtErrors *e, const KtError *err);
/** kt_errors_keep() - add an error of a snapshot (copied), with a new id. As
 *  kt_errors_add(). */
bool kt_errors_keep(KtErrors *e, const KtError *err);

/** kt_errors_index() - find repeats by the present ids of stacks, which were
 *  renumbered. */
void kt_errors_index(KtErrors *e);

#endif /* KT_ERRORS_H */
