/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Definitions: what the ids in events stand for, as bytes: backtraces, tasks,
 * caches. The frame writer writes them; replay/replay-ids.c reads them.
 *
 * Each is written before the first event that names it. A program counter is
 * written once and then named by a number, and a backtrace says how many of its
 * outermost frames it shares with the backtrace before: docs/journal.md has an
 * example. No lock: one thread at a time.
 */
#ifndef KT_DEFINITIONS_H
#define KT_DEFINITIONS_H

#include "guest-symbols/base/bytes.h"
#include "kalloc-tracer/api/kt-event.h"
#include "kalloc-tracer/base/depot.h"
#include "kalloc-tracer/base/tasks-and-caches.h"

/** The first byte of a definition. */
typedef enum KtDefinitionTag {
    KT_DEF_ANEW,            /* numbers of program counters begin anew */
    KT_DEF_STACK,
    KT_DEF_TASK,
    KT_DEF_CACHE,
} KtDefinitionTag;

/** struct KtLastStack - the stack before, which writer and reader remember.
 *  @pc: the program counter that got a number last */
typedef struct KtLastStack {
    uint32_t id;
    uint64_t pc;
    uint64_t frame[KT_MAX_FRAMES];
    unsigned n;
} KtLastStack;

/** kt_last_stack_set() - Remember a stack. */
static inline void kt_last_stack_set(KtLastStack *l, uint32_t id,
                                     const uint64_t *pc, unsigned n)
{
    l->id = id;
    l->n = n;
    memcpy(l->frame, pc, n * sizeof(*pc));
}

typedef struct KtDefinitions KtDefinitions;

/** kt_definitions_new() - make a writer (owned) that has defined nothing yet.
 *  @stacks and @names are borrowed. */
KtDefinitions *kt_definitions_new(const KtDepot *stacks,
                                  const KtTasksCaches *names);
void kt_definitions_free(KtDefinitions *d);
/** kt_definitions_add() - append to @out the definitions of all ids in @ev that
 *  are not defined yet. */
void kt_definitions_add(KtDefinitions *d, const KtEvent *ev, GsOut *out);
/** kt_definitions_reset() - define everything again: what was appended may not
 *  be in the file, or ids mean something else now. */
void kt_definitions_reset(KtDefinitions *d);

#endif /* KT_DEFINITIONS_H */
