/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The tracer's parts, for tracer.c and query.c only.
 */
#ifndef KT_TRACER_H
#define KT_TRACER_H

#include <pthread.h>

#include "kalloc-tracer/base/budget.h"
#include "kalloc-tracer/check/checker.h"
#include "kalloc-tracer/base/counters.h"
#include "kalloc-tracer/base/depot.h"
#include "kalloc-tracer/hooks/hook-table.h"
#include "kalloc-tracer/journal/journal.h"
#include "kalloc-tracer/kt.h"
#include "kalloc-tracer/model/model.h"
#include "kalloc-tracer/modules/module-leaks.h"
#include "kalloc-tracer/base/tasks-and-caches.h"
#include "kalloc-tracer/modules/module-events.h"
#include "kalloc-tracer/tracer/queue.h"

/** struct KtTold - sizes as the tracer that wrote a file had them: of what it
 *  had interned, a file holds only what events name. */
typedef struct KtTold {
    bool any;
    KtStats stats;          /* host memory and the bound of it: as then */
} KtTold;

struct KtTracer {
    KtConfig config;        /* .journal is not kept */
    KtBudget *budget;
    KtQueue *queue;
    KtDepot *stacks;
    KtTasksCaches *names;
    KtHookTable *hooks;
    KtCounters *counters;
    KtModuleEvents *notes;
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
    uint64_t errors_before; /* error.dropped when @model began */
    KtModules *modules;     /* what they left behind */
    bool warned;            /* that blocks are not kept */
    KtJournal *journal;     /* NULL for none */
    KtChecker *checker;     /* NULL: nothing is checked at run time */
    KtPendingCalls *calls;  /* borrowed, for the checker; NULL: not known */
    GByteArray *status;     /* the last that was written to it */
    uint64_t flushed_at;    /* host's clock, ns */
    uint64_t events;        /* applied */
    uint64_t last_us;
    struct KtLeakScanner *leaks; /* of leak scans; see leak-rules.h */
    KtTold told;            /* of a tracer that was read from a file */
    void (*on_second)(void *opaque);    /* set before there is an applier */
    void *on_second_opaque;
};

/** kt_tracer_budget() - (borrowed) where all of its memory is accounted for,
 *  and what others hold for it. */
KtBudget *kt_tracer_budget(KtTracer *t);

/**
 * kt_tracer_hooks() - (borrowed) Return the hook table of the tracer
 *
 * Change it with kt_hook_table_set() before anything is traced only.
 */
KtHookTable *kt_tracer_hooks(KtTracer *t);

/** kt_tracer_lock_drained() - take the lock with everything applied that was
 *  pushed before. */
void kt_tracer_lock_drained(KtTracer *t);

/** kt_tracer_save_checkpoint() - the journal goes on from what the tracer
 *  knows now, which no events led to; nobody pushes, no lock held. */
void kt_tracer_save_checkpoint(KtTracer *t);

/** kt_tracer_tick() - once a second the journal is written, and the status
 *  asked for; on the tracer's own thread, no lock held. */
void kt_tracer_tick(KtTracer *t);

/** kt_tracer_take_module_events() - those of modules that come behind what is
 *  applied by now; lock held. */
void kt_tracer_take_module_events(KtTracer *t);

/* Of a tracer that is made of a file; it has no applier and nobody pushes. */

/** kt_tracer_replay() - apply events with this tracer's ids. */
void kt_tracer_replay(KtTracer *t, const KtEvent *ev, unsigned n);
/** kt_tracer_replay_control() - as kt_tracer_reset() and the like, whose gaps
 *  are events of their own here. */
void kt_tracer_replay_control(KtTracer *t, KtControl control, uint32_t value);

/** kt_tracer_replay_module() - @k knows it as loaded, also where it is about
 *  to be unloaded. */
void kt_tracer_replay_module(KtTracer *t, const GsKernel *k, uint64_t module_va,
                             KtModuleEventKind kind);

#endif /* KT_TRACER_H */
