/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Skip the records of kmemleak, the kernel's own leak detector. A record, a
 * struct kmemleak_object, has the address of a block but does not own it:
 *
 *     use_count > 0     the record is in kmemleak's lists: no word is scanned
 *     use_count == 0    the record waits for a grace period to be freed. Its
 *                       rcu_head links it to other callbacks, so the rcu_head
 *                       is scanned. Before, the rcu_head has stale words
 *
 * All records are roots: kmemleak's lists are the owner.
 */
#include <string.h>

#include "kalloc-tracer/leak/roots.h"

typedef struct Record {
    KtCacheId cache;
    uint32_t rcu, rcu_size, use_count;
    bool waits;                 /* all four are known */
} Record;

/* Return the newest cache with that name, 0 if there is none. */
static KtCacheId find_cache(const KtLiveSet *w, const char *name)
{
    KtCacheId found = { 0 };
    KtCacheInfo info;

    for (unsigned id = 1; id <= UINT16_MAX &&
         kt_tracer_cache(w->tracer, (KtCacheId) { id }, &info); id++) {
        if (!strcmp(info.name, name)) {
            found = (KtCacheId) { id };
        }
    }
    return found;
}

static bool find_record(const KtLiveSet *w, Record *r)
{
    const KtLayout *l = &w->layout;

    *r = (Record) {
        .cache = find_cache(w, "kmemleak_object"),
        .rcu = l->at[KT_M_KMEMLEAK_RCU], .rcu_size = l->size[KT_M_KMEMLEAK_RCU],
        .use_count = l->at[KT_M_KMEMLEAK_USERS],
        .waits = kt_layout_has(l, KT_M_KMEMLEAK_RCU) &&
                 l->size[KT_M_KMEMLEAK_USERS] == sizeof(int32_t),
    };
    return r->cache.v;
}

static bool is_waiting(const KtLiveSet *w, const Record *r, uint64_t va)
{
    int32_t count;

    return r->waits && w->mem.read(w->mem.opaque, va + r->use_count, &count,
                                   sizeof(count)) && count == 0;
}

void kt_skip_kmemleak(KtLiveSet *w)
{
    Record r;

    if (!find_record(w, &r)) {
        return;
    }
    for (uint32_t i = 0; i < w->live->len; i++) {
        const KtLiveBlock *b = kt_live_set_block(w, i);

        if (b->cache.v != r.cache.v) {
            continue;
        }
        kt_marker_set_flags(w->scan, i, KT_MARKERF_ROOT);
        if (is_waiting(w, &r, b->va)) {
            kt_marker_area(w->scan,
                           (KtMarkerArea) { i, r.rcu, r.rcu + r.rcu_size });
        } else {
            kt_marker_set_flags(w->scan, i, KT_MARKERF_NO_SCAN);
        }
    }
}
