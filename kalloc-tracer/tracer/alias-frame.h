/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The journal's frame of an alias (KT_FRAME_ALIAS), both directions: a cache
 * got another name, or lost all of them.
 *
 *     frame: 1 added or 0 dropped, address of the kmem_cache (8), and of an
 *            added name: us and object_size (varints), the length of the name
 *            and the name, task, stack
 *
 * Task and stack are written as tracer/frame-ids.h says: a frame needs no other
 * frame. Pure functions: any thread.
 */
#ifndef KT_ALIAS_FRAME_H
#define KT_ALIAS_FRAME_H

#include "guest-symbols/base/bytes.h"
#include "kalloc-tracer/api/kt-aliases.h"

/** kt_alias_frame_added() - Return (owned) the frame of a name that was added
 *  to @t. */
GByteArray *kt_alias_frame_added(KtTracer *t, const KtCacheAlias *alias);
/** kt_alias_frame_dropped() - Return (owned) the frame of a cache whose names
 *  were dropped. */
GByteArray *kt_alias_frame_dropped(uint64_t cache_va);

/**
 * kt_alias_frame_replay() - Read a frame, and do to @t what it says
 * @k: (nullable) knows when the stack was taken
 * @until_us: a name that was asked for later is not added
 *
 * The bytes are untrusted. Returns: false if they are malformed; then the names
 * are as they were.
 */
bool kt_alias_frame_replay(KtTracer *t, const GsKernel *k, GsBytes *in,
                           uint64_t until_us);

#endif /* KT_ALIAS_FRAME_H */
