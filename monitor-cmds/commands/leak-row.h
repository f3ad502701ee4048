/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rows of leaked blocks, and of blocks that a module left behind. Used by ka
 * leak, on its thread; no locks. */
#ifndef MC_LEAK_ROW_H
#define MC_LEAK_ROW_H

#include "monitor-cmds/output/block-row.h"

/**
 * struct McLeakRow - a block that stands for all of its allocation stack
 * @leak: (static, nullable) it is leaked: who refers to it
 * @kept: (static, nullable) it is in use: the kind of memory with a word that
 *        refers to it. @kept_by: this word; @kept_in: what has it
 * @same_stack: other blocks for which the row stands, too; @same_bytes: of all
 * @held: blocks that only those of the row hold
 */
typedef struct McLeakRow {
    McBlockRow b;
    const char *leak;
    const char *kept, *kept_by, *kept_in;
    uint64_t same_stack, same_bytes;
    uint64_t held;
} McLeakRow;

extern const McObject mc_leak_object;
/** mc_print_leak() - print a row; of a leak with its identity */
void mc_print_leak(McOut *out, McLeakRow *row);

#endif /* MC_LEAK_ROW_H */
