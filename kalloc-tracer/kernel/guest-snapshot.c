/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What was learned of a guest, as a stream, and back; see guest.h.
 *
 * A cache must keep its id though it does not look as it did when it was
 * first seen: it grows when another one is merged into it.
 */
#include "kalloc-tracer/kernel/guest-internal.h"

#define CACHES_MAX (UINT16_MAX + KT_BOOT_CACHES)

void kt_guest_pack(KtGuest *g, GsPack *p)
{
    GHashTableIter it;
    gpointer va, id;

    g_mutex_lock(&g->lock);
    gs_pack_u64(p, g->vmemmap);
    gs_pack_u64(p, g->page_offset);
    for (unsigned i = 0; i < KT_BOOT_CACHES; i++) {
        gs_pack_u64(p, g->boot_cache[i].v);
    }
    gs_pack_u64(p, g->kmem_cache.v);
    gs_pack_u64(p, g_hash_table_size(g->caches));
    g_hash_table_iter_init(&it, g->caches);
    while (g_hash_table_iter_next(&it, &va, &id)) {
        gs_pack_u64(p, *(uint64_t *)va);
        gs_pack_u64(p, GPOINTER_TO_UINT(id));
    }
    g_mutex_unlock(&g->lock);
}

void kt_guest_unpack(KtGuest *g, GsUnpack *u, const KtSnapshot *s)
{
    uint64_t n;

    g->vmemmap = gs_unpack_u64(u);
    g->page_offset = gs_unpack_u64(u);
    for (unsigned i = 0; i < KT_BOOT_CACHES; i++) {
        g->boot_cache[i] = kt_snapshot_cache(s, gs_unpack_u64(u));
    }
    g->kmem_cache = kt_snapshot_cache(s, gs_unpack_u64(u));
    n = gs_unpack_upto(u, CACHES_MAX, "the number of caches");
    for (uint64_t i = 0; i < n && gs_unpack_ok(u); i++) {
        uint64_t va = gs_unpack_u64(u);
        KtCacheId id = kt_snapshot_cache(s, gs_unpack_u64(u));

        if (id.v) {
            g_hash_table_insert(g->caches, g_memdup2(&va, sizeof(va)),
                                GUINT_TO_POINTER(id.v));
        }
    }
}
