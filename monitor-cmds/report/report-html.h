/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The page of ka report. One thread. */
#ifndef MC_REPORT_HTML_H
#define MC_REPORT_HTML_H

#include <stdio.h>

#include "monitor-cmds/report/report-data.h"

/* Rows of the table for readers without scripts. */
#define MC_REPORT_PLAIN_ROWS    50u

/** mc_write_report() - write the page; errors of writes are seen by the caller
 *  (ferror()). */
void mc_write_report(McReport *r, FILE *to);

#endif /* MC_REPORT_HTML_H */
