/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Return sites: see return-sites.h.
 *
 *     slot[hash(va)]  open addressing, holds the index of a site + 1
 *     site[]          in the order of addition, so that sites in use lie close
 *                     together; an index never changes
 *     seen[]          bit set by hash: "never a site" with one load
 *     block[]         bit set by hash: where a translated block began
 *
 * An addition takes a lock. It writes the site first and publishes the slot
 * with a release store. Readers take no lock and never see half a site. A
 * kernel has about 10,000 call sites of its allocators; the table has room for
 * ten times as many.
 */
#include "kalloc-tracer/capture/return-sites.h"

#include <pthread.h>

#define SITE_BITS       18
#define SITE_SLOTS      (1u << SITE_BITS)
#define SITE_MAX        (SITE_SLOTS / 2)
#define SITE_PROBES     128
#define SEEN_BITS       (1u << 16)
#define BLOCK_BITS      (1u << 21)

/* @uses, @ready: (atomic) KtSiteUse bits */
typedef struct Site {
    uint64_t va;
    uint8_t wrapper;
    uint8_t uses;
    uint8_t ready;
    uint8_t callee;
} Site;

struct KtReturnSites {
    uint64_t seen[SEEN_BITS / 64];
    uint32_t slot[SITE_SLOTS];          /* 0: free */
    Site site[SITE_MAX];
    uint64_t block[BLOCK_BITS / 64];
    unsigned n;
    pthread_mutex_t add_lock;           /* additions are rare */
};

KtReturnSites *kt_return_sites_new(void)
{
    KtReturnSites *s = g_new0(KtReturnSites, 1);

    pthread_mutex_init(&s->add_lock, NULL);
    return s;
}

uint64_t kt_return_sites_bytes(void)
{
    return sizeof(KtReturnSites);
}

void kt_return_sites_free(KtReturnSites *s)
{
    if (s) {
        pthread_mutex_destroy(&s->add_lock);
    }
    g_free(s);
}

static uint64_t hash(uint64_t va)
{
    return va * 0x9e3779b97f4a7c15ull;
}

static uint32_t first_slot(uint64_t va)
{
    return hash(va) >> (64 - SITE_BITS);
}

/*
 * The translator looks up each block, and most are no return site. The order of
 * these loads and stores with those of block[] matters: see return-sites.h.
 */
static bool maybe_seen(const KtReturnSites *s, uint64_t va)
{
    uint32_t bit = hash(va) >> 20 & (SEEN_BITS - 1);

    return __atomic_load_n(&s->seen[bit / 64], __ATOMIC_SEQ_CST) >>
           (bit % 64) & 1;
}

static void set_seen(KtReturnSites *s, uint64_t va)
{
    uint32_t bit = hash(va) >> 20 & (SEEN_BITS - 1);

    __atomic_fetch_or(&s->seen[bit / 64], 1ull << (bit % 64),
                      __ATOMIC_SEQ_CST);
}

/* Return the index of the site at @va, whether it is in use or not. */
static uint32_t look_up(const KtReturnSites *s, uint64_t va)
{
    uint32_t i = first_slot(va);

    if (!maybe_seen(s, va)) {
        return KT_RETURN_SITE_NONE;
    }
    for (unsigned probe = 0; probe < SITE_PROBES; probe++) {
        uint32_t have = __atomic_load_n(&s->slot[i], __ATOMIC_ACQUIRE);

        if (!have) {
            return KT_RETURN_SITE_NONE;
        }
        if (s->site[have - 1].va == va) {
            return have - 1;
        }
        i = (i + 1) & (SITE_SLOTS - 1);
    }
    return KT_RETURN_SITE_NONE;
}

static bool has_use(const KtReturnSites *s, uint32_t site, KtSiteUse use)
{
    return __atomic_load_n(&s->site[site].uses, __ATOMIC_SEQ_CST) & use;
}

uint32_t kt_return_sites_find(const KtReturnSites *s, uint64_t va,
                              KtSiteUse use)
{
    uint32_t site = look_up(s, va);

    return site != KT_RETURN_SITE_NONE && has_use(s, site, use) ?
               site :
               KT_RETURN_SITE_NONE;
}

static uint32_t insert_locked(KtReturnSites *s, uint64_t va)
{
    uint32_t i = first_slot(va);

    if (s->n >= SITE_MAX) {
        return KT_RETURN_SITE_NONE;
    }
    for (unsigned probe = 0; probe < SITE_PROBES; probe++) {
        if (!s->slot[i]) {
            s->site[s->n] = (Site) { .va = va };
            __atomic_store_n(&s->slot[i], ++s->n, __ATOMIC_RELEASE);
            set_seen(s, va);
            return s->n - 1;
        }
        i = (i + 1) & (SITE_SLOTS - 1);
    }
    return KT_RETURN_SITE_NONE;
}

/* The wrapper is set before the use that needs it. */
static uint32_t add_locked(KtReturnSites *s, uint64_t va, KtSiteUse use,
                           KtHookId wrapper, bool *added)
{
    uint32_t site = look_up(s, va);

    if (site == KT_RETURN_SITE_NONE) {
        site = insert_locked(s, va);
    }
    if (site != KT_RETURN_SITE_NONE && !has_use(s, site, use)) {
        if (use == KT_SITE_HOOK) {
            __atomic_store_n(&s->site[site].wrapper, wrapper.v,
                             __ATOMIC_RELAXED);
        }
        __atomic_fetch_or(&s->site[site].uses, use, __ATOMIC_SEQ_CST);
        *added = true;
    }
    return site;
}

