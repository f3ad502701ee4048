/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Votes of witnesses for the offset of a member: see witnesses.h. */
#include "kalloc-tracer/kernel/witnesses.h"

static void begin(KtVotes *v, KtAgrees agrees, const void *witness,
                  uint32_t end, uint32_t step)
{
    for (uint32_t at = 0; at < end; at += step) {
        if (!agrees(witness, at)) {
            continue;
        }
        if (v->n == KT_VOTES_MAX) {
            v->n = 0;
            return;
        }
        v->at[v->n++] = at;
    }
    v->seen = 1;
}

static void remove_others(KtVotes *v, KtAgrees agrees, const void *witness)
{
    unsigned n = 0;

    for (unsigned i = 0; i < v->n; i++) {
        if (agrees(witness, v->at[i])) {
            v->at[n++] = v->at[i];
        }
    }
    v->n = n;
    v->seen++;
}

void kt_votes_cast(KtVotes *v, KtAgrees agrees, const void *witness,
                   uint32_t end, uint32_t step)
{
    if (v->contradicted) {
        return;
    }
    if (v->seen) {
        remove_others(v, agrees, witness);
    } else {
        begin(v, agrees, witness, end, step);
    }
    v->contradicted = v->seen && !v->n;
}

void kt_votes_remove(KtVotes *v, uint32_t at)
{
    unsigned n = 0;

    for (unsigned i = 0; i < v->n; i++) {
        if (v->at[i] != at) {
            v->at[n++] = v->at[i];
        }
    }
    v->n = n;
}

uint32_t kt_votes_only(const KtVotes *v, unsigned least)
{
    return v->n == 1 && v->seen >= least ? v->at[0] : KT_NO_MEMBER;
}
