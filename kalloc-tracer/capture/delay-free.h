/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Delay frees (quarantine=SIZE): at the entry of kfree() and kmem_cache_free()
 * the pointer is exchanged for that of a block that was freed before. See
 * access/quarantine.h for the blocks that wait.
 *
 * Off: KtShared.delay is NULL, and callbacks are those without this file.
 *
 * Threads: kt_delay_free() runs on vCPU threads. A boot begins and ends with
 * the capture's lock.
 */
#ifndef KT_DELAY_FREE_H
#define KT_DELAY_FREE_H

#include "kalloc-tracer/capture/capture-internal.h"

/** kt_delay_free_begin_boot() - Delay frees, if that is wanted, in the boot
 *  that is about to be published. Lock held. */
void kt_delay_free_begin_boot(KtCapture *c);
/** kt_delay_free_end_boot() - Drop what is known of the kernel. Lock held, no
 *  vCPU executes. */
void kt_delay_free_end_boot(KtCapture *c);

/** kt_delay_free_pack() - Write the blocks that wait, and which caches may have
 *  some. Only if @c->shared.delay is set. */
void kt_delay_free_pack(const KtCapture *c, GsOut *p);
/** kt_delay_free_unpack() - Read them, before the boot begins. @u: (nullable)
 *  NULL: the snapshot has nothing of this; @ids: of the snapshot, which is
 *  installed */
void kt_delay_free_unpack(KtCapture *c, GsBytes *u, const KtIdMap *ids);

#endif /* KT_DELAY_FREE_H */
