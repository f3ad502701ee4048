/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/lib/bare-tracer.h"
#include "tests/lib/fed-tracer.h"

FedTracer fed_tracer_new(bool complete)
{
    const KtConfig config = KT_CONFIG_DEFAULT;
    FedTracer w = { kt_tracer_new(&config, NULL), 100 };

    kt_tracer_set_complete(w.t, complete);
    return w;
}

void fed_tracer_clear(FedTracer *w)
{
    kt_tracer_free(w->t);
}

void push(FedTracer *w, KtEvent ev)
{
    ev.us = w->us++;
    kt_tracer_push(w->t, 0, &ev);
}

void alloc_in(FedTracer *w, KtLayer layer, uint64_t va,
              uint64_t size, uint16_t cache)
{
    push(w, (KtEvent) {
        .kind = KT_EV_ALLOC, .va = va, .size = size, .layer = layer,
        .cache = { cache },
    });
}

void alloc(FedTracer *w, uint64_t va, uint64_t size)
{
    alloc_in(w, KT_LAYER_KMALLOC, va, size, 0);
}

void free_by(FedTracer *w, KtFamily family, uint64_t va, uint16_t cache)
{
    push(w, (KtEvent) {
        .kind = KT_EV_FREE, .va = va, .family = family, .cache = { cache },
    });
}

void kfree(FedTracer *w, uint64_t va)
{
    free_by(w, KT_FAMILY_KFREE, va, 0);
}

void kfree_rcu(FedTracer *w, uint64_t va)
{
    push(w, (KtEvent) { .kind = KT_EV_RCU_QUEUE, .va = va });
}

void resize(FedTracer *w, uint64_t va, uint64_t size)
{
    push(w, (KtEvent) { .kind = KT_EV_RESIZE, .va = va, .size = size });
}

void off_and_on(FedTracer *w)
{
    kt_tracer_set_enabled(w->t, false);
    kt_tracer_set_enabled(w->t, true);
}

static bool append_kind(const KtError *e, void *opaque)
{
    g_string_append_printf(opaque, "%s%s", ((GString *)opaque)->len ? " " : "",
                           kt_error_name(e->kind));
    return true;
}

void expect(FedTracer *w, const char *kinds)
{
    g_autoptr(GString) got = g_string_new(NULL);

    kt_query_begin(w->t);
    kt_query_errors(w->t, 0, UINT64_MAX, append_kind, got);
    kt_query_end(w->t);
    g_assert_cmpstr(got->str, ==, kinds);
}

KtStats stats(FedTracer *w)
{
    return tracer_stats(w->t);
}

static bool ask(FedTracer *w, uint64_t va, KtBlock *b,
                bool (*query)(KtTracer *t, uint64_t va, KtBlock *out))
{
    bool found;

    kt_query_begin(w->t);
    found = query(w->t, va, b);
    kt_query_end(w->t);
    return found;
}

bool find(FedTracer *w, uint64_t va, KtBlock *b)
{
    return ask(w, va, b, kt_query_find);
}

bool find_earlier(FedTracer *w, uint64_t va, KtBlock *b)
{
    return ask(w, va, b, kt_query_earlier);
}

uint64_t counter(FedTracer *w, KtCounter c)
{
    stats(w);
    return kt_tracer_counter(w->t, c);
}
