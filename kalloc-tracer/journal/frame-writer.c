/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames of a journal: see frame-writer.h.
 *
 * Each write begins where the last good frame ended, so what a failed write
 * left behind is overwritten or cut off. If a write fails:
 *
 *     events            are dropped and counted; a gap frame says so later
 *     all other frames  are kept, and written before the next frame
 *     definitions       are written anew with the next events
 *
 * Example: the disk is full for a while. On it: events 1-90, then the gap frame
 * (91-200 are missing), a module frame that waited, events 201-...
 *
 * If more than KEPT_MAX bytes must be kept, nothing is written any more: what
 * came later would be wrong without them.
 */
#include "kalloc-tracer/journal/frame-writer.h"

#include <errno.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>
#include <zstd.h>

#include "kalloc-tracer/journal/journal-format.h"

#define LEVEL       1
#define KEPT_MAX    (64u << 20)     /* bytes of frames that wait for room */
#define INDEX_MAX   65536           /* 5 MiB: an hour of a busy guest */

/* A frame that waits until writing is possible. */
typedef struct Kept {
    KtFrameKind kind;
    GByteArray *data;
} Kept;

/* Events that were dropped and not yet reported. @forgotten: a frame that waits
 * empties the map, so a reader would take the map after it for complete;
 * @again: events after that frame were dropped as well */
typedef struct Gap {
    uint64_t n;
    uint64_t first_seq, last_seq;
    bool forgotten, again;
} Gap;

struct KtFrameWriter {
    int fd;
    uint64_t offset;        /* of the next frame */
    uint32_t number;        /* likewise */
    uint64_t last_seq, last_us;
    const KtHookTable *hooks;
    KtDefinitions *defs;
    ZSTD_CCtx *zstd;
    GByteArray *col[KT_COL__COUNT];
    GByteArray *def_bytes;
    GByteArray *out;        /* frames on their way to the file */
    GArray *index;          /* of KtFrame, INDEX_MAX at most */
    uint64_t last_frame;    /* its offset */
    bool hooks_told;
    GQueue kept;            /* of Kept */
    size_t kept_bytes;
    bool stopped;           /* too much was kept: nothing is written any
                             * more */
    Gap gap;
    uint64_t dropped;       /* atomic */
    KtCounters *counters;
};

KtFrameWriter *kt_frame_writer_new(int fd, const KtDepot *stacks,
                                   const KtTasksCaches *names,
                                   const KtHookTable *hooks,
                                   KtCounters *counters)
{
    KtFrameWriter *o = g_new0(KtFrameWriter, 1);

    o->fd = fd;
    o->hooks = hooks;
    o->offset = KT_HEAD_BYTES;
    o->defs = kt_definitions_new(stacks, names);
    o->zstd = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(o->zstd, ZSTD_c_compressionLevel, LEVEL);
    for (unsigned i = 0; i < KT_COL__COUNT; i++) {
        o->col[i] = g_byte_array_new();
    }
    o->def_bytes = g_byte_array_new();
    o->out = g_byte_array_new();
    o->index = g_array_new(FALSE, FALSE, sizeof(KtFrame));
    g_queue_init(&o->kept);
    o->counters = counters;
    return o;
}

static void kept_free(gpointer p)
{
    Kept *k = p;

    g_byte_array_unref(k->data);
    g_free(k);
}

void kt_frame_writer_free(KtFrameWriter *o)
{
    if (!o) {
        return;
    }
    kt_definitions_free(o->defs);
    ZSTD_freeCCtx(o->zstd);
    for (unsigned i = 0; i < KT_COL__COUNT; i++) {
        g_byte_array_unref(o->col[i]);
    }
    g_byte_array_unref(o->def_bytes);
    g_byte_array_unref(o->out);
    g_array_free(o->index, TRUE);
    g_queue_clear_full(&o->kept, kept_free);
    g_free(o);
}

uint64_t kt_frame_writer_dropped(const KtFrameWriter *o)
{
    return __atomic_load_n(&o->dropped, __ATOMIC_RELAXED);
}

bool kt_write_at(int fd, const void *data, size_t len, uint64_t offset)
{
    const char *at = data;

    while (len) {
        ssize_t n = pwrite(fd, at, len, offset);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return false;
        }
        at += n;
        len -= n;
        offset += n;
    }
    return true;
}

/* ---- frames ------------------------------------------------------------- */

/* Append a section: its length, the stored length, and the bytes, packed if
 * that is shorter. */
static void put_section(KtFrameWriter *o, const GByteArray *data)
{
    guint at = o->out->len;
    size_t bound = ZSTD_compressBound(data->len);
    size_t len;
    uint32_t lengths[2];

    g_byte_array_set_size(o->out, at + sizeof(lengths) + bound);
    len = ZSTD_compress2(o->zstd, o->out->data + at + sizeof(lengths), bound,
                         data->data, data->len);
    if (ZSTD_isError(len) || len >= data->len) {
        len = data->len;
        if (len) {      /* an empty array's data is NULL */
            memcpy(o->out->data + at + sizeof(lengths), data->data, len);
        }
    }
    lengths[0] = GUINT32_TO_LE(data->len);
    lengths[1] = GUINT32_TO_LE(len);
    memcpy(o->out->data + at, lengths, sizeof(lengths));
    g_byte_array_set_size(o->out, at + sizeof(lengths) + len);
}

