/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Leaks of a page: the lines of ka leak list and ka leak module. A group is one
 * line: blocks of one allocation stack. One thread.
 */
#ifndef MC_LEAK_GROUPS_H
#define MC_LEAK_GROUPS_H

#include "monitor-cmds/report/report-data.h"

/* Groups that the page has; others are counted. Half of them are asked for of
 * the scan, half of modules. */
#define MC_REPORT_GROUPS    1000u

/**
 * struct McLeakGroup - a group; texts are numbers in the table of strings
 * @module: number of the module that left it, plus 1; 0: of the scan
 * @state: what refers to it, in words
 * @block, @address: the newest block
 * @n, @bytes: blocks of the group, and their requested bytes; @bytes_known
 * @held: further blocks that only these hold
 * @alloc: where the newest block was allocated
 * @weak: the hashes are of a part of the stack. Without title and hashes if the
 *        group is no leak for sure
 */
typedef struct McLeakGroup {
    unsigned module, state, title, fold, exact, block, address;
    uint64_t n, bytes, held;
    bool bytes_known, weak;
    McCardPart alloc;
} McLeakGroup;

/** The sums of a module's report. */
typedef enum McLeftId {
    MC_LEFT_unloaded_us, MC_LEFT_blocks, MC_LEFT_bytes, MC_LEFT_withdrawn,
    MC_LEFT_leaked, MC_LEFT_leaked_bytes, MC_LEFT_kept, MC_LEFT_kept_bytes,
    MC_LEFT_bad_frees, MC_LEFT_unsure, MC_LEFT_not_listed,
    MC_LEFT__COUNT
} McLeftId;
/** mc_left_key() - return (static) the key of ka leak module -j. */
const char *mc_left_key(McLeftId id);

/** struct McLeftModule - a module that was unloaded. @known: one bit for each
 *  value */
typedef struct McLeftModule {
    unsigned name;
    uint32_t known;
    int64_t value[MC_LEFT__COUNT];
} McLeftModule;

/**
 * struct McLeakGroups - all of it
 * @scan: what the last scan says, or why there is none: in the table of
 *        strings
 * @scanned: there was a scan
 * @leaks, @stacks, @bytes, @us: the sums of the scan, and its time
 * @group: McLeakGroup
 * @module: McLeftModule
 * @more: groups beyond the limit
 */
struct McLeakGroups {
    unsigned scan;
    bool scanned;
    int64_t leaks, stacks, bytes, us;
    GArray *group;
    GArray *module;
    uint64_t more;
};

McLeakGroups *mc_leak_groups_new(void);
void mc_leak_groups_free(McLeakGroups *l);
/** mc_leak_groups_add() - return (borrowed until the next call) a new group;
 *  NULL once there are enough. The group is counted. */
McLeakGroup *mc_leak_groups_add(McLeakGroups *l);
/** mc_put_leaks() - append the member "leaks". */
void mc_put_leaks(GString *to, const McLeakGroups *l);

#endif /* MC_LEAK_GROUPS_H */
