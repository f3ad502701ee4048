/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How much an allocator reserves for a request, where it is a profile that
 * tells. Constant once the profile is read.
 */
#ifndef KT_SIZES_H
#define KT_SIZES_H

#include <stdint.h>

#define KT_BUCKETS_MAX 64

/**
 * struct KtReserveRule - one allocator's rule; without any it reserves what it
 *                  is asked for
 * @fixed: it is not asked: all blocks have so many bytes
 * @rounding: requests are rounded up to multiples of that, at least one
 * @bucket: sizes of blocks, ascending; what is more than the last is rounded
 */
typedef struct KtReserveRule {
    uint64_t fixed, rounding;
    unsigned n_buckets;
    uint64_t bucket[KT_BUCKETS_MAX];
} KtReserveRule;

/** kt_reserve_rule_bytes() - bytes reserved for a request of @size. */
uint64_t kt_reserve_rule_bytes(const KtReserveRule *s, uint64_t size);

#endif /* KT_SIZES_H */
