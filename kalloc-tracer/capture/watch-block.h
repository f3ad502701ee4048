/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Accesses to one block (`ka access watch`).
 *
 *     each access of kernel code --> in the block? no --> done
 *                                      v yes
 *                                    KtBlockAccess, with stack and task
 *
 * memset() and the like are one access, at their entry. Nothing else of the VM
 * changes: no shadow, no types; so any block of any kernel can be watched.
 *
 * No block is watched: KtCapture.block_watched is false, and the same blocks of
 * code are instrumented as if this file did not exist.
 *
 * Threads: callbacks run on vCPU threads. The watch begins and ends while no
 * vCPU executes, with the capture's lock.
 */
#ifndef KT_WATCH_BLOCK_H
#define KT_WATCH_BLOCK_H

#include "kalloc-tracer/capture/capture-internal.h"

/** kt_capture_start_block_watch() - Have `ka access watch` watch blocks of @c.
 *  Call once, from kt_capture_start(). */
void kt_capture_start_block_watch(KtCapture *c);
/** kt_capture_end_block_watch() - End the watch, because the boot ends. Lock
 *  held, no vCPU executes. */
void kt_capture_end_block_watch(KtCapture *c);
/** kt_capture_watch_block() - Add callbacks to the @n instructions of a
 *  translated block. Only if KtCapture.block_watched. */
void kt_capture_watch_block(const KtCapture *c, struct qemu_plugin_tb *tb,
                            size_t n);

#endif /* KT_WATCH_BLOCK_H */
