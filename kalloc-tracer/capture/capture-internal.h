/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of capture share: the object, and the boot of the running
 * kernel.
 */
#ifndef KT_CAPTURE_INTERNAL_H
#define KT_CAPTURE_INTERNAL_H

#include <time.h>

#include "kalloc-tracer/capture/capture.h"
#include "kalloc-tracer/capture/record.h"
#include "kalloc-tracer/kernel/types-fit.h"

/** struct KtResume - a loaded snapshot whose kernel is not found yet, see
 *  capture-snapshot.c */
typedef struct KtResume KtResume;

/**
 * struct KtCapture - all that capture knows of a VM
 * @boot: (atomic) NULL until the kernel is found
 * @vcpu: @max_vcpus of them
 * @finder: NULL: nothing is traced
 * @lowest: lowest address of kernel space
 * @clock_ns: cost of reading the clock twice
 * @pages: trace the page allocator, too
 * @log: read the kernel's log
 * @applying: the tracer's thread was started
 * @resume: (atomic) NULL: no snapshot waits for its kernel
 * @stopped_looking: (atomic) the search for @resume's kernel failed
 * @types: (borrowed) types=FILE, NULL: not given
 * @fit: does it fit the running kernel?
 * @say: print a line on stderr; @said: (owned) the last one
 * @still: no vCPU executes now, although the VM runs
 * @block_watched: accesses to a block are recorded. Changed while no vCPU
 *                 executes
 * @lock: of @boot and @resume, and of the kernel's slide and modules
 */
struct KtCapture {
    KtShared shared;
    KtBoot *boot;
    KtVcpu *vcpu;
    unsigned max_vcpus;
    const GsArch *arch;
    KtFinder *finder;
    uint64_t lowest;
    uint64_t clock_ns;
    bool pages;
    bool log;
    bool applying;
    KtResume *resume;
    bool stopped_looking;
    const GsTypesFile *types;
    KtTypesFit fit;
    void (*say)(const char *line);
    char *said;
    bool still;
    bool block_watched;
    GMutex lock;
};

/** kt_clock_ns() - Read a clock of the host, in ns. */
static inline uint64_t kt_clock_ns(clockid_t clock)
{
    struct timespec ts;

    clock_gettime(clock, &ts);
    return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

/** kt_capture_boot() - (nullable) Return the published boot; any thread. */
static inline KtBoot *kt_capture_boot(const KtCapture *c)
{
    return __atomic_load_n(&c->boot, __ATOMIC_ACQUIRE);
}

/** kt_capture_add_vcpu() - Find the registers of a new vCPU. The first one
 *  starts the tracer's thread. On the vCPU's thread; takes the lock. */
void kt_capture_add_vcpu(KtCapture *c, unsigned index);
/** kt_capture_remove_vcpu() - Drop a vCPU that is unplugged: its thread has
 *  ended, and QEMU is about to free its registers. Takes the lock. */
void kt_capture_remove_vcpu(KtCapture *c, unsigned index);

/** kt_capture_may_find() - Return true if the kernel can be found from a block
 *  that begins at @va. Any thread, lock free. */
bool kt_capture_may_find(const KtCapture *c, uint64_t va);
/** kt_capture_look() - Look for the kernel at @va, where a block is executed.
 *  On the vCPU's thread; takes the lock. */
void kt_capture_look(KtCapture *c, uint64_t va);
/** kt_capture_end_by_kexec() - End the boot because kexec starts another
 *  kernel; no vCPU executes. @userdata: the KtCapture */
void kt_capture_end_by_kexec(void *userdata);

/** kt_capture_reclaim_points() - Free sets of call points that are no longer
 *  published. If there are no points any more, end the use of return sites by
 *  their calls. No vCPU executes. @userdata: the KtCapture */
void kt_capture_reclaim_points(void *userdata);

/** kt_capture_set_kernel() - Set the running kernel, for all vCPUs. @k:
 *  (borrowed) its slide and modules are set. */
void kt_capture_set_kernel(KtCapture *c, GsKernel *k);
/** kt_capture_new_boot() - (owned) Create the boot of that kernel; it is not
 *  published yet. Lock held. */
KtBoot *kt_capture_new_boot(KtCapture *c);
/** kt_capture_choose_types() - Choose where the types of a found kernel are
 *  from. Lock held, before kt_capture_new_boot(). */
void kt_capture_choose_types(KtCapture *c, GsKernel *k);
/** kt_capture_resolve_hooks() - Fill in the hooks of @boot, and what those of
 *  the page allocator need, from the kernel's symbols and types. Lock held. */
void kt_capture_resolve_hooks(KtCapture *c, KtBoot *boot);
/** kt_capture_publish() - Make @boot visible to callbacks. The caller requests
 *  a flush, because translated code has no hooks of it. Lock held. */
void kt_capture_publish(KtCapture *c, KtBoot *boot);
/** kt_capture_drop_boot() - Free the boot, if any, and all that belongs to it.
 *  Lock held, no vCPU executes. */
void kt_capture_drop_boot(KtCapture *c);

/** kt_capture_may_resume() - Return true if a snapshot waits for its kernel,
 *  and a block at @va may belong to that kernel. Any thread, lock free. */
bool kt_capture_may_resume(const KtCapture *c, uint64_t va);
/** kt_capture_resume() - Look for the snapshot's kernel at @va, where a block
 *  is executed, and continue with it. Lock held. Returns: false if it is not
 *  found. */
bool kt_capture_resume(KtCapture *c, uint64_t va);
/** kt_capture_cancel_resume() - Drop the snapshot, if any, because another
 *  kernel runs, and push a gap. Lock held. */
void kt_capture_cancel_resume(KtCapture *c);
/** kt_capture_clear_resume() - Drop the snapshot, if any, without a gap. Lock
 *  held or no vCPU executes. */
void kt_capture_clear_resume(KtCapture *c);

#endif /* KT_CAPTURE_INTERNAL_H */
