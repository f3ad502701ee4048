/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tags in pointers. KASAN_SW_TAGS and KASAN_HW_TAGS of arm64 keep a number in
 * the top byte of a pointer to allocated memory, and the processor ignores that
 * byte. So one address has many forms:
 *
 *     2eff80001234c000    what kmalloc() returned: the tag is 2e
 *     ffff80001234c000    the same address without a tag
 *
 * The tracer knows addresses without tags only. Each value that is an address
 * goes through gs_untag() when it is read: from a register, from guest memory,
 * or from a word of the user. gs_tag_of() says which block's life a pointer is
 * of: KASAN refuses a free whose pointer has another tag. Both functions of a
 * kernel search its symbols, so
 * callers keep the result. Any thread.
 */
#ifndef GS_API_TAGS_H
#define GS_API_TAGS_H

#include "guest-symbols/api/gs-kernel.h"

/** gs_kernel_tags_pointers() - return true if pointers to allocated memory have
 *  tags. Its symbols say so. */
bool gs_kernel_tags_pointers(const GsKernel *k);
/**
 * gs_kernel_tag_bits() - return the bits of a pointer that are its tag
 *
 * Returns: 0 if the kernel keeps no tags; or if it keeps them, but where is not
 * known: it is of another architecture than arm64.
 */
uint64_t gs_kernel_tag_bits(const GsKernel *k);

/**
 * gs_untag() - return an address without its tag
 * @tag_bits: of gs_kernel_tag_bits()
 *
 * Bits 55 to 52 of an address of arm64's kernel are set, whatever the width of
 * its addresses is. Other numbers stay what they are.
 */
static inline uint64_t gs_untag(uint64_t tag_bits, uint64_t va)
{
    return (~va >> 52 & 0xf) ? va : va | tag_bits;
}

/**
 * gs_tag_of() - return the tag of a pointer
 * @tag_bits: of gs_kernel_tag_bits()
 *
 * Returns: the complement of the tag: 0 if the pointer has none, that is, all
 * bits of its top byte are set.
 */
static inline uint8_t gs_tag_of(uint64_t tag_bits, uint64_t va)
{
    return (~va >> 52 & 0xf) ? 0 : (~va & tag_bits) >> 56;
}

#endif /* GS_API_TAGS_H */
