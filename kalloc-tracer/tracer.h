/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The tracer's parts, for tracer.c and query.c only.
 */
#ifndef KT_TRACER_H
#define KT_TRACER_H

#include <pthread.h>

#include "budget.h"
#include "check.h"
#include "counters.h"
#include "depot.h"
#include "journal.h"
#include "kt.h"
#include "model.h"
#include "names.h"
#include "queue.h"

struct KtTracer {
    KtConfig config;        /* .journal is not kept */
    KtBudget *budget;
    KtQueue *queue;
    KtDepot *stacks;
    KtNames *names;
    KtCounters *counters;
    bool enabled;           /* atomic */
    unsigned waiting;       /* atomic: so many are about to take the lock */
    pthread_t applier;
    bool started;           /* there is an applier */
    pthread_mutex_t stop_lock;  /* of @stop */
    pthread_cond_t stopped;
    bool stop;              /* it is to end */
    pthread_mutex_t lock;   /* of all that follows, and of consuming */
    KtModel *model;
    KtModel *previous;      /* the boot before a reset, NULL for none, or when
                             * memory is bounded */
    uint64_t previous_live; /* blocks of that boot */
    bool warned;            /* that blocks are not kept */
    KtJournal *journal;     /* NULL for none */
    KtChecker *checker;     /* NULL: nothing is checked at run time */
    KtCalls *calls;         /* borrowed, for the checker; NULL: not known */
    uint64_t events;        /* applied */
    uint64_t last_us;
};

/** kt_tracer_lock_drained() - take the lock with everything applied that was
 *  pushed before. */
void kt_tracer_lock_drained(KtTracer *t);

#endif /* KT_TRACER_H */
