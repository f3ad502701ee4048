/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How much an allocator reserves: see reserve-rule.h. */
#include "kalloc-tracer/hooks/reserve-rule.h"

static uint64_t round_up(uint64_t size, uint64_t to)
{
    uint64_t up = (size + to - 1) & -to;

    return up < size ? size : up ? up : to;
}

uint64_t kt_reserve_rule_bytes(const KtReserveRule *s, uint64_t size)
{
    if (s->fixed) {
        return s->fixed;
    }
    for (unsigned i = 0; i < s->n_buckets; i++) {
        if (size <= s->bucket[i]) {
            return s->bucket[i];
        }
    }
    return s->rounding ? round_up(size, s->rounding) : size;
}
