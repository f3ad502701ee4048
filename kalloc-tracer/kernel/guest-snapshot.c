/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The part of a VM snapshot that belongs to a KtGuest: see kt_guest_pack().
 *
 * A cache must keep its id even if its members change: object_size grows when
 * the kernel merges another cache into it. So the table address -> id is
 * stored, and not read from guest memory again.
 */
#include "kalloc-tracer/kernel/guest-internal.h"

#define CACHES_MAX (UINT16_MAX + KT_BOOT_CACHES)

void kt_guest_pack(KtGuest *g, GsOut *p)
{
    GHashTableIter it;
    gpointer va, id;

    g_mutex_lock(&g->lock);
    gs_out_varint(p, g->vmemmap);
    gs_out_varint(p, g->page_offset);
    for (unsigned i = 0; i < KT_BOOT_CACHES; i++) {
        gs_out_varint(p, g->boot_cache[i].v);
    }
    gs_out_varint(p, g->kmem_cache.v);
    gs_out_varint(p, g_hash_table_size(g->caches));
    g_hash_table_iter_init(&it, g->caches);
    while (g_hash_table_iter_next(&it, &va, &id)) {
        gs_out_varint(p, *(uint64_t *)va);
        gs_out_varint(p, GPOINTER_TO_UINT(id));
    }
    g_mutex_unlock(&g->lock);
}

void kt_guest_unpack(KtGuest *g, GsBytes *u, const KtIdMap *ids)
{
    uint64_t n;

    g->vmemmap = gs_bytes_varint(u, UINT64_MAX);
    g->page_offset = gs_bytes_varint(u, UINT64_MAX);
    for (unsigned i = 0; i < KT_BOOT_CACHES; i++) {
        g->boot_cache[i] = kt_id_map_cache(ids, gs_bytes_varint(u, UINT64_MAX));
    }
    g->kmem_cache = kt_id_map_cache(ids, gs_bytes_varint(u, UINT64_MAX));
    n = gs_bytes_upto(u, CACHES_MAX, "the number of caches");
    for (uint64_t i = 0; i < n && gs_bytes_ok(u); i++) {
        uint64_t va = gs_bytes_varint(u, UINT64_MAX);
        KtCacheId id = kt_id_map_cache(ids, gs_bytes_varint(u, UINT64_MAX));

        if (id.v) {
            g_hash_table_insert(g->caches, g_memdup2(&va, sizeof(va)),
                                GUINT_TO_POINTER(id.v));
        }
    }
}
