/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: any bytes as the snapshot of a tracer.
 *
 * Bit 0 of byte 0 says what the rest is: the stream itself, or the content of a
 * correct stream, so that the fuzzer need not find a valid checksum.
 *
 * Checks: an accepted snapshot, written by the tracer that loaded it, is
 * accepted by another tracer. A refused one leaves the tracer unchanged.
 */
#include "tests/fuzz/fuzz.h"
#include "kalloc-tracer/snapshot/snapshot.h"

static bool load(KtTracer *t, const GByteArray *bytes)
{
    GsBytes b = { bytes->data, bytes->len };
    g_autoptr(GError) err = NULL;
    bool ok = kt_snapshot_load(t, gs_stream_from_bytes, &b, &err);

    if (ok != !err) {
        abort();
    }
    return ok;
}

static GByteArray *save(KtTracer *t)
{
    GByteArray *bytes = g_byte_array_new();

    kt_snapshot_save(t, gs_stream_to_array, bytes);
    return bytes;
}

static GByteArray *input(const uint8_t *data, size_t len)
{
    GByteArray *bytes = g_byte_array_new();
    GsStreamOut *writer;
    GsOut *p;

    if (data[0] & 1) {
        g_byte_array_append(bytes, data + 1, len - 1);
        return bytes;
    }
    writer = gs_stream_out_new(gs_stream_to_array, bytes);
    p = gs_stream_out(writer);
    gs_out_text(p, "ka state");
    gs_out_varint(p, KT_SNAPSHOT_VERSION);
    gs_out_bytes(p, data + 1, len - 1);
    gs_stream_out_end(writer);
    return bytes;
}

static KtTracer *new_tracer(void)
{
    KtConfig config = KT_CONFIG_DEFAULT;

    config.history_bytes = 1 << 16;
    config.max_stacks = 1000;
    return kt_tracer_new(&config, NULL);
}

static void push_some(KtTracer *t)
{
    for (unsigned i = 0; i < 8; i++) {
        kt_tracer_push(t, 0, &(KtEvent) {
            .kind = KT_EV_ALLOC, .va = 4096 * (i % 5), .size = 4096 * i,
            .layer = 1 + i % 5, .us = i });
    }
}

static void assert_same(const GByteArray *a, const GByteArray *b)
{
    if (a->len != b->len || memcmp(a->data, b->data, a->len)) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    g_autoptr(KtTracer) t = new_tracer();
    g_autoptr(KtTracer) again = new_tracer();
    g_autoptr(GByteArray) before = NULL, in = NULL, one = NULL, two = NULL;

    if (!len) {
        return 0;
    }
    in = input(data, len);
    push_some(t);
    before = save(t);
    if (!load(t, in)) {
        two = save(t);
        assert_same(before, two);
        return 0;
    }
    one = save(t);
    if (!load(again, one)) {
        abort();
    }
    push_some(again);
    push_some(t);
    return 0;
}
