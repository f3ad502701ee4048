/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tracer: the queue of events, the model, and the lock between them.
 *
 * vCPU threads push events. The consumer thread applies them in global order.
 * The model's memory is cold in the vCPU's cache: so the guest does not wait
 * for cache misses of the model. The consumer polls the queue; no producer
 * wakes it, because a wake costs the producer more than many events do. If
 * events come faster than the consumer polls, the producer that finds the queue
 * half full applies them, unless the lock is busy.
 *
 * A query or a reset needs the model of this moment: kt_tracer_lock_drained()
 * takes the lock and applies all events that were pushed before. A place may be
 * reserved but not published yet. Then the lock is released while waiting,
 * because the producer of that place may itself wait for the lock.
 */
#include "kalloc-tracer/hooks/backing-code.h"
#include "kalloc-tracer/tracer/tracer.h"

#include <sched.h>
#include <signal.h>
#include <time.h>

/* A producer checks how full the queue is once every so many events. */
#define LOOK_EVERY  (KT_QUEUE_SLOTS / 8)
/* Sleep of the consumer thread between two polls. Applying events evicts the
 * guest's data from the CPU caches, so the thread applies many at a time. With
 * idle work it polls more often. */
#define NAP_MS      64
#define IDLE_NAP_MS 8
/* Events that are applied between two updates of the queue's done number. */
#define BATCH       64
#define JOURNAL_BYTES ((uint64_t)8 << 20)
#define MAP_BYTES_MAX ((uint64_t)8 << 30)

static void init_stopping(KtTracer *t)
{
    pthread_condattr_t attr;

    pthread_mutex_init(&t->stop_lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&t->stopped, &attr);
    pthread_condattr_destroy(&attr);
}

/* KT_BUDGET_MIN already has room for the first 64 vCPUs. */
static bool check_memory(const KtConfig *c, GError **errp)
{
    uint64_t least = KT_BUDGET_MIN + c->n_cpus / 64 * 64 * KT_BUDGET_VCPU;

    if (!c->mem_bytes || c->mem_bytes >= least) {
        return true;
    }
    g_set_error(errp, GS_ERROR, GS_ERROR_UNSUPPORTED,
                "mem=%" G_GUINT64_FORMAT "k is too little: with %u vCPUs it "
                "takes mem=%" G_GUINT64_FORMAT "M at least",
                c->mem_bytes >> 10, c->n_cpus, least >> 20);
    return false;
}

static void init_memory(KtTracer *t)
{
    uint64_t map_bytes = t->config.map_bytes;

    t->budget = kt_budget_new(t->config.mem_bytes);
    kt_budget_cap(t->budget, KT_MEM_BLOCKS,
                  map_bytes ? MIN(map_bytes, MAP_BYTES_MAX) : MAP_BYTES_MAX);
    kt_budget_charge(t->budget, KT_MEM_FIXED,
                     KT_QUEUE_SLOTS * sizeof(KtEvent) + sizeof(*t) +
                         (t->config.journal ? JOURNAL_BYTES : 0));
}

static KtModel *new_model(KtTracer *t)
{
    KtModel *m = kt_model_new(t->counters, t->budget, t->stacks,
                              t->config.history_bytes);

    t->errors_before = kt_tracer_counter(t, KT_CNT_DROP_ERROR);
    m->observer = t->observer;
    m->accounts.backing = t->backing;
    return m;
}

KtTracer *kt_tracer_new(const KtConfig *config, GError **errp)
{
    g_autoptr(KtTracer) t = NULL;

    if (!check_memory(config, errp)) {
        return NULL;
    }
    t = g_new0(KtTracer, 1);
    t->config = *config;
    init_memory(t);
    t->config.journal = NULL;
    t->queue = kt_queue_new();
    t->stacks = kt_depot_new(MIN(config->max_stacks, KT_MAX_STACKS));
    kt_depot_charge(t->stacks, t->budget, KT_MEM_STACKS);
    t->names = kt_tasks_caches_new(t->budget);
    t->hooks = kt_hook_table_new();
    t->counters = kt_counters_new();
    t->module_events = kt_module_events_new(kt_module_free);
    kt_registry_init(&t->registry);
    kt_tracer_modules(t);
    t->enabled = true;
    pthread_mutex_init(&t->lock, NULL);
    init_stopping(t);
    t->model = new_model(t);
    if (config->journal) {
        t->journal = kt_journal_open(config, t->stacks, t->names,
                                     t->hooks, t->counters, errp);
        if (!t->journal) {
            return NULL;
        }
    }
    return g_steal_pointer(&t);
}

/* ---- applying ----------------------------------------------------------- */

