/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rows of ka top, ka diff and ka mark. On the thread of the command. */
#ifndef MC_TOP_ROW_H
#define MC_TOP_ROW_H

#include "monitor-cmds/output/row.h"
#include "monitor-cmds/table/top-table.h"

/** mc_print_top_head() - choose the widths of the columns for the first @n of
 *  @rows; print headings, and the sum of all rows */
void mc_print_top_head(McOut *out, const McTopTable *table,
                       const GPtrArray *rows, unsigned n);
void mc_print_top_row(McOut *out, const McTopTable *table,
                      const McTopRow *row);
/** mc_print_top_stray() - print frees without an allocation */
void mc_print_top_stray(McOut *out, const KtStray *s, bool by_stack);
void mc_print_top_mark(McOut *out, const KtMarkInfo *p);

extern const McObject mc_top_all_object, mc_top_object;
extern const McObject mc_diff_all_object, mc_diff_object;
extern const McObject mc_stray_object, mc_stray_stack_object, mc_mark_object;

#endif /* MC_TOP_ROW_H */
