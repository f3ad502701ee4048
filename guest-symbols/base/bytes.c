/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bounds-checked reads, see bytes.h. Used by every parser of this folder;
 * holds no state of its own.
 */
#include "guest-symbols/base/bytes.h"

#include <string.h>

void gs_cursor_init(GsCursor *c, const void *data, size_t len,
                    const char *what)
{
    *c = (GsCursor) { .data = data, .len = len, .what = what };
}

static void fail(GsCursor *c, size_t at)
{
    if (!c->failed) {
        c->failed = true;
        c->failed_at = at;
    }
}

void gs_cursor_seek(GsCursor *c, uint64_t pos)
{
    if (pos > c->len) {
        fail(c, c->len);
        return;
    }
    c->pos = pos;
}

const uint8_t *gs_cursor_take(GsCursor *c, uint64_t n)
{
    const uint8_t *p;

    if (c->failed || n > c->len - c->pos) {
        fail(c, c->pos);
        return NULL;
    }
    p = c->data + c->pos;
    c->pos += n;
    return p;
}

uint8_t gs_cursor_u8(GsCursor *c)
{
    const uint8_t *p = gs_cursor_take(c, 1);

    return p ? *p : 0;
}

uint16_t gs_cursor_u16(GsCursor *c)
{
    const uint8_t *p = gs_cursor_take(c, 2);
    uint16_t v = 0;

    if (p) {
        memcpy(&v, p, sizeof(v));
    }
    return GUINT16_FROM_LE(v);
}

uint32_t gs_cursor_u32(GsCursor *c)
{
    const uint8_t *p = gs_cursor_take(c, 4);
    uint32_t v = 0;

    if (p) {
        memcpy(&v, p, sizeof(v));
    }
    return GUINT32_FROM_LE(v);
}

uint64_t gs_cursor_u64(GsCursor *c)
{
    const uint8_t *p = gs_cursor_take(c, 8);
    uint64_t v = 0;

    if (p) {
        memcpy(&v, p, sizeof(v));
    }
    return GUINT64_FROM_LE(v);
}

const char *gs_cursor_str(GsCursor *c, size_t *len)
{
    return gs_cursor_name(c, c->len, len);
}

const char *gs_cursor_name(GsCursor *c, size_t max, size_t *len)
{
    const uint8_t *p = c->data + c->pos;
    const uint8_t *nul = NULL;

    if (!c->failed && c->pos < c->len) {
        nul = memchr(p, 0, MIN(c->len - c->pos, max + 1));
    }
    if (!nul) {
        fail(c, c->pos);
        return NULL;
    }
    if (len) {
        *len = nul - p;
    }
    c->pos += nul - p + 1;
    return (const char *)p;
}

bool gs_cursor_ok(const GsCursor *c, GError **errp)
{
    if (!c->failed) {
        return true;
    }
    g_set_error(errp, GS_ERROR, GS_ERROR_FORMAT,
                "%s: truncated at byte 0x%zx of 0x%zx", c->what,
                c->failed_at, c->len);
    return false;
}
