/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Journal: every event, in order, appended to a file.
 *
 * The file is a sequence of 64-byte cells; docs/journal.md is its
 * description. No locking: the tracer's lock covers it.
 */
#ifndef KT_JOURNAL_H
#define KT_JOURNAL_H

#include "counters.h"
#include "depot.h"
#include "kt.h"
#include "names.h"

#define KT_JOURNAL_MAGIC    "KAJRNL"
#define KT_JOURNAL_VERSION  1
#define KT_JOURNAL_CELL     64

/** What a cell is: an event's KtEventKind, or one of these. */
typedef enum KtJournalKind {
    KT_JOURNAL_STACK = 0x81,
    KT_JOURNAL_TASK,
    KT_JOURNAL_CACHE,
    KT_JOURNAL_HOOK,
    KT_JOURNAL_RESET,       /* the VM was reset */
    KT_JOURNAL_CLEAR,       /* the map was cleared */
    KT_JOURNAL_COMPLETE,    /* value 1: tracing began before all else */
} KtJournalKind;

/** struct KtJournalHeader - the first cell */
typedef struct KtJournalHeader {
    char magic[6];
    uint16_t version;
    uint32_t header_size;
    uint32_t cell_size;
    uint8_t pad[48];
} KtJournalHeader;
G_STATIC_ASSERT(sizeof(KtJournalHeader) == KT_JOURNAL_CELL);

/**
 * struct KtJournalDef - a cell that is no event; @kind is where an event's is
 * @id: stack, task, cache or hook; value of KT_JOURNAL_COMPLETE
 * @n: frames of a stack, pid of a task, bytes of a cache's or hook's name
 * @u: by kind
 * @more: cells that follow and belong to it: frames, name
 */
typedef struct KtJournalDef {
    uint32_t id;
    uint32_t n;
    union {
        uint64_t stop;
        char comm[16];
        struct {
            uint64_t va;
            uint32_t object_size;
            uint32_t size;
        } cache;
    } u;
    uint8_t pad0[30];
    uint8_t kind;
    uint8_t more;
    uint8_t pad1[8];
} __attribute__((packed)) KtJournalDef;
G_STATIC_ASSERT(sizeof(KtJournalDef) == KT_JOURNAL_CELL);
G_STATIC_ASSERT(offsetof(KtJournalDef, kind) == offsetof(KtEvent, kind));

typedef struct KtJournal KtJournal;

/** kt_journal_open() - (owned) begin a file anew; the rest is borrowed.
 *  @counters: gets KT_CNT_JOURNAL_LOST when writing fails. */
KtJournal *kt_journal_open(const char *path, const KtDepot *stacks,
                           const KtNames *names, KtCounters *counters,
                           GError **errp);
/** kt_journal_close() - write what is buffered and close. */
void kt_journal_close(KtJournal *j);

/** kt_journal_event() - append @ev, and before it what it names first. */
void kt_journal_event(KtJournal *j, const KtEvent *ev);
/** kt_journal_mark() - append a cell of one of the last three kinds. */
void kt_journal_mark(KtJournal *j, KtJournalKind kind, uint32_t value);
/** kt_journal_flush() - write what is buffered. */
void kt_journal_flush(KtJournal *j);

#endif /* KT_JOURNAL_H */
