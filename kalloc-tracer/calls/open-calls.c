/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Watched calls that have not returned: see call-records.h. */
#include "kalloc-tracer/calls/call-records.h"

#include <string.h>

#include "kalloc-tracer/calls/spin.h"

#define BUCKET_BITS     12
#define BUCKETS         (1u << BUCKET_BITS)
#define CHUNK           64u             /* entries that are made at once */
#define CHUNKS_MAX      1024u

typedef struct Bucket {
    uint32_t lock;
    uint32_t n;
    KtOpenCall *first;                  /* the newest */
} Bucket;

struct KtOpenCalls {
    Bucket bucket[BUCKETS];
    KtBudget *budget;
    GMutex lock;                        /* of @chunks */
    GPtrArray *chunks;                  /* of CHUNK entries */
    unsigned n_cpus;
    KtOpenCall *unused[];               /* by vCPU */
};

uint64_t kt_open_calls_bytes(unsigned n_cpus)
{
    return sizeof(KtOpenCalls) + n_cpus * sizeof(KtOpenCall *);
}

KtOpenCalls *kt_open_calls_new(KtBudget *budget, unsigned n_cpus)
{
    KtOpenCalls *o = g_malloc0(kt_open_calls_bytes(n_cpus));

    o->budget = budget;
    o->n_cpus = n_cpus;
    o->chunks = g_ptr_array_new_with_free_func(g_free);
    g_mutex_init(&o->lock);
    return o;
}

void kt_open_calls_free(KtOpenCalls *o)
{
    if (o) {
        kt_budget_release(o->budget, KT_MEM_CALLS,
                          o->chunks->len * CHUNK * sizeof(KtOpenCall));
        g_ptr_array_unref(o->chunks);
        g_mutex_clear(&o->lock);
    }
    g_free(o);
}

static void add_chunk(KtOpenCalls *o, unsigned cpu)
{
    KtOpenCall *chunk = NULL;

    g_mutex_lock(&o->lock);
    if (o->chunks->len < CHUNKS_MAX &&
        kt_budget_take(o->budget, KT_MEM_CALLS, CHUNK * sizeof(KtOpenCall))) {
        chunk = g_new0(KtOpenCall, CHUNK);
        g_ptr_array_add(o->chunks, chunk);
    }
    g_mutex_unlock(&o->lock);
    for (unsigned i = 0; chunk && i < CHUNK; i++) {
        kt_open_calls_put(o, cpu, &chunk[i]);
    }
}

KtOpenCall *kt_open_calls_get(KtOpenCalls *o, unsigned cpu)
{
    KtOpenCall *c;

    if (G_UNLIKELY(!o->unused[cpu])) {
        add_chunk(o, cpu);
    }
    c = o->unused[cpu];
    if (c) {
        o->unused[cpu] = c->next;
    }
    return c;
}

void kt_open_calls_put(KtOpenCalls *o, unsigned cpu, KtOpenCall *c)
{
    c->next = o->unused[cpu];
    o->unused[cpu] = c;
}

static Bucket *bucket_of(KtOpenCalls *o, uint64_t sp)
{
    return &o->bucket[(sp >> 3) * 0x9e3779b97f4a7c15ull >> (64 - BUCKET_BITS)];
}

/* As in pending-calls.c: the same function at the same place is a new call. */
static bool is_stale(const KtOpenCall *old, const KtOpenCall *now)
{
    return old->sp == now->sp && (old->site != now->site ||
                                  old->call.point.v == now->call.point.v);
}

static bool has_key(const KtOpenCall *c, const KtOpenCall *key)
{
    return c->sp == key->sp && c->site == key->site;
}

/* Unlink the calls of a bucket for which @match is true. Lock held. */
static KtOpenCall *unlink_calls(Bucket *b, const KtOpenCall *key,
                                bool (*match)(const KtOpenCall *,
                                              const KtOpenCall *))
{
    KtOpenCall *removed = NULL, **last = &removed;
    KtOpenCall **at = &b->first;

    while (*at) {
        KtOpenCall *c = *at;

        if (match(c, key)) {
            *at = c->next;
            c->next = NULL;
            *last = c;
            last = &c->next;
            b->n--;
        } else {
            at = &c->next;
        }
    }
    return removed;
}

KtOpenCall *kt_open_calls_add(KtOpenCalls *o, KtOpenCall *c)
{
    Bucket *b = bucket_of(o, c->sp);
    KtOpenCall *stale;

    kt_spin_lock(&b->lock);
    stale = unlink_calls(b, c, is_stale);
    c->next = b->first;
    b->first = c;
    b->n++;
    kt_spin_unlock(&b->lock);
    return stale;
}

static bool is_of_point(const KtOpenCall *c, const KtOpenCall *key)
{
    return has_key(c, key) && c->call.point.v == key->call.point.v;
}

/* A point has one call of a key at most: see is_stale(). */
KtOpenCall *kt_open_calls_remove_point(KtOpenCalls *o, uint64_t sp,
                                       uint64_t site, KtPointId point)
{
    const KtOpenCall key = { .sp = sp, .site = site, .call.point = point };
    Bucket *b = bucket_of(o, sp);
    KtOpenCall *found;

    kt_spin_lock(&b->lock);
    found = unlink_calls(b, &key, is_of_point);
    kt_spin_unlock(&b->lock);
    return found;
}

KtOpenCall *kt_open_calls_remove(KtOpenCalls *o, uint64_t sp, uint64_t site)
{
    const KtOpenCall key = { .sp = sp, .site = site };
    Bucket *b = bucket_of(o, sp);
    KtOpenCall *found;

    if (!__atomic_load_n(&b->first, __ATOMIC_RELAXED)) {
        return NULL;
    }
    kt_spin_lock(&b->lock);
    found = unlink_calls(b, &key, has_key);
    kt_spin_unlock(&b->lock);
    return found;
}

static void copy_bucket(Bucket *b, GArray *copies)
{
    kt_spin_lock(&b->lock);
    for (const KtOpenCall *c = b->first; c; c = c->next) {
        g_array_append_val(copies, *c);
    }
    kt_spin_unlock(&b->lock);
}

void kt_open_calls_foreach(KtOpenCalls *o,
                           void (*fn)(const KtOpenCall *c, void *opaque),
                           void *opaque)
{
    g_autoptr(GArray) copies = g_array_new(false, false, sizeof(KtOpenCall));

    for (unsigned i = 0; i < BUCKETS; i++) {
        copy_bucket(&o->bucket[i], copies);
    }
    for (unsigned i = 0; i < copies->len; i++) {
        fn(&g_array_index(copies, KtOpenCall, i), opaque);
    }
}

unsigned kt_open_calls_count(KtOpenCalls *o)
{
    unsigned n = 0;

    for (unsigned i = 0; i < BUCKETS; i++) {
        n += __atomic_load_n(&o->bucket[i].n, __ATOMIC_RELAXED);
    }
    return n;
}

void kt_open_calls_clear(KtOpenCalls *o)
{
    for (unsigned i = 0; i < BUCKETS; i++) {
        KtOpenCall *c;

        while ((c = o->bucket[i].first)) {
            o->bucket[i].first = c->next;
            kt_open_calls_put(o, 0, c);
        }
        o->bucket[i].n = 0;
    }
}
