/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The one reader of guest memory: all that is copied goes through it.
 */
#include "kalloc-tracer/kernel/guest.h"

#include <string.h>

bool kt_view_read(KtView view, uint64_t va, void *buf, size_t len)
{
    uint8_t *to = buf;

    while (len) {
        size_t avail;
        const void *from = view(va, &avail);
        size_t n = MIN(len, avail);

        if (!from || !n) {
            return false;
        }
        memcpy(to, from, n);
        to += n;
        va += n;
        len -= n;
    }
    return true;
}
