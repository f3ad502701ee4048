/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The row of a module that was unloaded, of ka leak module. On the command's
 * thread; no locks. */
#ifndef MC_MODULE_ROW_H
#define MC_MODULE_ROW_H

#include "monitor-cmds/output/row.h"

/**
 * struct McModuleRow - sums of the blocks that a module had not freed
 * @report: (borrowed)
 * @blocks, @bytes: not freed until now
 * @classified: it is known which of them are in use
 * @leaked, @leaked_bytes: of @blocks, those to which nothing in use refers
 * @kept, @kept_bytes: of @blocks, those in use
 * @no_pages: pages of the page allocator were not looked at
 * @withdrawn: freed since
 * @filtered: options exclude some; @matching: number of @blocks that match
 */
typedef struct McModuleRow {
    const KtModuleReport *report;
    uint64_t blocks;
    uint64_t bytes;
    bool classified;
    uint64_t leaked, leaked_bytes;
    uint64_t kept, kept_bytes;
    bool no_pages;
    uint64_t withdrawn;
    uint64_t matching;
    bool filtered;
} McModuleRow;

/** mc_print_module() - print the row */
void mc_print_module(McOut *out, const McModuleRow *m);
extern const McObject mc_module_object;

#endif /* MC_MODULE_ROW_H */
