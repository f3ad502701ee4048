/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writers of ka export: one function a format, see export-formats.def. The
 * program ka calls them on its thread, and moves the file into its place.
 */
#ifndef MC_EXPORT_H
#define MC_EXPORT_H

#include <stdio.h>

#include "monitor-cmds/export/heap-profile.h"
#include "monitor-cmds/output/format.h"

/**
 * struct McExport - what a writer writes; all borrowed
 * @profile: the sums
 * @frames, @value: as the user wants them
 * @diff: the values are differences, and can be negative
 * @journal, @until_us: for formats that need a journal: its path, and the time
 *                      up to which it is read
 * @kernel: (nullable) the kernel of that journal, for names
 */
typedef struct McExport {
    const McHeapProfile *profile;
    const char *journal;
    uint64_t until_us;
    const GsKernel *kernel;
    McFrames frames;
    McTopId value;
    bool diff;
} McExport;

/**
 * McExportFn - write an export
 * @to: errors of its writes are seen by the caller (ferror())
 * @errp: one line: why this cannot be written in the format
 */
typedef bool McExportFn(const McExport *e, FILE *to, GError **errp);

/* The functions of the rows: mc_export_folded() and so on. */
#define MC_EXPORT(id, name, suffix, kind, needs, write, help) \
    McExportFn write;
#include "monitor-cmds/table/export-formats.def"
extern McExportFn *const mc_export_functions[MC_EXPORT__COUNT];

#endif /* MC_EXPORT_H */
