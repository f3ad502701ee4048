/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory in huge pages of the host, where it has them to give. */
#ifndef KT_HUGE_H
#define KT_HUGE_H

#include <glib.h>
#include <stdint.h>
#include <sys/mman.h>

#define KT_HUGE_PAGE (2u * 1024 * 1024)

/**
 * kt_huge() - [@at, @at + @len) will be used, and most of it soon
 *
 * It is not filled by small pages then, one fault each, and those who walk
 * through it at random wait less for the host's page tables. What is left at
 * both ends of whole huge pages is as ever.
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

/** kt_huge_reserve() - room for @n in an empty @array, as kt_huge() has it. */
static inline void kt_huge_reserve(GArray *array, unsigned n)
{
    g_array_set_size(array, n);
    kt_huge(array->data, (size_t)n * g_array_get_element_size(array));
    g_array_set_size(array, 0);
}

#endif /* KT_HUGE_H */
