/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names: tasks and kmem_caches of the guest, by id.
 *
 * They outlive the boot that they are of: past errors and the journal name
 * them. Any thread may call anything; reading takes no lock.
 */
#ifndef KT_NAMES_H
#define KT_NAMES_H

#include "kalloc-tracer/base/budget.h"
#include "kalloc-tracer/kt.h"

#define KT_COMM_LEN 16
/* Bytes kept of a cache's name, before they are escaped. */
#define KT_CACHE_NAME_MAX 128
/* Bytes that takes when each is escaped. */
#define KT_CACHE_ESCAPED_MAX (KT_CACHE_NAME_MAX * 4)

typedef struct KtNames KtNames;

/** kt_names_new() - @budget: (borrowed) where memory is taken. */
KtNames *kt_names_new(KtBudget *budget);
void kt_names_free(KtNames *n);

/* As the kt_tracer_*() functions of these names. */
KtTaskId kt_names_intern_task(KtNames *n, uint32_t pid,
                              const char comm[KT_COMM_LEN]);
bool kt_names_task(const KtNames *n, KtTaskId id, uint32_t *pid,
                   char comm[KT_COMM_LEN + 1]);
uint32_t kt_names_n_tasks(const KtNames *n);

KtCacheId kt_names_add_cache(KtNames *n, const KtCacheInfo *info);
bool kt_names_cache(const KtNames *n, KtCacheId id, KtCacheInfo *out);
/** kt_names_restore_cache() - a cache as kt_names_cache() told of it, its name
 *  escaped already: always a new id, as it was one then. 0 when there is no
 *  room, or the name is none that was ever told. */
KtCacheId kt_names_restore_cache(KtNames *n, const KtCacheInfo *info);
/** kt_names_find_cache() - the cache that lives at its address, if it is one
 *  as kt_names_cache() told of it; 0 otherwise. */
KtCacheId kt_names_find_cache(KtNames *n, const KtCacheInfo *info);
void kt_names_cache_destroyed(KtNames *n, KtCacheId id);
uint32_t kt_names_n_caches(const KtNames *n);

/**
 * kt_names_set_caches() - the guest has these caches, and no others
 * @list: (borrowed for the call) names escaped, as kt_names_cache() tells
 *        them
 * @ids: (out) room for the id of each, 0 where there was no room
 *
 * What else was known counts as destroyed. Nobody else uses @n meanwhile.
 */
void kt_names_set_caches(KtNames *n, const KtCacheInfo *list, uint32_t n_list,
                         uint16_t *ids);

#endif /* KT_NAMES_H */
