/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * KtFinder: finds the kernel that starts in the guest, by the blocks of code
 * that run. With a file, it finds that kernel, at any KASLR slide. Without one,
 * it finds any Linux kernel in guest memory.
 *
 * Created by plugin/. capture/ calls kt_finder_try() for each block that
 * kt_finder_wants(), until a kernel is found. QEMU-free: memory comes through a
 * KtView, in the thread of the vCPU that runs the block.
 */
#ifndef KT_KERNEL_FINDER_H
#define KT_KERNEL_FINDER_H

#include "kalloc-tracer/kernel/guest.h"

typedef struct KtFinder KtFinder;

/**
 * kt_finder_new() - make a finder
 * @arch: the guest's
 * @file: (borrowed, nullable) the kernel that will run; NULL: read it from
 *        guest memory
 * @view: guest memory
 *
 * Returns: (owned) the finder.
 */
KtFinder *kt_finder_new(const GsArch *arch, GsKernel *file, KtView view);
void kt_finder_free(KtFinder *f);
/** kt_finder_set_room() - refuse a kernel if more than @bytes of its image
 *  would have to be copied at once; 0: no limit. */
void kt_finder_set_room(KtFinder *f, uint64_t bytes);
/** kt_finder_set_without() - hide sources of each kernel that is read from
 *  memory, as gs_kernel_hide(). @words: (borrowed, nullable) */
void kt_finder_set_without(KtFinder *f, const char *words);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtFinder, kt_finder_free)

/** kt_finder_lowest() - return the lowest address of kernel code or stacks. */
uint64_t kt_finder_lowest(const KtFinder *f);
/** kt_finder_may_run() - return true if kernel code may be at @va. Any
 *  thread. */
bool kt_finder_may_run(const KtFinder *f, uint64_t va);
/** kt_finder_wants() - return true if kt_finder_try() should be called when the
 *  block of code at @va runs. Any thread, also during translation. No locks. */
bool kt_finder_wants(const KtFinder *f, uint64_t va);

/**
 * kt_finder_try() - try to find the kernel by a block of code that runs
 * @va: start of the block
 * @slide: (out) of the kernel
 * @complete: (out) true if the kernel has not allocated anything yet, so that
 *            the map will have all blocks
 *
 * One thread at a time.
 *
 * Returns: (borrowed until the next kernel is found) NULL if none was found.
 */
GsKernel *kt_finder_try(KtFinder *f, uint64_t va, uint64_t *slide,
                        bool *complete);

/**
 * struct KtKernelAt - identity of a running kernel, for VM snapshots
 * @banner: (owned) the text of linux_banner, "" if unknown
 * @start, @end: the image in guest memory; if @memory is false, both are the
 *               slide of the file's kernel
 * @memory: the kernel was read from guest memory, not from a file
 */
typedef struct KtKernelAt {
    char *banner;
    uint64_t start, end;
    bool memory;
} KtKernelAt;

/** kt_kernel_at() - describe @k. Clear @out with kt_kernel_at_clear(). */
void kt_kernel_at(const GsKernel *k, KtKernelAt *out);
void kt_kernel_at_clear(KtKernelAt *at);

/** kt_finder_may_return() - return false if the file is certainly another
 *  kernel than @at. */
bool kt_finder_may_return(const KtFinder *f, const KtKernelAt *at);
/**
 * kt_finder_return() - find the kernel of a VM snapshot that was loaded
 * @at: identity of the kernel when the snapshot was made, which may have been
 *      with or without a file
 * @va: address of a block of it that runs, 0 if none is known
 * @view: guest memory as a vCPU maps it that is in the kernel
 *
 * Call when nothing uses the kernel that was found last.
 *
 * Returns: (borrowed until the next kernel is found) the kernel, without
 * modules; NULL if it is not there or not readable.
 */
GsKernel *kt_finder_return(KtFinder *f, const KtKernelAt *at, uint64_t va,
                           KtView view);

/**
 * kt_finder_known() - return the kernel that was found last, if it is @at
 *
 * For a time when no vCPU can read guest memory. Compares banner and address
 * only.
 *
 * Returns: (borrowed) the kernel, without modules, or NULL.
 */
GsKernel *kt_finder_known(KtFinder *f, const KtKernelAt *at);

/**
 * kt_finder_late() - expect a kernel that may have run for some time already
 * @begun: it certainly has. If false, the kernel may also start later, and is
 *         waited for if its file cannot distinguish the two cases
 *
 * A kernel that is found then is complete only if it has allocated nothing.
 */
void kt_finder_late(KtFinder *f, bool begun);

/**
 * kt_finder_restart() - search again: the guest was reset, or kexec'ed
 * @after_kexec: the kernel that was found last still runs for a while
 *
 * The kernel that was found last stays valid, because its symbols are still
 * needed.
 *
 * Returns: true if blocks were tried since the last restart.
 */
bool kt_finder_restart(KtFinder *f, bool after_kexec);

/** kt_finder_gives_up() - return true, once, if no kernel was found in memory
 *  and no block will be tried any more: kt_finder_why_not() says why. Call it
 *  after kt_finder_try(), in its thread. */
bool kt_finder_gives_up(KtFinder *f);

/** kt_finder_has_tried() - return false if no block has run where a kernel's
 *  code may be. Any thread. */
bool kt_finder_has_tried(const KtFinder *f);
/** kt_finder_why_not() - return (borrowed, nullable) the error of the last try
 *  to read a kernel from memory. */
const char *kt_finder_why_not(const KtFinder *f);

#endif /* KT_KERNEL_FINDER_H */
