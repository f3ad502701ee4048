/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The tracer object, for this room and the rooms after it. Monitor commands see
 * kt.h only.
 *
 * Producers (vCPU threads) push events to @queue without a lock. One consumer
 * at a time, which holds @lock, applies them to @model and hands them to
 * @journal. Queries hold @lock, too. See docs/concurrency.md.
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
#include "kalloc-tracer/base/boot-part.h"

/* ---- registry ------------------------------------------------------------ */
/*
 * Registry: the boot parts and checks that other rooms registered with a
 * tracer. So the tracer calls rooms that come after it, without including them.
 *
 * Threads: anyone may add and find entries at any time. Entries never move.
 */

#define KT_PARTS_MAX    16
#define KT_CHECKS_MAX   16

/**
 * KtCheckExtra - Examine something that is not in the model
 * @report: add what was examined to its numbers
 *
 * The tracer's lock is held. Returns: (owned, nullable) where something is
 * wrong.
 */
typedef char *KtCheckExtra(void *opaque, KtCheckReport *report);

/** struct KtRegisteredPart - a row, and the object that its new() returned */
typedef struct KtRegisteredPart {
    const KtBootPart *row;
    void *part;
} KtRegisteredPart;

/** struct KtRegisteredCheck - a function, and the rule that it examines */
typedef struct KtRegisteredCheck {
    KtCheckRule rule;
    KtCheckExtra *fn;
    void *opaque;
} KtRegisteredCheck;

/**
 * struct KtRegistry - parts and checks of one tracer
 * @lock: protects adding
 * @n_parts, @n_checks: (atomic) entries that readers may use; entries never
 *                      move and are never removed
 * @epoch: (atomic) grows with each reset and load
 */
typedef struct KtRegistry {
    pthread_mutex_t lock;
    unsigned n_parts, n_checks;
    KtRegisteredPart part[KT_PARTS_MAX];
    KtRegisteredCheck check[KT_CHECKS_MAX];
    uint64_t epoch;
} KtRegistry;

void kt_registry_init(KtRegistry *r);
/** kt_registry_deinit() - Free all parts, the last one first. */
void kt_registry_deinit(KtRegistry *r);

/** kt_registry_part() - Return the part of @row; create it if there is none.
 *  Any thread. Returns: (borrowed until kt_registry_deinit()). */
void *kt_registry_part(KtRegistry *r, const KtBootPart *row, KtBudget *budget);
/** kt_registry_reset() - Reset all parts. The tracer's lock is held. */
void kt_registry_reset(KtRegistry *r, KtBootEnd why);
/** kt_registry_add_check() - Add a check. Any thread. */
void kt_registry_add_check(KtRegistry *r, const KtRegisteredCheck *check);
/** kt_registry_check() - Return the check number @i, NULL after the last. */
const KtRegisteredCheck *kt_registry_check(const KtRegistry *r, unsigned i);

/* ---- tracer -------------------------------------------------------------- */

/** struct KtRecordedStats - sizes of the tracer that wrote a journal. The
 *  journal itself has only those stacks, tasks and caches that events name. */
typedef struct KtRecordedStats {
    bool any;
    KtStats stats;
} KtRecordedStats;

/* Members before @lock are thread-safe by themselves, or are set before
 * kt_tracer_start(). Members after @lock need it. */
struct KtTracer {
    KtConfig config;        /* without .journal, which is borrowed */
    KtBudget *budget;
    KtQueue *queue;
    KtDepot *stacks;
    KtTasksCaches *names;
    KtHookTable *hooks;
    KtCounters *counters;
    KtModuleEvents *module_events;
    bool enabled;           /* atomic */
    unsigned waiting;       /* atomic: threads in kt_tracer_lock_drained() */
    pthread_t applier;      /* the consumer thread */
    bool started;           /* @applier runs */
    pthread_mutex_t stop_lock;  /* protects @stop */
    pthread_cond_t stopped;
    bool stop;              /* @applier has to end */
    pthread_mutex_t lock;   /* protects the members below, and consuming */
    KtModel *model;         /* the running boot */
    KtModel *previous;      /* the boot before the last reset; NULL if there
                             * was none, or if memory is bounded (mem=) */
    uint64_t previous_live; /* live blocks at the end of @previous */
    uint64_t errors_before; /* error.dropped when @model began */
    bool warned;            /* warn_locked() was called */
    KtJournal *journal;     /* NULL: no journal is written */
    KtRegistry registry;    /* boot parts and checks of other rooms */
    GByteArray *status;     /* the last status frame of the journal */
    uint64_t flushed_at;    /* last flush of the journal: host's clock, ns */
    uint64_t events;        /* number of events applied */
    uint64_t last_us;       /* time of the newest event applied */
    KtRecordedStats recorded;   /* of a tracer that a journal was read into */
    const KtObserver *observer; /* of events; NULL: none. Borrowed */
    GArray *backing;        /* kt_backing_code() of the boot's kernel; NULL: not
                             * known */
    void (*on_second)(void *opaque);    /* set before kt_tracer_start() */
    void *on_second_opaque;
    void (*on_idle)(void *opaque);      /* set before kt_tracer_start() */
    void *on_idle_opaque;
    void (*on_switch)(void *opaque);    /* set before kt_tracer_start() */
    void *on_switch_opaque;
};

