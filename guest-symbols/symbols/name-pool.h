/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Strings kept once and for good. Internal to guest-symbols; not locked, the
 * owner does that.
 */
#ifndef GS_NAME_POOL_H
#define GS_NAME_POOL_H

#include <glib.h>
#include <stddef.h>

typedef struct GsNamePool GsNamePool;

/** gs_name_pool_new() - @max: bytes that it may hold, guests fill it. */
GsNamePool *gs_name_pool_new(size_t max);
void gs_name_pool_free(GsNamePool *p);
/** gs_name_pool_bytes() - about the host memory that it takes. */
size_t gs_name_pool_bytes(const GsNamePool *p);
/** gs_name_pool_set_room() - from now on so many more, at most. */
void gs_name_pool_set_room(GsNamePool *p, size_t bytes);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(GsNamePool, gs_name_pool_free)

/** gs_name_pool_intern() - (borrowed, as long as the pool lives) the one copy
 *  of @s; NULL when the pool is full. */
const char *gs_name_pool_intern(GsNamePool *p, const char *s);

/** gs_name_pool_find() - (borrowed) the same without adding; NULL if new. */
const char *gs_name_pool_find(const GsNamePool *p, const char *s);

#endif /* GS_NAME_POOL_H */
