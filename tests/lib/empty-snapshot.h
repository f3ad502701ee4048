/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The snapshot of an empty tracer. It contains the table of hooks and little
 * else. With it a test can unpack one part of a snapshot by itself.
 * Single-threaded.
 */
#ifndef EMPTY_SNAPSHOT_H
#define EMPTY_SNAPSHOT_H

#include "kalloc-tracer/snapshot/snapshot.h"

/* The unpack function of a part of a snapshot. @part has the type that the
 * function unpacks. */
typedef void UnpackPart(void *part, GsBytes *u, const KtIdMap *ids);

/** unpack_part() - unpack @bytes to @part with the empty snapshot. Returns:
 *  true if all bytes were valid and used. */
bool unpack_part(UnpackPart *fn, void *part, const GByteArray *bytes,
                 GError **errp);

/** check_most() - assert that the error is @too_many if the part begins with a
 *  number above @most, and another one if it begins with @most. */
void check_most(UnpackPart *fn, void *part, uint64_t most,
                const char *too_many);

#endif /* EMPTY_SNAPSHOT_H */
