/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Return sites: a fixed open-addressing table of addresses.
 *
 * Additions take a lock; a slot's wrapper id is stored before its address is
 * published, so that readers, who take none, never see half a site.  An index
 * never changes.  A kernel has some 10,000 call sites of its allocators; the
 * table takes 10 times that.
 */
#include "sites.h"

#define SITE_BITS       18
#define SITE_SLOTS      (1u << SITE_BITS)
#define SITE_MAX        (SITE_SLOTS / 2)
#define SITE_PROBES     128
#define SEEN_BITS       (1u << 16)

struct KtSites {
    uint64_t seen[SEEN_BITS / 64];      /* by hash: "never added" in one look */
    uint64_t va[SITE_SLOTS];            /* 0: free */
    uint8_t wrapper[SITE_SLOTS];
    uint8_t ready[SITE_SLOTS];
    unsigned n;
    GMutex add_lock;                    /* claims only: they are rare */
};

KtSites *kt_sites_new(void)
{
    KtSites *s = g_new0(KtSites, 1);

    g_mutex_init(&s->add_lock);
    return s;
}

void kt_sites_free(KtSites *s)
{
    if (s) {
        g_mutex_clear(&s->add_lock);
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

/* The translator asks for every block; most never were a return site. */
static bool maybe_seen(const KtSites *s, uint64_t va)
{
    uint32_t bit = hash(va) >> 20 & (SEEN_BITS - 1);

    return __atomic_load_n(&s->seen[bit / 64], __ATOMIC_ACQUIRE) >>
           (bit % 64) & 1;
}

static void set_seen(KtSites *s, uint64_t va)
{
    uint32_t bit = hash(va) >> 20 & (SEEN_BITS - 1);

    __atomic_fetch_or(&s->seen[bit / 64], 1ull << (bit % 64),
                      __ATOMIC_RELEASE);
}

uint32_t kt_sites_find(const KtSites *s, uint64_t va)
{
    uint32_t i = first_slot(va);

    if (!maybe_seen(s, va)) {
        return KT_SITE_NONE;
    }
    for (unsigned probe = 0; probe < SITE_PROBES; probe++) {
        uint64_t have = __atomic_load_n(&s->va[i], __ATOMIC_ACQUIRE);

        if (have == va) {
            return i;
        }
        if (!have) {
            return KT_SITE_NONE;
        }
        i = (i + 1) & (SITE_SLOTS - 1);
    }
    return KT_SITE_NONE;
}

static uint32_t add_locked(KtSites *s, uint64_t va, KtHookId wrapper)
{
    uint32_t i = first_slot(va);

    if (s->n >= SITE_MAX) {
        return KT_SITE_NONE;
    }
    for (unsigned probe = 0; probe < SITE_PROBES; probe++) {
        if (!s->va[i]) {
            s->wrapper[i] = wrapper.v;
            s->n++;
            __atomic_store_n(&s->va[i], va, __ATOMIC_RELEASE);
            set_seen(s, va);
            return i;
        }
        i = (i + 1) & (SITE_SLOTS - 1);
    }
    return KT_SITE_NONE;
}

uint32_t kt_sites_add(KtSites *s, uint64_t va, KtHookId wrapper, bool *added)
{
    uint32_t site = kt_sites_find(s, va);

    *added = false;
    if (site != KT_SITE_NONE || !va) {
        return site;
    }
    g_mutex_lock(&s->add_lock);
    site = kt_sites_find(s, va);
    if (site == KT_SITE_NONE) {
        site = add_locked(s, va, wrapper);
        *added = site != KT_SITE_NONE;
    }
    g_mutex_unlock(&s->add_lock);
    return site;
}

bool kt_sites_ready(const KtSites *s, uint32_t site)
{
    return __atomic_load_n(&s->ready[site], __ATOMIC_ACQUIRE);
}

void kt_sites_set_ready(KtSites *s, uint32_t site)
{
    __atomic_store_n(&s->ready[site], 1, __ATOMIC_RELEASE);
}

uint64_t kt_sites_va(const KtSites *s, uint32_t site)
{
    return s->va[site];
}

KtHookId kt_sites_wrapper(const KtSites *s, uint32_t site)
{
    return (KtHookId) { s->wrapper[site] };
}

void kt_sites_clear(KtSites *s)
{
    memset(s->seen, 0, sizeof(s->seen));
    memset(s->va, 0, sizeof(s->va));
    memset(s->ready, 0, sizeof(s->ready));
    s->n = 0;
}
