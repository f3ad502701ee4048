/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The tables of two runs, joined by the names of their rows:
 *
 *     this run            base                joined
 *     f 64                f 32   g 8          f 64 32    g 0 8
 *
 * One thread.
 */
#ifndef MC_JOINED_TABLES_H
#define MC_JOINED_TABLES_H

#include "monitor-cmds/report/report-data.h"

/** struct McJoinedRow - @in: bit 0: the run has it, bit 1: its base has it;
 *  @value: of the run and of its base */
typedef struct McJoinedRow {
    unsigned name, in;
    int64_t value[2][MC_TOP__COUNT];
} McJoinedRow;

/** mc_join_tables() - join the rows of two runs by their names. Rows are sorted
 *  by the difference of live bytes, then of allocated bytes; the largest is
 *  first. Returns: (owned) McJoinedRow. */
GArray *mc_join_tables(const McReportTable *run, const McReportTable *base,
                       const McStrings *strings);
/** mc_put_joined_tables() - append the tables of @r and its base as a member of
 *  JSON. */
void mc_put_joined_tables(GString *to, const McReport *r);

#endif /* MC_JOINED_TABLES_H */
