/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pending calls: see pending-calls.h.
 *
 * A hash table by stack pointer, with a spin lock in each bucket. Each task has
 * a kernel stack of its own, so two tasks have different keys, and a lock is
 * hardly ever contended.
 *
 *     bucket[i]  | lock | n | n_listed | call[0] | call[1] | call[2] |
 *                                        newer ------------->  newest
 *     list[i]    | oldest ... | (n_listed calls, older than those in place)
 *
 * Nearly all calls begin and end in the bucket itself, so the whole table
 * stays in the host's caches. If a bucket is full, its oldest call moves to the
 * list; these are tasks that sleep in the allocator.
 *
 * Stale calls. A call never returns after an oops or if its task is killed. If
 * a new call has the stack pointer of an older one, but another return address
 * (or the same function again), the older one is stale and is removed.
 */
#include "kalloc-tracer/capture/pending-calls.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define BUCKET_BITS     7
#define BUCKETS         (1u << BUCKET_BITS)
#define BUCKET_SIZE     3
#define LIST_FIRST      4
#define LIST_MAX        2048
#define CALLS_MAX       (BUCKETS * (BUCKET_SIZE + LIST_MAX))
#define CACHE_LINE      64

/* The lock and the first call, which is mostly the only one, share a cache
 * line. @n and @n_listed are written with the lock held, and read without it by
 * is_empty(). */
typedef struct Bucket {
    uint32_t lock;
    uint16_t n;                         /* atomic */
    uint16_t n_listed;                  /* atomic */
    KtPendingCall call[BUCKET_SIZE];
} __attribute__((aligned(CACHE_LINE))) Bucket;

struct KtPendingCalls {
    Bucket bucket[BUCKETS];
    KtPendingCall *list[BUCKETS];       /* grows by doubling, never shrinks */
    uint16_t room[BUCKETS];             /* capacity of a list */
    KtBudget *budget;
};

KtPendingCalls *kt_pending_calls_new(void)
{
    KtPendingCalls *c = aligned_alloc(CACHE_LINE, sizeof(KtPendingCalls));

    g_assert(c);
    memset(c, 0, sizeof(*c));
    return c;
}

void kt_pending_calls_free(KtPendingCalls *c)
{
    for (unsigned i = 0; c && i < BUCKETS; i++) {
        g_free(c->list[i]);
    }
    free(c);
}

void kt_pending_calls_charge(KtPendingCalls *c, KtBudget *budget)
{
    c->budget = budget;
    kt_budget_charge(budget, KT_MEM_FIXED, sizeof(*c));
}

static void lock_bucket(Bucket *b)
{
    while (__atomic_exchange_n(&b->lock, 1, __ATOMIC_ACQUIRE)) {
        while (__atomic_load_n(&b->lock, __ATOMIC_RELAXED)) {
            g_thread_yield();
        }
    }
}

static void unlock_bucket(Bucket *b)
{
    __atomic_store_n(&b->lock, 0, __ATOMIC_RELEASE);
}

static void count(uint16_t *n, int change)
{
    __atomic_store_n(n, *n + change, __ATOMIC_RELEASE);
}

/* A call is in the list before it is no longer in place. So the vCPU that will
 * pop a call never finds its bucket empty. */
static bool is_empty(const Bucket *b)
{
    return !__atomic_load_n(&b->n, __ATOMIC_ACQUIRE) &&
           !__atomic_load_n(&b->n_listed, __ATOMIC_ACQUIRE);
}

static unsigned bucket_of(uint64_t sp)
{
    return (sp >> 3) * 0x9e3779b97f4a7c15ull >> (64 - BUCKET_BITS);
}

/* Return call @i of a bucket, counted from the oldest. */
static KtPendingCall *call_at(KtPendingCalls *c, unsigned bucket, unsigned i)
{
    Bucket *b = &c->bucket[bucket];

    return i < b->n_listed ? &c->list[bucket][i] : &b->call[i - b->n_listed];
}

static void remove_at(KtPendingCalls *c, unsigned bucket, unsigned i)
{
    Bucket *b = &c->bucket[bucket];
    KtPendingCall *call = call_at(c, bucket, i);
    bool listed = i < b->n_listed;
    unsigned left = (listed ? b->n_listed : b->n_listed + b->n) - i - 1;

    memmove(call, call + 1, left * sizeof(KtPendingCall));
    count(listed ? &b->n_listed : &b->n, -1);
}

/* Return true if the list has room for one more call, after growing it if
 * needed. The first LIST_FIRST calls do not depend on the budget. */
