/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Findings: the errors of a page that have one fold hash, as scripts/sweep
 * groups and names them. One thread.
 */
#ifndef MC_FINDINGS_H
#define MC_FINDINGS_H

#include "monitor-cmds/report/report-data.h"

/** struct McFinding - @name: the title of the first error; with the first
 *  digits of the hash, if findings of other hashes have this title, too. @fold:
 *  in the table of strings; @n: its errors */
typedef struct McFinding {
    unsigned name, fold, n;
} McFinding;

/**
 * mc_report_findings() - (owned) return McFinding, in the order of their first
 *                        errors
 * @of: (out) for each card of the report its finding
 */
GArray *mc_report_findings(McReport *r, unsigned *of);
/** mc_put_findings() - append the findings, and which one each card is of. */
void mc_put_findings(GString *to, McReport *r);

#endif /* MC_FINDINGS_H */
