/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The one bounds-checked reader of untrusted bytes.
 *
 * A cursor never reads outside its bytes: a read that would does not move,
 * yields 0 and makes the cursor fail for good, so that callers may read a
 * whole structure and ask once, with gs_cursor_ok(), whether it was all there.
 * A cursor is a plain value on somebody's stack; no locks.
 */
#ifndef GS_CURSOR_H
#define GS_CURSOR_H

#include "guest-symbols/gs.h"

/**
 * struct GsCursor - where we are in a run of bytes
 * @data: (borrowed) the bytes
 * @len: their count
 * @pos: next byte to read
 * @what: (borrowed) name of the structure, for the error message
 * @failed: a read went past the end
 * @failed_at: @pos of the first such read
 */
typedef struct GsCursor {
    const uint8_t *data;
    size_t len;
    size_t pos;
    const char *what;
    bool failed;
    size_t failed_at;
} GsCursor;

void gs_cursor_init(GsCursor *c, const void *data, size_t len,
                    const char *what);

/** gs_cursor_seek() - go to byte @pos; @len itself is a valid place. */
void gs_cursor_seek(GsCursor *c, uint64_t pos);

/** gs_cursor_take() - (borrowed) the next @n bytes, NULL past the end. */
const uint8_t *gs_cursor_take(GsCursor *c, uint64_t n);

/* Little-endian integers; 0 past the end. */
uint8_t gs_cursor_u8(GsCursor *c);
uint16_t gs_cursor_u16(GsCursor *c);
uint32_t gs_cursor_u32(GsCursor *c);
uint64_t gs_cursor_u64(GsCursor *c);

/**
 * gs_cursor_str() - (borrowed) the NUL-terminated string at the cursor
 * @len: (out, nullable) its length without the NUL
 * Returns: NULL when no NUL follows before the end.
 */
const char *gs_cursor_str(GsCursor *c, size_t *len);
/** gs_cursor_name() - the same, which fails without looking further when it
 *  has more than @max characters. */
const char *gs_cursor_name(GsCursor *c, size_t max, size_t *len);

/** gs_cursor_left() - bytes not yet read. */
static inline size_t gs_cursor_left(const GsCursor *c)
{
    return c->len - c->pos;
}

/** gs_cursor_ok() - were all reads inside? Sets GS_ERROR_FORMAT if not. */
bool gs_cursor_ok(const GsCursor *c, GError **errp);

#endif /* GS_CURSOR_H */