/* Warn once: a guest that can fill the memory can do so again and again. */
static void warn_locked(KtTracer *t)
{
    uint64_t limit = t->config.mem_bytes ?
                         t->config.mem_bytes :
                         kt_budget_used(t->budget, KT_MEM_BLOCKS);
    g_autofree char *line = NULL;

    t->warned = true;
    if (!t->config.warn) {
        return;
    }
    line = g_strdup_printf("live blocks alone fill the %s of %" G_GUINT64_FORMAT
                           " MiB: new ones are counted (block.dropped) and "
                           "not kept until there is room again",
                           t->config.mem_bytes ? "bound (mem=)" : "map's limit",
                           limit >> 20);
    t->config.warn(line);
}

static void apply_locked(KtTracer *t, const KtEvent *ev, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        t->last_us = MAX(t->last_us, ev[i].us);
    }
    if (t->journal) {
        kt_journal_events(t->journal, ev, n);
    }
    kt_model_apply(t->model, ev, n);
    t->events += n;
    if (G_UNLIKELY(t->model->full && !t->warned)) {
        warn_locked(t);
    }
}

static uint64_t thread_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

/* Return how many of the next @n events come before the next module event. 0 if
 * a module event was added just now and is due: the caller tries again. */
static unsigned up_to_module_event_locked(KtTracer *t, unsigned n)
{
    uint64_t done = kt_queue_done(t->queue);

    if (G_LIKELY(kt_module_events_next(t->module_events) >= done + n)) {
        return n;
    }
    kt_tracer_apply_module_events(t);
    return kt_module_events_before(t->module_events, done, n);
}

static void drain_events_locked(KtTracer *t, uint64_t target)
{
    uint64_t done;

    while ((done = kt_queue_done(t->queue)) < target) {
        unsigned n;
        const KtEvent *ev = kt_queue_peek(t->queue, MIN(BATCH, target - done),
                                          &n);

        if (n == 0) {
            return;
        }
        n = up_to_module_event_locked(t, n);
        if (G_LIKELY(n)) {
            apply_locked(t, ev, n);
            kt_queue_consume(t->queue, n);
        }
    }
}

/* Apply published events up to the place @target, and none after it: the
 * journal was promised no more. Stop at the first place that is not
 * published. */
static void drain_locked(KtTracer *t, uint64_t target)
{
    uint64_t since;

    if (kt_queue_done(t->queue) < target) {
        since = thread_ns();
        if (t->journal) {
            kt_journal_promise(t->journal, target);
        }
        drain_events_locked(t, target);
        kt_tracer_count(t, KT_CNT_APPLY_NS, thread_ns() - since);
    }
    kt_tracer_apply_module_events(t);
}

/* Producers that never pause could lock again and again before a waiting query
 * runs. So a producer does not lock while a thread waits: the waiting thread
 * applies the events. */
static bool somebody_waits(const KtTracer *t)
{
    return __atomic_load_n(&t->waiting, __ATOMIC_RELAXED);
}

void kt_tracer_lock_drained(KtTracer *t)
{
    uint64_t target = kt_queue_reserved(t->queue);

    for (;;) {
        __atomic_add_fetch(&t->waiting, 1, __ATOMIC_RELAXED);
        pthread_mutex_lock(&t->lock);
        __atomic_sub_fetch(&t->waiting, 1, __ATOMIC_RELAXED);
        drain_locked(t, target);
        if (kt_queue_done(t->queue) >= target) {
            return;
        }
        pthread_mutex_unlock(&t->lock);
        sched_yield();
    }
}

static void wait_for_slot(KtTracer *t, uint64_t seq)
{
    while (!kt_queue_ready(t->queue, seq)) {
        if (!somebody_waits(t)) {
            pthread_mutex_lock(&t->lock);
            drain_locked(t, seq - 1);
            pthread_mutex_unlock(&t->lock);
        }
        if (!kt_queue_ready(t->queue, seq)) {
            sched_yield();
        }
    }
}

/* Event @seq is pushed. A producer calls this once every LOOK_EVERY events. */
static void look(KtTracer *t, uint64_t seq)
{
    if (seq - kt_queue_done(t->queue) >= KT_QUEUE_SLOTS / 2 &&
        !somebody_waits(t) && pthread_mutex_trylock(&t->lock) == 0) {
        drain_locked(t, seq);
        pthread_mutex_unlock(&t->lock);
    }
    if (t->config.repeatable && t->on_second) {
        t->on_second(t->on_second_opaque);
    }
}

void kt_tracer_push(KtTracer *t, unsigned cpu, const KtEvent *ev)
{
    uint64_t seq = kt_queue_reserve(t->queue);

    if (G_UNLIKELY(!kt_queue_ready(t->queue, seq))) {
        wait_for_slot(t, seq);
    }
    kt_queue_publish(t->queue, seq, ev);
    if (seq % LOOK_EVERY == 0) {
        look(t, seq);
    }
}

