/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Objects of the kernel that belong to a row: of ka task, ka files and ka mod.
 * On the thread of the command. */
#ifndef MC_OBJECT_ROW_H
#define MC_OBJECT_ROW_H

#include "monitor-cmds/output/row.h"

/** mc_object_print_block() - print an object that belongs to what was printed
 *  before: its name, and the line of the block at @va. If there is no block,
 *  print what else is known of @va. */
void mc_object_print_block(McOut *out, const char *name, uint64_t va);
extern const McObject mc_part_object, mc_no_block_object;

#endif /* MC_OBJECT_ROW_H */
