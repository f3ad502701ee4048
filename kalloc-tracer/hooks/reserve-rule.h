/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How much memory an allocator reserves for a request, as a profile describes
 * it. For Linux, capture/ reads this from the guest instead. Rules are
 * constant after the profile was read; any thread may use them.
 *
 * Example: buckets 16 48 384 and rounding 4096. A request of 17 bytes gets 48,
 * one of 385 bytes gets 4096.
 */
#ifndef KT_RESERVE_RULE_H
#define KT_RESERVE_RULE_H

#include <stdint.h>

#define KT_BUCKETS_MAX 64

/**
 * struct KtReserveRule - the rule of one allocator
 * @fixed: all blocks have this size, and the function has no size argument;
 *         0: not so
 * @bucket, @n_buckets: sizes of blocks, ascending; a request gets the first
 *         one that is large enough
 * @rounding: a request that is larger than all buckets is rounded up to a
 *         multiple of this, and to at least one; 0: it is not rounded
 */
typedef struct KtReserveRule {
    uint64_t fixed, rounding;
    unsigned n_buckets;
    uint64_t bucket[KT_BUCKETS_MAX];
} KtReserveRule;

/** kt_reserve_rule_bytes() - Return the bytes that are reserved for a request
 *  of @size bytes. */
uint64_t kt_reserve_rule_bytes(const KtReserveRule *s, uint64_t size);

#endif /* KT_RESERVE_RULE_H */
