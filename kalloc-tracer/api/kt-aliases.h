/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Other names of kmem_caches: the kernel merges caches that are alike, so who
 * asks for a cache by one name may get a cache of another name.
 *
 *     kmem_cache_create("ext4_io_end", ...)   returns the cache "kmalloc-64"
 *
 * A name is known if its creation was seen in this boot. Names are in snapshots
 * (from version 4 on) and in journals.
 *
 * Threads: any. The names have a lock of their own, a leaf.
 */
#ifndef KT_API_ALIASES_H
#define KT_API_ALIASES_H

#include "kalloc-tracer/api/kt-tracer.h"

/* Names that are kept, at most; those beyond are counted. */
#define KT_ALIASES_MAX      4096
/* Bytes of a name that are kept. */
#define KT_ALIAS_NAME_MAX   64

/**
 * struct KtCacheAlias - a name that was asked for
 * @cache_va: address of the kmem_cache that was returned
 * @name: (borrowed) printable ASCII
 * @object_size: bytes of the cache's objects since then: a merge can raise
 *               them. 0: not known, and always 0 in queries
 * @stack, @task, @us: of who asked
 */
typedef struct KtCacheAlias {
    uint64_t cache_va;
    const char *name;
    uint32_t object_size;
    KtStackId stack;
    KtTaskId task;
    uint64_t us;
} KtCacheAlias;

/** kt_cache_alias_add() - add a name (copied), unless the cache has it, and
 *  write it into the journal. Raise the object size of the cache. Bytes of
 *  @alias->name that are not printable become "?". */
void kt_cache_alias_add(KtTracer *t, const KtCacheAlias *alias);
/** kt_cache_alias_restore() - add a name of a snapshot: the journal gets it
 *  with the checkpoint, and the size of the cache is in the snapshot. The
 *  tracer's lock may be held. */
void kt_cache_alias_restore(KtTracer *t, const KtCacheAlias *alias);
/** kt_cache_alias_drop() - drop the names of a cache that was destroyed. */
void kt_cache_alias_drop(KtTracer *t, uint64_t cache_va);

/** kt_cache_aliases() - call @fn for the names of the cache at @cache_va, in
 *  their order; false ends it. @fn must not call this header. */
void kt_cache_aliases(KtTracer *t, uint64_t cache_va,
                      bool (*fn)(const KtCacheAlias *alias, void *opaque),
                      void *opaque);
/** kt_cache_aliases_all() - call @fn for all names, in their order. @fn must
 *  not call this header. The tracer's lock may be held. */
void kt_cache_aliases_all(KtTracer *t,
                          void (*fn)(const KtCacheAlias *alias, void *opaque),
                          void *opaque);
/** kt_cache_is_named() - return true if @pattern matches the cache's name, or
 *  another one that it has now. */
bool kt_cache_is_named(KtTracer *t, const KtCacheInfo *cache,
                       const char *pattern);
/** kt_cache_aliases_epoch() - return a number that changes with each name that
 *  is added or dropped. */
unsigned kt_cache_aliases_epoch(KtTracer *t);

#endif /* KT_API_ALIASES_H */