/* Append a frame of @n sections; @f has what the caller knows of it. */
static void put_frame(KtFrameWriter *o, KtFrame *f, GByteArray *const *section,
                      unsigned n)
{
    guint at = o->out->len;

    f->offset = o->offset + at;
    f->number = o->number++;
    g_byte_array_set_size(o->out, at + KT_FRAME_BYTES);
    for (unsigned i = 0; i < n; i++) {
        f->raw += section[i]->len;
        put_section(o, section[i]);
    }
    f->stored = o->out->len - at - KT_FRAME_BYTES;
    f->crc = kt_crc(o->out->data + at + KT_FRAME_BYTES, f->stored);
    kt_part_pack(KT_PART_FRAME, f, o->out->data + at);
    o->last_frame = f->offset;
    if (o->index->len < INDEX_MAX) {
        g_array_append_val(o->index, *f);
    }
}

static KtFrame frame_now(const KtFrameWriter *o, KtFrameKind kind)
{
    return (KtFrame) {
        .kind = kind,
        .first_seq = o->last_seq, .last_seq = o->last_seq,
        .first_us = o->last_us, .last_us = o->last_us,
    };
}

static void put_one_section(KtFrameWriter *o, KtFrameKind kind,
                            const GByteArray *data)
{
    KtFrame f = frame_now(o, kind);
    GByteArray *section = (GByteArray *)data;

    put_frame(o, &f, &section, 1);
}

/* Append a gap frame that says that @n events are missing. */
static void put_gap(KtFrameWriter *o, uint64_t n)
{
    g_autoptr(GByteArray) data = g_byte_array_new();

    gs_out_u64(&GS_OUT(data), n);
    gs_out_u64(&GS_OUT(data), o->gap.first_seq);
    gs_out_u64(&GS_OUT(data), o->gap.last_seq);
    o->last_seq = MAX(o->last_seq, o->gap.last_seq);
    put_one_section(o, KT_FRAME_GAP, data);
}

static void put_hooks(KtFrameWriter *o)
{
    g_autoptr(GByteArray) data = g_byte_array_new();
    GsOut out = gs_out(data);
    unsigned n = kt_hook_table_count(o->hooks);

    for (unsigned i = 1; i <= n; i++) {
        KtHookId id = { i };

        gs_out_u8(&out, kt_hook_table_has_gfp(o->hooks, id));
        gs_out_str(&out, kt_hook_table_name(o->hooks, id));
    }
    put_one_section(o, KT_FRAME_HOOKS, data);
}

/* ---- to the file -------------------------------------------------------- */

/* What commit() restores if the frames cannot be written. */
typedef struct Before {
    uint32_t number;
    guint index;
    uint64_t last_seq, last_us;
} Before;

/* Begin to make frames. Those that wait for room come first. */
static Before begin(KtFrameWriter *o)
{
    Before b = { o->number, o->index->len, o->last_seq, o->last_us };

    g_byte_array_set_size(o->out, 0);
    if (o->gap.n) {
        put_gap(o, o->gap.n);
    }
    if (!o->hooks_told) {
        put_hooks(o);
    }
    for (GList *l = o->kept.head; l; l = l->next) {
        const Kept *k = l->data;

        put_one_section(o, k->kind, k->data);
    }
    if (o->gap.again) {
        put_gap(o, 0);
    }
    return b;
}

static bool commit(KtFrameWriter *o, const Before *b)
{
    if (!kt_write_at(o->fd, o->out->data, o->out->len, o->offset)) {
        if (ftruncate(o->fd, o->offset)) {
            /* A torn frame remains; readers stop at it. */
        }
        o->number = b->number;
        g_array_set_size(o->index, b->index);
        o->last_seq = b->last_seq;
        o->last_us = b->last_us;
        kt_definitions_reset(o->defs);
        return false;
    }
    o->offset += o->out->len;
    o->gap = (Gap) { 0 };
    o->hooks_told = true;
    g_queue_clear_full(&o->kept, kept_free);
    o->kept_bytes = 0;
    return true;
}

static void drop_events(KtFrameWriter *o, const KtEvent *ev, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        if (ev[i].seq) {
            o->gap.first_seq = o->gap.first_seq ? o->gap.first_seq :
                                                    ev[i].seq;
            o->gap.last_seq = ev[i].seq;
        }
    }
    o->gap.n += n;
    o->gap.again = o->gap.forgotten;
    __atomic_fetch_add(&o->dropped, n, __ATOMIC_RELAXED);
    kt_counters_add(o->counters, KT_CNT_JOURNAL_LOST, n);
}

