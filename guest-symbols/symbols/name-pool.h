/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A pool of interned strings: equal strings have equal addresses, as long as
 * the pool lives. No lock inside: the owner locks.
 */
#ifndef GS_NAME_POOL_H
#define GS_NAME_POOL_H

#include <glib.h>
#include <stddef.h>

typedef struct GsNamePool GsNamePool;

/** gs_name_pool_new() - (owned) make a pool of at most @max bytes. */
GsNamePool *gs_name_pool_new(size_t max);
void gs_name_pool_free(GsNamePool *p);
/** gs_name_pool_bytes() - estimate the host memory of the pool. */
size_t gs_name_pool_bytes(const GsNamePool *p);
/** gs_name_pool_set_room() - allow so many more bytes from now on. */
void gs_name_pool_set_room(GsNamePool *p, size_t bytes);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(GsNamePool, gs_name_pool_free)

/** gs_name_pool_intern() - (borrowed, as long as the pool lives) return the
 *  one copy of @s, made if needed; NULL if the pool is full. */
const char *gs_name_pool_intern(GsNamePool *p, const char *s);

/** gs_name_pool_find() - (borrowed) return the copy of @s; NULL if there is
 *  none. */
const char *gs_name_pool_find(const GsNamePool *p, const char *s);

#endif /* GS_NAME_POOL_H */
