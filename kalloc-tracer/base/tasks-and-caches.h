/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tasks and kmem_caches of the guest, by id.
 *
 * They outlive a reset of the VM, since errors and journals still name them.
 * Any thread may call anything; reading takes no lock.
 */
#ifndef KT_TASKS_AND_CACHES_H
#define KT_TASKS_AND_CACHES_H

#include "kalloc-tracer/api/kt-tracer.h"
#include "kalloc-tracer/base/budget.h"

#define KT_COMM_LEN 16
/* Bytes of a cache's name that are kept, before they are escaped. */
#define KT_CACHE_NAME_MAX 128
/* The same when each byte is escaped. */
#define KT_CACHE_ESCAPED_MAX (KT_CACHE_NAME_MAX * 4)

typedef struct KtTasksCaches KtTasksCaches;

/** kt_tasks_caches_new() - make empty tables (owned). @budget: (borrowed) what
 *  memory is charged to. */
KtTasksCaches *kt_tasks_caches_new(KtBudget *budget);
void kt_tasks_caches_free(KtTasksCaches *n);

/* The next functions do what kt_tracer_*() of these names does. */
KtTaskId kt_tasks_caches_intern_task(KtTasksCaches *n, uint32_t pid,
                                     const char comm[KT_COMM_LEN]);
bool kt_tasks_caches_task(const KtTasksCaches *n, KtTaskId id, uint32_t *pid,
                          char comm[KT_COMM_LEN + 1]);
uint32_t kt_tasks_caches_n_tasks(const KtTasksCaches *n);

KtCacheId kt_tasks_caches_add_cache(KtTasksCaches *n, const KtCacheInfo *info);
bool kt_tasks_caches_cache(const KtTasksCaches *n, KtCacheId id,
                           KtCacheInfo *out);
/** kt_tasks_caches_restore_cache() - add a cache that was read from a journal.
 *  Its name is escaped already. It gets a new id, as it did when it was
 *  recorded. Return 0 if there is no room, or the name is not one that
 *  escaping makes. */
KtCacheId kt_tasks_caches_restore_cache(KtTasksCaches *n,
                                        const KtCacheInfo *info);
/** kt_tasks_caches_find_cache() - find the cache that exists at the address of
 *  @info. Return 0 if there is none, or its name or sizes differ. */
KtCacheId kt_tasks_caches_find_cache(KtTasksCaches *n, const KtCacheInfo *info);
void kt_tasks_caches_cache_destroyed(KtTasksCaches *n, KtCacheId id);
/** kt_tasks_caches_grow_cache() - note that objects of the cache that exists at
 *  @va have @object_size bytes now: another cache was merged into it. Nothing
 *  is done if there is none, if it has more, or if its slots have less. */
void kt_tasks_caches_grow_cache(KtTasksCaches *n, uint64_t va,
                                uint32_t object_size);
uint32_t kt_tasks_caches_n_caches(const KtTasksCaches *n);

/**
 * kt_tasks_caches_set_caches() - make @list the caches that exist: a VM state
 * was loaded
 * @list: (borrowed for the call) names are escaped
 * @ids: (out) the id of each, 0 if there was no room
 *
 * All other caches count as destroyed. No other thread may use @n meanwhile.
 */
void kt_tasks_caches_set_caches(KtTasksCaches *n, const KtCacheInfo *list,
                                uint32_t n_list, uint16_t *ids);

#endif /* KT_TASKS_AND_CACHES_H */
