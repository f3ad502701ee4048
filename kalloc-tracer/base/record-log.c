/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ring of traced events: see record-log.h. */
#include "kalloc-tracer/base/record-log.h"

bool kt_trace_ring_begin(KtTraceRing *r, uint64_t size)
{
    KtTraced *slot = size == r->size ? r->slot : g_try_new(KtTraced, size);

    if (!slot) {
        return false;
    }
    if (slot != r->slot) {
        g_free(r->slot);
    }
    r->slot = slot;
    r->size = size;
    r->begin = r->first = r->last + 1;
    return true;
}

void kt_trace_ring_deinit(KtTraceRing *r)
{
    g_free(r->slot);
}

bool kt_trace_ring_add(KtTraceRing *r, const KtTraced *entry)
{
    bool full = r->last + 1 - r->first == r->size;

    r->last++;
    r->slot[r->last % r->size] = *entry;
    r->first += full;
    return full;
}

uint64_t kt_trace_ring_read(const KtTraceRing *r, uint64_t after, unsigned max,
                            GArray *out, uint64_t *missing)
{
    uint64_t from = after ? after : r->begin - 1;
    uint64_t at = MAX(from, r->first - 1);
    uint64_t n = r->last > at ? MIN(r->last - at, max) : 0;

    g_array_set_size(out, 0);
    *missing = at - from;
    for (uint64_t i = 1; i <= n; i++) {
        g_array_append_val(out, r->slot[(at + i) % r->size]);
    }
    return at + n;
}
