/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frame reader: see frame-reader.h. If the file has an index, that is read;
 * else all headers are walked.
 */
#include "kalloc-tracer/journal/frame-reader.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "guest-symbols/gs.h"

struct KtFrameReader {
    int fd;
    KtHead head;
    KtJournalSpan span;
    GArray *frames;         /* of KtFrame */
    uint8_t *stored;        /* stored bytes of a frame */
    size_t room;
    ZSTD_DCtx *zstd;
};

static bool read_at(int fd, void *out, size_t len, uint64_t offset)
{
    char *to = out;

    while (len) {
        ssize_t n = pread(fd, to, len, offset);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return false;
        }
        to += n;
        len -= n;
        offset += n;
    }
    return true;
}

/* ---- payloads ----------------------------------------------------------- */

static bool load_stored(KtFrameReader *r, const KtFrame *f)
{
    if (f->stored > r->room) {
        r->stored = g_realloc(r->stored, f->stored);
        r->room = f->stored;
    }
    return read_at(r->fd, r->stored, f->stored, f->offset + KT_FRAME_BYTES) &&
           kt_crc(r->stored, f->stored) == f->crc;
}

static bool unpack(KtFrameReader *r, GsBytes *in, uint32_t max, GByteArray *out)
{
    uint32_t raw = gs_bytes_u32(in);
    uint32_t len = gs_bytes_u32(in);
    const uint8_t *from = gs_bytes_take(in, len);

    if (!from || raw > max || len > raw) {
        return false;
    }
    g_byte_array_set_size(out, raw);
    if (len == raw) {
        if (raw) {
            memcpy(out->data, from, raw);
        }
        return true;
    }
    return ZSTD_decompressDCtx(r->zstd, out->data, raw, from, len) == raw;
}

/* A frame of events has a section for each column, any other frame one. */
bool kt_frame_reader_load(KtFrameReader *r, unsigned i, KtSections *out)
{
    const KtFrame *f = kt_frame_reader_frame(r, i);
    const bool columns = f->kind == KT_FRAME_EVENTS;
    const unsigned most = columns ? KT_COL__COUNT : 1;
    const uint32_t max = columns ? KT_COLUMN_MAX : KT_SECTION_MAX;
    GsBytes in;

    out->n = 0;
    if (!load_stored(r, f)) {
        return false;
    }
    in = gs_bytes(r->stored, f->stored);
    while (gs_bytes_left(&in)) {
        if (out->n == most) {
            return false;
        }
        if (!out->data[out->n]) {
            out->data[out->n] = g_byte_array_new();
        }
        if (!unpack(r, &in, max, out->data[out->n++])) {
            return false;
        }
    }
    return true;
}

void kt_sections_clear(KtSections *s)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(s->data); i++) {
        g_clear_pointer(&s->data[i], g_byte_array_unref);
    }
    s->n = 0;
}

/* ---- finding the frames ------------------------------------------------- */

/* Read the header at @offset. Return NULL, or why it is not that of the next
 * frame, or the frame is not whole. */
static const char *look_at(KtFrameReader *r, uint64_t offset, KtFrame *f)
{
    uint8_t header[KT_FRAME_BYTES];
    uint64_t left = r->span.size - offset;

    if (left < sizeof(header) ||
        !read_at(r->fd, header, sizeof(header), offset)) {
        return "the last frame is torn";
    }
    if (!kt_part_unpack(KT_PART_FRAME, f, header) ||
        f->number != r->frames->len) {
        return "a frame's header is damaged";
    }
    if (f->stored > left - sizeof(header)) {
        return "the last frame is torn";
    }
    f->offset = offset;
    return NULL;
}

/* Return true if the file's tail is at @offset and refers to the frame before
 * it: the file was ended, but its index cannot be used. */
static bool tail_is_at(const KtFrameReader *r, uint64_t offset)
{
    uint8_t tail[KT_TAIL_BYTES];
    const KtFrame *last;
    KtTail end;

    if (!r->frames->len || r->span.size - offset != sizeof(tail) ||
        !read_at(r->fd, tail, sizeof(tail), offset) ||
        !kt_part_unpack(KT_PART_TAIL, &end, tail)) {
        return false;
    }
    last = kt_frame_reader_frame(r, r->frames->len - 1);
    return last->kind == KT_FRAME_INDEX && last->offset == end.index;
}

static void walk(KtFrameReader *r)
{
    uint64_t offset = KT_HEAD_BYTES;
    KtFrame f;

    r->span.damage = NULL;
    g_array_set_size(r->frames, 0);
    while (offset < r->span.size) {
        r->span.ended = tail_is_at(r, offset);
        if (r->span.ended) {
            offset = r->span.size;
            break;
        }
        r->span.damage = look_at(r, offset, &f);
        if (r->span.damage) {
            break;
        }
        g_array_append_val(r->frames, f);
        offset += KT_FRAME_BYTES + f.stored;
    }
    r->span.good = offset;
}

/* Read the rows of the index: frames without space between them. */
static bool read_rows(KtFrameReader *r, GsBytes *in, uint64_t end)
{
    uint64_t expected = KT_HEAD_BYTES;

    while (gs_bytes_left(in)) {
        uint64_t offset = gs_bytes_u64(in);
        const uint8_t *header = gs_bytes_take(in, KT_FRAME_BYTES);
        KtFrame f;

        if (!header || !kt_part_unpack(KT_PART_FRAME, &f, header) ||
            offset != expected || f.number != r->frames->len) {
            return false;
        }
        f.offset = offset;
        expected += KT_FRAME_BYTES + f.stored;
        if (expected > end) {
            return false;
        }
        g_array_append_val(r->frames, f);
    }
    return expected == end;
}

