/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Calls under way: a table of small buckets, each with a lock of its own,
 * keyed by the stack pointer.  Kernel stacks are unique for a task, so two
 * tasks never share a key, and a lock is as good as never contended.
 *
 * A bucket is kept in the order of entry.  A new call with a stack pointer
 * that an older one holds with another return address proves that the older
 * one is gone (an oops, a killed task, a longjmp-like exit).
 */
#include "calls.h"

#define BUCKET_BITS     10
#define BUCKETS         (1u << BUCKET_BITS)
#define BUCKET_SIZE     12

typedef struct Bucket {
    uint32_t lock;
    uint32_t n;
    KtCall call[BUCKET_SIZE];
} Bucket;

struct KtCalls {
    Bucket bucket[BUCKETS];
};

KtCalls *kt_calls_new(void)
{
    return g_new0(KtCalls, 1);
}

void kt_calls_free(KtCalls *c)
{
    g_free(c);
}

static Bucket *lock_bucket(KtCalls *c, uint64_t sp)
{
    Bucket *b = &c->bucket[(sp >> 3) * 0x9e3779b97f4a7c15ull >>
                           (64 - BUCKET_BITS)];

    while (__atomic_exchange_n(&b->lock, 1, __ATOMIC_ACQUIRE)) {
        while (__atomic_load_n(&b->lock, __ATOMIC_RELAXED)) {
            g_thread_yield();
        }
    }
    return b;
}

static void unlock_bucket(Bucket *b)
{
    __atomic_store_n(&b->lock, 0, __ATOMIC_RELEASE);
}

static void remove_at(Bucket *b, unsigned i)
{
    b->n--;
    memmove(&b->call[i], &b->call[i + 1], (b->n - i) * sizeof(KtCall));
}

/* An entry of the same function at the same place is a call made anew, too. */
static bool proves_stale(const KtCall *old, const KtCall *now)
{
    return old->sp == now->sp &&
           (old->ra != now->ra || old->hook.v == now->hook.v);
}

bool kt_calls_push(KtCalls *c, const KtCall *call, unsigned *stale)
{
    Bucket *b = lock_bucket(c, call->sp);
    bool room = true;

    *stale = 0;
    for (unsigned i = b->n; i-- > 0;) {
        if (proves_stale(&b->call[i], call)) {
            remove_at(b, i);
            (*stale)++;
        }
    }
    if (b->n == BUCKET_SIZE) {
        remove_at(b, 0);
        room = false;
    }
    b->call[b->n++] = *call;
    unlock_bucket(b);
    return room;
}

bool kt_calls_pop(KtCalls *c, uint64_t sp, uint64_t ra, KtCall *out)
{
    Bucket *b = lock_bucket(c, sp);
    bool found = false;

    for (unsigned i = b->n; i-- > 0 && !found;) {
        if (b->call[i].sp == sp && b->call[i].ra == ra) {
            *out = b->call[i];
            remove_at(b, i);
            found = true;
        }
    }
    unlock_bucket(b);
    return found;
}

unsigned kt_calls_pending(KtCalls *c)
{
    unsigned n = 0;

    for (unsigned i = 0; i < BUCKETS; i++) {
        n += __atomic_load_n(&c->bucket[i].n, __ATOMIC_RELAXED);
    }
    return n;
}

void kt_calls_clear(KtCalls *c)
{
    for (unsigned i = 0; i < BUCKETS; i++) {
        Bucket *b = &c->bucket[i];

        while (__atomic_exchange_n(&b->lock, 1, __ATOMIC_ACQUIRE)) {
            g_thread_yield();
        }
        b->n = 0;
        unlock_bucket(b);
    }
}
