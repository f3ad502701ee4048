/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Checker: decides when a tracer is examined. `ka check` examines everything at
 * once (kt_query_check()).
 *
 * With check=on the consumer thread examines a part of PART_NS whenever it is
 * idle; a round is all parts. A whole examination, with sums, runs on the same
 * thread, at most once a second: it takes 1 / WHOLE_SHARE of the thread's time.
 *
 * Threads: any, with the tracer's lock.
 */
#include "kalloc-tracer/check/exam.h"
#include "kalloc-tracer/tracer/tracer.h"

#include <inttypes.h>
#include <time.h>

#define PART_NS     300000ull       /* some 4 % of the consumer's time */
#define WHOLE_SHARE 50
#define WHOLE_EVERY 1000000000ull   /* at most once a second */

/**
 * struct KtChecker - what a tracer's checker keeps
 * @fn: (nullable) is called for the first violation of each rule, on the
 *      thread that found it, with the tracer's lock held
 */
typedef struct KtChecker {
    KtTracer *tracer;
    KtCheckFn fn;
    void *opaque;
    KtCheckAt at;                   /* of the running boot */
    uint64_t whole_ns;              /* what the last one took */
    uint64_t whole_at;              /* when it ended */
    char *told[KT_CHECK__COUNT];    /* where a rule was violated first */
} KtChecker;

static uint64_t now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static void *checker_new(KtBudget *budget)
{
    return g_new0(KtChecker, 1);
}

static void checker_free(void *part)
{
    KtChecker *c = part;

    for (unsigned i = 0; i < KT_CHECK__COUNT; i++) {
        g_free(c->told[i]);
    }
    g_free(c);
}

static void checker_reset(void *part, KtBootEnd why)
{
    KtChecker *c = part;

    c->at = (KtCheckAt) { 0 };
}

static const KtBootPart checker_part = {
    .name = "checker",
    .new = checker_new,
    .free = checker_free,
    .reset = checker_reset,
};

/* ---- one examination ---------------------------------------------------- */

static KtExam exam_of(const KtTracer *t, const KtModel *m,
                      const KtCheckFns *fns)
{
    return (KtExam) {
        .m = m, .stacks = t->stacks, .names = t->names,
        .last_us = t->last_us, .fns = fns,
        .boot = m == t->previous ? "of the boot before: " : "",
    };
}

/* Events are counted by kind when they are applied: the sum must be the number
 * of applied events. */
static void check_events(KtExam *x, KtTracer *t)
{
    static const KtCounter kinds[] = {
        KT_CNT_EV_ALLOC, KT_CNT_EV_FREE, KT_CNT_EV_RESIZE, KT_CNT_EV_RCU,
        KT_CNT_GAPS, KT_CNT_EV_DESTROY, KT_CNT_EV_REMOVE, KT_CNT_EV_ACCESS,
    };
    uint64_t sum = 0;

    for (unsigned i = 0; i < G_N_ELEMENTS(kinds); i++) {
        sum += kt_counters_get(t->counters, kinds[i]);
    }
    if (sum != t->events) {
        kt_exam_found(x, KT_CHECK_COUNT_EVENTS, "%" PRIu64 " were applied, "
                      "their kinds have %" PRIu64, t->events, sum);
    }
}

/* The shadow and the map are made of the same events. */
static void check_accesses(KtExam *x, const KtTracer *t)
{
    uint64_t n = kt_counters_get(t->counters, KT_CNT_ACCESS_DISAGREED);

    if (n) {
        kt_exam_found(x, KT_CHECK_ACCESS, "%" PRIu64 " accesses "
                      "(access.disagreed)", n);
    }
}

/* A batch of events counts in the model; kt_model_apply() adds the numbers to
 * the counters at its end. What is not added yet is added here. */
static uint64_t count_of(const KtTracer *t, KtCounter c)
{
    return kt_counters_get(t->counters, c) + t->model->count[c];
}

/* Each block that was ever allocated must be in the map, in the history, or in
 * a counter of what was dropped: see docs/limits.md. */
static void check_accounts(KtExam *x, const KtTracer *t)
{
    static const KtCounter gone[] = {
        KT_CNT_EVICT_HISTORY, KT_CNT_EVICT_FREED, KT_CNT_DROP_BLOCK,
        KT_CNT_ALLOC_AGAIN, KT_CNT_FORGOTTEN,
    };
    const KtModel *m = t->model;
    uint64_t made = count_of(t, KT_CNT_EV_ALLOC) + count_of(t, KT_CNT_SPLIT);
    uint64_t found = m->live_blocks + m->freed_blocks +
                     kt_history_rows(m->history) +
                     kt_history_evicted(m->history) - m->history_evicted;

    for (unsigned i = 0; i < G_N_ELEMENTS(gone); i++) {
        found += count_of(t, gone[i]);
    }
    if (made != found) {
        kt_exam_found(x, KT_CHECK_COUNT_ACCOUNTS, "%" PRIu64 " blocks were, "
                      "%" PRIu64 " are told of", made, found);
    }
}

