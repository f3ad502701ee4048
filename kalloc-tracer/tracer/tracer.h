/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The tracer's parts, for tracer.c and query.c only.
 */
#ifndef KT_TRACER_H
#define KT_TRACER_H

#include <pthread.h>

#include "kalloc-tracer/base/budget.h"
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
#include "kalloc-tracer/tracer/registry.h"

/** struct KtRecordedStats - sizes of the tracer that wrote a journal. The
 *  journal itself has only those stacks, tasks and caches that events name. */
typedef struct KtRecordedStats {
    bool any;
    KtStats stats;          /* host memory and the bound of it: as then */
} KtRecordedStats;

struct KtTracer {
    KtConfig config;        /* .journal is not kept */
    KtBudget *budget;
    KtQueue *queue;
    KtDepot *stacks;
    KtTasksCaches *names;
    KtHookTable *hooks;
    KtCounters *counters;
    KtModuleEvents *module_events;
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
    bool warned;            /* that blocks are not kept */
    KtJournal *journal;     /* NULL for none */
    KtRegistry registry;    /* boot parts and checks of other rooms */
    GByteArray *status;     /* the last that was written to it */
    uint64_t flushed_at;    /* host's clock, ns */
    uint64_t events;        /* applied */
    uint64_t last_us;
    KtRecordedStats recorded;   /* of a tracer that a journal was read into */
    void (*on_second)(void *opaque);    /* set before there is an applier */
    void *on_second_opaque;
    void (*on_idle)(void *opaque);      /* likewise */
    void *on_idle_opaque;
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

/**
 * kt_tracer_part() - Return what a feature keeps for the running boot
 *
 * The part is made by the first call. Any thread. Returns: (borrowed, for the
 * tracer's life).
 */
void *kt_tracer_part(KtTracer *t, const KtBootPart *row);

/**
 * kt_tracer_add_check() - Let the checker examine more than the model
 * @rule: the rule that does not hold if @fn returns a text
 *
 * @fn is called by `ka check` and by check=on, with the tracer's lock; @opaque
 * is borrowed for the tracer's life. Call before kt_tracer_start().
 */
void kt_tracer_add_check(KtTracer *t, KtCheckRule rule, KtCheckExtra *fn,
                         void *opaque);

/**
 * kt_tracer_on_idle() - Call @fn on the consumer thread when it has nothing
 * to apply
 *
 * @fn has the tracer's lock, and must return within a millisecond or so. The
 * thread sleeps less between two looks at the queue if there is such work.
 * One @fn at most; call before kt_tracer_start().
 */
void kt_tracer_on_idle(KtTracer *t, void (*fn)(void *opaque), void *opaque);

/**
 * kt_tracer_epoch() - Return a number that grows with each reset of the VM and
 * each loaded snapshot
 *
 * Any thread. What was learnt of blocks in another epoch is not valid.
 */
uint64_t kt_tracer_epoch(const KtTracer *t);

/** kt_tracer_modules() - (borrowed) Return the part of loaded modules. */
KtModules *kt_tracer_modules(KtTracer *t);

/** kt_tracer_lock_drained() - take the lock with everything applied that was
 *  pushed before. */
void kt_tracer_lock_drained(KtTracer *t);

/** kt_tracer_tick() - once a second the journal is written, and the status
 *  asked for; on the tracer's own thread, no lock held. */
void kt_tracer_tick(KtTracer *t);

/** kt_tracer_apply_module_events() - those of modules that come behind what is
 *  applied by now; lock held. */
void kt_tracer_apply_module_events(KtTracer *t);

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
