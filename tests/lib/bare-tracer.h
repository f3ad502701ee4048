/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A tracer with the default options, and its sums. Single-threaded. */
#ifndef BARE_TRACER_H
#define BARE_TRACER_H

#include "kalloc-tracer/kt.h"

/** bare_tracer() - (owned) make a tracer. @mem: bytes that it may use; 0: no
 *  limit. */
static inline KtTracer *bare_tracer(uint64_t mem)
{
    KtConfig config = KT_CONFIG_DEFAULT;

    config.mem_bytes = mem;
    return kt_tracer_new(&config, NULL);
}

/** tracer_stats() - return the sums once all events are applied. */
static inline KtStats tracer_stats(KtTracer *t)
{
    KtStats s;

    kt_query_begin(t);
    kt_query_stats(t, &s);
    kt_query_end(t);
    return s;
}

#endif /* BARE_TRACER_H */
