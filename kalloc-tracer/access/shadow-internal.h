/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The codes of a shadow, for the files that write and read them. The drawing is
 * in shadow.h. */
#ifndef KT_SHADOW_INTERNAL_H
#define KT_SHADOW_INTERNAL_H

#include "kalloc-tracer/access/shadow.h"

enum {
    UNKNOWN = 0x00,
    FULL = 0x08,
    FIRST = 0x10,       /* a bit: with 1 to 8 */
    FREED = 0x80,
    SLACK = 0x90,
    FRESH = 0xa0,
};

/* Granules of a page of the guest. */
#define OWNED 512u

G_STATIC_ASSERT(OWNED * KT_GRANULE == KT_SHADOW_PAGE);

/* A word of 8 times the same code. */
#define EIGHT(code) ((uint64_t)0x0101010101010101 * (code))

static inline uint8_t get(const KtShadow *s, uint64_t i)
{
    return __atomic_load_n(&s->codes[i], __ATOMIC_RELAXED);
}

/* Return 8 codes; @i is a multiple of 8. */
static inline uint64_t get_word(const KtShadow *s, uint64_t i)
{
    return __atomic_load_n((const uint64_t *)(const void *)&s->codes[i],
                           __ATOMIC_RELAXED);
}

static inline bool is_marked(const KtShadow *s, uint64_t page)
{
    return __atomic_load_n(&s->marked[page], __ATOMIC_RELAXED);
}

/* A range of codes: [from, to). */
typedef struct Span {
    uint64_t from;
    uint64_t to;
} Span;

/* Return the granules that have a byte in [@va, @va + @len), and are in the
 * shadow. */
static inline Span span_of(const KtShadow *s, uint64_t va, uint64_t len)
{
    uint64_t end = va + MIN(len, UINT64_MAX - va);
    uint64_t from = MAX(va, s->base) - s->base;
    uint64_t to = MIN(MAX(end, s->base) - s->base, s->len);

    if (from >= to) {
        return (Span) { 0, 0 };
    }
    return (Span) { from / KT_GRANULE, (to + KT_GRANULE - 1) / KT_GRANULE };
}

#endif /* KT_SHADOW_INTERNAL_H */
