/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bytes of a file: appended to an array, and read back by the one reader of
 * what is not trusted. A read past the end yields 0 and fails for good; ask
 * once, at the end, whether all was there. No locks: a value of its user's.
 */
#ifndef KT_BYTES_H
#define KT_BYTES_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/** struct KtBytes - what is left to read, from @p up to @end */
typedef struct KtBytes {
    const uint8_t *p;
    const uint8_t *end;
    bool failed;
} KtBytes;

static inline KtBytes kt_bytes(const void *data, size_t len)
{
    const uint8_t *p = data ? data : (const void *)"";

    return (KtBytes) { p, p + (data ? len : 0), false };
}

static inline size_t kt_bytes_left(const KtBytes *b)
{
    return b->end - b->p;
}

/** kt_bytes_take() - (borrowed) the next @n bytes, NULL past the end. */
static inline const uint8_t *kt_bytes_take(KtBytes *b, size_t n)
{
    const uint8_t *at = b->p;

    if (b->failed || kt_bytes_left(b) < n) {
        b->failed = true;
        return NULL;
    }
    b->p += n;
    return at;
}

static inline uint8_t kt_bytes_u8(KtBytes *b)
{
    const uint8_t *at = kt_bytes_take(b, 1);

    return at ? *at : 0;
}

static inline uint32_t kt_bytes_u32(KtBytes *b)
{
    const uint8_t *at = kt_bytes_take(b, sizeof(uint32_t));
    uint32_t v = 0;

    if (at) {
        memcpy(&v, at, sizeof(v));
    }
    return GUINT32_FROM_LE(v);
}

static inline uint64_t kt_bytes_u64(KtBytes *b)
{
    const uint8_t *at = kt_bytes_take(b, sizeof(uint64_t));
    uint64_t v = 0;

    if (at) {
        memcpy(&v, at, sizeof(v));
    }
    return GUINT64_FROM_LE(v);
}

/** kt_bytes_varint() - seven bits a byte, the lowest first; what is above
 *  @max fails. */
static inline uint64_t kt_bytes_varint(KtBytes *b, uint64_t max)
{
    uint64_t v = 0;

    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte = kt_bytes_u8(b);

        v |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            break;
        }
    }
    if (v > max) {
        b->failed = true;
        return 0;
    }
    return v;
}

/** kt_bytes_str() - (borrowed) the string at hand, NULL when it does not end
 *  or has more than @max bytes. */
static inline const char *kt_bytes_str(KtBytes *b, size_t max)
{
    const uint8_t *nul = b->failed ? NULL :
                         memchr(b->p, 0, MIN(kt_bytes_left(b), max + 1));

    if (!nul) {
        b->failed = true;
        return NULL;
    }
    return (const char *)kt_bytes_take(b, nul + 1 - b->p);
}

/* ---- writing ------------------------------------------------------------ */

static inline void kt_put_u8(GByteArray *out, uint8_t v)
{
    g_byte_array_append(out, &v, 1);
}

static inline void kt_put_u32(GByteArray *out, uint32_t v)
{
    v = GUINT32_TO_LE(v);
    g_byte_array_append(out, (const uint8_t *)&v, sizeof(v));
}

static inline void kt_put_u64(GByteArray *out, uint64_t v)
{
    v = GUINT64_TO_LE(v);
    g_byte_array_append(out, (const uint8_t *)&v, sizeof(v));
}

/** kt_write_varint() - at @to, which has room for 10 bytes; what follows. */
static inline uint8_t *kt_write_varint(uint8_t *to, uint64_t v)
{
    while (v > 0x7f) {
        *to++ = 0x80 | (v & 0x7f);
        v >>= 7;
    }
    *to++ = v;
    return to;
}

static inline void kt_put_varint(GByteArray *out, uint64_t v)
{
    uint8_t bytes[10];

    g_byte_array_append(out, bytes, kt_write_varint(bytes, v) - bytes);
}

static inline void kt_put_str(GByteArray *out, const char *s)
{
    g_byte_array_append(out, (const uint8_t *)s, strlen(s) + 1);
}

/** kt_zigzag() - small numbers of either sign become small. */
static inline uint64_t kt_zigzag(uint64_t v)
{
    return v << 1 ^ -(v >> 63);
}

static inline uint64_t kt_unzigzag(uint64_t v)
{
    return v >> 1 ^ -(v & 1);
}

#endif /* KT_BYTES_H */
