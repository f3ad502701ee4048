/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Definitions: what the ids in events stand for, as bytes: backtraces, tasks,
 * caches.
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

/* ---- writing ------------------------------------------------------------ */

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

/* ---- reading ------------------------------------------------------------ */

/** struct KtDefinitionsOps - called for each definition that is read. Ids are
 *  the file's; bytes are checked. Return false if there is no room for it */
typedef struct KtDefinitionsOps {
    bool (*stack)(void *opaque, uint32_t id, const uint64_t *pc, unsigned n,
                  GsStop stop);
    bool (*task)(void *opaque, uint32_t id, uint32_t pid,
                 const char comm[KT_COMM_LEN]);
    bool (*cache)(void *opaque, uint16_t id, const KtCacheInfo *info);
} KtDefinitionsOps;

typedef struct KtDefinitionsReader KtDefinitionsReader;

KtDefinitionsReader *kt_definitions_reader_new(const KtDefinitionsOps *ops,
                                               void *opaque);
void kt_definitions_reader_free(KtDefinitionsReader *r);
/** kt_definitions_read() - read the definitions of a frame; return false if
 *  they are malformed. */
bool kt_definitions_read(KtDefinitionsReader *r, GsBytes *in);

#endif /* KT_DEFINITIONS_H */
