/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Accesses to one block (`ka access watch`).
 *
 *     ka access watch VA --> the pages of the block are trapped in QEMU's TLBs
 *
 *     an access to such a page --> in the block? no --> done
 *                                    v yes
 *                                  KtBlockAccess, with stack and task
 *
 * Nothing else of the VM changes: no code is translated anew, and accesses to
 * other pages are as fast as before. The accesses of one call of memset() and
 * the like are one record.
 *
 * Threads: on_access() runs on vCPU threads, and is_trapped() on any, with the
 * lock of a TLB held. The watch begins and ends while no vCPU executes, with
 * the capture's lock.
 */
#ifndef KT_WATCH_BLOCK_H
#define KT_WATCH_BLOCK_H

#include "kalloc-tracer/capture/capture-internal.h"

/** kt_capture_start_block_watch() - Have `ka access watch` watch blocks of @c.
 *  Call once, from kt_capture_start(). @id: of the plugin */
void kt_capture_start_block_watch(KtCapture *c, qemu_plugin_id_t id);
/** kt_capture_end_block_watch() - End the watch, because the boot ends. Lock
 *  held, no vCPU executes. */
void kt_capture_end_block_watch(KtCapture *c);

#endif /* KT_WATCH_BLOCK_H */
