/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What comes between two events: modules that are loaded and unloaded.
 *
 * The vCPU thread that sees it adds a note. Whoever applies events takes the
 * note in its place, and only there it becomes part of the one order that the
 * map, the reports and the journal have in common.
 */
#ifndef KT_NOTES_H
#define KT_NOTES_H

#include "kalloc-tracer/journal/journal-format.h"
#include "kalloc-tracer/kt.h"

typedef struct KtNotes KtNotes;
typedef struct KtModule KtModule;       /* of module-leaks.h */

/** What becomes of a module; KT_NOTE_INHERITED: it came with a VM's state. */
typedef enum KtNoteKind {
    KT_NOTE_LOADED, KT_NOTE_GONE, KT_NOTE_INHERITED
} KtNoteKind;

/**
 * struct KtNote - a module or BPF program comes or goes
 * @after: the place in the queue of the last event before
 * @module: (owned, nullable) what is known of a module
 * @frame: (owned, nullable) for the journal
 */
typedef struct KtNote {
    uint64_t after;
    KtNoteKind kind;
    KtModule *module;
    GByteArray *frame;
} KtNote;

/** kt_notes_new() - (owned) */
KtNotes *kt_notes_new(void);
/** kt_notes_free() - NULL does nothing. */
void kt_notes_free(KtNotes *n);

/** kt_notes_add() - any thread; what @note owns is taken. */
void kt_notes_add(KtNotes *n, const KtNote *note);
/** kt_notes_next() - the place that the next one comes behind, UINT64_MAX
 *  without one; any thread. */
GS_HOT uint64_t kt_notes_next(const KtNotes *n);
/** kt_notes_before() - of the @n events behind @done those that come before
 *  the next one; 0 when it is due, that is, to be taken first. Any thread. */
unsigned kt_notes_before(const KtNotes *notes, uint64_t done, unsigned n);
/** kt_notes_take() - the next one that comes behind @done or earlier, if
 *  there is one; any thread. The caller owns what is in @out. */
bool kt_notes_take(KtNotes *n, uint64_t done, KtNote *out);

#endif /* KT_NOTES_H */
