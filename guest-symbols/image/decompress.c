/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Decompression of kernel images. image.c calls it while a kernel is opened;
 * stateless, any thread. The streams are untrusted: every decompressor in the
 * table writes through struct Out, which bounds the size of the output.
 */
#include "guest-symbols/image/image-internal.h"
#include "guest-symbols/base/bytes.h"

#include <lz4.h>
#include <lzma.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>
#ifdef GS_HAVE_BZIP2
#include <bzlib.h>
#endif

#define OUT_MAX         (1ull << 30)
#define OUT_MAX_RATIO   256
#define OUT_FIRST       (64u << 10)
#define LZMA_MEMORY     (256ull << 20)

/* The output. @cap is what is allocated: it doubles as needed, up to @max. */
typedef struct Out {
    uint8_t *data;
    size_t len;
    size_t cap;
    size_t max;
} Out;

typedef bool (*UnpackFn)(const uint8_t *in, size_t len, Out *out);

typedef struct Compression {
    const char *name;
    const char *magic;
    size_t magic_len;
    UnpackFn unpack;    /* NULL: recognised, but not built in */
} Compression;

/* Make room behind @out->len. Return its size, 0 if the bound is reached. */
static size_t out_room(Out *out)
{
    if (out->len == out->cap) {
        if (out->cap >= out->max) {
            return 0;
        }
        out->cap = MIN(out->max, out->cap ? out->cap * 2 : OUT_FIRST);
        out->data = g_realloc(out->data, out->cap);
    }
    return out->cap - out->len;
}

static bool unpack_gzip(const uint8_t *in, size_t len, Out *out)
{
    z_stream z = { .next_in = (Bytef *)in, .avail_in = len };
    int rc = Z_OK;

    if (inflateInit2(&z, 15 + 16) != Z_OK) {
        return false;
    }
    while (rc == Z_OK) {
        size_t room = out_room(out);

        if (!room) {
            break;
        }
        z.next_out = out->data + out->len;
        z.avail_out = room;
        rc = inflate(&z, Z_NO_FLUSH);
        out->len += room - z.avail_out;
    }
    inflateEnd(&z);
    return rc == Z_STREAM_END;
}

static bool unpack_lzma(const uint8_t *in, size_t len, Out *out)
{
    lzma_stream s = LZMA_STREAM_INIT;
    lzma_ret rc;

    rc = lzma_auto_decoder(&s, LZMA_MEMORY, 0);
    s.next_in = in;
    s.avail_in = len;
    while (rc == LZMA_OK) {
        size_t room = out_room(out);

        if (!room) {
            break;
        }
        s.next_out = out->data + out->len;
        s.avail_out = room;
        rc = lzma_code(&s, LZMA_RUN);
        out->len += room - s.avail_out;
    }
    lzma_end(&s);
    return rc == LZMA_STREAM_END;
}

#ifdef GS_HAVE_BZIP2
static bool unpack_bzip2(const uint8_t *in, size_t len, Out *out)
{
    bz_stream z = { .next_in = (char *)in, .avail_in = len };
    int rc = BZ_OK;

    if (BZ2_bzDecompressInit(&z, 0, 0) != BZ_OK) {
        return false;
    }
    while (rc == BZ_OK) {
        size_t room = out_room(out);

        if (!room) {
            break;
        }
        z.next_out = (char *)out->data + out->len;
        z.avail_out = room;
        rc = BZ2_bzDecompress(&z);
        out->len += room - z.avail_out;
        if (rc == BZ_OK && !z.avail_in && z.avail_out) {
            break;
        }
    }
    BZ2_bzDecompressEnd(&z);
    return rc == BZ_STREAM_END;
}
#else
#define unpack_bzip2 NULL
#endif

/*
 * The legacy frame of lz4's command line tool ("lz4 -l"), as read by the
 * kernel's lib/decompress_unlz4.c: the magic, then blocks of a 32-bit length
 * and data that unpack to at most 8 MiB each. The kernel's build appends the
 * unpacked size. It looks like the length of one more block, without data: it
 * ends the file.
 */
