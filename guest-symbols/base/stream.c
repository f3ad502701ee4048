/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Streams of numbers: see stream.h.
 */
#include "guest-symbols/base/stream.h"

#include <stdarg.h>
#include <string.h>
#include <zstd.h>

#include "guest-symbols/gs.h"

#define ROOM        (64u * 1024)
#define LEVEL       1               /* the guest stands still meanwhile */

struct GsPack {
    GsPackSink sink;
    void *opaque;
    ZSTD_CCtx *zstd;
    size_t used;
    uint8_t in[ROOM];
    uint8_t out[ROOM];
};

struct GsUnpack {
    GsUnpackSource source;
    void *opaque;
    ZSTD_DCtx *zstd;
    ZSTD_inBuffer packed;           /* in @in */
    size_t pos, have;               /* of @out */
    uint64_t left;                  /* that may be unpacked yet */
    bool frame_done;
    GError *err;
    uint8_t in[ROOM];
    uint8_t out[ROOM];
};

/* ---- bytes in memory ---------------------------------------------------- */

void gs_pack_to_bytes(void *opaque, const void *buf, size_t len)
{
    g_byte_array_append(opaque, buf, len);
}

size_t gs_unpack_from_bytes(void *opaque, void *buf, size_t len)
{
    GsBytes *b = opaque;
    size_t n = MIN(len, b->left);

    if (n) {
        memcpy(buf, b->at, n);
        b->at += n;
        b->left -= n;
    }
    return n;
}

/* ---- writing ------------------------------------------------------------ */

GsPack *gs_pack_new(GsPackSink sink, void *opaque)
{
    GsPack *p = g_new(GsPack, 1);

    p->sink = sink;
    p->opaque = opaque;
    p->used = 0;
    p->zstd = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(p->zstd, ZSTD_c_compressionLevel, LEVEL);
    ZSTD_CCtx_setParameter(p->zstd, ZSTD_c_checksumFlag, 1);
    return p;
}

static void flush(GsPack *p, ZSTD_EndDirective how)
{
    ZSTD_inBuffer in = { p->in, p->used, 0 };
    size_t left;

    do {
        ZSTD_outBuffer out = { p->out, ROOM, 0 };

        left = ZSTD_compressStream2(p->zstd, &out, &in, how);
        g_assert(!ZSTD_isError(left));
        if (out.pos) {
            p->sink(p->opaque, p->out, out.pos);
        }
    } while (how == ZSTD_e_end ? left > 0 : in.pos < in.size);
    p->used = 0;
}

void gs_pack_end(GsPack *p)
{
    flush(p, ZSTD_e_end);
    ZSTD_freeCCtx(p->zstd);
    g_free(p);
}

void gs_pack_bytes(GsPack *p, const void *buf, size_t len)
{
    const uint8_t *from = buf;

    while (len) {
        size_t n = MIN(len, ROOM - p->used);

        memcpy(p->in + p->used, from, n);
        p->used += n;
        from += n;
        len -= n;
        if (p->used == ROOM) {
            flush(p, ZSTD_e_continue);
        }
    }
}

/* Seven bits a byte, the low ones first; the top bit says that more follow. */
void gs_pack_u64(GsPack *p, uint64_t v)
{
    uint8_t bytes[10];
    unsigned n = 0;

    while (v >= 0x80) {
        bytes[n++] = v | 0x80;
        v >>= 7;
    }
    bytes[n++] = v;
    gs_pack_bytes(p, bytes, n);
}

/* The sign goes to the lowest bit: small distances are short numbers. */
void gs_pack_step(GsPack *p, uint64_t from, uint64_t v)
{
    uint64_t d = v - from;

    gs_pack_u64(p, d << 1 ^ (d >> 63 ? UINT64_MAX : 0));
}

void gs_pack_text(GsPack *p, const char *s)
{
    size_t len = strlen(s);

    gs_pack_u64(p, len);
    gs_pack_bytes(p, s, len);
}

/* ---- reading ------------------------------------------------------------ */

GsUnpack *gs_unpack_new(GsUnpackSource source, void *opaque, uint64_t max)
{
    GsUnpack *u = g_new(GsUnpack, 1);

    u->source = source;
    u->opaque = opaque;
    u->zstd = ZSTD_createDCtx();
    u->packed = (ZSTD_inBuffer) { u->in, 0, 0 };
    u->pos = u->have = 0;
    u->left = max;
    u->frame_done = false;
    u->err = NULL;
    return u;
}

