/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Verify: see verify.h. */
#include "kalloc-tracer/access/verify.h"

#include "kalloc-tracer/base/pair.h"

#define CACHES (UINT16_MAX + 1u)

/* Guest time between looks, in microseconds. */
static const uint32_t again_us[] = { 1000, 10000, 100000 };

/* An instruction and the cache of the objects that it accesses. @of: its
 * address and the id of the cache */
typedef struct Key {
    KtPair of;
    bool decided;
} Key;

/* An access that is decided. */
typedef struct Decided {
    KtHeldAccess held;
    KtVerifyVerdict verdict;
    bool first;
} Decided;

static KtPair pair_of(uint64_t pc, KtCacheId cache)
{
    return (KtPair) { pc, cache.v };
}

static Key *find_key(KtVerify *v, uint64_t pc, KtCacheId cache)
{
    const KtPair key = pair_of(pc, cache);

    return g_hash_table_lookup(v->keys, &key);
}

static KtHeldAccess *held_at(KtVerify *v, unsigned i)
{
    return &g_array_index(v->held, KtHeldAccess, i);
}

KtVerify *kt_verify_new(void)
{
    KtVerify *v = g_new0(KtVerify, 1);

    pthread_mutex_init(&v->lock, NULL);
    v->keys = g_hash_table_new_full(kt_pair_hash, kt_pair_equal, g_free,
                                    NULL);
    v->held = g_array_new(FALSE, FALSE, sizeof(KtHeldAccess));
    v->disarmed = g_new0(uint64_t, CACHES / 64);
    v->due_us = UINT64_MAX;
    return v;
}

void kt_verify_free(KtVerify *v)
{
    if (v) {
        g_hash_table_unref(v->keys);
        g_array_unref(v->held);
        g_free(v->disarmed);
        pthread_mutex_destroy(&v->lock);
        g_free(v);
    }
}

/* ---- suspects ------------------------------------------------------------ */

bool kt_verify_is_disarmed(const KtVerify *v, KtCacheId cache)
{
    return __atomic_load_n(&v->disarmed[cache.v / 64], __ATOMIC_RELAXED) >>
               cache.v % 64 & 1;
}

KtVerifyAnswer kt_verify_ask(KtVerify *v, uint64_t pc, KtCacheId cache)
{
    const Key key = { .of = pair_of(pc, cache) };
    KtVerifyAnswer answer = KT_VERIFY_LOOK;
    const Key *known;

    if (kt_verify_is_disarmed(v, cache)) {
        return KT_VERIFY_UNSEEN;
    }
    pthread_mutex_lock(&v->lock);
    known = find_key(v, pc, cache);
    if (known) {
        answer = known->decided ? KT_VERIFY_STANDS : KT_VERIFY_HOLD;
    } else if (g_hash_table_size(v->keys) >= KT_VERIFY_KEYS_MAX) {
        answer = KT_VERIFY_FULL;
    } else {
        g_hash_table_add(v->keys, g_memdup2(&key, sizeof(key)));
    }
    pthread_mutex_unlock(&v->lock);
    return answer;
}

/* The lock is held. */
static void set_decided(KtVerify *v, uint64_t pc, KtCacheId cache)
{
    Key *key = find_key(v, pc, cache);

    if (key) {
        key->decided = true;
    }
}

void kt_verify_stands(KtVerify *v, uint64_t pc, KtCacheId cache)
{
    pthread_mutex_lock(&v->lock);
    set_decided(v, pc, cache);
    pthread_mutex_unlock(&v->lock);
}

/* Publish how many wait, and for when. The lock is held. */
static void publish(KtVerify *v)
{
    uint64_t due = UINT64_MAX;

    for (unsigned i = 0; i < v->held->len; i++) {
        due = MIN(due, held_at(v, i)->due_us);
    }
    __atomic_store_n(&v->due_us, due, __ATOMIC_RELAXED);
    __atomic_store_n(&v->n_held, v->held->len, __ATOMIC_RELAXED);
}

bool kt_verify_hold(KtVerify *v, const KtHeldAccess *held)
{
    bool room;

    pthread_mutex_lock(&v->lock);
    room = v->held->len < KT_VERIFY_HELD_MAX;
    if (room) {
        g_array_append_val(v->held, *held);
        publish(v);
    }
    pthread_mutex_unlock(&v->lock);
    return room;
}