static bool grow_list(KtPendingCalls *c, unsigned bucket)
{
    uint16_t room = c->room[bucket];
    uint16_t more = MAX(room, LIST_FIRST);

    if (c->bucket[bucket].n_listed < room) {
        return true;
    }
    if (room >= LIST_MAX ||
        (room && !kt_budget_take(c->budget, KT_MEM_FIXED,
                                 more * sizeof(KtPendingCall)))) {
        return false;
    }
    if (!room) {
        kt_budget_charge(c->budget, KT_MEM_FIXED, more * sizeof(KtPendingCall));
    }
    c->room[bucket] = room + more;
    c->list[bucket] = g_renew(KtPendingCall, c->list[bucket], c->room[bucket]);
    return true;
}

/* Move the oldest call in place to the list. Return false if the oldest call of
 * the list was dropped for it. */
static bool make_room(KtPendingCalls *c, unsigned bucket)
{
    Bucket *b = &c->bucket[bucket];
    bool room = grow_list(c, bucket);

    if (!room) {
        remove_at(c, bucket, 0);
    }
    c->list[bucket][b->n_listed] = b->call[0];
    memmove(&b->call[0], &b->call[1],
            (BUCKET_SIZE - 1) * sizeof(KtPendingCall));
    count(&b->n_listed, 1);
    count(&b->n, -1);
    return room;
}

void kt_pending_calls_expect(const KtPendingCalls *c, uint64_t sp)
{
    __builtin_prefetch(&c->bucket[bucket_of(sp)], 1);
}

/* The same function at the same place, with the same return address, is a new
 * call, too: a function cannot be entered twice before it returns. */
static bool proves_stale(const KtPendingCall *old, const KtPendingCall *now)
{
    return old->sp == now->sp &&
           (old->ra != now->ra || old->hook.v == now->hook.v);
}

bool kt_pending_calls_push(KtPendingCalls *c, const KtPendingCall *call,
                           unsigned *stale)
{
    unsigned bucket = bucket_of(call->sp);
    Bucket *b = &c->bucket[bucket];
    bool room = true;

    lock_bucket(b);
    *stale = 0;
    for (unsigned i = b->n_listed + b->n; i-- > 0;) {
        if (proves_stale(call_at(c, bucket, i), call)) {
            remove_at(c, bucket, i);
            (*stale)++;
        }
    }
    if (b->n == BUCKET_SIZE) {
        room = make_room(c, bucket);
    }
    b->call[b->n] = *call;
    count(&b->n, 1);
    unlock_bucket(b);
    return room;
}

unsigned kt_pending_calls_pop(KtPendingCalls *c, uint64_t sp, uint64_t ra,
                              KtPendingCall *out)
{
    unsigned bucket = bucket_of(sp), found = 0;
    Bucket *b = &c->bucket[bucket];

    if (is_empty(b)) {
        return 0;
    }
    lock_bucket(b);
    for (unsigned i = b->n_listed + b->n; i-- > 0;) {
        const KtPendingCall *call = call_at(c, bucket, i);

        if (call->sp != sp || call->ra != ra) {
            continue;
        }
        if (!found++) {
            *out = *call;
            remove_at(c, bucket, i);
        }
    }
    unlock_bucket(b);
    return found;
}

bool kt_pending_calls_find(KtPendingCalls *c, uint64_t sp, uint64_t ra,
                           KtPendingCall *out)
{
    unsigned bucket = bucket_of(sp);
    Bucket *b = &c->bucket[bucket];
    bool found = false;

    lock_bucket(b);
    for (unsigned i = b->n_listed + b->n; i-- > 0 && !found;) {
        const KtPendingCall *call = call_at(c, bucket, i);

        found = call->sp == sp && call->ra == ra;
        if (found) {
            *out = *call;
        }
    }
    unlock_bucket(b);
    return found;
}

unsigned kt_pending_calls_pending(KtPendingCalls *c)
{
    unsigned n = 0;

    for (unsigned i = 0; i < BUCKETS; i++) {
        Bucket *b = &c->bucket[i];

        lock_bucket(b);
        n += b->n_listed + b->n;
        unlock_bucket(b);
    }
    return n;
}

