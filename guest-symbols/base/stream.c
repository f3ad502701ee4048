/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Compressed streams, see stream.h. Owns the blocks and zstd's contexts; runs
 * in the thread of its caller.
 */
#include "guest-symbols/base/stream.h"

#include <zstd.h>

#define ROOM        (64u * 1024)
#define LEVEL       1               /* the guest is stopped meanwhile */

/* @out comes first: a GsOut of a stream is cast back to it. */
struct GsStreamOut {
    GsOut out;
    GsStreamSink sink;
    void *opaque;
    ZSTD_CCtx *zstd;
    uint8_t packed[ROOM];
};

/*
 * @bytes comes first: a GsBytes of a stream is cast back to it.
 * @packed: the source's bytes, in @in
 * @left: bytes that may still be unpacked
 */
struct GsStreamIn {
    GsBytes bytes;
    GsStreamSource source;
    void *opaque;
    ZSTD_DCtx *zstd;
    ZSTD_inBuffer packed;
    uint64_t left;
    bool frame_done;
    uint8_t in[ROOM];
    uint8_t out[ROOM];
};

/* ---- bytes in memory ---------------------------------------------------- */

void gs_stream_to_array(void *opaque, const void *buf, size_t len)
{
    g_byte_array_append(opaque, buf, len);
}

size_t gs_stream_from_bytes(void *opaque, void *buf, size_t len)
{
    GsBytes *b = opaque;
    size_t n = MIN(len, gs_bytes_left(b));

    gs_bytes_copy(b, buf, n);
    return n;
}

/* ---- writing ------------------------------------------------------------ */

static void compress(GsStreamOut *s, ZSTD_EndDirective how)
{
    ZSTD_inBuffer in = { s->out.to->data, s->out.to->len, 0 };
    size_t left;

    do {
        ZSTD_outBuffer out = { s->packed, ROOM, 0 };

        left = ZSTD_compressStream2(s->zstd, &out, &in, how);
        g_assert(!ZSTD_isError(left));
        if (out.pos) {
            s->sink(s->opaque, s->packed, out.pos);
        }
    } while (how == ZSTD_e_end ? left > 0 : in.pos < in.size);
    g_byte_array_set_size(s->out.to, 0);
}

static void drain(GsOut *out)
{
    compress((GsStreamOut *)out, ZSTD_e_continue);
}

GsStreamOut *gs_stream_out_new(GsStreamSink sink, void *opaque)
{
    GsStreamOut *s = g_new(GsStreamOut, 1);

    s->out = gs_out(g_byte_array_sized_new(2 * GS_OUT_BLOCK));
    s->out.drain = drain;
    s->sink = sink;
    s->opaque = opaque;
    s->zstd = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(s->zstd, ZSTD_c_compressionLevel, LEVEL);
    ZSTD_CCtx_setParameter(s->zstd, ZSTD_c_checksumFlag, 1);
    return s;
}

GsOut *gs_stream_out(GsStreamOut *s)
{
    return &s->out;
}

void gs_stream_out_end(GsStreamOut *s)
{
    compress(s, ZSTD_e_end);
    ZSTD_freeCCtx(s->zstd);
    g_byte_array_unref(s->out.to);
    g_free(s);
}

/* ---- reading ------------------------------------------------------------ */

static bool take_in(GsStreamIn *s)
{
    s->packed.size = s->source(s->opaque, s->in, ROOM);
    s->packed.pos = 0;
    if (!s->packed.size) {
        gs_bytes_fail(&s->bytes, "it is cut short");
    }
    return s->packed.size > 0;
}

/* Unpacks some more bytes to @s->out; false at the end of the frame. */
static bool unpack(GsStreamIn *s)
{
    ZSTD_outBuffer out = { s->out, ROOM, 0 };

    while (!out.pos && !s->frame_done && !s->bytes.failed) {
        size_t left = ZSTD_decompressStream(s->zstd, &out, &s->packed);

        if (ZSTD_isError(left)) {
            gs_bytes_fail(&s->bytes, "it is damaged (%s)",
                          ZSTD_getErrorName(left));
        } else if (out.pos > s->left) {
            gs_bytes_fail(&s->bytes, "it is larger than can be");
        } else if (!left) {
            s->frame_done = true;
        } else if (!out.pos && s->packed.pos == s->packed.size) {
            take_in(s);
        }
    }
    s->bytes.pos = 0;
    s->bytes.len = s->bytes.failed ? 0 : out.pos;
    s->left -= s->bytes.len;
    return s->bytes.len > 0;
}

static bool refill(GsBytes *b)
{
    bool more = unpack((GsStreamIn *)b);

    if (!more) {
        gs_bytes_fail(b, "it ends too early");
    }
    return more;
}

GsStreamIn *gs_stream_in_new(GsStreamSource source, void *opaque, uint64_t max)
{
    GsStreamIn *s = g_new(GsStreamIn, 1);

    s->bytes = gs_bytes(s->out, 0);
    s->bytes.refill = refill;
    s->source = source;
    s->opaque = opaque;
    s->zstd = ZSTD_createDCtx();
    s->packed = (ZSTD_inBuffer) { s->in, 0, 0 };
    s->left = max;
    s->frame_done = false;
    return s;
}

GsBytes *gs_stream_in(GsStreamIn *s)
{
    return &s->bytes;
}

bool gs_stream_in_more(GsStreamIn *s)
{
    return !s->bytes.failed && (gs_bytes_left(&s->bytes) || unpack(s));
}

bool gs_stream_in_end(GsStreamIn *s, GError **errp)
{
    GsBytes *b = &s->bytes;

    if (!b->failed && (gs_bytes_left(b) || unpack(s))) {
        gs_bytes_fail(b, "it goes on behind its end");
    }
    if (!b->failed && (s->packed.pos < s->packed.size ||
                       s->source(s->opaque, s->in, 1))) {
        gs_bytes_fail(b, "something follows its end");
    }
    if (b->failed) {
        g_set_error(errp, GS_ERROR, GS_ERROR_FORMAT, "%s", b->why);
    }
    return !b->failed;
}

void gs_stream_in_free(GsStreamIn *s)
{
    if (s) {
        ZSTD_freeDCtx(s->zstd);
        g_free(s);
    }
}
