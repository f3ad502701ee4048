/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The fixed parts of a journal as bytes, and back: see journal-format.h. Each
 * part ends with a checksum of the bytes before it.
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

/* Fill a part with the bytes of @a, zeros, and the checksum. */
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
    GsOut w = gs_out(a);

    gs_out_bytes(&w, (const uint8_t *)KT_JOURNAL_MAGIC, 6);
    gs_out_u8(&w, KT_JOURNAL_VERSION);
    gs_out_u8(&w, 0);
    gs_out_u64(&w, h->history_bytes);
    gs_out_u64(&w, h->map_bytes);
    gs_out_u32(&w, h->max_stacks);
    gs_out_u32(&w, h->n_cpus);
    gs_out_u64(&w, h->begun);
    finish(a, out, KT_HEAD_LIVE);
}

bool kt_head_get(KtHead *h, const uint8_t in[KT_HEAD_LIVE])
{
    GsBytes b = gs_bytes(in + 8, KT_HEAD_LIVE - 8);

    h->history_bytes = gs_bytes_u64(&b);
    h->map_bytes = gs_bytes_u64(&b);
    h->max_stacks = gs_bytes_u32(&b);
    h->n_cpus = gs_bytes_u32(&b);
    h->begun = gs_bytes_u64(&b);
    return crc_fits(in, KT_HEAD_LIVE);
}

void kt_live_put(const KtLive *l, uint8_t out[KT_HEAD_LIVE])
{
    GByteArray *a = g_byte_array_new();
    GsOut w = gs_out(a);

    gs_out_u64(&w, l->promised);
    gs_out_u64(&w, l->dropped);
    finish(a, out, KT_HEAD_LIVE);
}

bool kt_live_get(KtLive *l, const uint8_t in[KT_HEAD_LIVE])
{
    GsBytes b = gs_bytes(in, KT_HEAD_LIVE);

    l->promised = gs_bytes_u64(&b);
    l->dropped = gs_bytes_u64(&b);
    return crc_fits(in, KT_HEAD_LIVE);
}

void kt_tail_put(uint64_t index, uint8_t out[KT_TAIL_BYTES])
{
    GByteArray *a = g_byte_array_new();
    GsOut w = gs_out(a);

    gs_out_u64(&w, KT_TAIL_MAGIC);
    gs_out_u64(&w, index);
    finish(a, out, KT_TAIL_BYTES);
}

bool kt_tail_get(uint64_t *index, const uint8_t in[KT_TAIL_BYTES])
{
    GsBytes b = gs_bytes(in, KT_TAIL_BYTES);
    uint64_t magic = gs_bytes_u64(&b);

    *index = gs_bytes_u64(&b);
    return magic == KT_TAIL_MAGIC && crc_fits(in, KT_TAIL_BYTES);
}

void kt_frame_put(const KtFrame *f, uint8_t out[KT_FRAME_BYTES])
{
    GByteArray *a = g_byte_array_new();
    GsOut w = gs_out(a);

    gs_out_u32(&w, KT_FRAME_MAGIC);
    gs_out_u32(&w, f->kind);
    gs_out_u32(&w, f->number);
    gs_out_u32(&w, f->n);
    gs_out_u32(&w, f->stored);
    gs_out_u32(&w, f->raw);
    gs_out_u64(&w, f->first_seq);
    gs_out_u64(&w, f->last_seq);
    gs_out_u64(&w, f->first_us);
    gs_out_u64(&w, f->last_us);
    gs_out_u32(&w, f->crc);
    finish(a, out, KT_FRAME_BYTES);
}

bool kt_frame_get(KtFrame *f, const uint8_t in[KT_FRAME_BYTES])
{
    GsBytes b = gs_bytes(in, KT_FRAME_BYTES);
    uint32_t magic = gs_bytes_u32(&b);
    uint32_t kind = gs_bytes_u32(&b);

    f->kind = kind;
    f->number = gs_bytes_u32(&b);
    f->n = gs_bytes_u32(&b);
    f->stored = gs_bytes_u32(&b);
    f->raw = gs_bytes_u32(&b);
    f->first_seq = gs_bytes_u64(&b);
    f->last_seq = gs_bytes_u64(&b);
    f->first_us = gs_bytes_u64(&b);
    f->last_us = gs_bytes_u64(&b);
    f->crc = gs_bytes_u32(&b);
    return magic == KT_FRAME_MAGIC && kind <= UINT8_MAX &&
           f->stored <= KT_STORED_MAX && crc_fits(in, KT_FRAME_BYTES);
}
