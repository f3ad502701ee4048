/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Checkpoint: a snapshot inside the journal, cut into frames of at most
 * KT_MEM_BYTES. See snapshot-internal.h and docs/journal.md.
 */
#include "kalloc-tracer/journal/journal.h"
#include "kalloc-tracer/snapshot/snapshot-internal.h"
#include "kalloc-tracer/tracer/tracer.h"

/* Write one frame: a byte, 1 if more frames follow, then a part of the
 * stream. */
static void part_locked(KtTracer *t, const GByteArray *all, size_t at,
                        size_t len)
{
    GByteArray *data = g_byte_array_new();

    gs_out_u8(&GS_OUT(data), at + len < all->len);
    g_byte_array_append(data, all->data + at, len);
    kt_journal_add_frame(t->journal, KT_FRAME_CHECKPOINT, data);
}

void kt_checkpoint_write(KtTracer *t)
{
    g_autoptr(GByteArray) all = NULL;

    if (!t->journal) {
        return;
    }
    all = g_byte_array_new();
    kt_snapshot_save(t, gs_stream_to_array, all);
    kt_tracer_lock_drained(t);
    for (size_t at = 0; at < all->len; at += KT_MEM_BYTES) {
        part_locked(t, all, at, MIN(KT_MEM_BYTES, all->len - at));
    }
    pthread_mutex_unlock(&t->lock);
}