void gs_unpack_free(GsUnpack *u)
{
    if (u) {
        ZSTD_freeDCtx(u->zstd);
        g_clear_error(&u->err);
        g_free(u);
    }
}

void gs_unpack_fail(GsUnpack *u, const char *fmt, ...)
{
    va_list ap;

    if (!u->err) {
        va_start(ap, fmt);
        u->err = g_error_new_valist(GS_ERROR, GS_ERROR_FORMAT, fmt, ap);
        va_end(ap);
    }
}

bool gs_unpack_ok(const GsUnpack *u)
{
    return !u->err;
}

static bool take_in(GsUnpack *u)
{
    u->packed.size = u->source(u->opaque, u->in, ROOM);
    u->packed.pos = 0;
    if (!u->packed.size) {
        gs_unpack_fail(u, "it is cut short");
    }
    return u->packed.size > 0;
}

/* Some more bytes in @u->out; false at the end of the frame. */
static bool refill(GsUnpack *u)
{
    ZSTD_outBuffer out = { u->out, ROOM, 0 };

    while (!out.pos && !u->frame_done && !u->err) {
        size_t left = ZSTD_decompressStream(u->zstd, &out, &u->packed);

        if (ZSTD_isError(left)) {
            gs_unpack_fail(u, "it is damaged (%s)", ZSTD_getErrorName(left));
        } else if (out.pos > u->left) {
            gs_unpack_fail(u, "it is larger than can be");
        } else if (!left) {
            u->frame_done = true;
        } else if (!out.pos && u->packed.pos == u->packed.size) {
            take_in(u);
        }
    }
    u->pos = 0;
    u->have = u->err ? 0 : out.pos;
    u->left -= u->have;
    return u->have > 0;
}

void gs_unpack_bytes(GsUnpack *u, void *buf, size_t len)
{
    uint8_t *to = buf;

    while (len && !u->err) {
        size_t n = MIN(len, u->have - u->pos);

        memcpy(to, u->out + u->pos, n);
        u->pos += n;
        to += n;
        len -= n;
        if (len && !refill(u)) {
            gs_unpack_fail(u, "it ends too early");
        }
    }
    if (len) {
        memset(to, 0, len);
    }
}

static uint8_t next_byte(GsUnpack *u)
{
    uint8_t byte = 0;

    if (u->pos < u->have) {
        return u->out[u->pos++];
    }
    gs_unpack_bytes(u, &byte, 1);
    return byte;
}

uint64_t gs_unpack_u64(GsUnpack *u)
{
    uint64_t v = 0;

    for (unsigned shift = 0; !u->err; shift += 7) {
        uint8_t byte = next_byte(u);

        if (shift == 63 && byte > 1) {
            gs_unpack_fail(u, "a number of more than 64 bits");
            break;
        }
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            break;
        }
    }
    return u->err ? 0 : v;
}

uint64_t gs_unpack_upto(GsUnpack *u, uint64_t max, const char *what)
{
    uint64_t v = gs_unpack_u64(u);

    if (v > max) {
        gs_unpack_fail(u, "%s is %" G_GUINT64_FORMAT ", at most %"
                       G_GUINT64_FORMAT " is possible", what, v, max);
    }
    return u->err ? 0 : v;
}

uint64_t gs_unpack_step(GsUnpack *u, uint64_t from)
{
    uint64_t z = gs_unpack_u64(u);

    return u->err ? 0 : from + (z >> 1 ^ (z & 1 ? UINT64_MAX : 0));
}

void gs_unpack_text(GsUnpack *u, char *buf, size_t size, const char *what)
{
    uint64_t len = gs_unpack_u64(u);

    memset(buf, 0, size);
    if (len >= size) {
        gs_unpack_fail(u, "%s is %" G_GUINT64_FORMAT " bytes long, less than "
                       "%zu is possible", what, len, size);
        return;
    }
    gs_unpack_bytes(u, buf, len);
    if (strlen(buf) != len) {
        gs_unpack_fail(u, "%s has a NUL inside", what);
        memset(buf, 0, size);
    }
}

bool gs_unpack_end(GsUnpack *u, GError **errp)
{
    if (!u->err && (u->pos < u->have || refill(u))) {
        gs_unpack_fail(u, "it goes on behind its end");
    }
    if (!u->err && (u->packed.pos < u->packed.size ||
                    u->source(u->opaque, u->in, 1))) {
        gs_unpack_fail(u, "something follows its end");
    }
    if (u->err) {
        g_propagate_error(errp, g_error_copy(u->err));
    }
    return !u->err;
}
