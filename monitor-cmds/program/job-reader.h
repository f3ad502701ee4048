/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The job of a page from the file that scripts/sweep --json writes, which is
 * not trusted. One thread. */
#ifndef MC_JOB_READER_H
#define MC_JOB_READER_H

#include <stdbool.h>

#include "monitor-cmds/report/report-data.h"

/** ka_report_read_job() - set the job of @r. Return false if @path is no such
 *  file; @errp then has one line. */
bool ka_report_read_job(McReport *r, const char *path, GError **errp);

#endif /* MC_JOB_READER_H */
