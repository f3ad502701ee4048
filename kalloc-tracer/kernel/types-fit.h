/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * KtTypesFit: does a types file describe the kernel that runs?
 *
 *     open -- 8 sizes agree ------------> fits
 *       '---- anything cannot be so ----> refused
 *
 * The file is compared with the running kernel:
 *
 *     banner   if the file is a vmlinux, it has the banner of that kernel
 *     sizes    objects of the cache "filp" are as long as struct file in the
 *              file; likewise for other caches
 *     names    at the file's offsets, a cache has a name, and the idle task is
 *              called swapper
 *
 * The size of a cache's objects is read from its kmem_cache, at the offsets of
 * the file. If these offsets are wrong, the cache has no name there, and the
 * file is refused before a size is compared.
 *
 * Two sizes are not compared: the end of task_struct depends on the CPU, and
 * kmem_cache ends after as many nodes as the machine has.
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
