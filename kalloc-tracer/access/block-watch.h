/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Block watch: the block that the user wants to be watched, and the ring of its
 * accesses. The part of a tracer behind kt-block-watch.h.
 *
 * Accesses that follow each other and differ only in their place are one
 * record: `rep movs` makes an access for each turn, and a spin loop reads the
 * same word again and again. So are those of one memory function, whose pc is
 * its entry, whatever their order is.
 *
 *     pc, sp and vCPU of the newest record?  no --> walk the stack, new record
 *     a memory function?                     yes -> count it there
 *     same bytes, or the bytes behind it?    no --> new record
 *     else                                      --> count it there
 *
 * Threads: any; the part has a lock of its own, a leaf.
 */
#ifndef KT_BLOCK_WATCH_H
#define KT_BLOCK_WATCH_H

#include "kalloc-tracer/api/kt-block-watch.h"

typedef struct KtBlockWatch KtBlockWatch;

/** struct KtBlockPlace - where in its execution the guest made an access */
typedef struct KtBlockPlace {
    uint64_t pc, sp;
} KtBlockPlace;

/** kt_block_watch_of() - Return the part of a tracer; any thread. */
KtBlockWatch *kt_block_watch_of(KtTracer *t);
/** kt_block_watch_on_change() - Have @fn called when the user starts or stops
 *  the watch, without the lock. Before any other use. */
void kt_block_watch_on_change(KtBlockWatch *w, void (*fn)(void *opaque),
                              void *opaque);
/** kt_block_watch_wanted() - Read what is wanted. Returns: false if nothing
 *  is. */
bool kt_block_watch_wanted(KtBlockWatch *w, KtBlockWatchSpec *out);
/** kt_block_watch_refuse() - Refuse to watch any block. @why: (static) what
 *  kt_block_watch_start() fails with; NULL: watch. */
void kt_block_watch_refuse(KtBlockWatch *w, const char *why);
/** kt_block_watch_end() - The boot ends. */
void kt_block_watch_end(KtBlockWatch *w);

/** kt_block_watch_repeat() - Count an access in the newest record. @a: without
 *  stack and task. Returns: false if it needs a record of its own. */
bool kt_block_watch_repeat(KtBlockWatch *w, const KtBlockPlace *place,
                           const KtBlockAccess *a);
/** kt_block_watch_add() - Add a record; nothing happens if this block is
 *  not watched any more. */
void kt_block_watch_add(KtBlockWatch *w, const KtBlockPlace *place,
                        const KtBlockAccess *a);

#endif /* KT_BLOCK_WATCH_H */