/* Lock held. A call and one that makes it stale are never both there. */
static char *check_bucket(KtPendingCalls *c, unsigned bucket)
{
    const Bucket *b = &c->bucket[bucket];
    unsigned n = b->n_listed + b->n;

    if (b->n > BUCKET_SIZE || b->n_listed > LIST_MAX) {
        return g_strdup_printf("bucket %u has %u calls in place, %u in its "
                               "list", bucket, b->n, b->n_listed);
    }
    for (unsigned i = 0; i < n; i++) {
        const KtPendingCall *call = call_at(c, bucket, i);

        if (bucket_of(call->sp) != bucket) {
            return g_strdup_printf("the call with stack pointer %" PRIx64
                                   " is in bucket %u", call->sp, bucket);
        }
        for (unsigned j = i + 1; j < n && j < i + 64; j++) {
            if (proves_stale(call, call_at(c, bucket, j))) {
                return g_strdup_printf("two calls have the stack pointer %"
                                       PRIx64, call->sp);
            }
        }
    }
    return NULL;
}

char *kt_pending_calls_check(void *calls, KtCheckReport *report)
{
    KtPendingCalls *c = calls;
    char *wrong = NULL;

    for (unsigned i = 0; i < BUCKETS && !wrong; i++) {
        Bucket *b = &c->bucket[i];

        lock_bucket(b);
        wrong = check_bucket(c, i);
        report->calls += b->n_listed + b->n;
        unlock_bucket(b);
    }
    return wrong;
}

void kt_pending_calls_clear(KtPendingCalls *c)
{
    for (unsigned i = 0; i < BUCKETS; i++) {
        Bucket *b = &c->bucket[i];

        lock_bucket(b);
        b->n = 0;
        b->n_listed = 0;
        unlock_bucket(b);
    }
}

/* ---- snapshots ----------------------------------------------------------- */

static void pack_call(const KtPendingCall *call, GsOut *p)
{
    gs_out_varint(p, call->sp);
    gs_out_varint(p, call->ra);
    gs_out_varint(p, call->size);
    gs_out_varint(p, call->ptr);
    gs_out_varint(p, call->cache);
    gs_out_varint(p, call->gfp);
    gs_out_varint(p, call->hook.v);
}

void kt_pending_calls_filter(KtPendingCalls *c,
                             bool (*keep)(void *opaque, KtHookId hook),
                             void *opaque)
{
    g_autoptr(GArray) kept = g_array_new(FALSE, FALSE, sizeof(KtPendingCall));
    unsigned stale;

    for (unsigned i = 0; i < BUCKETS; i++) {
        const Bucket *b = &c->bucket[i];

        for (unsigned j = 0; j < b->n_listed + b->n; j++) {
            const KtPendingCall *call = call_at(c, i, j);

            if (keep(opaque, call->hook)) {
                g_array_append_vals(kept, call, 1);
            }
        }
    }
    kt_pending_calls_clear(c);
    for (unsigned i = 0; i < kept->len; i++) {
        kt_pending_calls_push(c, &g_array_index(kept, KtPendingCall, i),
                              &stale);
    }
}

void kt_pending_calls_pack(KtPendingCalls *c, GsOut *p)
{
    gs_out_varint(p, kt_pending_calls_pending(c));
    for (unsigned i = 0; i < BUCKETS; i++) {
        const Bucket *b = &c->bucket[i];

        for (unsigned j = 0; j < b->n_listed + b->n; j++) {
            pack_call(call_at(c, i, j), p);
        }
    }
}

/* Return false if a call was dropped for lack of memory. */
static bool unpack_call(KtPendingCalls *c, GsBytes *u, const KtIdMap *ids)
{
    unsigned stale;
    KtPendingCall call = { .sp = gs_bytes_varint(u, UINT64_MAX) };

    call.ra = gs_bytes_varint(u, UINT64_MAX);
    call.size = gs_bytes_varint(u, UINT64_MAX);
    call.ptr = gs_bytes_varint(u, UINT64_MAX);
    call.cache = gs_bytes_varint(u, UINT64_MAX);
    call.gfp = gs_bytes_upto(u, UINT32_MAX, "gfp flags");
    call.hook = kt_id_map_hook(ids, gs_bytes_varint(u, UINT64_MAX));
    return !gs_bytes_ok(u) || !call.hook.v ||
           kt_pending_calls_push(c, &call, &stale);
}

unsigned kt_pending_calls_unpack(KtPendingCalls *c, GsBytes *u,
                                 const KtIdMap *ids)
{
    uint64_t n = gs_bytes_upto(u, CALLS_MAX, "the number of calls");
    unsigned lost = 0;

    for (uint64_t i = 0; i < n && gs_bytes_ok(u); i++) {
        lost += !unpack_call(c, u, ids);
    }
    return lost;
}
