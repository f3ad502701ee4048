/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The writers of the rows of export-formats.def. Read-only. */
#include "monitor-cmds/export/export.h"

McExportFn *const mc_export_functions[MC_EXPORT__COUNT] = {
#define MC_EXPORT(id, name, suffix, kind, needs, write, help) \
    [MC_EXPORT_##id] = write,
#include "monitor-cmds/table/export-formats.def"
};
