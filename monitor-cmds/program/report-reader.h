/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tables and errors of a report from answers of ka, one JSON object a line. The
 * answers are not trusted. One thread. */
#ifndef MC_REPORT_READER_H
#define MC_REPORT_READER_H

#include "monitor-cmds/report/report-data.h"

/** ka_report_read_table() - add a table; @by: (static); @answer: of `ka top
 *  --by @by -j -n 0` */
void ka_report_read_table(McReport *r, const char *by, const char *answer);
/** ka_report_read_errors() - add cards from `ka error -s -v -j -n N`. */
void ka_report_read_errors(McReport *r, const char *answer);

#endif /* MC_REPORT_READER_H */
