/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Events as columns of bytes, and back.
 *
 * Kernels repeat themselves: which stack comes after which, what a stack
 * asks for, which object a cache hands out next. Writer and reader make the
 * same guesses from the events before, and a column holds something only
 * where the guess was wrong. Each run of events begins anew, so that one can
 * be read without those before.
 */
#ifndef KT_JOURNAL_CODE_H
#define KT_JOURNAL_CODE_H

#include "kalloc-tracer/api/kt-types.h"
#include "kalloc-tracer/base/bytes.h"

/** Most events of a run. */
#define KT_RUN_EVENTS 16384
/** Most bytes of a column. */
#define KT_COLUMN_MAX (64 * KT_RUN_EVENTS)

typedef enum KtColumn {
    KT_COL_FLAGS,           /* a byte an event: which guesses were right */
    KT_COL_US,              /* time since the event before, signed */
    KT_COL_STACK,
    KT_COL_SHAPE,           /* number of a shape, 0 for one in KT_COL_NEW */
    KT_COL_NEW,             /* shapes as they come up */
    KT_COL_AGE,             /* how many events ago the address was named */
    KT_COL_VA,              /* from the last address of the cache, signed */
    KT_COL_TASK,
    KT_COL_CPU,
    KT_COL_SEQ,             /* from the one expected, signed */
    KT_COL__COUNT
} KtColumn;

/** KtEventCodec - memory for one run; for one thread at a time. */
typedef struct KtEventCodec KtEventCodec;

KtEventCodec *kt_event_codec_new(void);
void kt_event_codec_free(KtEventCodec *c);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtEventCodec, kt_event_codec_free)

/**
 * kt_event_codec_encode() - a run of events
 * @n: at most KT_RUN_EVENTS
 * @col: (out) emptied, then filled
 */
void kt_event_codec_encode(KtEventCodec *c, const KtEvent *ev, unsigned n,
                           GByteArray *col[KT_COL__COUNT]);
/**
 * kt_event_codec_decode() - the same events
 * @col: untrusted
 * @ev: (out) @n of them
 *
 * Returns: false when the columns do not hold just @n events.
 */
bool kt_event_codec_decode(KtEventCodec *c, KtBytes col[KT_COL__COUNT],
                           unsigned n, KtEvent *ev);

#endif /* KT_JOURNAL_CODE_H */