/* What other rooms registered. */
static void check_extra(KtExam *x, const KtTracer *t)
{
    const KtRegisteredCheck *check;

    for (unsigned i = 0; (check = kt_registry_check(&t->registry, i)); i++) {
        g_autofree char *where = check->fn(check->opaque, &x->report);

        if (where) {
            kt_exam_found(x, check->rule, "%s", where);
        }
    }
}

static void check_threads(KtExam *x, KtTracer *t)
{
    g_autofree char *where = kt_queue_check(t->queue);

    if (where) {
        kt_exam_found(x, KT_CHECK_QUEUE_ORDER, "%s", where);
    }
    check_extra(x, t);
    check_events(x, t);
    check_accounts(x, t);
    check_accesses(x, t);
}

static void add_report(KtCheckReport *sum, const KtCheckReport *r)
{
    sum->blocks += r->blocks;
    sum->nodes += r->nodes;
    sum->index += r->index;
    sum->history += r->history;
    sum->errors += r->errors;
    sum->calls += r->calls;
    sum->violations += r->violations;
}

static void check_whole(KtTracer *t, const KtCheckFns *fns, KtCheckReport *out)
{
    const KtModel *boots[] = { t->model, t->previous };

    *out = (KtCheckReport) { 0 };
    for (unsigned i = 0; i < G_N_ELEMENTS(boots) && boots[i]; i++) {
        KtExam x = exam_of(t, boots[i], fns);

        kt_check_whole(&x);
        if (i == 0) {
            check_threads(&x, t);
        }
        add_report(out, &x.report);
    }
    kt_counters_add(t->counters, KT_CNT_CHECK_VIOLATIONS, out->violations);
}

void kt_query_check(KtTracer *t, const KtCheckFns *fns, KtCheckReport *out)
{
    check_whole(t, fns, out);
}

void kt_query_checked(KtTracer *t, KtCheckFn fn, void *opaque)
{
    const KtChecker *c = kt_tracer_part(t, &checker_part);

    for (unsigned i = 0; i < KT_CHECK__COUNT; i++) {
        if (c->told[i]) {
            fn(i, c->told[i], opaque);
        }
    }
}

/* ---- at run time -------------------------------------------------------- */

static void on_violation(KtCheckRule rule, const char *where, void *opaque)
{
    KtChecker *c = opaque;

    if (c->told[rule]) {
        return;
    }
    c->told[rule] = g_strdup(where);
    if (c->fn) {
        c->fn(rule, where, c->opaque);
    }
}

static void run_part(KtChecker *c, const KtCheckFns *fns)
{
    KtTracer *t = c->tracer;
    KtExam x = exam_of(t, t->model, fns);
    uint64_t until = now_ns() + PART_NS;
    bool more = true;

    while (more && now_ns() < until) {
        more = kt_check_part(&x, &c->at);
    }
    if (!more) {
        kt_counters_add(t->counters, KT_CNT_CHECK_ROUNDS, 1);
    }
    kt_counters_add(t->counters, KT_CNT_CHECK_VIOLATIONS,
                    x.report.violations);
}

static bool whole_is_due(const KtChecker *c, uint64_t now)
{
    return now - c->whole_at >= MAX(WHOLE_EVERY, c->whole_ns * WHOLE_SHARE);
}

/* A part of it, or all of it if that is due. */
static void run(void *opaque)
{
    KtChecker *c = opaque;
    KtTracer *t = c->tracer;
    const KtCheckFns fns = { .violation = on_violation, .opaque = c };
    uint64_t begin = now_ns();
    KtCheckReport report;

    if (whole_is_due(c, begin)) {
        check_whole(t, &fns, &report);
        c->whole_at = now_ns();
        c->whole_ns = c->whole_at - begin;
        kt_counters_add(t->counters, KT_CNT_CHECK_WHOLE, 1);
    } else {
        run_part(c, &fns);
    }
    kt_counters_add(t->counters, KT_CNT_CHECK_NS, now_ns() - begin);
}

void kt_tracer_set_check(KtTracer *t, KtCheckFn fn, void *opaque)
{
    KtChecker *c = kt_tracer_part(t, &checker_part);

    c->tracer = t;
    c->fn = fn;
    c->opaque = opaque;
    kt_tracer_on_idle(t, run, c);
}