static bool unpack_lz4(const uint8_t *in, size_t len, Out *out)
{
    const size_t block_max = 8u << 20;
    GsBytes c;

    gs_bytes_init(&c, in, len, "lz4");
    gs_bytes_seek(&c, 4);
    while (gs_bytes_left(&c) > 4) {
        uint32_t n = gs_bytes_u32(&c);
        const uint8_t *block = gs_bytes_take(&c, n);
        size_t room;
        int got;

        if (!block || n > LZ4_COMPRESSBOUND(block_max)) {
            return false;
        }
        room = MIN(block_max, out->max - out->len);
        if (out->cap - out->len < room) {
            out->cap = MIN(out->max, MAX(out->len + room, out->cap * 2));
            out->data = g_realloc(out->data, out->cap);
        }
        got = LZ4_decompress_safe((const char *)block,
                                  (char *)out->data + out->len, n, room);
        if (got < 0) {
            return false;
        }
        out->len += got;
    }
    return out->len > 0;
}

static bool unpack_zstd(const uint8_t *in, size_t len, Out *out)
{
    ZSTD_DCtx *ctx = ZSTD_createDCtx();
    ZSTD_inBuffer src = { .src = in, .size = len };
    size_t rc = 1;

    /* the kernel's build compresses with windows of up to 128 MiB */
    ZSTD_DCtx_setParameter(ctx, ZSTD_d_windowLogMax, 27);
    while (rc && !ZSTD_isError(rc)) {
        size_t room = out_room(out);
        ZSTD_outBuffer dst = { .dst = out->data + out->len, .size = room };

        if (!room) {
            break;
        }
        rc = ZSTD_decompressStream(ctx, &dst, &src);
        out->len += dst.pos;
        if (rc && src.pos == src.size && dst.pos < dst.size) {
            break;
        }
    }
    ZSTD_freeDCtx(ctx);
    return rc == 0;
}

/* Magic numbers as in the kernel's lib/decompress.c. */
static const Compression compressions[] = {
    { "gzip", "\x1f\x8b\x08", 3, unpack_gzip },
    { "xz", "\xfd" "7zXZ\0", 6, unpack_lzma },
    { "lzma", "\x5d\0\0", 3, unpack_lzma },
    { "bzip2", "BZh", 3, unpack_bzip2 },
    { "lz4", "\x02\x21\x4c\x18", 4, unpack_lz4 },
    { "zstd", "\x28\xb5\x2f\xfd", 4, unpack_zstd },
    { "lzo", "\x89LZO\0\r\n\x1a\n", 9, NULL },
};

static const Compression *find(const uint8_t *data, size_t len)
{
    for (size_t i = 0; i < G_N_ELEMENTS(compressions); i++) {
        const Compression *c = &compressions[i];

        if (len >= c->magic_len && !memcmp(data, c->magic, c->magic_len)) {
            return c;
        }
    }
    return NULL;
}

const char *gs_compression_name(const uint8_t *data, size_t len)
{
    const Compression *c = find(data, len);

    return c ? c->name : NULL;
}

/*
 * The last four bytes are the unpacked size: gzip's format has it there, and
 * the kernel's build appends it for other formats. It is only a hint for the
 * first allocation; a wrong one costs a copy.
 */
static size_t size_hint(const uint8_t *data, size_t len, size_t max)
{
    uint32_t hint = gs_u32_at(data + len - sizeof(hint));

    return hint > len && hint < max ? (size_t)hint + 1 : OUT_FIRST;
}

GBytes *gs_decompress(const uint8_t *data, size_t len, GError **errp)
{
    const Compression *c = find(data, len);
    Out out = { .max = MIN(OUT_MAX, (uint64_t)len * OUT_MAX_RATIO) };

    if (!c || len < 8) {
        return gs_fail(errp, GS_ERROR_FORMAT, "not a compressed kernel");
    }
    if (!c->unpack) {
        return gs_fail(errp, GS_ERROR_UNSUPPORTED,
                       "%s compression is not supported: unpack it first "
                       "(scripts/extract-vmlinux of the kernel's sources)",
                       c->name);
    }
    out.cap = size_hint(data, len, out.max);
    out.data = g_malloc(out.cap);
    if (!c->unpack(data, len, &out)) {
        g_set_error(errp, GS_ERROR, GS_ERROR_FORMAT,
                    "%s stream of %zu bytes is damaged or too large after "
                    "%zu bytes of output", c->name, len, out.len);
        g_free(out.data);
        return NULL;
    }
    return g_bytes_new_take(out.data, out.len);
}
