/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The timeline of a page, and sums over time for the interval that a user
 * selects. One thread. */
#ifndef MC_REPORT_TIME_H
#define MC_REPORT_TIME_H

#include "monitor-cmds/report/report-data.h"

/* Cells of all tables together, and steps that are joined no more. */
#define MC_REPORT_CELLS     300000u
#define MC_REPORT_STEPS     8u

/**
 * mc_report_set_time() - give a page its timeline
 * @t, @steps: (owned) of the journal of the page; @steps: nullable: there are
 *             no intervals
 *
 * A journal that a running VM writes can grow while it is read. If the steps
 * have other sums than the page, they are dropped, and a note says so.
 */
void mc_report_set_time(McReport *r, McTimeline *t, McTimeSteps *steps);
/** mc_put_report_time() - append the timeline as a member of JSON, null if
 *  there is none. The trees were put before. */
void mc_put_report_time(GString *to, McReport *r);

#endif /* MC_REPORT_TIME_H */
