/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The job of a page: what scripts/sweep found in the run, all kinds of findings
 * together, and why the run is not complete. One thread.
 */
#ifndef MC_JOB_H
#define MC_JOB_H

#include "monitor-cmds/report/report-data.h"

/* Cards, and lines of a text, that the page has; others are counted. */
#define MC_JOB_CARDS    500u
#define MC_JOB_LINES    500u

/** struct McJobText - a text of several lines. @line: (unsigned) in the table
 *  of strings; @more: lines that are not there */
typedef struct McJobText {
    GArray *line;
    uint64_t more;
} McJobText;

/** struct McJobCard - a finding; texts are in the table of strings. @hidden:
 *  why it does not fail the build, or "" */
typedef struct McJobCard {
    unsigned name, kind, fold, hidden;
    McJobText text;
} McJobCard;

/**
 * struct McJob - all of it
 * @problem: why the run is not complete, or ""
 * @detail: more about that
 * @card: McJobCard, those that fail the build first
 * @failing, @hidden: how many findings there are, by their names
 * @more: cards beyond the limit
 */
struct McJob {
    unsigned problem;
    McJobText detail;
    GArray *card;
    uint64_t failing, hidden, more;
};

McJob *mc_job_new(McReport *r);
void mc_job_free(McJob *j);
/** mc_job_text() - split a text into lines; @text: untrusted, as
 *  mc_report_text() */
void mc_job_text(McReport *r, McJobText *to, const char *text);
/** mc_job_add() - return (borrowed until the next call) a new card; NULL once
 *  there are enough. The card is counted in @more then. */
McJobCard *mc_job_add(McJob *j);
/** mc_job_summary() - return (owned) the job in one line. It says that nothing
 *  was found only if there is no finding at all and the run is complete. */
char *mc_job_summary(const McReport *r);
/** mc_put_job() - append the member "job"; null without one. */
void mc_put_job(GString *to, const McReport *r);

#endif /* MC_JOB_H */
