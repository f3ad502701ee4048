/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ranges of addresses. Pure functions. */
#ifndef GS_RANGE_H
#define GS_RANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** struct GsRange - addresses [start, end) */
typedef struct GsRange {
    uint64_t start;
    uint64_t end;
} GsRange;

static inline bool gs_range_has(GsRange r, uint64_t va)
{
    return va >= r.start && va < r.end;
}

/** gs_ranges_have() - is @va in one of @n ranges? */
static inline bool gs_ranges_have(const GsRange *r, size_t n, uint64_t va)
{
    for (size_t i = 0; i < n; i++) {
        if (gs_range_has(r[i], va)) {
            return true;
        }
    }
    return false;
}

#endif /* GS_RANGE_H */
