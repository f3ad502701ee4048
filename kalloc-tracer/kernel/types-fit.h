/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * KtTypesFit: does a types file describe the kernel that runs?
 *
 *     open -- 8 sizes agree ------------> fits
 *       '---- anything cannot be so ----> refused
 *
 * What is compared is known without the file: a vmlinux has a banner; the
 * kernel says how long the objects of its caches are ("filp": struct file). The
 * sizes are read by the file's own kmem_cache, so wrong offsets of that show up
 * first: what they lead to is no name.
 *
 * Not compared: task_struct, whose end depends on the CPU, and kmem_cache,
 * which is cut at the number of nodes.
 *
 * Called by KtGuest when it reads a cache or task for the first time, on any
 * vCPU thread. Lock-free: the state is atomic.
 */
#ifndef KT_TYPES_FIT_H
#define KT_TYPES_FIT_H

#include "kalloc-tracer/kt.h"

typedef enum KtTypesState {
    KT_TYPES_NOT_FROM_FILE,
    KT_TYPES_OPEN,
    KT_TYPES_FIT,
    KT_TYPES_REFUSED,
} KtTypesState;

/**
 * struct KtTypesFit - what is known of a file
 * @kernel: (borrowed) has the types of the file
 * @state: (atomic) a KtTypesState
 * @agree: (atomic) sizes that agree
 * @why: why the file was refused; valid in state KT_TYPES_REFUSED
 * @refused: called once, when the file is refused, with @opaque
 */
typedef struct KtTypesFit {
    const GsKernel *kernel;
    unsigned state;
    unsigned agree;
    char why[160];
    void (*refused)(void *opaque);
    void *opaque;
} KtTypesFit;

/** kt_types_fit_banner() - (owned, nullable) return why a file is certainly of
 *  another kernel than @k. */
char *kt_types_fit_banner(const GsTypesFile *f, const GsKernel *k);

/** kt_types_fit_is_open() - is a file used that may yet be refused? */
static inline bool kt_types_fit_is_open(const KtTypesFit *f)
{
    return f && __atomic_load_n(&f->state, __ATOMIC_ACQUIRE) == KT_TYPES_OPEN;
}

/**
 * kt_types_fit_cache() - compare what was read as a kmem_cache
 * @name: (nullable) NULL: no name was where the file says
 * @va: its address
 * @object_size, @size: its members
 * Returns: false if the file is refused: nothing of the above is true.
 */
bool kt_types_fit_cache(KtTypesFit *f, uint64_t va, const char *name,
                        uint32_t object_size, uint32_t size);
/** kt_types_fit_task() - compare what was read as a task. Returns: as
 *  kt_types_fit_cache(). */
bool kt_types_fit_task(KtTypesFit *f, uint32_t pid, const char comm[16]);

#endif /* KT_TYPES_FIT_H */
