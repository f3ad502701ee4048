/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A range of guest memory that is copied where and when somebody looks.
 * Internal to guest-symbols; for one thread.
 */
#ifndef GS_MEMORY_COPY_H
#define GS_MEMORY_COPY_H

#include "guest-symbols/gs.h"

typedef struct GsGuestCopy GsGuestCopy;

/**
 * gs_guest_copy_new() - nothing of [@start, @end) is copied yet
 * @mem: (borrowed as long as it lives)
 * Returns: (owned) or NULL when there is no room.
 */
GsGuestCopy *gs_guest_copy_new(const GsMem *mem, uint64_t start, uint64_t end);
void gs_guest_copy_free(GsGuestCopy *c);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(GsGuestCopy, gs_guest_copy_free)

/** gs_guest_copy_start() - the range's first address; @len: (out) */
uint64_t gs_guest_copy_start(const GsGuestCopy *c, size_t *len);
/** gs_guest_copy_data() - (borrowed) the copy of @start; zeros where nobody
 *  has asked, and where there is nothing to be read. */
const uint8_t *gs_guest_copy_data(const GsGuestCopy *c);

/** gs_guest_copy_need() - copy what of [@va, @va + @len) is in the range, as
 *  far as @mem->room goes; @c: (nullable) */
void gs_guest_copy_need(GsGuestCopy *c, uint64_t va, size_t len);
/** gs_guest_copy_full() - was more needed than there is room for? */
bool gs_guest_copy_full(const GsGuestCopy *c);

/**
 * gs_guest_copy_find() - look for bytes without a copy
 * @c: (nullable)
 * @what: @len bytes, at most GS_FIND_MAX
 * @va: (in, out) from where on; where they are
 * Returns: false when they are not there.
 */
bool gs_guest_copy_find(const GsGuestCopy *c, const void *what, size_t len,
                        uint64_t *va);
#define GS_FIND_MAX 64

#endif /* GS_MEMORY_COPY_H */
