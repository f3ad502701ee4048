/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where the kernel and its parts are, for `ka base`. Implemented in objects/.
 * All functions may be called on any thread; none takes a lock.
 */
#ifndef KT_API_BASE_H
#define KT_API_BASE_H

#include "kalloc-tracer/api/kt-objects.h"

typedef enum KtBaseId {
#define KT_BASE(id, ...) KT_BASE_##id,
#include "kalloc-tracer/api/base-ranges.def"
    KT_BASE__COUNT
} KtBaseId;

/**
 * struct KtBaseRange - a part of the kernel's address space
 * @start: its first byte
 * @last: its last byte; 0: not known, @start is
 */
typedef struct KtBaseRange {
    uint64_t start, last;
} KtBaseRange;

/** kt_base_name() - (static) return the name of a part. */
const char *kt_base_name(KtBaseId id);
/** kt_base_range() - find a part. Returns: false if it is not known; @why:
 *  (out, static) then says what is missing */
bool kt_base_range(const KtObjects *o, KtBaseId id, KtBaseRange *out,
                   const char **why);
/** kt_base_percpu() - find the per-CPU variables of a CPU. Returns: false if
 *  the CPU is not possible, or if this is unknown. */
bool kt_base_percpu(const KtObjects *o, unsigned cpu, KtBaseRange *out);
/** kt_base_n_cpus() - return the number of CPU numbers. */
unsigned kt_base_n_cpus(const KtObjects *o);
/* Size of a build id in hex, with its NUL. */
#define KT_BUILD_ID_SIZE 65

/** kt_base_build_id() - read the build id of the kernel's image from its notes
 *  in memory, as hex. Returns: false if there is no VM to read from, or none
 *  there. */
bool kt_base_build_id(const KtObjects *o, char hex[KT_BUILD_ID_SIZE]);
/** kt_base_slide() - find the distance by which KASLR moved the kernel.
 *  Returns: false if neither the kernel's file nor its vmcoreinfo says so. */
bool kt_base_slide(const KtObjects *o, uint64_t *slide);

#endif /* KT_API_BASE_H */
