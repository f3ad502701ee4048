/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka export in the monitor: list the formats; and ka report. Called through
 * mc_run().
 *
 * QEMU writes no file that a monitor's user names. So the program ka asks for
 * the sums as JSON, and writes the file (program/ka-export.c).
 */
#include "monitor-cmds/commands/commands.h"

static void list_formats(McOut *out)
{
    for (unsigned i = 0; i < MC_EXPORT__COUNT; i++) {
        const McExportFormat *f = &mc_export_formats[i];

        mc_out_printf(out, "%-12s %s%s", f->name, f->help,
                      mc_export_needs_journal(i) ? "; needs a journal" : "");
    }
}

bool mc_cmd_export(McOut *out, const McArgs *args, GError **errp)
{
    McExportId id;

    if (!args->name) {
        list_formats(out);
        return true;
    }
    if (!mc_parse_format(args->name, &id, errp)) {
        return false;
    }
    return mc_fail_unknown(errp, "export: QEMU writes no files; use the "
                           "program ka: ka -q SOCKET export %s -o FILE",
                           args->name);
}

bool mc_cmd_report(McOut *out, const McArgs *args, GError **errp)
{
    return mc_fail_unknown(errp, "report: QEMU writes no files; use the "
                           "program ka: ka -q SOCKET report -o FILE.html");
}
