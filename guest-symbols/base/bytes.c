/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The reader and the writer of bytes, see bytes.h: what is not inline. */
#include "guest-symbols/base/bytes.h"

#include <stdarg.h>

/* ---- failing ------------------------------------------------------------ */

static bool fail_at(GsBytes *b, size_t at)
{
    if (!b->failed) {
        b->failed = true;
        b->failed_at = at;
    }
    return false;
}

void gs_bytes_fail(GsBytes *b, const char *fmt, ...)
{
    va_list ap;

    if (b->failed) {
        return;
    }
    fail_at(b, b->pos);
    va_start(ap, fmt);
    g_vsnprintf(b->why, sizeof(b->why), fmt, ap);
    va_end(ap);
}

bool gs_bytes_check(const GsBytes *b, GError **errp)
{
    const char *what = b->what ? b->what : "bytes";

    if (!b->failed) {
        return true;
    }
    if (*b->why) {
        g_set_error(errp, GS_ERROR, GS_ERROR_FORMAT, "%s: %s", what, b->why);
    } else {
        g_set_error(errp, GS_ERROR, GS_ERROR_FORMAT,
                    "%s: truncated at byte 0x%zx of 0x%zx", what,
                    b->failed_at, b->len);
    }
    return false;
}

/* ---- reading ------------------------------------------------------------ */

void gs_bytes_init(GsBytes *b, const void *data, size_t len, const char *what)
{
    *b = gs_bytes(data, len);
    b->what = what;
}

bool gs_bytes_more(GsBytes *b)
{
    if (!b->failed && b->refill && b->refill(b)) {
        return true;
    }
    return fail_at(b, b->pos);
}

void gs_bytes_seek(GsBytes *b, uint64_t pos)
{
    if (pos > b->len) {
        fail_at(b, b->len);
        return;
    }
    b->pos = pos;
}

const uint8_t *gs_bytes_take(GsBytes *b, uint64_t n)
{
    const uint8_t *p;

    if (b->failed || n > gs_bytes_left(b)) {
        fail_at(b, b->pos);
        return NULL;
    }
    p = gs_bytes_at(b);
    b->pos += n;
    return p;
}

void gs_bytes_copy(GsBytes *b, void *buf, size_t len)
{
    uint8_t *to = buf;

    if (!b->refill && len > gs_bytes_left(b)) {
        fail_at(b, b->pos);
    }
    while (len && !b->failed) {
        size_t n = MIN(len, gs_bytes_left(b));

        if (n) {
            memcpy(to, b->data + b->pos, n);
        }
        b->pos += n;
        to += n;
        len -= n;
        if (len) {
            gs_bytes_more(b);
        }
    }
    if (len) {
        memset(to, 0, len);
    }
}

uint16_t gs_bytes_u16(GsBytes *b)
{
    uint16_t v;

    gs_bytes_copy(b, &v, sizeof(v));
    return b->failed ? 0 : GUINT16_FROM_LE(v);
}

uint32_t gs_bytes_u32(GsBytes *b)
{
    uint32_t v;

    gs_bytes_copy(b, &v, sizeof(v));
    return b->failed ? 0 : GUINT32_FROM_LE(v);
}

uint64_t gs_bytes_u64(GsBytes *b)
{
    uint64_t v;

    gs_bytes_copy(b, &v, sizeof(v));
    return b->failed ? 0 : GUINT64_FROM_LE(v);
}

uint64_t gs_bytes_upto(GsBytes *b, uint64_t max, const char *what)
{
    uint64_t v = gs_bytes_varint(b, UINT64_MAX);

    if (v > max) {
        gs_bytes_fail(b, "%s is %" G_GUINT64_FORMAT ", at most %"
                      G_GUINT64_FORMAT " is possible", what, v, max);
    }
    return b->failed ? 0 : v;
}

const char *gs_bytes_str(GsBytes *b, size_t max, size_t *len)
{
    size_t left = gs_bytes_left(b);
    const uint8_t *p = NULL, *nul = NULL;

    if (!b->failed && left) {
        p = b->data + b->pos;
        nul = memchr(p, 0, max < left ? max + 1 : left);
    }
    if (!nul) {
        fail_at(b, b->pos);
        return NULL;
    }
    if (len) {
        *len = nul - p;
    }
    b->pos += nul - p + 1;
    return (const char *)p;
}

void gs_bytes_text(GsBytes *b, char *buf, size_t size, const char *what)
{
    uint64_t len = gs_bytes_varint(b, UINT64_MAX);

    memset(buf, 0, size);
    if (len >= size) {
        gs_bytes_fail(b, "%s is %" G_GUINT64_FORMAT " bytes long, less than "
                      "%zu is possible", what, len, size);
        return;
    }
    gs_bytes_copy(b, buf, len);
    if (strlen(buf) != len) {
        gs_bytes_fail(b, "%s has a NUL inside", what);
        memset(buf, 0, size);
    }
}

/* ---- writing ------------------------------------------------------------ */

void gs_out_text(GsOut *out, const char *s)
{
    size_t len = strlen(s);

    gs_out_varint(out, len);
    gs_out_bytes(out, s, len);
}
