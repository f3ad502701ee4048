/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The frame reader: finds the frames of a file, and reads one.
 *
 * For the replay. The file is untrusted: lengths are bounded by the file's size
 * and by limits, and a checksum is compared before bytes are used. No lock:
 * one thread at a time.
 */
#ifndef KT_FRAME_READER_H
#define KT_FRAME_READER_H

#include "kalloc-tracer/journal/journal-format.h"

typedef struct KtFrameReader KtFrameReader;

/**
 * struct KtJournalSpan - how much of the file can be read
 * @good: end of the last whole frame
 * @size: size of the file
 * @ended: it has an index and a tail: the VM ended in order
 * @live_known: @live was read, and its checksum is right
 * @damage: (nullable, owned by the reader) why the bytes after @good cannot be
 *          read
 */
typedef struct KtJournalSpan {
    uint64_t good;
    uint64_t size;
    bool ended;
    bool live_known;
    KtLive live;
    const char *damage;
} KtJournalSpan;

/** struct KtSections - the sections of a frame, unpacked. The memory is reused
 *  for the next frame; kt_sections_clear() frees it */
typedef struct KtSections {
    GByteArray *data[KT_COL__COUNT];
    unsigned n;
} KtSections;

/** kt_frame_reader_open() - open a file and find its frames. Return NULL, with
 *  an error, if it is no journal of this format version. (owned) */
KtFrameReader *kt_frame_reader_open(const char *path, GError **errp);
/** kt_frame_reader_new() - as kt_frame_reader_open(), of an open file; takes
 *  @fd. */
KtFrameReader *kt_frame_reader_new(int fd, const char *name, GError **errp);
void kt_frame_reader_free(KtFrameReader *r);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtFrameReader, kt_frame_reader_free)

const KtHead *kt_frame_reader_head(const KtFrameReader *r);
const KtJournalSpan *kt_frame_reader_span(const KtFrameReader *r);
unsigned kt_frame_reader_n(const KtFrameReader *r);
/** kt_frame_reader_frame() - return the header of frame @i (borrowed). */
const KtFrame *kt_frame_reader_frame(const KtFrameReader *r, unsigned i);
/** kt_frame_reader_load() - read and unpack the sections of frame @i. Return
 *  false if they are damaged. */
bool kt_frame_reader_load(KtFrameReader *r, unsigned i, KtSections *out);
void kt_sections_clear(KtSections *s);

#endif /* KT_FRAME_READER_H */
