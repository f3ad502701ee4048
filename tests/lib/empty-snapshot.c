/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/lib/empty-snapshot.h"

typedef struct EmptySnapshot {
    KtTracer *t;
    KtSnapshot *saved;
} EmptySnapshot;

static EmptySnapshot empty_snapshot(void)
{
    const KtConfig config = KT_CONFIG_DEFAULT;
    EmptySnapshot e = { .t = kt_tracer_new(&config, NULL) };
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    g_autoptr(GsStreamIn) reader = NULL;
    GsBytes *u;
    GsBytes in;

    kt_snapshot_save(e.t, gs_stream_to_array, bytes);
    in = (GsBytes) { bytes->data, bytes->len };
    reader = gs_stream_in_new(gs_stream_from_bytes, &in, KT_SNAPSHOT_MAX_BYTES);
    u = gs_stream_in(reader);
    e.saved = kt_snapshot_unpack(e.t, u);
    g_assert_true(gs_stream_in_end(reader, NULL));
    return e;
}

static void empty_snapshot_clear(EmptySnapshot *e)
{
    kt_snapshot_free(e->saved);
    kt_tracer_free(e->t);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(EmptySnapshot, empty_snapshot_clear)

bool unpack_part(UnpackPart *fn, void *part, const GByteArray *bytes,
                 GError **errp)
{
    g_auto(EmptySnapshot) state = empty_snapshot();
    GsBytes in = { bytes->data, bytes->len };
    g_autoptr(GsStreamIn) reader =
        gs_stream_in_new(gs_stream_from_bytes, &in, 1 << 20);
    GsBytes *u = gs_stream_in(reader);
    const KtIdMap ids = kt_snapshot_ids(state.saved);

    fn(part, u, &ids);
    return gs_stream_in_end(reader, errp);
}

void check_most(UnpackPart *fn, void *part, uint64_t most, const char *too_many)
{
    for (uint64_t n = most; n <= most + 1; n++) {
        g_autoptr(GByteArray) bytes = g_byte_array_new();
        GsStreamOut *writer = gs_stream_out_new(gs_stream_to_array, bytes);
        GsOut *p = gs_stream_out(writer);
        g_autoptr(GError) err = NULL;

        gs_out_varint(p, n);
        gs_stream_out_end(writer);
        g_assert_false(unpack_part(fn, part, bytes, &err));
        g_assert_cmpstr(err->message, ==, n == most ? "it ends too early" :
                                                      too_many);
    }
}
