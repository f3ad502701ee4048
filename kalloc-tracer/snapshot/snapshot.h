/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Snapshot: all that a tracer knows, as a stream of bytes, and back.
 *
 * It is used for snapshots and migration of the VM (capture/vmstate.c), and for
 * checkpoints in the journal. A load has two steps: kt_snapshot_unpack() reads
 * and checks the whole stream, and does not change the tracer. Then
 * kt_snapshot_install() replaces what the tracer knows. So a damaged stream
 * leaves the tracer as it was.
 *
 * Tables of stacks, tasks and caches only grow. So the ids of a stream become
 * other ids when it is installed; kt_snapshot_ids() says which.
 *
 * Threads: any thread that may query.
 */
#ifndef KT_SNAPSHOT_H
#define KT_SNAPSHOT_H

#include "kalloc-tracer/base/id-map.h"
#include "kalloc-tracer/kt.h"
#include "guest-symbols/base/stream.h"

/** KT_SNAPSHOT_VERSION - version of the stream that is written. Older versions
 *  can be read, newer ones are refused. */
#define KT_SNAPSHOT_VERSION 5
/** KT_SNAPSHOT_ERAS - the first version that says when a stack was taken, and
 *  numbers the loads of modules. */
#define KT_SNAPSHOT_ERAS 3
/** KT_SNAPSHOT_ALIASES - the first version with other names of caches. */
#define KT_SNAPSHOT_ALIASES 4
/** KT_SNAPSHOT_BACKING - the first version that says which stacks allocate
 *  pages for other layers, and does not count these in sums. */
#define KT_SNAPSHOT_BACKING 5
/** KT_SNAPSHOT_MAX_BYTES - limit of an unpacked stream. */
#define KT_SNAPSHOT_MAX_BYTES ((uint64_t)16 << 30)

typedef struct KtSnapshot KtSnapshot;

/**
 * kt_snapshot_pack() - Write all that @t knows, after all pushed events are
 * applied
 *
 * If events are pushed meanwhile, the snapshot is of some moment during the
 * call.
 */
void kt_snapshot_pack(KtTracer *t, GsOut *p);

/**
 * kt_snapshot_unpack() - Read a snapshot, for kt_snapshot_install()
 * @t: (borrowed) the tracer whose limits count; it is not changed
 *
 * Errors are in @u. Returns: (owned) never NULL; if gs_unpack_ok() is false,
 * only kt_snapshot_free() may be called.
 */
KtSnapshot *kt_snapshot_unpack(KtTracer *t, GsBytes *u);
void kt_snapshot_free(KtSnapshot *s);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtSnapshot, kt_snapshot_free)

/** kt_snapshot_drop_pages() - Drop the blocks of the page allocator, because it
 *  is not traced here. Call before kt_snapshot_install(). */
void kt_snapshot_drop_pages(KtSnapshot *s);

/**
 * kt_snapshot_install() - Replace all that @t knows by the snapshot
 *
 * No events are pushed meanwhile. What exceeds the limits of @t is dropped, and
 * counted. Call once for a snapshot.
 */
void kt_snapshot_install(KtTracer *t, KtSnapshot *s);

/** kt_snapshot_ids() - Return what ids of the snapshot are in the tracer; it
 *  borrows from @s. Caches are known after kt_snapshot_install(). */
KtIdMap kt_snapshot_ids(const KtSnapshot *s);

/** kt_snapshot_has_eras() - Return true if its version is KT_SNAPSHOT_ERAS or
 *  later. */
bool kt_snapshot_has_eras(const KtSnapshot *s);

/** kt_snapshot_save() - Write a stream that has only the snapshot. */
void kt_snapshot_save(KtTracer *t, GsStreamSink sink, void *opaque);
/** kt_snapshot_load() - Read a stream of kt_snapshot_save() and install it.
 *  Returns: false if the stream is damaged; then @t is as it was, and @errp is
 *  one line that says what is wrong. */
bool kt_snapshot_load(KtTracer *t, GsStreamSource source, void *opaque,
                      GError **errp);

/**
 * kt_tracer_reset_unknown() - Begin with an empty map that is not complete
 *
 * Call it if the VM was set to another time of its life and there is no
 * snapshot of ka for that time. No events are pushed meanwhile.
 */
void kt_tracer_reset_unknown(KtTracer *t);

#endif /* KT_SNAPSHOT_H */