uint32_t kt_return_sites_add(KtReturnSites *s, uint64_t va, KtSiteUse use,
                             KtHookId wrapper, bool *added)
{
    uint32_t site = kt_return_sites_find(s, va, use);

    *added = false;
    if (site != KT_RETURN_SITE_NONE || !va) {
        return site;
    }
    pthread_mutex_lock(&s->add_lock);
    site = add_locked(s, va, use, wrapper, added);
    pthread_mutex_unlock(&s->add_lock);
    return site;
}

void kt_return_sites_end_points(KtReturnSites *s)
{
    const uint8_t others = (uint8_t)~KT_SITE_POINT;

    pthread_mutex_lock(&s->add_lock);
    for (unsigned i = 0; i < s->n; i++) {
        __atomic_fetch_and(&s->site[i].uses, others, __ATOMIC_SEQ_CST);
        __atomic_fetch_and(&s->site[i].ready, others, __ATOMIC_SEQ_CST);
    }
    pthread_mutex_unlock(&s->add_lock);
}

static uint64_t *block_word(KtReturnSites *s, uint64_t va, uint64_t *bit)
{
    uint32_t i = hash(va) >> 24 & (BLOCK_BITS - 1);

    *bit = 1ull << (i % 64);
    return &s->block[i / 64];
}

void kt_return_sites_add_block(KtReturnSites *s, uint64_t va)
{
    uint64_t bit;
    uint64_t *word = block_word(s, va, &bit);

    __atomic_fetch_or(word, bit, __ATOMIC_SEQ_CST);
}

bool kt_return_sites_may_have_block(KtReturnSites *s, uint64_t va)
{
    uint64_t bit;
    uint64_t *word = block_word(s, va, &bit);

    return __atomic_load_n(word, __ATOMIC_SEQ_CST) & bit;
}

bool kt_return_sites_ready(const KtReturnSites *s, uint32_t site,
                           KtSiteUse use)
{
    return __atomic_load_n(&s->site[site].ready, __ATOMIC_ACQUIRE) & use;
}

void kt_return_sites_set_ready(KtReturnSites *s, uint32_t site, KtSiteUse use)
{
    __atomic_fetch_or(&s->site[site].ready, use, __ATOMIC_RELEASE);
}

uint64_t kt_return_sites_va(const KtReturnSites *s, uint32_t site)
{
    return s->site[site].va;
}

KtHookId kt_return_sites_wrapper(const KtReturnSites *s, uint32_t site)
{
    return (KtHookId) {
        __atomic_load_n(&s->site[site].wrapper, __ATOMIC_RELAXED)
    };
}

void kt_return_sites_set_callee(KtReturnSites *s, uint32_t site, KtHookId id)
{
    __atomic_store_n(&s->site[site].callee, id.v, __ATOMIC_RELAXED);
}

KtHookId kt_return_sites_callee(const KtReturnSites *s, uint64_t va)
{
    uint32_t site = kt_return_sites_find(s, va, KT_SITE_HOOK);

    return (KtHookId) {
        site == KT_RETURN_SITE_NONE ? 0 :
        __atomic_load_n(&s->site[site].callee, __ATOMIC_RELAXED)
    };
}

void kt_return_sites_clear(KtReturnSites *s)
{
    memset(s->seen, 0, sizeof(s->seen));
    memset(s->slot, 0, sizeof(s->slot));
    memset(s->site, 0, s->n * sizeof(s->site[0]));
    memset(s->block, 0, sizeof(s->block));
    s->n = 0;
}

/* ---- snapshots ----------------------------------------------------------- */

static unsigned count_of(const KtReturnSites *s, KtSiteUse use)
{
    unsigned n = 0;

    for (uint32_t i = 0; i < s->n; i++) {
        n += has_use(s, i, use);
    }
    return n;
}

void kt_return_sites_pack(const KtReturnSites *s, GsOut *p)
{
    uint64_t last = 0;

    gs_out_varint(p, count_of(s, KT_SITE_HOOK));
    for (uint32_t i = 0; i < s->n; i++) {
        if (!has_use(s, i, KT_SITE_HOOK)) {
            continue;
        }
        gs_out_step(p, last, s->site[i].va);
        gs_out_varint(p, s->site[i].wrapper);
        last = s->site[i].va;
    }
}

/* After a load QEMU translates all code again, so the site is ready. */
static void unpack_site(KtReturnSites *s, uint64_t *va, GsBytes *u,
                        const KtIdMap *ids)
{
    KtHookId wrapper;
    uint32_t site;
    bool added;

    *va = gs_bytes_step(u, *va);
    wrapper = kt_id_map_hook(ids, gs_bytes_varint(u, UINT64_MAX));
    if (gs_bytes_ok(u)) {
        site = kt_return_sites_add(s, *va, KT_SITE_HOOK, wrapper, &added);
        if (site != KT_RETURN_SITE_NONE) {
            kt_return_sites_set_ready(s, site, KT_SITE_HOOK);
        }
    }
}

void kt_return_sites_unpack(KtReturnSites *s, GsBytes *u,
                            const KtIdMap *ids)
{
    uint64_t n = gs_bytes_upto(u, SITE_MAX, "the number of return sites");
    uint64_t va = 0;

    for (uint64_t i = 0; i < n && gs_bytes_ok(u); i++) {
        unpack_site(s, &va, u, ids);
    }
}