/* ---- entries ------------------------------------------------------------ */

static KtFrame frame_of(KtFrameWriter *o, const KtEvent *ev, unsigned n)
{
    KtFrame f = { .kind = KT_FRAME_EVENTS, .n = n, .first_us = UINT64_MAX };

    for (unsigned i = 0; i < n; i++) {
        if (ev[i].seq) {
            f.first_seq = f.first_seq ? f.first_seq : ev[i].seq;
            f.last_seq = ev[i].seq;
        }
        f.first_us = MIN(f.first_us, ev[i].us);
        f.last_us = MAX(f.last_us, ev[i].us);
    }
    if (!f.last_seq) {
        f.first_seq = f.last_seq = o->last_seq;
    }
    o->last_seq = f.last_seq;
    o->last_us = f.last_us;
    return f;
}

void kt_frame_writer_events(KtFrameWriter *o, const KtEvent *ev, unsigned n)
{
    Before b;
    KtFrame f;

    if (o->stopped) {
        drop_events(o, ev, n);
        return;
    }
    b = begin(o);
    g_byte_array_set_size(o->def_bytes, 0);
    for (unsigned i = 0; i < n; i++) {
        kt_definitions_add(o->defs, &ev[i], &GS_OUT(o->def_bytes));
    }
    if (o->def_bytes->len) {
        put_one_section(o, KT_FRAME_DEFS, o->def_bytes);
    }
    kt_event_codec_encode(ev, n, o->col);
    f = frame_of(o, ev, n);
    put_frame(o, &f, o->col, KT_COL__COUNT);
    if (!commit(o, &b)) {
        drop_events(o, ev, n);
    }
}

static void stop_writing(KtFrameWriter *o)
{
    o->stopped = true;
    g_queue_clear_full(&o->kept, kept_free);
    o->kept_bytes = 0;
}

static bool forgets(KtFrameKind kind, const GByteArray *data)
{
    GsBytes in = gs_bytes(data->data, data->len);
    uint32_t control = kind == KT_FRAME_CONTROL ? gs_bytes_u32(&in) : 0;

    return kind == KT_FRAME_CHECKPOINT || control == KT_CONTROL_RESET ||
           control == KT_CONTROL_CLEAR;
}

/* Keep a frame that could not be written. Of several statuses only the last is
 * kept. */
static void keep(KtFrameWriter *o, KtFrameKind kind, const GByteArray *data)
{
    Kept *k = g_queue_peek_tail(&o->kept);

    if (k && kind == KT_FRAME_STATUS && k->kind == kind) {
        o->kept_bytes -= k->data->len;
        kept_free(g_queue_pop_tail(&o->kept));
    }
    if (o->kept_bytes + data->len > KEPT_MAX) {
        stop_writing(o);
        return;
    }
    k = g_new(Kept, 1);
    k->kind = kind;
    k->data = g_byte_array_new();
    g_byte_array_append(k->data, data->data, data->len);
    o->kept_bytes += data->len;
    o->gap.forgotten |= forgets(kind, data);
    g_queue_push_tail(&o->kept, k);
}

void kt_frame_writer_add(KtFrameWriter *o, KtFrameKind kind,
                         const GByteArray *data)
{
    Before b;

    if (o->stopped) {
        return;
    }
    b = begin(o);
    put_one_section(o, kind, data);
    if (!commit(o, &b)) {
        keep(o, kind, data);
    }
}

/* Append the index. It is empty if there were more frames than INDEX_MAX:
 * readers then walk over the headers. */
static void put_index(KtFrameWriter *o)
{
    g_autoptr(GByteArray) data = g_byte_array_new();
    GsOut out = gs_out(data);
    guint n = o->index->len;

    if (n < o->number) {
        n = 0;
    }
    for (guint i = 0; i < n; i++) {
        uint8_t header[KT_FRAME_BYTES];
        const KtFrame *f = &g_array_index(o->index, KtFrame, i);

        kt_part_pack(KT_PART_FRAME, f, header);
        gs_out_u64(&out, f->offset);
        gs_out_bytes(&out, header, sizeof(header));
    }
    put_one_section(o, KT_FRAME_INDEX, data);
}

static void put_end(KtFrameWriter *o)
{
    Before b = begin(o);
    uint8_t tail[KT_TAIL_BYTES];

    put_index(o);
    kt_part_pack(KT_PART_TAIL, &(KtTail) { o->last_frame }, tail);
    g_byte_array_append(o->out, tail, sizeof(tail));
    commit(o, &b);
}

/* SIGXFSZ is blocked meanwhile: if the file grows beyond RLIMIT_FSIZE, the
 * write fails, and the signal does not end QEMU. */
void kt_frame_writer_end(KtFrameWriter *o)
{
    const struct timespec at_once = { 0 };
    sigset_t limit, before;

    sigemptyset(&limit);
    sigaddset(&limit, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &limit, &before);
    if (!o->stopped) {
        put_end(o);
    }
    sigtimedwait(&limit, NULL, &at_once);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}
