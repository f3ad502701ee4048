/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The reading end of a journal: which frames a file has, and what is in one.
 *
 * Nothing of the file is believed: lengths are bounded by the file and by
 * caps, checksums are looked at before anything else. No locks.
 */
#ifndef KT_JOURNAL_READ_H
#define KT_JOURNAL_READ_H

#include "kalloc-tracer/journal/event-codec.h"
#include "kalloc-tracer/journal/journal-format.h"

typedef struct KtFrameReader KtFrameReader;

/**
 * struct KtJournalSpan - how much of the file is there
 * @good: bytes up to the end of the last whole frame
 * @size: of the file
 * @ended: it has an index and a tail: the VM ended in order
 * @live_known: @live is what was written
 * @damage: (nullable, owned by the reader) why it is not good beyond @good
 */
typedef struct KtJournalSpan {
    uint64_t good;
    uint64_t size;
    bool ended;
    bool live_known;
    KtLive live;
    const char *damage;
} KtJournalSpan;

/** struct KtSections - the payload of a frame, unpacked; kept for the next
 *  frame, freed by kt_sections_clear() */
typedef struct KtSections {
    GByteArray *data[KT_COL__COUNT];
    unsigned n;
} KtSections;

/** kt_frame_reader_open() - (owned) find the frames; fails for what is no
 *  journal of this version. */
KtFrameReader *kt_frame_reader_open(const char *path, GError **errp);
/** kt_frame_reader_new() - the same of an open file, which is taken. */
KtFrameReader *kt_frame_reader_new(int fd, const char *name, GError **errp);
void kt_frame_reader_free(KtFrameReader *r);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtFrameReader, kt_frame_reader_free)

const KtHead *kt_frame_reader_head(const KtFrameReader *r);
const KtJournalSpan *kt_frame_reader_span(const KtFrameReader *r);
unsigned kt_frame_reader_n(const KtFrameReader *r);
/** kt_frame_reader_frame() - (borrowed) the @i-th. */
const KtFrame *kt_frame_reader_frame(const KtFrameReader *r, unsigned i);
/** kt_frame_reader_load() - its payload; false if it is damaged. */
bool kt_frame_reader_load(KtFrameReader *r, unsigned i, KtSections *out);
void kt_sections_clear(KtSections *s);

#endif /* KT_JOURNAL_READ_H */
