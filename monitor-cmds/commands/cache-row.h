/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rows of ka cache: caches, and lists of free objects. On the command's
 * thread. */
#ifndef MC_CACHE_ROW_H
#define MC_CACHE_ROW_H

#include "monitor-cmds/output/row.h"

/**
 * struct McCacheRow - a cache
 * @transit: objects that are neither live nor on a list: calls under way,
 *           objects that wait for RCU, or that were handed out before ka
 *           recorded events
 * @c: what is known of it, NULL for a kernel without types
 * @merged: (or 0) number of caches that share this one
 * @aliases, @names: (nullable) its other names, as a list and joined
 */
typedef struct McCacheRow {
    uint64_t va;
    const char *name;
    uint32_t object_size, size;
    uint64_t slabs, live, free, rcu;
    int64_t transit;
    bool transit_known;
    uint64_t active_objs, num_objs;
    const KtSlabCache *c;
    uint32_t merged;
    const char *const *aliases;
    const char *names;
} McCacheRow;
/* The second one is for a kernel without types. */
extern const McObject mc_cache_object, mc_named_cache_object;

/** struct McFreeListRow - a list of free objects. @l: (nullable) NULL: the
 *  slabs on no list; @capacity: (or 0) of a sheaf; @units: of @parts */
typedef struct McFreeListRow {
    const char *owner, *name;
    unsigned number;
    const char *list;
    const KtSlabList *l;
    uint32_t capacity;
    uint64_t parts, free, next;
    const char *units;
} McFreeListRow;
extern const McObject mc_free_list_object;

#endif /* MC_CACHE_ROW_H */
