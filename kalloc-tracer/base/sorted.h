/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Binary search in sorted arrays. Pure functions. */
#ifndef KT_SORTED_H
#define KT_SORTED_H

#include <glib.h>
#include <stdint.h>

/** kt_sorted_up_to() - Return how many elements of an array are at or below
 *  @value. Each has @size bytes and begins with a uint64_t, by which they are
 *  sorted. */
static inline unsigned kt_sorted_up_to(const void *elements, unsigned n,
                                       size_t size, uint64_t value)
{
    unsigned low = 0, high = n;

    while (low < high) {
        unsigned middle = (low + high) / 2;
        const char *at = (const char *)elements + middle * size;

        if (*(const uint64_t *)(const void *)at <= value) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

#endif /* KT_SORTED_H */
