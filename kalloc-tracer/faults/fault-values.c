/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Values of a call that rules decide about: see fault-values.h. */
#include "kalloc-tracer/faults/fault-values.h"

#include <string.h>

bool kt_fault_need_n(KtDecision *d)
{
    if (!d->have_n && kt_call_need_stack(&d->v)) {
        d->have_n = true;
        d->lost = !kt_rule_count(d->r, d->v.facts.hash, &d->n);
    }
    return d->have_n && !d->lost;
}

static uint64_t mix(uint64_t x)         /* splitmix64 */
{
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

static bool fetch_random(KtDecision *d, uint64_t below, int64_t *out)
{
    uint64_t seed = __atomic_load_n(&d->f->seed, __ATOMIC_RELAXED);

    if (!kt_fault_need_n(d)) {
        return false;
    }
    *out = mix(mix(mix(seed) ^ d->v.facts.hash) ^ d->n) % below;
    return true;
}

/* The cache that argument .cache of the function points at. */
static bool find_cache(const KtDecision *d, KtCacheInfo *out)
{
    uint64_t va;

    return kt_call_word(&d->v, d->fn->cache, &va) &&
           d->c->ops->cache(d->c->opaque, va, out);
}

bool kt_fault_size(const KtDecision *d, int64_t *out)
{
    KtCacheInfo cache;
    uint64_t word;

    if (kt_call_word(&d->v, d->fn->size, &word)) {
        *out = word;
        return true;
    }
    if (find_cache(d, &cache)) {
        *out = cache.object_size;
        return true;
    }
    return false;
}

bool kt_fault_u32(const KtDecision *d, int arg, int64_t *out)
{
    uint64_t word;

    if (!kt_call_word(&d->v, arg, &word)) {
        return false;
    }
    *out = (uint32_t)word;
    return true;
}

static bool fetch_n(KtDecision *d, int64_t *out)
{
    bool known = kt_fault_need_n(d);

    *out = known ? d->n : 0;
    return known;
}

/* Does the cache have name @i? A function without a cache has no such name. */
static bool fetch_cache(const KtDecision *d, unsigned i, int64_t *out)
{
    KtCacheInfo cache;

    *out = 0;
    if (d->fn->cache == KT_NO_ARG) {
        return true;
    }
    if (!find_cache(d, &cache)) {
        return false;
    }
    *out = g_pattern_spec_match_string(g_ptr_array_index(d->r->caches, i),
                                       cache.name);
    return true;
}

static bool fetch(KtDecision *d, unsigned var, int64_t *out)
{
    switch (var) {
    case KT_CALL_VAR_SIZE:
        return kt_fault_size(d, out);
    case KT_CALL_VAR_FLAGS:
        return kt_fault_u32(d, d->fn->gfp, out);
    case KT_CALL_VAR_ORDER:
        return kt_fault_u32(d, d->fn->order, out);
    case KT_CALL_VAR_CAP:
        return kt_fault_u32(d, d->fn->cap, out);
    case KT_CALL_VAR_TIMES:
        *out = d->times;
        return true;
    case KT_CALL_VAR_N:
        return fetch_n(d, out);
    case KT_CALL_VAR_RND100:
        return fetch_random(d, 100, out);
    case KT_CALL_VAR_RND10000:
        return fetch_random(d, 10000, out);
    case KT_CALL_VAR_US:
        *out = d->c->ops->us(d->c->opaque);
        return true;
    default:
        return (var & ~0xffu) == KT_CALL_CACHE ?
                   fetch_cache(d, var & 0xff, out) :
                   kt_call_value(&d->v, var, out);
    }
}

int64_t kt_fault_fetch(void *opaque, unsigned var, bool *known)
{
    int64_t value = 0;

    *known = fetch(opaque, var, &value);
    return value;
}
