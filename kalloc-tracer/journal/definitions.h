/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the numbers in events stand for, as bytes: backtraces, tasks, caches.
 *
 * Each is told before the first event that names it. Program counters are
 * numbered as they come up, and a stack says how many of its outer frames
 * are those of the stack before. No locks: one thread at a time.
 */
#ifndef KT_JOURNAL_DEFS_H
#define KT_JOURNAL_DEFS_H

#include "guest-symbols/base/bytes.h"
#include "kalloc-tracer/api/kt-event.h"
#include "kalloc-tracer/base/depot.h"
#include "kalloc-tracer/base/tasks-and-caches.h"

/* ---- writing ------------------------------------------------------------ */

typedef struct KtDefinitions KtDefinitions;

/** kt_definitions_new() - (owned) nothing is defined; both are borrowed. */
KtDefinitions *kt_definitions_new(const KtDepot *stacks,
                                  const KtTasksCaches *names);
void kt_definitions_free(KtDefinitions *d);
/** kt_definitions_add() - append to @out what @ev names first. */
void kt_definitions_add(KtDefinitions *d, const KtEvent *ev, GsOut *out);
/** kt_definitions_reset() - what was appended may not have reached the file,
 *  or means something else now: all is to be told again. */
void kt_definitions_reset(KtDefinitions *d);

/* ---- reading ------------------------------------------------------------ */

/** struct KtDefinitionsOps - takes what is read: the file's numbers, checked
 *  bytes; false: it cannot be kept */
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
/** kt_definitions_read() - all of one frame's; false if they make no sense. */
bool kt_definitions_read(KtDefinitionsReader *r, GsBytes *in);

#endif /* KT_JOURNAL_DEFS_H */
