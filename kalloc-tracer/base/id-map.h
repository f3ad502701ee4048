/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Map of ids: what the ids in a snapshot are in the tracer that loads it.
 *
 * Example: the tracer that wrote the snapshot had 90 hooks and called the
 * cache "dentry" number 4; here "dentry" is number 7. Then hook[] has 91
 * entries, and cache[4].v is 7. An id that is unknown here becomes 0.
 */
#ifndef KT_ID_MAP_H
#define KT_ID_MAP_H

#include "kalloc-tracer/api/kt-types.h"

/**
 * struct KtIdMap - ids of a snapshot to ids of a tracer
 * @hook, @n_hooks: (borrowed) by the snapshot's ids, 1 to @n_hooks
 * @cache, @n_caches: (borrowed) likewise; no caches before the snapshot is
 *                    installed
 */
typedef struct KtIdMap {
    const KtHookId *hook;
    uint64_t n_hooks;
    const uint16_t *cache;
    uint64_t n_caches;
} KtIdMap;

/** kt_id_map_hook() - Return the hook that the snapshot calls @id, 0 for one
 *  that this table does not have. */
static inline KtHookId kt_id_map_hook(const KtIdMap *map, uint64_t id)
{
    return id <= map->n_hooks ? map->hook[id] : (KtHookId) { 0 };
}

/** kt_id_map_cache() - Return the cache that the snapshot calls @id, 0 if it
 *  is unknown. */
static inline KtCacheId kt_id_map_cache(const KtIdMap *map, uint64_t id)
{
    return (KtCacheId) { id && id <= map->n_caches ? map->cache[id] : 0 };
}

#endif /* KT_ID_MAP_H */