/* Read all frames from the index. */
static bool use_index(KtFrameReader *r, const KtFrame *index)
{
    KtSections s = { 0 };
    GsBytes in;
    bool ok;

    ok = kt_frame_reader_load(r, 0, &s) && s.n == 1;
    g_array_set_size(r->frames, 0);
    if (ok) {
        in = gs_bytes(s.data[0]->data, s.data[0]->len);
        ok = read_rows(r, &in, index->offset) &&
             index->number == r->frames->len;
    }
    kt_sections_clear(&s);
    return ok;
}

static bool load_index(KtFrameReader *r)
{
    uint64_t end = r->span.size - KT_TAIL_BYTES;
    uint8_t tail[KT_TAIL_BYTES], header[KT_FRAME_BYTES];
    KtTail last;
    KtFrame f;

    if (r->span.size < KT_HEAD_BYTES + KT_FRAME_BYTES + KT_TAIL_BYTES ||
        !read_at(r->fd, tail, sizeof(tail), end) ||
        !kt_part_unpack(KT_PART_TAIL, &last, tail) ||
        last.index < KT_HEAD_BYTES || last.index > end - KT_FRAME_BYTES ||
        !read_at(r->fd, header, sizeof(header), last.index) ||
        !kt_part_unpack(KT_PART_FRAME, &f, header) ||
        f.kind != KT_FRAME_INDEX ||
        f.stored != end - KT_FRAME_BYTES - last.index) {
        return false;
    }
    f.offset = last.index;
    g_array_append_val(r->frames, f);
    return use_index(r, &f);
}

/* Files of another version are not read: the columns of events differ. */
static bool check_version(const uint8_t *head, const char *name, GError **errp)
{
    unsigned version = head[6] | (unsigned)head[7] << 8;

    if (version == KT_JOURNAL_VERSION) {
        return true;
    }
    g_set_error(errp, GS_ERROR, GS_ERROR_UNSUPPORTED,
                "%s: %s version of ka wrote this journal (format version %u; "
                "this ka reads version %u): read it with the ka that wrote it",
                name, version < KT_JOURNAL_VERSION ? "an older" : "a newer",
                version, (unsigned)KT_JOURNAL_VERSION);
    return false;
}

static bool read_head(KtFrameReader *r, const char *name, GError **errp)
{
    uint8_t head[KT_HEAD_BYTES] = { 0 };
    bool whole = r->span.size >= sizeof(head) &&
                 read_at(r->fd, head, sizeof(head), 0);

    if (!whole && !read_at(r->fd, head, 8, 0)) {
        memset(head, 0, sizeof(head));
    }
    if (memcmp(head, KT_JOURNAL_MAGIC, strlen(KT_JOURNAL_MAGIC))) {
        g_set_error(errp, GS_ERROR, GS_ERROR_FORMAT, "%s: not a journal",
                    name);
        return false;
    }
    if (!check_version(head, name, errp)) {
        return false;
    }
    if (!whole || !kt_part_unpack(KT_PART_HEAD, &r->head, head)) {
        g_set_error(errp, GS_ERROR, GS_ERROR_FORMAT,
                    "%s: the journal's first bytes are damaged", name);
        return false;
    }
    r->span.live_known = kt_part_unpack(KT_PART_LIVE, &r->span.live,
                                        head + KT_HEAD_LIVE);
    return true;
}

KtFrameReader *kt_frame_reader_new(int fd, const char *name, GError **errp)
{
    g_autoptr(KtFrameReader) r = g_new0(KtFrameReader, 1);
    struct stat st;

    r->fd = fd;
    r->frames = g_array_new(FALSE, FALSE, sizeof(KtFrame));
    r->zstd = ZSTD_createDCtx();
    if (fstat(fd, &st)) {
        g_set_error(errp, GS_ERROR, GS_ERROR_IO, "%s: %s", name,
                    g_strerror(errno));
        return NULL;
    }
    if (!S_ISREG(st.st_mode)) {
        g_set_error(errp, GS_ERROR, GS_ERROR_FORMAT,
                    "%s: not a journal: it is no regular file", name);
        return NULL;
    }
    r->span.size = st.st_size;
    if (!read_head(r, name, errp)) {
        return NULL;
    }
    r->span.ended = load_index(r);
    if (r->span.ended) {
        r->span.good = r->span.size;
    } else {
        walk(r);
    }
    return g_steal_pointer(&r);
}

KtFrameReader *kt_frame_reader_open(const char *path, GError **errp)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0) {
        g_set_error(errp, GS_ERROR, GS_ERROR_IO, "%s: %s", path,
                    g_strerror(errno));
        return NULL;
    }
    return kt_frame_reader_new(fd, path, errp);
}

void kt_frame_reader_free(KtFrameReader *r)
{
    if (r) {
        close(r->fd);
        g_array_free(r->frames, TRUE);
        g_free(r->stored);
        ZSTD_freeDCtx(r->zstd);
        g_free(r);
    }
}

const KtHead *kt_frame_reader_head(const KtFrameReader *r)
{
    return &r->head;
}

const KtJournalSpan *kt_frame_reader_span(const KtFrameReader *r)
{
    return &r->span;
}

unsigned kt_frame_reader_n(const KtFrameReader *r)
{
    return r->frames->len;
}

const KtFrame *kt_frame_reader_frame(const KtFrameReader *r, unsigned i)
{
    return &g_array_index(r->frames, KtFrame, i);
}
