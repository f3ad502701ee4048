/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Journals in temporary files: make one, push events to it, read it back.
 * Single-threaded, besides the journal's own writer.
 */
#ifndef JOURNAL_FILES_H
#define JOURNAL_FILES_H

#include "kalloc-tracer/journal/journal.h"
#include "kalloc-tracer/kt.h"
#include "tests/lib/bare-tracer.h"

/** JournalPath - a path in a folder of its own */
typedef char JournalPath;

/** new_path() - make an empty folder. Returns: (owned) a path in it; see
 *  remove_path(). */
JournalPath *new_path(void);

/** remove_path() - remove the file and its folder; frees @path. */
void remove_path(JournalPath *path);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(JournalPath, remove_path)

/** new_tracer() - (owned) a tracer that writes a journal. */
KtTracer *new_tracer(const char *path, GError **errp);

/** read_back() - run the independent reader, journal.py. Returns: (owned) its
 *  output, or its errors if @rc is not 0; NULL if it did not start. */
char *read_back(const char *path, int *rc);

/** said_by_ka() - run `ka -f @path @word`, which must end with 0. Returns:
 *  (owned) what it says on stderr. */
char *said_by_ka(const char *path, const char *word);

/** small_kernel() - (owned) a kernel with three symbols. */
GsKernel *small_kernel(void);

/** save_kernel() - save small_kernel() to the journal. @found: it runs in the
 *  guest, at @slide; else it is a file. */
void save_kernel(KtTracer *t, uint64_t slide, bool found);

/** read_all() - (owned) open a journal and apply all of it. */
KtReplay *read_all(const char *path);

/** push_samples() - push five events, which differ in all members. */
void push_samples(KtTracer *t);

/** put_file() - write a file, without fsync(). */
void put_file(const char *path, const char *data, gsize len);

/** size_of() - the size of a file. */
uint64_t size_of(const char *path);

/** push_resizes() - push @n events with random sizes. */
void push_resizes(KtTracer *t, unsigned n);

/** struct Bare - a journal that is written without a tracer, and what the
 *  writer borrows */
typedef struct Bare {
    KtDepot *stacks;
    KtTasksCaches *names;
    KtHookTable *hooks;
    KtCounters *counters;
    KtJournal *j;
} Bare;

Bare bare_new(const char *path);
void bare_free(Bare *b);

/** read_note() - write a journal with one frame and read it back. @data is
 *  taken. Returns: (owned) the replay. */
KtReplay *read_note(KtFrameKind kind, GByteArray *data);

/** events_in() - how many events a journal contains. */
uint64_t events_in(const char *path);

#endif /* JOURNAL_FILES_H */
