/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A tracer that a test feeds with single events, for tests of the model's
 * rules. Each event is one microsecond after the one before. The tracer has no
 * consumer thread, so an event is applied before the function returns.
 * Single-threaded.
 */
#ifndef FED_TRACER_H
#define FED_TRACER_H

#include "kalloc-tracer/kt.h"

#define VA 0xffff888000001000ull

/** struct FedTracer - a tracer (owned) and the time of its next event */
typedef struct FedTracer {
    KtTracer *t;
    uint64_t us;
} FedTracer;

/** fed_tracer_new() - make an empty tracer. @complete: tracing began before
 *  the first allocation. expect() frees it. */
FedTracer fed_tracer_new(bool complete);
void fed_tracer_clear(FedTracer *w);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(FedTracer, fed_tracer_clear)

/* A case with a tracer @w that has traced from the start. */
#define TRACER_TEST(fn, path) \
    TEST_IN(g_auto(FedTracer), FedTracer w, fed_tracer_new(true), fn, path)

/** push() - push an event; its time is set here. */
void push(FedTracer *w, KtEvent ev);

/* Push one event of the kind that the name says. */
void alloc_in(FedTracer *w, KtLayer layer, uint64_t va,
              uint64_t size, uint16_t cache);
void alloc(FedTracer *w, uint64_t va, uint64_t size);
void free_by(FedTracer *w, KtFamily family, uint64_t va, uint16_t cache);
void kfree(FedTracer *w, uint64_t va);
void kfree_rcu(FedTracer *w, uint64_t va);
void resize(FedTracer *w, uint64_t va, uint64_t size);

/** off_and_on() - switch recording off and on, which is a gap. */
void off_and_on(FedTracer *w);

/** expect() - assert that the errors are @kinds: names in order, with a blank
 *  between two. Frees the tracer. */
void expect(FedTracer *w, const char *kinds);

/* Query the tracer once all events are applied. */
KtStats stats(FedTracer *w);
bool find(FedTracer *w, uint64_t va, KtBlock *b);
bool find_earlier(FedTracer *w, uint64_t va, KtBlock *b);
uint64_t counter(FedTracer *w, KtCounter c);

#endif /* FED_TRACER_H */
