/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How the host's memory is used: prefetch, huge pages, order of reads. */
#ifndef KT_HOST_MEMORY_H
#define KT_HOST_MEMORY_H

#include <glib.h>
#include <stdint.h>
#include <sys/mman.h>

/**
 * kt_prefetch() - start to load the cache line at @at, which will be written
 *
 * gcc (seen with 12.2) takes a function that only prefetches for one without
 * effect, and removes the calls. The empty asm statement is an effect.
 */
static inline void kt_prefetch(const void *at)
{
    __builtin_prefetch(at, 1);
    __asm__ volatile("" : : "r"(at));
}

/**
 * kt_read_fence() - order reads of guest memory: those before it come first
 *
 * For memory that vCPUs write while it is read. The thread sanitizer does not
 * know fences, and does not see that memory: its build has none.
 */
static inline void kt_read_fence(void)
{
#ifndef __SANITIZE_THREAD__
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
#endif
}

#define KT_HUGE_PAGE (2u * 1024 * 1024)

/**
 * kt_huge() - ask the host for transparent huge pages in [@at, @at + @len)
 *
 * With MADV_HUGEPAGE there are fewer page faults while the memory is filled,
 * and fewer TLB misses on random access. Only whole 2 MiB pages inside the
 * range are affected. An error is ignored: the memory works without.
 */
static inline void kt_huge(void *at, size_t len)
{
    uintptr_t mask = KT_HUGE_PAGE - 1;
    uintptr_t lo = ((uintptr_t)at + mask) & ~mask;
    uintptr_t hi = ((uintptr_t)at + len) & ~mask;

    if (lo < hi) {
        madvise((void *)lo, hi - lo, MADV_HUGEPAGE);
    }
}

/** kt_huge_reserve() - reserve room for @n elements in @array, which is empty,
 *  in huge pages if the host has them. */
static inline void kt_huge_reserve(GArray *array, unsigned n)
{
    g_array_set_size(array, n);
    kt_huge(array->data, (size_t)n * g_array_get_element_size(array));
    g_array_set_size(array, 0);
}

#endif /* KT_HOST_MEMORY_H */
