/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The one reader and the one writer of bytes.
 *
 * Every parser of files, guest memory and streams reads through a GsBytes:
 * the bytes are untrusted. Everything that is stored is written through a
 * GsOut. Both are plain values of their user: no locks, one thread at a time.
 *
 * Errors are sticky. The first read that goes past the end, or whose value
 * cannot be, makes the reader fail; from then on every read yields 0, NULL or
 * zeros. So a parser reads a whole structure and asks once, at its end:
 *
 *     GsBytes b = gs_bytes(data, len);
 *     uint32_t kind = gs_bytes_u32(&b);
 *     uint64_t n = gs_bytes_varint(&b, MAX_ROWS);
 *     const char *name = gs_bytes_str(&b, NAME_MAX, NULL);
 *
 *     if (b.failed) ...
 *
 * Numbers are little-endian, or varints: seven bits a byte, the lowest first;
 * bit 7 says that another byte follows (LEB128). 300 is 0xac 0x02. A signed
 * distance is a varint in zigzag: 0, -1, 1, -2 become 0, 1, 2, 3.
 */
#ifndef GS_BYTES_H
#define GS_BYTES_H

#include "guest-symbols/gs.h"

#include <string.h>

/* ---- reading ------------------------------------------------------------ */

#define GS_BYTES_WHY 160

/**
 * struct GsBytes - a reader
 * @data: (borrowed) the bytes at hand
 * @len: how many
 * @pos: index of the next one
 * @what: (borrowed, nullable) name of the structure, for gs_bytes_check()
 * @refill: (nullable) replace @data by the next bytes of a stream, set @len
 *          and @pos; false at the end of the stream or after gs_bytes_fail()
 * @failed: a read went past the end, or gs_bytes_fail() was called
 * @failed_at: @pos of the first failure
 * @why: its reason, empty if a read went past the end
 */
typedef struct GsBytes {
    const uint8_t *data;
    size_t len;
    size_t pos;
    const char *what;
    bool (*refill)(struct GsBytes *b);
    bool failed;
    size_t failed_at;
    char why[GS_BYTES_WHY];
} GsBytes;

/** gs_bytes() - return a reader of @len bytes at @data, none if it is NULL. */
static inline GsBytes gs_bytes(const void *data, size_t len)
{
    return (GsBytes) { .data = data, .len = data ? len : 0 };
}

/** gs_bytes_init() - the same, with a name for error messages. */
void gs_bytes_init(GsBytes *b, const void *data, size_t len,
                   const char *what);

/** gs_bytes_left() - count the bytes at hand that are not read yet. */
static inline size_t gs_bytes_left(const GsBytes *b)
{
    return b->len - b->pos;
}

/** gs_bytes_at() - (borrowed) return where they are. */
static inline const uint8_t *gs_bytes_at(const GsBytes *b)
{
    return b->data ? b->data + b->pos : (const uint8_t *)"";
}

/** gs_bytes_more() - get more bytes, for the functions below: false, and @b
 *  has failed, if there are none. */
bool gs_bytes_more(GsBytes *b);

/** gs_bytes_fail() - make @b fail, unless it has failed: what was read cannot
 *  be. */
void gs_bytes_fail(GsBytes *b, const char *fmt, ...) G_GNUC_PRINTF(2, 3);

/** gs_bytes_ok() - has nothing failed yet? */
static inline bool gs_bytes_ok(const GsBytes *b)
{
    return !b->failed;
}

/** gs_bytes_check() - has nothing failed yet? Otherwise @errp is set to
 *  GS_ERROR_FORMAT: what failed and where. */
bool gs_bytes_check(const GsBytes *b, GError **errp);

/** gs_bytes_seek() - go to byte @pos; @len itself is a valid place. Not in a
 *  stream. */
void gs_bytes_seek(GsBytes *b, uint64_t pos);

/** gs_bytes_take() - (borrowed) return the next @n bytes and go behind them;
 *  NULL past the end. Not in a stream. */
const uint8_t *gs_bytes_take(GsBytes *b, uint64_t n);

/** gs_bytes_copy() - copy the next @len bytes to @buf, zeros past the end. */
void gs_bytes_copy(GsBytes *b, void *buf, size_t len);

static inline uint8_t gs_bytes_u8(GsBytes *b)
{
    if (G_UNLIKELY(b->failed || b->pos == b->len) && !gs_bytes_more(b)) {
        return 0;
    }
    return b->data[b->pos++];
}

uint16_t gs_bytes_u16(GsBytes *b);
uint32_t gs_bytes_u32(GsBytes *b);
uint64_t gs_bytes_u64(GsBytes *b);

/** gs_bytes_varint() - read a varint; one above @max, or of more than 64 bits,
 *  fails and yields 0. */
static inline uint64_t gs_bytes_varint(GsBytes *b, uint64_t max)
{
    uint64_t v = 0;
    unsigned shift = 0;
    uint8_t byte;

    do {
        byte = gs_bytes_u8(b);
        if (shift == 63 && byte > 1) {
            gs_bytes_fail(b, "a number of more than 64 bits");
            return 0;
        }
        v |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
    } while (byte & 0x80);
    if (v > max) {
        gs_bytes_fail(b, "a number is too large");
    }
    return b->failed ? 0 : v;
}

