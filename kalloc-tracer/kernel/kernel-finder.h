/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finding the guest's kernel as it starts: of a file, or in memory. QEMU-free:
 * memory comes through a KtView, on the vCPU's own thread.
 */
#ifndef KT_KERNEL_FINDER_H
#define KT_KERNEL_FINDER_H

#include "kalloc-tracer/kernel/guest.h"

typedef struct KtFinder KtFinder;

/**
 * kt_finder_new() - look for a kernel
 * @arch: the guest's
 * @file: (borrowed) the one that will run, NULL to take what is in memory
 * @view: guest memory
 */
KtFinder *kt_finder_new(const GsArch *arch, GsKernel *file, KtView view);
void kt_finder_free(KtFinder *f);
/** kt_finder_set_room() - a kernel of whose image more bytes would have to be
 *  copied at once is not read; 0: there is no such bound. */
void kt_finder_set_room(KtFinder *f, uint64_t bytes);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtFinder, kt_finder_free)

/** kt_finder_lowest() - no kernel's code or stack is below that address. */
uint64_t kt_finder_lowest(const KtFinder *f);
/** kt_finder_may_run() - may there be code of a kernel's at @va? Any thread. */
bool kt_finder_may_run(const KtFinder *f, uint64_t va);
/** kt_finder_wants() - may the block that begins at @va tell? Any thread,
 *  lock free, also while code is translated. */
bool kt_finder_wants(const KtFinder *f, uint64_t va);

/**
 * kt_finder_try() - such a block runs; one thread at a time
 * @slide: (out) of the kernel
 * @complete: (out) it has not allocated anything yet
 *
 * Returns: (borrowed until the next one is found) the kernel that runs, or
 * NULL.
 */
GsKernel *kt_finder_try(KtFinder *f, uint64_t va, uint64_t *slide,
                        bool *complete);

/**
 * struct KtKernelAt - where a kernel runs
 * @banner: (owned) "" when it has none
 * @start, @end: its image in memory; of a file's kernel both are its slide
 * @memory: which of the two
 */
typedef struct KtKernelAt {
    char *banner;
    uint64_t start, end;
    bool memory;
} KtKernelAt;

/** kt_kernel_at() - where @k runs. */
void kt_kernel_at(const GsKernel *k, KtKernelAt *out);
void kt_kernel_at_clear(KtKernelAt *at);

/** kt_finder_may_return() - false: it is certainly not the file's. */
bool kt_finder_may_return(const KtFinder *f, const KtKernelAt *at);
/**
 * kt_finder_return() - a kernel that ran before runs again: a snapshot was
 * loaded. Nothing uses what was found last
 * @at: told by whoever saved it, with a file of it or without
 * @va: of a block of it that runs, 0: none is known
 * @view: guest memory, as a vCPU maps it that is in the kernel
 *
 * It is not asked what was found before, unless it is the same.
 * Returns: (borrowed until the next one is found), with no modules; or NULL if
 * it is not there, or not to be read.
 */
GsKernel *kt_finder_return(KtFinder *f, const KtKernelAt *at, uint64_t va,
                           KtView view);

/**
 * kt_finder_known() - the same without a look, where no vCPU can: what was
 * found last, by the same banner at the same place
 */
GsKernel *kt_finder_known(KtFinder *f, const KtKernelAt *at);

/**
 * kt_finder_late() - what will be found may have run for long: it is complete
 * only if it has allocated nothing
 * @begun: false: or its start is to come, which is waited for where a file
 * does not tell the one from the other
 */
void kt_finder_late(KtFinder *f, bool begun);

/**
 * kt_finder_restart() - the guest starts anew
 * @after_kexec: what was found runs on for a while
 *
 * What was found stays, to name what is known of it. Returns: had it looked
 * at anything?
 */
bool kt_finder_restart(KtFinder *f, bool after_kexec);

/** kt_finder_why_not() - (borrowed, nullable) what was wrong with the memory
 *  that was looked at last. */
const char *kt_finder_why_not(const KtFinder *f);

#endif /* KT_KERNEL_FINDER_H */