/** kt_tracer_is_on() - Return true if recording is on. The same as
 *  kt_tracer_enabled(), for callers that run for each event. */
static inline bool kt_tracer_is_on(const KtTracer *t)
{
    return __atomic_load_n(&t->enabled, __ATOMIC_RELAXED);
}

/** kt_tracer_budget() - (borrowed) Return the budget that all of the tracer's
 *  memory is charged to. */
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
 * thread polls the queue more often if there is such work.
 * One @fn at most; call before kt_tracer_start().
 */
void kt_tracer_on_idle(KtTracer *t, void (*fn)(void *opaque), void *opaque);

/** kt_tracer_on_switch() - Call @fn, without a lock, after recording was
 *  switched on or off. One @fn at most; call before kt_tracer_start(). */
void kt_tracer_on_switch(KtTracer *t, void (*fn)(void *opaque), void *opaque);

/**
 * kt_tracer_observe() - Let an observer see each event from now on
 * @o: (borrowed until the next call, nullable) NULL: none
 *
 * The models of later boots have the same observer. The tracer's lock is held.
 */
void kt_tracer_observe(KtTracer *t, const KtObserver *o);

/**
 * kt_tracer_epoch() - Return a number that grows with each reset of the VM and
 * each loaded snapshot
 *
 * Any thread. What was learnt of blocks in another epoch is not valid.
 */
uint64_t kt_tracer_epoch(const KtTracer *t);

/** kt_tracer_modules() - (borrowed) Return the part of loaded modules. */
KtModules *kt_tracer_modules(KtTracer *t);

/**
 * kt_tracer_lock_drained() - Lock the tracer after all events that were pushed
 * before this call are applied
 *
 * Any thread that holds no lock of the tracer; it waits for producers that have
 * reserved a place and not published it. Release with pthread_mutex_unlock().
 */
void kt_tracer_lock_drained(KtTracer *t);
/** kt_tracer_end_certainty() - Add a gap after which no error is certain, up to
 *  the end of the boot. Takes the lock. */
void kt_tracer_end_certainty(KtTracer *t);

/** kt_tracer_tick() - Flush the journal and call @on_second, if a second has
 *  passed since the last time. Do neither if KtConfig.repeatable is set. The
 *  consumer thread, without a lock. */
void kt_tracer_tick(KtTracer *t);

/** kt_tracer_apply_module_events() - Apply the module events whose place is not
 *  after the last event that was applied. The tracer's lock is held. */
void kt_tracer_apply_module_events(KtTracer *t);

/** kt_tracer_settle_journal() - In a run that is repeated, write the events
 *  that were pushed before to the journal: what they refer to is about to
 *  change, and the file has it as it was. Any thread that holds no lock of the
 *  tracer. */
void kt_tracer_settle_journal(KtTracer *t);
/** kt_tracer_save_frame() - Write @frame to the journal, after the events that
 *  were pushed before. @kind: KT_MODULE_EVENT_LOG, _CALLS or _FAULTS. @frame
 *  becomes the tracer's. Any thread; there is a journal. */
void kt_tracer_save_frame(KtTracer *t, KtModuleEventKind kind,
                          GByteArray *frame);

/* For a tracer that a journal is read into: it has no consumer thread, and no
 * events are pushed. */

/** kt_tracer_replay() - Apply @n events, which have ids of this tracer. */
void kt_tracer_replay(KtTracer *t, const KtEvent *ev, unsigned n);
/** kt_tracer_replay_control() - Apply a control frame, as kt_tracer_reset() and
 *  others do, but without a gap: the journal has the gap as an event. */
void kt_tracer_replay_control(KtTracer *t, KtControl control, uint32_t value);

/** kt_tracer_replay_module() - Apply a module event. The module is still loaded
 *  in @k, even if the event is its unload. */
void kt_tracer_replay_module(KtTracer *t, const GsKernel *k, uint64_t module_va,
                             KtModuleEventKind kind);

#endif /* KT_TRACER_H */
