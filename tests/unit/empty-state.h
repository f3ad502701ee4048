/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A state that says nothing but which hooks its numbers mean. */
#ifndef TEST_EMPTY_STATE_H
#define TEST_EMPTY_STATE_H

#include "state.h"

typedef struct EmptyState {
    KtTracer *t;
    KtSaved *saved;
} EmptyState;

static EmptyState empty_state(void)
{
    const KtConfig config = KT_CONFIG_DEFAULT;
    EmptyState e = { .t = kt_tracer_new(&config, NULL) };
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    g_autoptr(GsUnpack) u = NULL;
    GsBytes in;

    kt_state_save(e.t, gs_pack_to_bytes, bytes);
    in = (GsBytes) { bytes->data, bytes->len };
    u = gs_unpack_new(gs_unpack_from_bytes, &in, KT_STATE_MAX_BYTES);
    e.saved = kt_state_unpack(e.t, u);
    g_assert_true(gs_unpack_end(u, NULL));
    return e;
}

static void empty_state_clear(EmptyState *e)
{
    kt_state_free(e->saved);
    kt_tracer_free(e->t);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(EmptyState, empty_state_clear)

#endif /* TEST_EMPTY_STATE_H */