/** gs_bytes_upto() - the same; the error message calls the number @what. */
uint64_t gs_bytes_upto(GsBytes *b, uint64_t max, const char *what);

static inline uint64_t gs_zigzag(uint64_t v)
{
    return v << 1 ^ -(v >> 63);
}

static inline uint64_t gs_unzigzag(uint64_t v)
{
    return v >> 1 ^ -(v & 1);
}

/** gs_bytes_step() - read what gs_out_step() wrote with the same @from. */
static inline uint64_t gs_bytes_step(GsBytes *b, uint64_t from)
{
    uint64_t z = gs_bytes_varint(b, UINT64_MAX);

    return b->failed ? 0 : from + gs_unzigzag(z);
}

/**
 * gs_bytes_str() - (borrowed) return the NUL-terminated string that is next
 * @max: characters that it may have
 * @len: (out, nullable) characters that it has
 *
 * Not in a stream. Returns: NULL if no NUL follows in time.
 */
const char *gs_bytes_str(GsBytes *b, size_t max, size_t *len);

/**
 * gs_bytes_text() - read what gs_out_text() wrote
 * @buf: (out) of @size bytes, NUL-terminated
 * @what: what the error message calls the text, if it does not fit in @buf or
 *        has a NUL inside
 */
void gs_bytes_text(GsBytes *b, char *buf, size_t size, const char *what);

/* ---- numbers at a place, little-endian ---------------------------------- */

static inline uint16_t gs_u16_at(const void *at)
{
    uint16_t v;

    memcpy(&v, at, sizeof(v));
    return GUINT16_FROM_LE(v);
}

static inline uint32_t gs_u32_at(const void *at)
{
    uint32_t v;

    memcpy(&v, at, sizeof(v));
    return GUINT32_FROM_LE(v);
}

static inline uint64_t gs_u64_at(const void *at)
{
    uint64_t v;

    memcpy(&v, at, sizeof(v));
    return GUINT64_FROM_LE(v);
}

/* ---- writing ------------------------------------------------------------ */

/* An array is appended to up to so many bytes; a stream is drained when it has
 * so many. */
#define GS_OUT_MAX      ((size_t)G_MAXINT32)
#define GS_VARINT_MAX   10
#define GS_OUT_BLOCK    ((size_t)64 << 10)

/**
 * struct GsOut - a writer
 * @to: (borrowed) what is written is appended to
 * @drain: (nullable) for streams: called when @to has GS_OUT_BLOCK bytes or
 *         more, and empties it
 * @failed: @to would be larger than GS_OUT_MAX: nothing was appended since
 */
typedef struct GsOut {
    GByteArray *to;
    void (*drain)(struct GsOut *out);
    bool failed;
} GsOut;

/** gs_out() - return a writer that appends to @to. */
static inline GsOut gs_out(GByteArray *to)
{
    return (GsOut) { .to = to };
}

/** GS_OUT() - a writer that appends to @array, for one call:
 *  gs_out_u8(&GS_OUT(array), 1). */
#define GS_OUT(array) ((GsOut) { .to = (array) })

static inline void gs_out_bytes(GsOut *out, const void *buf, size_t len)
{
    if (G_UNLIKELY(out->failed || len > GS_OUT_MAX - out->to->len)) {
        out->failed = true;
        return;
    }
    g_byte_array_append(out->to, buf, len);
    if (out->drain && out->to->len >= GS_OUT_BLOCK) {
        out->drain(out);
    }
}

static inline void gs_out_u8(GsOut *out, uint8_t v)
{
    gs_out_bytes(out, &v, 1);
}

static inline void gs_out_u32(GsOut *out, uint32_t v)
{
    v = GUINT32_TO_LE(v);
    gs_out_bytes(out, &v, sizeof(v));
}

static inline void gs_out_u64(GsOut *out, uint64_t v)
{
    v = GUINT64_TO_LE(v);
    gs_out_bytes(out, &v, sizeof(v));
}

/** gs_write_varint() - write a varint to @to, which has room for
 *  GS_VARINT_MAX bytes. Returns: the end of what was written. */
static inline uint8_t *gs_write_varint(uint8_t *to, uint64_t v)
{
    while (v > 0x7f) {
        *to++ = 0x80 | (v & 0x7f);
        v >>= 7;
    }
    *to++ = v;
    return to;
}

static inline void gs_out_varint(GsOut *out, uint64_t v)
{
    uint8_t bytes[GS_VARINT_MAX];

    gs_out_bytes(out, bytes, gs_write_varint(bytes, v) - bytes);
}

/** gs_out_step() - write how far @v is from @from: short if both are near. */
static inline void gs_out_step(GsOut *out, uint64_t from, uint64_t v)
{
    gs_out_varint(out, gs_zigzag(v - from));
}

/** gs_out_str() - write a string with its NUL. */
static inline void gs_out_str(GsOut *out, const char *s)
{
    gs_out_bytes(out, s, strlen(s) + 1);
}

/** gs_out_text() - write a string's length as a varint, then the string. */
void gs_out_text(GsOut *out, const char *s);

#endif /* GS_BYTES_H */
