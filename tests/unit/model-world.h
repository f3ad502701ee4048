/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A tracer that is fed events by hand, for tests of the model's rules. */
#ifndef MODEL_WORLD_H
#define MODEL_WORLD_H

#include "kalloc-tracer/kt.h"

#define VA 0xffff888000001000ull

/* A tracer and the time of its next event. */
typedef struct World {
    KtTracer *t;
    uint64_t us;
} World;

static inline World new_world(bool complete)
{
    const KtConfig config = KT_CONFIG_DEFAULT;
    World w = { kt_tracer_new(&config, NULL), 100 };

    kt_tracer_set_complete(w.t, complete);
    return w;
}

static inline void push(World *w, KtEvent ev)
{
    ev.us = w->us++;
    kt_tracer_push(w->t, 0, &ev);
}

static inline void alloc_in(World *w, KtLayer layer, uint64_t va,
                            uint64_t size, uint16_t cache)
{
    push(w, (KtEvent) {
        .kind = KT_EV_ALLOC, .va = va, .size = size, .layer = layer,
        .cache = { cache },
    });
}

static inline void alloc(World *w, uint64_t va, uint64_t size)
{
    alloc_in(w, KT_LAYER_KMALLOC, va, size, 0);
}

static inline void free_by(World *w, KtFamily family, uint64_t va,
                           uint16_t cache)
{
    push(w, (KtEvent) {
        .kind = KT_EV_FREE, .va = va, .family = family, .cache = { cache },
    });
}

static inline void kfree(World *w, uint64_t va)
{
    free_by(w, KT_FAMILY_KFREE, va, 0);
}

static inline void kfree_rcu(World *w, uint64_t va)
{
    push(w, (KtEvent) { .kind = KT_EV_RCU_QUEUE, .va = va });
}

static inline void resize(World *w, uint64_t va, uint64_t size)
{
    push(w, (KtEvent) { .kind = KT_EV_RESIZE, .va = va, .size = size });
}

static inline void off_and_on(World *w)
{
    kt_tracer_set_enabled(w->t, false);
    kt_tracer_set_enabled(w->t, true);
}

/* ---- what was found ----------------------------------------------------- */

static inline bool append_kind(const KtError *e, void *opaque)
{
    g_string_append_printf(opaque, "%s%s", ((GString *)opaque)->len ? " " : "",
                           kt_error_name(e->kind));
    return true;
}

/* Ends the world: its errors, in order, are these. */
static inline void expect(World *w, const char *kinds)
{
    g_autoptr(GString) got = g_string_new(NULL);

    kt_query_begin(w->t);
    kt_query_errors(w->t, 0, UINT64_MAX, append_kind, got);
    kt_query_end(w->t);
    g_assert_cmpstr(got->str, ==, kinds);
    kt_tracer_free(w->t);
}

static inline KtStats stats(World *w)
{
    KtStats s;

    kt_query_begin(w->t);
    kt_query_stats(w->t, &s);
    kt_query_end(w->t);
    return s;
}

static inline bool find(World *w, uint64_t va, KtBlock *b)
{
    bool found;

    kt_query_begin(w->t);
    found = kt_query_find(w->t, va, b);
    kt_query_end(w->t);
    return found;
}

static inline uint64_t counter(World *w, KtCounter c)
{
    stats(w);
    return kt_tracer_counter(w->t, c);
}

#endif /* MODEL_WORLD_H */
