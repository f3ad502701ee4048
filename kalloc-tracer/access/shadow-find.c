/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a shadow knows of an address: see shadow.h. */
#include "kalloc-tracer/access/shadow-internal.h"

static KtShadowState state_of(uint8_t code, unsigned byte)
{
    switch (code) {
    case UNKNOWN:
        return KT_SHADOW_UNKNOWN;
    case FREED:
        return KT_SHADOW_FREED;
    case FRESH:
        return KT_SHADOW_FRESH;
    default:
        return byte < (code & 0xf) ? KT_SHADOW_LIVE : KT_SHADOW_SLACK;
    }
}

bool kt_shadow_any_marked(const KtShadow *s, uint64_t va, uint64_t len)
{
    Span r = span_of(s, va, len);

    for (uint64_t page = r.from / OWNED; page < (r.to + OWNED - 1) / OWNED;
         page++) {
        if (is_marked(s, page)) {
            return true;
        }
    }
    return false;
}

KtShadowState kt_shadow_state(const KtShadow *s, uint64_t va)
{
    uint64_t off = va - s->base;

    return off < s->len ? state_of(get(s, off / KT_GRANULE), va % KT_GRANULE) :
                          KT_SHADOW_UNKNOWN;
}

/* Return true if all bytes of 8 granules are good, whatever range is asked
 * for. */
static bool all_good(uint64_t word)
{
    return !word || word == EIGHT(FULL);
}

bool kt_shadow_find_bad(const KtShadow *s, uint64_t va, uint64_t len,
                        uint64_t *bad, KtShadowState *state)
{
    Span r = span_of(s, va, len);
    uint64_t end = va + MIN(len, UINT64_MAX - va);

    for (uint64_t i = r.from; i < r.to; i++) {
        uint64_t at = s->base + i * KT_GRANULE;
        uint64_t byte;
        uint8_t code;

        if (!(i % 8) && all_good(get_word(s, i))) {
            i += 7;
            continue;
        }
        code = get(s, i);
        byte = MAX(at + (code & 0xf), va);
        if (code && byte < MIN(at + KT_GRANULE, end)) {
            *bad = byte;
            *state = state_of(code, (unsigned)(byte - at));
            return true;
        }
    }
    return false;
}

bool kt_shadow_spans_good(const KtShadow *s, uint64_t va, uint64_t size)
{
    KtShadowState state;
    uint64_t bad;

    return !kt_shadow_find_bad(s, va, size, &bad, &state);
}
