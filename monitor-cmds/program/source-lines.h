/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lines of source for frames of stacks: by the kernel's vmlinux and by the
 * files of its modules. A file that does not fit the kernel gives no lines.
 *
 * Names and addresses are the guest's, and not trusted. One thread.
 */
#ifndef MC_SOURCE_LINES_H
#define MC_SOURCE_LINES_H

#include "monitor-cmds/program/source-file.h"

typedef struct KaLines KaLines;

/**
 * struct KaLinesFiles - where debug information is; borrowed
 * @vmlinux: (nullable) a file, or "auto": the usual places
 * @modules: (nullable) a folder of modules; NULL: the usual place, if it exists
 * @inlines: inlined functions are frames of their own
 */
typedef struct KaLinesFiles {
    const char *vmlinux;
    const char *modules;
    bool inlines;
} KaLinesFiles;

/**
 * ka_lines_open() - open the files for a kernel
 * @stat, @base: answers to `ka stat -j` and `ka base -v -j`, which say what
 *               kernel it is, and where
 *
 * Returns: (owned) NULL if there are no lines; one line on stderr says why.
 */
KaLines *ka_lines_open(const KaLinesFiles *files, const char *stat,
                       const char *base);
void ka_lines_free(KaLines *l);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KaLines, ka_lines_free)

/** ka_lines_inlines() - return @inlines of the files */
bool ka_lines_inlines(const KaLines *l);
/** ka_lines_learn() - compare the place of a module's frame with its file.
 *  Call this for all frames of an answer before the first ka_lines_find():
 *  the file of a module of which one frame is elsewhere gives no lines. */
void ka_lines_learn(KaLines *l, const char *symbol, uint64_t at);
/**
 * ka_lines_find() - find the lines of a frame
 * @symbol: as ka prints it, function+0xoff[module]
 * @at: the address that --pc adds to it
 *
 * Returns: (borrowed) array of KaPlace: functions that are inlined there, the
 * innermost first, and last the frame's own function. NULL if no line of that
 * one is known.
 */
const GArray *ka_lines_find(KaLines *l, const char *symbol, uint64_t at);

#endif /* MC_SOURCE_LINES_H */
