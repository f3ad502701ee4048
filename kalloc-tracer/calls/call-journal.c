/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Calls and the journal: what is not written yet goes into frames, and frames
 * become records again. See call-journal.h.
 *
 *     rings --kt_calls_save()--> frames --> journal --> kt_calls_replay()
 *
 * A frame has the records of the rings that are new, up to FRAME_BYTES; the
 * last one of a kt_calls_save() has the calls under way. Without new records
 * and other calls under way no frame is written.
 */
#include "kalloc-tracer/calls/call-journal.h"

#include <string.h>

#include "kalloc-tracer/base/fields.h"
#include "kalloc-tracer/calls/calls.h"
#include "kalloc-tracer/calls/deref-plan.h"
#include "kalloc-tracer/tracer/frame-ids.h"
#include "kalloc-tracer/tracer/tracer.h"

#define FRAME_BYTES ((size_t)1 << 20)
#define RINGS_LEAST ((uint64_t)1 << 20)
#define RINGS_MOST  ((uint64_t)1 << 30)
#define RINGS_RATIO 256         /* bytes of records for a byte of the file */

#define FLAGS (KT_CALL_UNFINISHED | KT_CALL_INJECTED | KT_CALL_IRQ | \
               KT_CALL_IRQ_UNKNOWN | KT_CALL_BEGIN | KT_CALL_END)
#define MODULE_NAME_MAX 64

static const KtField call_fields[] = {
    KT_DELTA(KtCall, start_ns), KT_DELTA(KtCall, result),
    KT_DELTA(KtCall, caller), KT_NUMBER(KtCall, took_ns),
    KT_NUMBER(KtCall, point), KT_FIXED(KtCall, flags, 1),
    KT_NUMBER(KtCall, cpu), KT_NUMBER(KtCall, return_cpu),
    KT_NUMBER(KtCall, rule), KT_UPTO(KtCall, n_args, KT_CALL_ARGS_MAX, NULL),
    { 0 }
};

void kt_call_batch_init(KtCallBatch *b)
{
    *b = (KtCallBatch) {
        .n_cpus = 1, .records = g_byte_array_new(),
        .under_way = g_byte_array_new(),
    };
}

void kt_call_batch_deinit(KtCallBatch *b)
{
    g_byte_array_unref(b->records);
    g_byte_array_unref(b->under_way);
}

/* ---- writing a frame ---------------------------------------------------- */

static void write_call(KtTracer *t, const KtCallView *v, const KtCall *before,
                       GsOut *out)
{
    const KtCall *call = v->call;

    kt_fields_pack(call_fields, call, before, out);
    for (unsigned i = 0; i < call->n_args; i++) {
        gs_out_varint(out, v->args[i]);
    }
    gs_out_varint(out, call->n_extra);
    gs_out_bytes(out, v->extra, call->n_extra);
    kt_frame_write_task(t, call->task, before->task, out);
    kt_frame_write_stack(t, call->stack, before->stack, out);
}

static unsigned count(const GByteArray *calls)
{
    unsigned n = 0;

    for (uint64_t at = 0; at < calls->len; n++) {
        at += kt_call_bytes((const KtCall *)(calls->data + at));
    }
    return n;
}

static void write_calls(KtTracer *t, const GByteArray *calls, GsOut *out)
{
    KtCall before = { 0 };

    gs_out_varint(out, count(calls));
    for (uint64_t at = 0; at < calls->len;) {
        const KtCallView v = kt_call_view(calls->data + at);

        write_call(t, &v, &before, out);
        before = *v.call;
        at += kt_call_bytes(v.call);
    }
}

/* Return the number of something that a record names, 0: none. */
typedef uint16_t NumberOf(const KtCallView *v);

static uint16_t point_of(const KtCallView *v)
{
    return v->call->point.v;
}

/* Append the numbers that @calls name to @numbers, each once. */
static void find_numbers(const GByteArray *calls, NumberOf *number_of,
                         GHashTable *seen, GArray *numbers)
{
    for (uint64_t at = 0; at < calls->len;) {
        const KtCallView v = kt_call_view(calls->data + at);
        uint16_t n = number_of(&v);

        if (n && g_hash_table_add(seen, GUINT_TO_POINTER(n))) {
            g_array_append_val(numbers, n);
        }
        at += kt_call_bytes(v.call);
    }
}

/* Return (owned) the numbers that a frame has to define, of uint16_t. */
static GArray *numbers_in(const KtCallBatch *b, NumberOf *number_of)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(gs_number_hash_direct, NULL);
    GArray *numbers = g_array_new(false, false, sizeof(uint16_t));

    find_numbers(b->records, number_of, seen, numbers);
    find_numbers(b->under_way, number_of, seen, numbers);
    return numbers;
}

static void write_point(KtTracer *t, KtPointId id, GsOut *out)
{
    g_autoptr(GBytes) packed =
        kt_point_names_packed(kt_call_points_names(kt_tracer_calls(t)->points),
                              id);
    gsize len = 0;
    const void *bytes = packed ? g_bytes_get_data(packed, &len) : NULL;
    KtPointName name = { .name = "?" };

    kt_call_point_name(t, id, &name);
    gs_out_varint(out, id.v);
    gs_out_text(out, name.name);
    gs_out_text(out, name.module ? name.module : "");
    gs_out_varint(out, len);
    gs_out_bytes(out, bytes, len);
}

static void write_points(KtTracer *t, const KtCallBatch *b, GsOut *out)
{
    g_autoptr(GArray) points = numbers_in(b, point_of);

    gs_out_varint(out, points->len);
    for (unsigned i = 0; i < points->len; i++) {
        write_point(t, (KtPointId) { g_array_index(points, uint16_t, i) }, out);
    }
}

