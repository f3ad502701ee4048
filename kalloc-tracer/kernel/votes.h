/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * KtVotes: where in a struct is a member whose value is known?
 *
 * A witness is a struct in the guest, and a value that one of its members must
 * have. It votes for each offset that has the value. The offset of the member
 * gets a vote from every witness. Other offsets get some votes by chance, and
 * are removed by the first witness that does not vote for them:
 *
 *     witness            offsets with the value        candidates
 *     kmalloc-8,   8     8 24 28 40 64                 8 24 28 40 64
 *     kmalloc-16, 16     24 28 64                      24 28 64
 *     kmalloc-96, 96     24 28                         24 28
 *     names,    4095     28                            28
 *
 * A removed offset never comes back. If no offset is left, a witness
 * contradicted the others: the member stays unknown for good.
 *
 * Pure functions; the caller has the lock.
 */
#ifndef KT_VOTES_H
#define KT_VOTES_H

#include "kalloc-tracer/hooks/profile.h"

/** KT_VOTES_MAX - candidates that are kept. The first witness that has more of
 *  them is ignored: most of its value's places are there by chance. */
#define KT_VOTES_MAX 256

/**
 * struct KtVotes - the candidates for the offset of one member
 * @at: the candidates, in ascending order
 * @n: their count
 * @seen: witnesses that voted
 * @contradicted: no candidate is left
 *
 * Zeros are an empty vote.
 */
typedef struct KtVotes {
    uint32_t at[KT_VOTES_MAX];
    unsigned n;
    unsigned seen;
    bool contradicted;
} KtVotes;

/** KtAgrees - return true if @witness has its value at offset @at. */
typedef bool (*KtAgrees)(const void *witness, uint32_t at);

/**
 * kt_votes_cast() - count the vote of one witness
 * @agrees: called for each candidate; for the first witness, for each multiple
 *          of @step below @end
 */
void kt_votes_cast(KtVotes *v, KtAgrees agrees, const void *witness,
                   uint32_t end, uint32_t step);
/** kt_votes_remove() - remove @at: another member was found there. */
void kt_votes_remove(KtVotes *v, uint32_t at);
/** kt_votes_only() - return the offset if exactly one is left after at least
 *  @least witnesses, else KT_NO_MEMBER. */
uint32_t kt_votes_only(const KtVotes *v, unsigned least);

#endif /* KT_VOTES_H */
