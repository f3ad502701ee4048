/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Events as columns of bytes, and back.
 *
 * The frame writer encodes, the replay decodes. A column has one field of all
 * events of a frame, or a few that change together. Neighbours in a column
 * are alike, which zstd makes small. Each frame starts anew, so it can be read
 * without the frames before it. No state, no locks: any thread.
 */
#ifndef KT_EVENT_CODEC_H
#define KT_EVENT_CODEC_H

#include "guest-symbols/base/bytes.h"
#include "kalloc-tracer/api/kt-event.h"

/** Most events of a frame. */
#define KT_RUN_EVENTS 16384
/** Most bytes of a column. */
#define KT_COLUMN_MAX (64 * KT_RUN_EVENTS)

/** The columns. Numbers are varints; "difference" means the signed difference
 *  from the event before. */
typedef enum KtColumn {
    KT_COL_US,              /* time: difference */
    KT_COL_CPU,
    KT_COL_SEQ,             /* sequence number less the one expected */
    KT_COL_STACK,           /* id: difference */
    KT_COL_TASK,            /* id */
    KT_COL_CALL,            /* kind, hook, layer, family, flags: a byte each;
                             * cache, gfp and tag << 32, size, actual - size */
    KT_COL_VA,              /* signed difference from the last address with
                             * the same cache or, without cache, layer */
    KT_COL__COUNT
} KtColumn;

/**
 * kt_event_codec_encode() - write @n events as columns
 * @n: at most KT_RUN_EVENTS
 * @col: (out) emptied, then filled
 */
void kt_event_codec_encode(const KtEvent *ev, unsigned n,
                           GByteArray *col[KT_COL__COUNT]);
/**
 * kt_event_codec_decode() - read the same events
 * @col: untrusted
 * @ev: (out) room for @n
 *
 * Returns: false if the columns do not hold exactly @n events, or a number is
 * too large for its field. @ev has undefined contents then.
 */
bool kt_event_codec_decode(GsBytes col[KT_COL__COUNT], unsigned n,
                           KtEvent *ev);

#endif /* KT_EVENT_CODEC_H */