/* ---- the consumer thread ------------------------------------------------ */

static void apply_pending(KtTracer *t)
{
    uint64_t target = kt_queue_reserved(t->queue);

    if ((kt_queue_done(t->queue) >= target &&
         kt_module_events_next(t->module_events) > target) ||
        somebody_waits(t) || pthread_mutex_trylock(&t->lock)) {
        return;
    }
    drain_locked(t, target);
    pthread_mutex_unlock(&t->lock);
}

/* A thread that waits for the lock comes first. */
static void work_idle(KtTracer *t)
{
    if (t->on_idle && !somebody_waits(t) &&
        pthread_mutex_trylock(&t->lock) == 0) {
        t->on_idle(t->on_idle_opaque);
        pthread_mutex_unlock(&t->lock);
    }
}

/* Sleep for @ms, or until kt_tracer_stop(). Return true in the second case. */
static bool wait_for_stop(KtTracer *t, unsigned ms)
{
    struct timespec until;
    bool stop;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += ms * 1000000l;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&t->stop_lock);
    while (!t->stop &&
           !pthread_cond_timedwait(&t->stopped, &t->stop_lock, &until)) {
        continue;
    }
    stop = t->stop;
    pthread_mutex_unlock(&t->stop_lock);
    return stop;
}

static void *applier(void *opaque)
{
    KtTracer *t = opaque;

    do {
        kt_tracer_tick(t);
        apply_pending(t);
        work_idle(t);
    } while (!wait_for_stop(t, t->on_idle ? IDLE_NAP_MS : NAP_MS));
    return NULL;
}

