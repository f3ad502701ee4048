/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which frames at the head of a backtrace are inside wrappers, or are those of
 * a BPF trampoline. QEMU-free; any thread may call it.
 */
#ifndef KT_WRAPPER_FRAMES_H
#define KT_WRAPPER_FRAMES_H

#include "kalloc-tracer/hooks/hooks.h"

/**
 * kt_wrapper_frames() - Return how many frames of a backtrace to drop, so that
 *                       it begins at the caller of the outermost wrapper
 * @k: the kernel that @h belongs to
 * @wrapper: (in, out) the wrapper that contains @frames[0], 0 for none; the
 *           outermost one of those that were dropped
 * @pages: as for kt_hooks_wrapper()
 * @frames: return addresses, the innermost first
 * @n: their count; one frame is kept
 */
unsigned kt_wrapper_frames(const KtHooks *h, const GsKernel *k,
                           KtHookId *wrapper, bool pages,
                           const uint64_t *frames, unsigned n);

#endif /* KT_WRAPPER_FRAMES_H */