static void write_plans(KtTracer *t, const GArray *plans, GsOut *out)
{
    gs_out_varint(out, plans->len);
    for (unsigned i = 0; i < plans->len; i++) {
        uint16_t id = g_array_index(plans, uint16_t, i);
        const KtDerefPlan *p =
            kt_deref_table_find(kt_tracer_calls(t)->plans, id);
        gsize len = 0;
        const void *bytes = p && p->packed ?
                            g_bytes_get_data(p->packed, &len) : NULL;

        gs_out_varint(out, id);
        gs_out_varint(out, len);
        gs_out_bytes(out, bytes, len);
    }
}

void kt_call_frame_write(KtTracer *t, const KtCallBatch *b, GsOut *out)
{
    g_autoptr(GArray) plans = numbers_in(b, kt_deref_plan_of);

    gs_out_u8(out, b->flags | (plans->len ? KT_CALL_FRAME_DEREFS : 0));
    gs_out_varint(out, b->n_cpus);
    write_points(t, b, out);
    if (plans->len) {
        write_plans(t, plans, out);
    }
    write_calls(t, b->records, out);
    write_calls(t, b->under_way, out);
}

/* ---- reading a frame ---------------------------------------------------- */

static bool read_points(KtTracer *t, GsBytes *in)
{
    KtPointNames *names = kt_call_points_names(kt_tracer_calls(t)->points);
    unsigned n = gs_bytes_varint(in, UINT16_MAX);
    char text[GS_SYMBOL_NAME_MAX + 1], module[MODULE_NAME_MAX + 1];

    for (unsigned i = 0; i < n && !in->failed; i++) {
        KtPointId id = { gs_bytes_varint(in, UINT16_MAX) };
        KtPointName name = { text, NULL };
        const uint8_t *packed;
        size_t len;

        gs_bytes_text(in, text, sizeof(text), "the name of a function");
        gs_bytes_text(in, module, sizeof(module), "the name of a module");
        len = gs_bytes_varint(in, GS_PROTOTYPE_MAX);
        packed = gs_bytes_take(in, len);
        name.module = *module ? module : NULL;
        if (!in->failed) {
            kt_point_names_define(names, id, &name, gs_bytes(packed, len));
        }
    }
    return !in->failed;
}

static bool read_plans(KtTracer *t, GsBytes *in)
{
    unsigned n = gs_bytes_varint(in, UINT16_MAX);

    for (unsigned i = 0; i < n && !in->failed; i++) {
        uint16_t id = gs_bytes_varint(in, UINT16_MAX);
        size_t len = gs_bytes_varint(in, KT_DEREFS_MAX * GS_DEREF_PACKED_MAX);
        const uint8_t *packed = gs_bytes_take(in, len);

        if (!in->failed && len) {
            kt_deref_table_define(kt_tracer_calls(t)->plans, id,
                                  gs_bytes(packed, len));
        }
    }
    return !in->failed;
}

static void append(GByteArray *to, const KtCall *call, const uint64_t *args,
                   const uint8_t *extra)
{
    static const uint8_t pad[8];

    g_byte_array_append(to, (const uint8_t *)call, sizeof(*call));
    g_byte_array_append(to, (const uint8_t *)args, call->n_args * 8u);
    if (call->n_extra) {
        g_byte_array_append(to, extra, call->n_extra);
        g_byte_array_append(to, pad, -call->n_extra & 7u);
    }
}

static void read_call(KtTracer *t, const GsKernel *k, GsBytes *in,
                      KtCall *call, GByteArray *to)
{
    const KtCall before = *call;
    uint64_t args[KT_CALL_ARGS_MAX];
    const uint8_t *extra;

    kt_fields_unpack(call_fields, call, &before, NULL, in);
    call->flags &= FLAGS;
    for (unsigned i = 0; i < call->n_args; i++) {
        args[i] = gs_bytes_varint(in, UINT64_MAX);
    }
    call->n_extra = gs_bytes_varint(in, KT_CALL_EXTRA_MAX);
    extra = gs_bytes_take(in, call->n_extra);
    call->task = kt_frame_read_task(t, in, before.task);
    call->stack = kt_frame_read_stack(t, k, in, before.stack);
    call->era = k ? gs_kernel_era(k, &call->caller, 1).all : GS_ERA_NOW;
    if (!in->failed) {
        append(to, call, args, extra);
    }
}

static bool read_calls(KtTracer *t, const GsKernel *k, GsBytes *in,
                       uint64_t max, GByteArray *to)
{
    uint64_t n = gs_bytes_varint(in, max);
    KtCall call = { 0 };

    for (uint64_t i = 0; i < n && !in->failed; i++) {
        read_call(t, k, in, &call, to);
    }
    return !in->failed;
}

bool kt_call_frame_read(KtTracer *t, const GsKernel *k, GsBytes *in,
                        KtCallBatch *b)
{
    b->flags = gs_bytes_u8(in);
    b->n_cpus = gs_bytes_varint(in, UINT16_MAX);
    return read_points(t, in) &&
           (!(b->flags & KT_CALL_FRAME_DEREFS) || read_plans(t, in)) &&
           read_calls(t, k, in, UINT32_MAX, b->records) &&
           read_calls(t, k, in, KT_CALL_FRAME_OPEN, b->under_way) &&
           !gs_bytes_left(in);
}

/* ---- what is in the journal --------------------------------------------- */

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

/* ---- saving ------------------------------------------------------------- */

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

/* ---- replaying ---------------------------------------------------------- */

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
