/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * State: all that a tracer knows, as a stream, and back. QEMU-free.
 *
 * For snapshots and migration of the VM, and wherever else a map has to be
 * carried to another time or process. What was read is checked before any of
 * it counts: a tracer is given a whole state or keeps the one it has.
 *
 * Ids of stacks, tasks and caches are others after a load, for tables of them
 * only grow; listings do not show them.
 */
#ifndef KT_SNAPSHOT_H
#define KT_SNAPSHOT_H

#include "kalloc-tracer/base/id-map.h"
#include "kalloc-tracer/kt.h"
#include "guest-symbols/base/stream.h"

/** KT_SNAPSHOT_VERSION - of the stream; older ones can be read, newer cannot.
 * */
#define KT_SNAPSHOT_VERSION 2
/** KT_SNAPSHOT_MAX_BYTES - that a stream may unpack to. */
#define KT_SNAPSHOT_MAX_BYTES ((uint64_t)16 << 30)

typedef struct KtSnapshot KtSnapshot;

/**
 * kt_snapshot_pack() - write what @t knows, everything applied that was pushed
 *
 * Any thread that may query. Nobody pushes meanwhile, or the state is that of
 * some moment of the call.
 */
void kt_snapshot_pack(KtTracer *t, GsOut *p);

/**
 * kt_snapshot_unpack() - read such a state, for kt_snapshot_install()
 * @t: (borrowed) whose limits are to hold; it is not changed
 *
 * Returns: (owned) never NULL; to be used only if gs_bytes_ok().
 */
KtSnapshot *kt_snapshot_unpack(KtTracer *t, GsBytes *u);
void kt_snapshot_free(KtSnapshot *s);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtSnapshot, kt_snapshot_free)

/** kt_snapshot_drop_pages() - the page allocator is not traced here: its
 *  blocks are dropped, before kt_snapshot_install(). */
void kt_snapshot_drop_pages(KtSnapshot *s);

/**
 * kt_snapshot_install() - @t knows what @s says, and nothing else
 *
 * Any thread that may query; nobody pushes meanwhile. What does not fit its
 * limits is dropped, counted. Once for a state.
 */
void kt_snapshot_install(KtTracer *t, KtSnapshot *s);

/** kt_snapshot_ids() - Return what ids of the snapshot are in the tracer; it
 *  borrows from @s. Caches are known after kt_snapshot_install(). */
KtIdMap kt_snapshot_ids(const KtSnapshot *s);

/** kt_snapshot_save() - the whole of it: a stream of its own to @sink. */
void kt_snapshot_save(KtTracer *t, GsStreamSink sink, void *opaque);
/** kt_snapshot_load() - from such a stream; false: @t is as it was. @errp: what
 *  is wrong with the stream, one line. */
bool kt_snapshot_load(KtTracer *t, GsStreamSource source, void *opaque,
                      GError **errp);

/**
 * kt_tracer_reset_unknown() - another time of the VM's life began, of which
 * nothing is known: the map is empty, and not complete
 */
void kt_tracer_reset_unknown(KtTracer *t);

#endif /* KT_SNAPSHOT_H */
