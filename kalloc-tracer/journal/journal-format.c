/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The fixed parts of a journal as bytes, and back: see journal-format.h.
 *
 * Each ends with a checksum of what is before it in the part, so that what a
 * damaged file says is not believed.
 */
#include "kalloc-tracer/journal/journal-format.h"

#include <zlib.h>

uint32_t kt_crc(const void *data, size_t len)
{
    return crc32_z(0, data, len);
}

static void put_crc(uint8_t *out, size_t len)
{
    uint32_t crc = GUINT32_TO_LE(kt_crc(out, len - 4));

    memcpy(out + len - 4, &crc, sizeof(crc));
}

static bool crc_fits(const uint8_t *in, size_t len)
{
    uint32_t crc;

    memcpy(&crc, in + len - 4, sizeof(crc));
    return GUINT32_FROM_LE(crc) == kt_crc(in, len - 4);
}

/* @a: what was put together, less than @len bytes of it. */
static void finish(GByteArray *a, uint8_t *out, size_t len)
{
    memset(out, 0, len);
    memcpy(out, a->data, MIN(a->len, len));
    g_byte_array_unref(a);
    put_crc(out, len);
}

void kt_head_put(const KtHead *h, uint8_t out[KT_HEAD_LIVE])
{
    GByteArray *a = g_byte_array_new();

    g_byte_array_append(a, (const uint8_t *)KT_JOURNAL_MAGIC, 6);
    kt_put_u8(a, KT_JOURNAL_VERSION);
    kt_put_u8(a, 0);
    kt_put_u64(a, h->history_bytes);
    kt_put_u64(a, h->map_bytes);
    kt_put_u32(a, h->max_stacks);
    kt_put_u32(a, h->n_cpus);
    kt_put_u64(a, h->begun);
    finish(a, out, KT_HEAD_LIVE);
}

bool kt_head_get(KtHead *h, const uint8_t in[KT_HEAD_LIVE])
{
    KtBytes b = kt_bytes(in + 8, KT_HEAD_LIVE - 8);

    h->history_bytes = kt_bytes_u64(&b);
    h->map_bytes = kt_bytes_u64(&b);
    h->max_stacks = kt_bytes_u32(&b);
    h->n_cpus = kt_bytes_u32(&b);
    h->begun = kt_bytes_u64(&b);
    return crc_fits(in, KT_HEAD_LIVE);
}

void kt_live_put(const KtLive *l, uint8_t out[KT_HEAD_LIVE])
{
    GByteArray *a = g_byte_array_new();

    kt_put_u64(a, l->promised);
    kt_put_u64(a, l->dropped);
    finish(a, out, KT_HEAD_LIVE);
}

bool kt_live_get(KtLive *l, const uint8_t in[KT_HEAD_LIVE])
{
    KtBytes b = kt_bytes(in, KT_HEAD_LIVE);

    l->promised = kt_bytes_u64(&b);
    l->dropped = kt_bytes_u64(&b);
    return crc_fits(in, KT_HEAD_LIVE);
}

void kt_tail_put(uint64_t index, uint8_t out[KT_TAIL_BYTES])
{
    GByteArray *a = g_byte_array_new();

    kt_put_u64(a, KT_TAIL_MAGIC);
    kt_put_u64(a, index);
    finish(a, out, KT_TAIL_BYTES);
}

bool kt_tail_get(uint64_t *index, const uint8_t in[KT_TAIL_BYTES])
{
    KtBytes b = kt_bytes(in, KT_TAIL_BYTES);
    uint64_t magic = kt_bytes_u64(&b);

    *index = kt_bytes_u64(&b);
    return magic == KT_TAIL_MAGIC && crc_fits(in, KT_TAIL_BYTES);
}

void kt_frame_put(const KtFrame *f, uint8_t out[KT_FRAME_BYTES])
{
    GByteArray *a = g_byte_array_new();

    kt_put_u32(a, KT_FRAME_MAGIC);
    kt_put_u32(a, f->kind);
    kt_put_u32(a, f->number);
    kt_put_u32(a, f->n);
    kt_put_u32(a, f->stored);
    kt_put_u32(a, f->raw);
    kt_put_u64(a, f->first_seq);
    kt_put_u64(a, f->last_seq);
    kt_put_u64(a, f->first_us);
    kt_put_u64(a, f->last_us);
    kt_put_u32(a, f->crc);
    finish(a, out, KT_FRAME_BYTES);
}

bool kt_frame_get(KtFrame *f, const uint8_t in[KT_FRAME_BYTES])
{
    KtBytes b = kt_bytes(in, KT_FRAME_BYTES);
    uint32_t magic = kt_bytes_u32(&b);
    uint32_t kind = kt_bytes_u32(&b);

    f->kind = kind;
    f->number = kt_bytes_u32(&b);
    f->n = kt_bytes_u32(&b);
    f->stored = kt_bytes_u32(&b);
    f->raw = kt_bytes_u32(&b);
    f->first_seq = kt_bytes_u64(&b);
    f->last_seq = kt_bytes_u64(&b);
    f->first_us = kt_bytes_u64(&b);
    f->last_us = kt_bytes_u64(&b);
    f->crc = kt_bytes_u32(&b);
    return magic == KT_FRAME_MAGIC && kind <= UINT8_MAX &&
           f->stored <= KT_STORED_MAX && crc_fits(in, KT_FRAME_BYTES);
}
