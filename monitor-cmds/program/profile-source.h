/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where ka export and ka report get their answers: they run commands of ka on
 * a journal or in a running VM, and make a heap profile (sums of memory by
 * stack, McHeapProfile) of them. One thread.
 */
#ifndef MC_PROFILE_SOURCE_H
#define MC_PROFILE_SOURCE_H

#include "monitor-cmds/export/heap-profile.h"
#include "monitor-cmds/program/ka.h"

/**
 * struct KaSource - where answers come from; paths are borrowed
 * @file, @until_us: a journal, and the time up to which it is read
 * @socket: of a running VM; @file or @socket is set
 * @replay: (owned) the journal that was read; NULL: a VM
 */
typedef struct KaSource {
    const char *file;
    const char *socket;
    uint64_t until_us;
    KtReplay *replay;
} KaSource;

/** ka_source_open() - read the journal; nothing of a VM. Return false after an
 *  error, which is printed. */
bool ka_source_open(KaSource *s);
void ka_source_close(KaSource *s);
/** ka_source_kernel() - return (borrowed, nullable) the kernel of the journal,
 *  if its addresses are known */
const GsKernel *ka_source_kernel(const KaSource *s);
/** ka_source_query() - run @line; @answer: as for ka_query_file() */
int ka_source_query(const KaSource *s, const char *line, char **answer);
/** ka_source_query_maybe() - run @line, whose answer is not needed. Return
 *  (owned) the answer, or "". */
char *ka_source_query_maybe(const KaSource *s, const char *line);
/** ka_source_lines() - (owned) open the debug information of its kernel; NULL:
 *  stderr says why there are no lines */
KaLines *ka_source_lines(const KaSource *s, const KaLinesFiles *files);
/**
 * ka_source_fill() - fill a profile, and note what is missing in it
 * @query: the line that answers with the sums: ka top or ka diff, with -j
 *
 * Returns: an exit status; an error is printed.
 */
int ka_source_fill(const KaSource *s, const char *query, McHeapProfile *p);

#endif /* MC_PROFILE_SOURCE_H */
