/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A copy of a range of guest memory, made piece by piece when a piece is
 * needed. For guest-symbols only; one thread.
 */
#ifndef GS_GUEST_COPY_H
#define GS_GUEST_COPY_H

#include "guest-symbols/gs.h"

typedef struct GsGuestCopy GsGuestCopy;

/**
 * gs_guest_copy_new() - make a copy of [@start, @end), still empty
 * @mem: (borrowed as long as the copy lives)
 * Returns: (owned) or NULL if there is not enough memory.
 */
GsGuestCopy *gs_guest_copy_new(const GsMem *mem, uint64_t start, uint64_t end);
void gs_guest_copy_free(GsGuestCopy *c);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(GsGuestCopy, gs_guest_copy_free)

/** gs_guest_copy_start() - return the range's first address; @len: (out) */
uint64_t gs_guest_copy_start(const GsGuestCopy *c, size_t *len);
/** gs_guest_copy_data() - (borrowed) return the copy of @start; zeros where
 *  nothing was needed yet, and where guest memory is unreadable. */
const uint8_t *gs_guest_copy_data(const GsGuestCopy *c);

/** gs_guest_copy_need() - copy the part of [@va, @va + @len) that is in the
 *  range, up to @mem->room bytes in all; @c: (nullable) */
void gs_guest_copy_need(GsGuestCopy *c, uint64_t va, size_t len);
/** gs_guest_copy_full() - was more needed than @mem->room allows? */
bool gs_guest_copy_full(const GsGuestCopy *c);

/**
 * gs_guest_copy_find() - search for bytes without copying the range
 * @c: (nullable)
 * @what: @len bytes, at most GS_FIND_MAX
 * @va: (in, out) where to begin; where they were found
 * Returns: false if they were not found.
 */
bool gs_guest_copy_find(const GsGuestCopy *c, const void *what, size_t len,
                        uint64_t *va);
#define GS_FIND_MAX 64

#endif /* GS_GUEST_COPY_H */
