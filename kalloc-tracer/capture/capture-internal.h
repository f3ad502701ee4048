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

/** struct KtSeam - how an accelerator of QEMU calls us, see seam.h */
typedef struct KtSeam KtSeam;

/** struct KtResume - a loaded snapshot whose kernel is not found yet, see
 *  capture-snapshot.c */
typedef struct KtResume KtResume;

/**
 * struct KtImage - what ka knows of the guest's hibernation image
 * @section: (owned) what a VM snapshot would have had; NULL: unknown
 * @wakes_at: code of the image that runs first
 * @loads: (atomic) the guest is about to load it
 *
 * Changed while no vCPU executes, but for @loads and, of an unknown image,
 * @wakes_at.
 */
typedef struct KtImage {
    GByteArray *section;
    uint64_t wakes_at;
    bool loads;
} KtImage;

/**
 * struct KtCapture - all that capture knows of a VM
 * @boot: (atomic) NULL until the kernel is found
 * @seam: how QEMU calls us
 * @vcpu: @max_vcpus of them
 * @finder: NULL: nothing is traced
 * @lowest: lowest address of kernel space
 * @clock_ns: cost of reading the clock twice
 * @pages: trace the page allocator, too
 * @log: read the kernel's log
 * @applying: the tracer's thread was started
 * @resume: (atomic) NULL: no snapshot waits for its kernel
 * @stopped_looking: (atomic) the search for @resume's kernel failed
 * @image: of the guest's hibernation, see hibernation.c
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
    const KtSeam *seam;
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
    KtImage image;
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

/* ---- hibernation --------------------------------------------------------- */

/** kt_hibernation_step() - The guest has done @step. On the vCPU's thread. */
void kt_hibernation_step(KtCapture *c, KtImageStep step);
/** kt_hibernation_may_wake() - Return true if the block at @va may be the first
 *  one after an image was loaded. Any thread, lock free. */
bool kt_hibernation_may_wake(const KtCapture *c, uint64_t va);

/* ---- access checks ------------------------------------------------------- */
/*
 * Access checks while the guest runs (`ka access on`).
 *
 *     translation                      execution
 *     each block of kernel code        on_access(): after each access
 *       | code of the allocator: no      | shadow: good ---------> done
 *       | operand on the stack: no       v bad
 *       v                              judges: code, caller, page -> explained
 *     callback on the instruction        v none explains it
 *                                      KT_EV_ACCESS, judged by the model
 *     entry of memset() and the like   on_range(): the whole range at once
 *
 * The shadow is changed by the vCPU that allocates or frees, when it pushes the
 * event. So it is right at once, while the map follows.
 *
 * Nothing is watched: KtShared.access is NULL, and the same blocks are
 * instrumented as if this file did not exist.
 *
 * Threads: callbacks run on vCPU threads, lock free. Arming, disarming and the
 * end of a boot happen while no vCPU executes, with the capture's lock.
 */

/** kt_access_watch_start() - Have `ka access` arm and disarm @c. Call once,
 *  from kt_capture_start(). */
void kt_access_watch_start(KtCapture *c);
/** kt_access_watch_begin_boot() - Arm, if that is wanted, for the boot that is
 *  about to be published. Lock held; blocks that the map has are known to the
 *  shadow if @still: no vCPU executes. */
void kt_access_watch_begin_boot(KtCapture *c, KtBoot *boot, bool still);
/** kt_access_watch_begin_again() - The kernel's types are not what they were:
 *  if accesses are checked, begin anew, or end. Lock held, no vCPU executes. */
void kt_access_watch_begin_again(KtCapture *c, KtBoot *boot);
/** kt_access_watch_end_boot() - Drop the shadow and all that belongs to the
 *  boot. Lock held, no vCPU executes. */
void kt_access_watch_end_boot(KtCapture *c);

/** kt_access_watch_has_code() - Return true if some code of the block at @va is
 *  checked. */
bool kt_access_watch_has_code(const KtAccessWatch *w, uint64_t va);
/** kt_access_watch_wants() - Return true if the block at @va needs callbacks.
 *  @va is in kernel space. In the translator. */
static inline bool kt_access_watch_wants(const KtCapture *c, uint64_t va)
{
    return c->shared.access && kt_access_watch_has_code(c->shared.access, va);
}
/** kt_access_watch_translate() - Add callbacks to the instructions of a block.
 *  Only if accesses are checked. */
void kt_access_watch_translate(const KtCapture *c, struct qemu_plugin_tb *tb,
                        size_t n);

/* ---- accesses to one block ----------------------------------------------- */
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

/** kt_capture_start_block_watch() - Have `ka access watch` watch blocks of @c.
 *  Call once, from kt_capture_start(). @id: of the plugin */
void kt_capture_start_block_watch(KtCapture *c, qemu_plugin_id_t id);
/** kt_capture_end_block_watch() - End the watch, because the boot ends. Lock
 *  held, no vCPU executes. */
void kt_capture_end_block_watch(KtCapture *c);

/* ---- delayed frees ------------------------------------------------------- */
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

#endif /* KT_CAPTURE_INTERNAL_H */