/* All signals are blocked in the thread: they are for QEMU's threads. */
void kt_tracer_start(KtTracer *t)
{
    sigset_t all, before;

    if (t->journal) {
        kt_journal_start(t->journal);
    }
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    t->started = pthread_create(&t->applier, NULL, applier, t) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void kt_tracer_stop(KtTracer *t)
{
    if (t->started) {
        pthread_mutex_lock(&t->stop_lock);
        t->stop = true;
        pthread_cond_signal(&t->stopped);
        pthread_mutex_unlock(&t->stop_lock);
        pthread_join(t->applier, NULL);
        t->started = false;
    }
}

void kt_tracer_free(KtTracer *t)
{
    if (!t) {
        return;
    }
    kt_tracer_stop(t);
    drain_locked(t, kt_queue_reserved(t->queue));
    kt_journal_close(t->journal);
    if (t->status) {
        g_byte_array_unref(t->status);
    }
    kt_model_free(t->previous);
    kt_model_free(t->model);
    g_clear_pointer(&t->backing, g_array_unref);
    kt_queue_free(t->queue);
    kt_tasks_caches_free(t->names);
    kt_module_events_free(t->module_events);
    kt_registry_deinit(&t->registry);
    kt_depot_free(t->stacks);
    kt_counters_free(t->counters);
    kt_hook_table_free(t->hooks);
    kt_budget_free(t->budget);
    pthread_mutex_destroy(&t->lock);
    pthread_mutex_destroy(&t->stop_lock);
    pthread_cond_destroy(&t->stopped);
    g_free(t);
}

/* ---- boots --------------------------------------------------------------- */

static void control_locked(KtTracer *t, KtControl control, uint32_t value)
{
    if (t->journal) {
        kt_journal_control(t->journal, control, value);
    }
}

static void apply_gap_locked(KtTracer *t, uint8_t flags)
{
    const KtEvent gap = {
        .kind = KT_EV_GAP, .flags = flags, .us = t->last_us
    };

    apply_locked(t, &gap, 1);
}

static void reset_locked(KtTracer *t)
{
    kt_model_free(t->previous);
    t->previous = t->model;
    t->previous_live = t->model->live_blocks;
    kt_model_count_forgotten(t->model);
    kt_registry_reset(&t->registry, KT_BOOT_RESET);
    kt_model_retire(t->previous);
    if (kt_budget_bounded(t->budget)) {
        g_clear_pointer(&t->previous, kt_model_free);
    }
    g_clear_pointer(&t->backing, g_array_unref);
    t->model = new_model(t);
}

static void clear_locked(KtTracer *t)
{
    bool complete = t->model->complete;
    bool unseen = t->model->unseen, blind = t->model->blind;

    kt_model_count_forgotten(t->model);
    kt_registry_reset(&t->registry, KT_BOOT_CLEAR);
    kt_model_free(t->model);
    t->model = new_model(t);
    t->model->complete = complete;
    t->model->unseen = unseen;
    t->model->blind = blind;
}

void kt_tracer_find_backing(KtTracer *t, const GsKernel *k)
{
    GArray *code = k ? kt_backing_code(k) : NULL;

    kt_tracer_lock_drained(t);
    g_clear_pointer(&t->backing, g_array_unref);
    t->backing = code;
    t->model->accounts.backing = code;
    pthread_mutex_unlock(&t->lock);
}

void kt_tracer_reset(KtTracer *t)
{
    kt_tracer_lock_drained(t);
    reset_locked(t);
    control_locked(t, KT_CONTROL_RESET, 0);
    pthread_mutex_unlock(&t->lock);
}

void kt_tracer_clear(KtTracer *t)
{
    kt_tracer_lock_drained(t);
    clear_locked(t);
    control_locked(t, KT_CONTROL_CLEAR, 0);
    apply_gap_locked(t, 0);
    pthread_mutex_unlock(&t->lock);
}

void kt_tracer_end_certainty(KtTracer *t)
{
    kt_tracer_lock_drained(t);
    apply_gap_locked(t, KT_EVF_BLIND);
    pthread_mutex_unlock(&t->lock);
}

void kt_tracer_set_complete(KtTracer *t, bool complete)
{
    kt_tracer_lock_drained(t);
    t->model->complete = complete;
    control_locked(t, KT_CONTROL_COMPLETE, complete);
    pthread_mutex_unlock(&t->lock);
}

bool kt_tracer_has_gap(KtTracer *t)
{
    bool gap;

    kt_tracer_lock_drained(t);
    gap = t->model->gap;
    pthread_mutex_unlock(&t->lock);
    return gap;
}

void kt_tracer_set_enabled(KtTracer *t, bool on)
{
    kt_tracer_lock_drained(t);
    if (on != kt_tracer_enabled(t)) {
        control_locked(t, KT_CONTROL_ENABLED, on);
        if (on) {
            apply_gap_locked(t, 0);
        }
    }
    __atomic_store_n(&t->enabled, on, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&t->lock);
    if (t->on_switch) {
        t->on_switch(t->on_switch_opaque);
    }
}

bool kt_tracer_enabled(const KtTracer *t)
{
    return kt_tracer_is_on(t);
}

/* ---- replay -------------------------------------------------------------- */

void kt_tracer_replay(KtTracer *t, const KtEvent *ev, unsigned n)
{
    pthread_mutex_lock(&t->lock);
    apply_locked(t, ev, n);
    pthread_mutex_unlock(&t->lock);
}

void kt_tracer_replay_control(KtTracer *t, KtControl control, uint32_t value)
{
    pthread_mutex_lock(&t->lock);
    switch (control) {
    case KT_CONTROL_RESET:
        reset_locked(t);
        break;
    case KT_CONTROL_CLEAR:
        clear_locked(t);
        break;
    case KT_CONTROL_COMPLETE:
        t->model->complete = value;
        break;
    case KT_CONTROL_ENABLED:
        __atomic_store_n(&t->enabled, value != 0, __ATOMIC_RELAXED);
        break;
    }
    pthread_mutex_unlock(&t->lock);
}

/* ---- what other rooms register ------------------------------------------ */

void *kt_tracer_part(KtTracer *t, const KtBootPart *row)
{
    return kt_registry_part(&t->registry, row, t->budget);
}

KtModules *kt_tracer_modules(KtTracer *t)
{
    return kt_tracer_part(t, &kt_modules_part);
}

void kt_tracer_add_check(KtTracer *t, KtCheckRule rule, KtCheckExtra *fn,
                         void *opaque)
{
    kt_registry_add_check(&t->registry,
                          &(KtRegisteredCheck) { rule, fn, opaque });
}

void kt_tracer_on_idle(KtTracer *t, void (*fn)(void *opaque), void *opaque)
{
    t->on_idle = fn;
    t->on_idle_opaque = opaque;
}

void kt_tracer_on_switch(KtTracer *t, void (*fn)(void *opaque), void *opaque)
{
    t->on_switch = fn;
    t->on_switch_opaque = opaque;
}

void kt_tracer_observe(KtTracer *t, const KtObserver *o)
{
    t->observer = o;
    t->model->observer = o;
}

uint64_t kt_tracer_epoch(const KtTracer *t)
{
    return __atomic_load_n(&t->registry.epoch, __ATOMIC_ACQUIRE);
}

/* ---- counters and memory ------------------------------------------------ */

KtBudget *kt_tracer_budget(KtTracer *t)
{
    return t->budget;
}

void kt_tracer_count(KtTracer *t, KtCounter c, uint64_t n)
{
    kt_counters_add(t->counters, c, n);
}

uint64_t kt_tracer_counter(KtTracer *t, KtCounter c)
{
    return kt_counters_get(t->counters, c);
}
