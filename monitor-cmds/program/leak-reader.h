/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Leaks of a report from answers of ka, one JSON object a line. The answers are
 * not trusted. One thread. */
#ifndef MC_LEAK_READER_H
#define MC_LEAK_READER_H

#include "monitor-cmds/report/leak-groups.h"

/**
 * ka_report_read_scan() - add the leaks of the last scan
 * @answer: of `ka leak list -s -v -j -n N`
 * @journal: the answer is of a journal, which has no memory to scan
 */
void ka_report_read_scan(McReport *r, const char *answer, bool journal);
/** ka_report_read_left() - add what modules left behind, from `ka leak module
 *  -s -v -j -n N`. */
void ka_report_read_left(McReport *r, const char *answer);

#endif /* MC_LEAK_READER_H */
