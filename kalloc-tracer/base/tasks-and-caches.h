/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names: tasks and kmem_caches of the guest, by id.
 *
 * They outlive the boot that they are of: past errors and the journal name
 * them. Any thread may call anything; reading takes no lock.
 */
#ifndef KT_NAMES_H
#define KT_NAMES_H

#include "kalloc-tracer/api/kt-tracer.h"
#include "kalloc-tracer/base/budget.h"

#define KT_COMM_LEN 16
/* Bytes kept of a cache's name, before they are escaped. */
#define KT_CACHE_NAME_MAX 128
/* Bytes that takes when each is escaped. */
#define KT_CACHE_ESCAPED_MAX (KT_CACHE_NAME_MAX * 4)

typedef struct KtTasksCaches KtTasksCaches;

/** kt_tasks_caches_new() - @budget: (borrowed) where memory is taken. */
KtTasksCaches *kt_tasks_caches_new(KtBudget *budget);
void kt_tasks_caches_free(KtTasksCaches *n);

/* As the kt_tracer_*() functions of these names. */
KtTaskId kt_tasks_caches_intern_task(KtTasksCaches *n, uint32_t pid,
                                     const char comm[KT_COMM_LEN]);
bool kt_tasks_caches_task(const KtTasksCaches *n, KtTaskId id, uint32_t *pid,
                          char comm[KT_COMM_LEN + 1]);
uint32_t kt_tasks_caches_n_tasks(const KtTasksCaches *n);

KtCacheId kt_tasks_caches_add_cache(KtTasksCaches *n, const KtCacheInfo *info);
bool kt_tasks_caches_cache(const KtTasksCaches *n, KtCacheId id,
                           KtCacheInfo *out);
/** kt_tasks_caches_restore_cache() - a cache as kt_tasks_caches_cache() told
 *  of it, its name escaped already: always a new id, as it was one then. 0
 *  when there is no room, or the name is none that was ever told. */
KtCacheId kt_tasks_caches_restore_cache(KtTasksCaches *n,
                                        const KtCacheInfo *info);
/** kt_tasks_caches_find_cache() - the cache that lives at its address, if it
 *  is one as kt_tasks_caches_cache() told of it; 0 otherwise. */
KtCacheId kt_tasks_caches_find_cache(KtTasksCaches *n, const KtCacheInfo *info);
void kt_tasks_caches_cache_destroyed(KtTasksCaches *n, KtCacheId id);
uint32_t kt_tasks_caches_n_caches(const KtTasksCaches *n);

/**
 * kt_tasks_caches_set_caches() - the guest has these caches, and no others
 * @list: (borrowed for the call) names escaped, as kt_tasks_caches_cache()
 *        tells them
 * @ids: (out) room for the id of each, 0 where there was no room
 *
 * What else was known counts as destroyed. Nobody else uses @n meanwhile.
 */
void kt_tasks_caches_set_caches(KtTasksCaches *n, const KtCacheInfo *list,
                                uint32_t n_list, uint16_t *ids);

#endif /* KT_NAMES_H */
