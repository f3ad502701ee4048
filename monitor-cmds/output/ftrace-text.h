/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The text of ftrace's file "trace", for programs that read it. Called by the
 * formatters, on the thread of one command.
 */
#ifndef MC_FTRACE_TEXT_H
#define MC_FTRACE_TEXT_H

#include "monitor-cmds/output/format.h"

/** mc_ftrace_header() - print the lines that begin with '#'. @shown of @all
 *  entries follow; @cpus: vCPUs of the VM, 0: unknown */
void mc_ftrace_header(McOut *o, uint64_t shown, uint64_t all, unsigned cpus);

/**
 * mc_ftrace_begin() - append an entry up to the name of its event: task, vCPU,
 * flags, time
 * @comm: (nullable) name of the task, any bytes
 * @flags: five characters, '.' for what is not known
 * @us: time of the VM's clock
 */
void mc_ftrace_begin(GString *s, const char *comm, uint32_t pid, unsigned cpu,
                     const char *flags, uint64_t us);

#endif /* MC_FTRACE_TEXT_H */
