/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Arrays whose elements begin with a uint64_t, sorted by it. Pure functions. */
#ifndef GS_SORTED_H
#define GS_SORTED_H

#include <glib.h>
#include <stddef.h>
#include <stdint.h>

/** gs_sorted_compare() - the order of two elements, for sorts */
static inline int gs_sorted_compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/** gs_sorted_up_to() - count the elements that are at or below @value; each has
 *  @size bytes. */
static inline size_t gs_sorted_up_to(const void *elements, size_t n,
                                     size_t size, uint64_t value)
{
    size_t low = 0, high = n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const char *at = (const char *)elements + middle * size;

        if (*(const uint64_t *)(const void *)at <= value) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/** gs_sorted_below() - count the elements that are below @value. */
static inline size_t gs_sorted_below(const void *elements, size_t n,
                                     size_t size, uint64_t value)
{
    return value ? gs_sorted_up_to(elements, n, size, value - 1) : 0;
}

#endif /* GS_SORTED_H */
