/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What capture.c and capture-snapshot.c share. */
#ifndef KT_CAPTURE_PARTS_H
#define KT_CAPTURE_PARTS_H

#include <time.h>

#include "kalloc-tracer/capture/capture.h"
#include "kalloc-tracer/capture/record.h"

/** struct KtReturn - of a snapshot that was loaded: a kernel that runs again
 *  and is not found yet, see capture-snapshot.c */
typedef struct KtReturn KtReturn;

struct KtCapture {
    KtShared shared;
    KtBoot *boot;                       /* NULL until the kernel is found */
    KtVcpu *vcpu;                       /* @max_vcpus of them */
    unsigned max_vcpus;
    const GsArch *arch;
    KtFinder *finder;                   /* NULL: nothing is traced */
    uint64_t lowest;                    /* address of a kernel's */
    uint64_t clock_ns;                  /* that measuring itself takes */
    bool pages;                         /* trace the page allocator, too */
    bool applying;                      /* the tracer's thread was started */
    KtReturn *returning;                /* NULL: nothing to return to */
    bool gave_up;                       /* atomic: it was looked for in vain */
    GMutex lock;
};

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

/** kt_capture_may_find() - Return true if the kernel can be found from a block
 *  that begins at @va. Any thread, lock free. */
bool kt_capture_may_find(const KtCapture *c, uint64_t va);
/** kt_capture_look() - Look for the kernel at @va, where a block is executed.
 *  On the vCPU's thread; takes the lock. */
void kt_capture_look(KtCapture *c, uint64_t va);
/** kt_capture_leave_kernel() - End the boot because kexec starts another
 *  kernel; no vCPU executes. @userdata: the KtCapture */
void kt_capture_leave_kernel(void *userdata);

/** kt_capture_set_kernel() - @k runs; its slide and modules are set. */
void kt_capture_set_kernel(KtCapture *c, GsKernel *k);
/** kt_capture_new_boot() - (owned) of that kernel, not published. */
KtBoot *kt_capture_new_boot(KtCapture *c);
/** kt_capture_publish() - its hooks count from now on; what is translated
 *  already has none. */
void kt_capture_publish(KtCapture *c, KtBoot *boot);
/** kt_capture_drop_boot() - as if nothing ran; no vCPU executes. */
void kt_capture_drop_boot(KtCapture *c);

/** kt_capture_wants_return() - may a block at @va tell that the kernel of a
 *  snapshot runs again? Any thread, lock free. */
bool kt_capture_wants_return(const KtCapture *c, uint64_t va);
/** kt_capture_return() - such a block, at @va, runs; lock held. False: not
 *  found. */
bool kt_capture_return(KtCapture *c, uint64_t va);
/** kt_capture_drop_return() - another one runs, if there was one to return to:
 *  what happened until now is a gap; lock held. */
void kt_capture_drop_return(KtCapture *c);
/** kt_capture_forget_return() - there is nothing to return to; lock held or
 *  no vCPU executes. */
void kt_capture_forget_return(KtCapture *c);

#endif /* KT_CAPTURE_PARTS_H */
