/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Calls and the journal: what is not written yet goes into frames, and frames
 * become records again. See call-frame.h.
 *
 *     rings --kt_calls_save()--> frames --> journal --> kt_calls_replay()
 *
 * A frame has the records of the rings that are new, up to FRAME_BYTES; the
 * last one of a kt_calls_save() has the calls under way. Without new records
 * and other calls under way no frame is written.
 */
#include "kalloc-tracer/calls/call-journal.h"

#include <string.h>

#include "kalloc-tracer/calls/call-frame.h"
#include "kalloc-tracer/calls/call-ring.h"
#include "kalloc-tracer/tracer/tracer.h"

#define FRAME_BYTES ((size_t)1 << 20)
#define RINGS_LEAST ((uint64_t)1 << 20)
#define RINGS_MOST  ((uint64_t)1 << 30)
#define RINGS_RATIO 256         /* bytes of records for a byte of the file */

struct KtCallSaver {
    GMutex lock;
    uint64_t *seq;              /* of each ring: first record not written */
    GByteArray *under_way;      /* in the last frame */
};

KtCallSaver *kt_call_saver_new(void)
{
    KtCallSaver *s = g_new0(KtCallSaver, 1);

    g_mutex_init(&s->lock);
    s->under_way = g_byte_array_new();
    return s;
}

void kt_call_saver_free(KtCallSaver *s)
{
    if (s) {
        g_mutex_clear(&s->lock);
        g_byte_array_unref(s->under_way);
        g_free(s->seq);
    }
    g_free(s);
}

void kt_call_saver_lock(KtCallSaver *s)
{
    g_mutex_lock(&s->lock);
}

void kt_call_saver_unlock(KtCallSaver *s)
{
    g_mutex_unlock(&s->lock);
}

/* ---- writing ------------------------------------------------------------- */

static void put_frame(KtTracer *t, KtCallBatch *b)
{
    GByteArray *frame = g_byte_array_new();

    kt_call_frame_write(t, b, &GS_OUT(frame));
    kt_tracer_save_frame(t, KT_MODULE_EVENT_CALLS, frame);
    g_byte_array_set_size(b->records, 0);
}

/* The ring may grow meanwhile: what is new after its end was reached is for the
 * next time. */
static void save_ring(KtTracer *t, KtCallSaver *s, unsigned ring,
                      KtCallBatch *b)
{
    KtCallRecords *r = kt_tracer_calls(t)->records;
    uint64_t lost = 0;

    while (kt_call_records_read(r, ring, &s->seq[ring], UINT64_MAX, b->records,
                                &lost)) {
        if (b->records->len >= FRAME_BYTES) {
            put_frame(t, b);
        }
    }
    kt_tracer_count(t, KT_CNT_CALLS_UNSAVED, lost);
}

/* Copy the calls under way to @b, KT_CALL_FRAME_OPEN at most. Return true if
 * they are others than in the last frame. */
static bool find_under_way(KtCallRecords *r, KtCallSaver *s, KtCallBatch *b)
{
    uint64_t at = 0;
    bool same;

    kt_call_records_under_way(r, b->under_way);
    for (unsigned n = 0; n < KT_CALL_FRAME_OPEN && at < b->under_way->len;
         n++) {
        at += kt_call_bytes((const KtCall *)(b->under_way->data + at));
    }
    g_byte_array_set_size(b->under_way, at);
    same = at == s->under_way->len &&
           (!at || !memcmp(b->under_way->data, s->under_way->data, at));
    if (!same) {
        g_byte_array_set_size(s->under_way, 0);
        g_byte_array_append(s->under_way, b->under_way->data, at);
    }
    return !same;
}

static void save_locked(KtTracer *t, KtCallSaver *s)
{
    KtCallRecords *r = kt_tracer_calls(t)->records;
    unsigned n = kt_call_records_rings(r);
    g_auto(KtCallBatch) b;
    KtCallBatch open;

    kt_call_batch_init(&b);
    if (!s->seq) {
        s->seq = g_new0(uint64_t, n);
    }
    b.n_cpus = n;
    for (unsigned i = 0; i < n; i++) {
        save_ring(t, s, i, &b);
    }
    open = b;
    if (find_under_way(r, s, &open) || b.records->len) {
        put_frame(t, &b);
    }
}

void kt_calls_save(KtTracer *t)
{
    KtCalls *c = kt_tracer_calls(t);

    if (!kt_tracer_has_journal(t) || !kt_call_records_rings(c->records)) {
        return;
    }
    g_mutex_lock(&c->saver->lock);
    save_locked(t, c->saver);
    g_mutex_unlock(&c->saver->lock);
}

void kt_calls_save_clear(KtTracer *t)
{
    KtCallBatch b;

    if (kt_tracer_has_journal(t)) {
        kt_call_batch_init(&b);
        b.flags = KT_CALL_FRAME_CLEAR;
        put_frame(t, &b);
        kt_call_batch_deinit(&b);
    }
}

/* ---- reading ------------------------------------------------------------- */

static bool is_late(const KtCall *call, uint64_t until_us)
{
    return call->start_ns / 1000 > until_us;
}

static bool ends_late(const KtCall *call, uint64_t until_us)
{
    return (call->start_ns + call->took_ns) / 1000 > until_us;
}

static bool open_rings(KtCallRecords *r, unsigned n_cpus, uint64_t bytes)
{
    if (kt_call_records_rings(r)) {
        return true;
    }
    kt_call_records_set_uncharged(r);
    kt_call_records_configure(r, CLAMP(bytes * RINGS_RATIO, RINGS_LEAST,
                                       RINGS_MOST), CLAMP(n_cpus, 1, 1024));
    return kt_call_records_open(r, NULL);
}

/* A call that returns after the time that is asked for is under way. */
static void add_records(KtCallRecords *r, const KtCallBatch *b,
                        uint64_t until_us)
{
    for (uint64_t at = 0; at < b->records->len;) {
        const KtCallView v = kt_call_view(b->records->data + at);
        KtCall call = *v.call;

        if (ends_late(&call, until_us)) {
            call.flags |= KT_CALL_UNFINISHED;
        }
        if (!is_late(&call, until_us)) {
            kt_call_records_put(r, &call, v.args, v.extra);
        }
        at += kt_call_bytes(v.call);
    }
}

bool kt_calls_replay(KtTracer *t, const GsKernel *k, GsBytes *in,
                     uint64_t until_us, uint64_t bytes)
{
    KtCallRecords *r = kt_tracer_calls(t)->records;
    g_auto(KtCallBatch) b;

    kt_call_batch_init(&b);
    if (!kt_call_frame_read(t, k, in, &b)) {
        return false;
    }
    if (open_rings(r, b.n_cpus, bytes)) {
        if (b.flags & KT_CALL_FRAME_CLEAR) {
            kt_call_records_clear(r);
        }
        add_records(r, &b, until_us);
        kt_call_records_set_under_way(r, b.under_way);
    }
    return true;
}
