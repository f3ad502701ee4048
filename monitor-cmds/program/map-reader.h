/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The heap map of a report from an answer of ka, one JSON object a line. The
 * answer is not trusted. One thread. */
#ifndef MC_MAP_READER_H
#define MC_MAP_READER_H

#include "monitor-cmds/report/report-data.h"

/** ka_report_read_map() - read the answer of `ka map -s -j`. */
void ka_report_read_map(McReport *r, const char *answer);

#endif /* MC_MAP_READER_H */
