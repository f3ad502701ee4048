/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Calls as the text of ftrace, and as JSON of Chrome's trace viewer: whole
 * listings, for other programs. On the thread of one command; no locks.
 */
#ifndef MC_FORMAT_CALLS_H
#define MC_FORMAT_CALLS_H

#include "monitor-cmds/output/calls-text.h"

/** struct McCallList - the calls of a listing, in the order of their entries.
 *  @rows: of McCallRow. @written: records that were made, also those that are
 *  not kept. @n_cpus: vCPUs. @goes_on: a part behind the first, without
 *  head */
typedef struct McCallList {
    const GArray *rows;
    uint64_t written;
    unsigned n_cpus;
    bool goes_on;
} McCallList;

/** mc_calls_as_ftrace() - print each entry and each return as a line, by
 *  time */
void mc_calls_as_ftrace(McOut *o, const McCallList *list);
/** mc_calls_as_chrome() - print an array of trace events */
void mc_calls_as_chrome(McOut *o, const McCallList *list);

#endif /* MC_FORMAT_CALLS_H */
