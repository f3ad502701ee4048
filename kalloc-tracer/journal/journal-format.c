/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The fixed parts of a journal as bytes, and back: see journal-format.h. Each
 * part ends with a checksum of the bytes before it.
 */
#include "kalloc-tracer/journal/journal-format.h"

#include <zlib.h>

#include "kalloc-tracer/base/fields.h"

/* struct Part - a part. @magic: its first @n_magic bytes; @field: what follows
 * them; then zeros up to the checksum, which ends at byte @len. */
typedef struct Part {
    uint8_t magic[8];
    uint8_t n_magic;
    uint8_t len;
    KtField field[11];
} Part;

static const Part parts[KT_PART__COUNT] = {
    [KT_PART_HEAD] = {
        { 'K', 'A', 'J', 'R', 'N', 'L', KT_JOURNAL_VERSION, 0 }, 8,
        KT_HEAD_LIVE, {
            KT_FIXED(KtHead, history_bytes, 8), KT_FIXED(KtHead, map_bytes, 8),
            KT_FIXED(KtHead, max_stacks, 4), KT_FIXED(KtHead, n_cpus, 4),
            KT_FIXED(KtHead, begun, 8),
        },
    },
    [KT_PART_LIVE] = {
        { 0 }, 0, KT_HEAD_LIVE, {
            KT_FIXED(KtLive, promised, 8), KT_FIXED(KtLive, dropped, 8),
        },
    },
    [KT_PART_FRAME] = {
        "KAFr", 4, KT_FRAME_BYTES, {
            KT_FIXED(KtFrame, kind, 4), KT_FIXED(KtFrame, number, 4),
            KT_FIXED(KtFrame, n, 4),
            KT_FIELD(FIXED, KtFrame, stored, .bytes = 4, .max = KT_STORED_MAX),
            KT_FIXED(KtFrame, raw, 4),
            KT_FIXED(KtFrame, first_seq, 8), KT_FIXED(KtFrame, last_seq, 8),
            KT_FIXED(KtFrame, first_us, 8), KT_FIXED(KtFrame, last_us, 8),
            KT_FIXED(KtFrame, crc, 4),
        },
    },
    [KT_PART_TAIL] = {
        "KAJEND", 8, KT_TAIL_BYTES, { KT_FIXED(KtTail, index, 8) },
    },
};

uint32_t kt_crc(const void *data, size_t len)
{
    return crc32_z(0, data, len);
}

void kt_part_pack(KtPart part, const void *row, uint8_t *out)
{
    const Part *p = &parts[part];
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    uint32_t crc;

    gs_out_bytes(&GS_OUT(bytes), p->magic, p->n_magic);
    kt_fields_pack(p->field, row, NULL, &GS_OUT(bytes));
    memset(out, 0, p->len);
    memcpy(out, bytes->data, bytes->len);
    crc = GUINT32_TO_LE(kt_crc(out, p->len - sizeof(crc)));
    memcpy(out + p->len - sizeof(crc), &crc, sizeof(crc));
}

bool kt_part_unpack(KtPart part, void *row, const uint8_t *in)
{
    const Part *p = &parts[part];
    GsBytes bytes = gs_bytes(in + p->n_magic, p->len - p->n_magic);
    uint32_t crc;

    kt_fields_unpack(p->field, row, NULL, NULL, &bytes);
    memcpy(&crc, in + p->len - sizeof(crc), sizeof(crc));
    return !bytes.failed && !memcmp(in, p->magic, p->n_magic) &&
           GUINT32_FROM_LE(crc) == kt_crc(in, p->len - sizeof(crc));
}
