/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ftrace's text: see ftrace-text.h, and trace_default_header() and
 * trace_print_context() in Linux.
 */
#include "monitor-cmds/output/ftrace-text.h"

#include <string.h>

void mc_ftrace_header(McOut *o, uint64_t shown, uint64_t all, unsigned cpus)
{
    mc_out_printf(o, "# tracer: nop");
    mc_out_printf(o, "#");
    mc_out_printf(o, "# entries-in-buffer/entries-written: %" PRIu64 "/%"
                  PRIu64 "   #P:%u", shown, all, cpus);
    mc_out_printf(o, "#");
    mc_out_text(o,
        "#                                _-----=> irqs-off/BH-disabled\n"
        "#                               / _----=> need-resched\n"
        "#                              | / _---=> hardirq/softirq\n"
        "#                              || / _--=> preempt-depth\n"
        "#                              ||| / _-=> migrate-disable\n"
        "#                              |||| /     delay\n"
        "#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION\n"
        "#              | |         |   |||||     |         |\n");
}

/* Readers find the pid behind the last dash, so any name will do. Control
 * characters are replaced; those of a line are replaced at its end, too. */
static void put_comm(GString *s, const char *comm)
{
    size_t len = strlen(comm);

    for (size_t i = len; i < 16; i++) {
        g_string_append_c(s, ' ');
    }
    for (size_t i = 0; i < len; i++) {
        g_string_append_c(s, g_ascii_isprint(comm[i]) ? comm[i] : '?');
    }
}

void mc_ftrace_begin(GString *s, const char *comm, uint32_t pid, unsigned cpu,
                     const char *flags, uint64_t us)
{
    put_comm(s, comm && *comm ? comm : "<...>");
    g_string_append_printf(s, "-%-7u [%03u] %s %5" PRIu64 ".%06u: ", pid, cpu,
                           flags, us / 1000000, (unsigned)(us % 1000000));
}