bool kt_verify_claim(KtVerify *v, uint64_t us)
{
    uint64_t due = kt_verify_due(v);

    return us >= due &&
           __atomic_compare_exchange_n(&v->due_us, &due, UINT64_MAX, false,
                                       __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* ---- verdicts ------------------------------------------------------------ */

/* Decide by what the lists said just now. Returns: false to look again. */
static bool decide(KtHeldAccess *h, uint64_t us, KtVerifyVerdict *verdict)
{
    h->looks++;
    if (h->look == KT_LOOK_LISTED || h->look == KT_LOOK_REUSED) {
        *verdict = KT_VERDICT_STANDS;
        return true;
    }
    h->missing += h->look == KT_LOOK_MISSING;
    if (h->looks <= G_N_ELEMENTS(again_us)) {
        h->due_us = us + again_us[h->looks - 1];
        return false;
    }
    *verdict = h->look == KT_LOOK_MISSING && h->missing > 1 ?
                   KT_VERDICT_UNSEEN : KT_VERDICT_UNVERIFIED;
    return true;
}

/* Move an access to those that are decided. The lock is held. */
static void move(KtVerify *v, unsigned i, KtVerifyVerdict verdict, GArray *to)
{
    const KtHeldAccess *h = held_at(v, i);
    Decided d = { .held = *h, .verdict = verdict };

    if (verdict == KT_VERDICT_UNSEEN) {
        d.first = !kt_verify_is_disarmed(v, h->cache);
        __atomic_fetch_or(&v->disarmed[h->cache.v / 64],
                          1ull << h->cache.v % 64, __ATOMIC_RELAXED);
    }
    g_array_append_val(to, d);
    g_array_remove_index(v->held, i);
}

/* Decide all accesses that are due, and those of disarmed caches. The lock is
 * held. */
static void decide_all(KtVerify *v, uint64_t us, GArray *to)
{
    KtVerifyVerdict verdict;

    for (unsigned i = 0; i < v->held->len;) {
        KtHeldAccess *h = held_at(v, i);

        if (h->due_us <= us && decide(h, us, &verdict)) {
            set_decided(v, h->pc, h->cache);
            move(v, i, verdict, to);
        } else {
            i++;
        }
    }
    for (unsigned i = 0; i < v->held->len;) {
        if (kt_verify_is_disarmed(v, held_at(v, i)->cache)) {
            move(v, i, KT_VERDICT_UNSEEN, to);
        } else {
            i++;
        }
    }
}

/* Call @fn for the accesses, and free the array. */
static void tell(GArray *decided, KtVerifyVerdictFn fn, void *opaque)
{
    for (unsigned i = 0; i < decided->len; i++) {
        const Decided *d = &g_array_index(decided, Decided, i);

        fn(opaque, &d->held, d->verdict, d->first);
    }
    g_array_unref(decided);
}

/* Move the accesses that are due to the front. Returns: how many. */
static unsigned due_first(KtVerify *v, uint64_t us)
{
    unsigned n = 0;

    for (unsigned i = 0; i < v->held->len; i++) {
        if (held_at(v, i)->due_us <= us) {
            KtHeldAccess h = *held_at(v, i);

            *held_at(v, i) = *held_at(v, n);
            *held_at(v, n++) = h;
        }
    }
    return n;
}

void kt_verify_look(KtVerify *v, uint64_t us, KtLookFn look,
                    KtVerifyVerdictFn verdict, void *opaque)
{
    GArray *decided = g_array_new(FALSE, FALSE, sizeof(Decided));
    unsigned n;

    pthread_mutex_lock(&v->lock);
    n = due_first(v, us);
    if (n) {
        look(opaque, held_at(v, 0), n);
    }
    decide_all(v, us, decided);
    publish(v);
    pthread_mutex_unlock(&v->lock);
    tell(decided, verdict, opaque);
}

void kt_verify_release(KtVerify *v, uint64_t va, uint64_t len,
                       KtVerifyVerdictFn verdict, void *opaque)
{
    GArray *decided = g_array_new(FALSE, FALSE, sizeof(Decided));

    pthread_mutex_lock(&v->lock);
    for (unsigned i = 0; i < v->held->len;) {
        const KtHeldAccess *h = held_at(v, i);
        const KtPair key = pair_of(h->pc, h->cache);

        if (h->bad - va < len) {
            g_hash_table_remove(v->keys, &key);
            move(v, i, KT_VERDICT_UNVERIFIED, decided);
        } else {
            i++;
        }
    }
    publish(v);
    pthread_mutex_unlock(&v->lock);
    tell(decided, verdict, opaque);
}
