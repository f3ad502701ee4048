/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A line of the kernel's log: see log-row.h.
 *
 *     text    <6>[    1.234567] r8169 0000:02:00.0 eth0: link up
 *     ftrace       insmod-6416    [001] .....   805.997615: ka_log: <6>link up
 */
#include "monitor-cmds/output/log-row.h"

#include "monitor-cmds/output/ftrace-text.h"

static const KtLogLine *line_of(const void *row)
{
    return ((const McLogRow *)row)->line;
}

static void put_text(GString *s, const McLogRow *row)
{
    for (size_t i = 0; i < row->line->len; i++) {
        unsigned char c = row->text[i];

        if (c >= 0x20 && c < 0x7f && c != '\\') {
            g_string_append_c(s, c);
        } else {
            g_string_append(s, "\\x");
            mc_put_hex(s, c, 2);
        }
    }
}

void mc_log_row(KtTracer *t, McLogRow *row, char comm[17])
{
    row->has_task = row->line->task.v &&
                    kt_tracer_task(t, row->line->task, &row->pid, comm);
    row->comm = row->has_task ? comm : NULL;
}

static unsigned priority(const KtLogLine *line)
{
    return (unsigned)line->facility << 3 | line->level;
}

static bool knows_caller(const KtLogLine *line, bool cpu)
{
    return line->flags & KT_LOG_CALLER &&
           cpu == !!(line->caller & KT_LOG_CALLER_CPU);
}

/* ---- values -------------------------------------------------------------- */

MC_GETTER(caller)
{
    v->u = line_of(row)->caller & ~KT_LOG_CALLER_CPU;
    return true;
}

static void put_writer(McOut *o, GString *s, const void *of, bool json)
{
    const McLogRow *row = of;
    const KtLogLine *line = row->line;

    if (row->has_task) {
        mc_put_word(s, *row->comm ? row->comm : "-");
        g_string_append_printf(s, "-%u", row->pid);
    } else if (!(line->flags & KT_LOG_CALLER)) {
        g_string_append_c(s, '-');
    } else {
        g_string_append_printf(s, "%c%u", knows_caller(line, true) ? 'C' : 'T',
                               line->caller & ~KT_LOG_CALLER_CPU);
    }
}

MC_GETTER(priority)
{
    v->u = priority(line_of(row));
    return true;
}

/* As record_print_text() of the kernel does it for syslog(2). */
MC_GETTER(time)
{
    uint64_t ns = line_of(row)->ns;

    g_snprintf(v->text, sizeof(v->text), "[%5" PRIu64 ".%06u] ",
               ns / 1000000000, (unsigned)(ns / 1000 % 1000000));
    v->s = v->text;
    return true;
}

static void put_either(McOut *o, GString *s, const void *of, bool json)
{
    const McLogRow *row = of;

    if (json) {
        mc_json_bytes(s, row->text, row->line->len);
    } else {
        put_text(s, row);
    }
}

/* ---- which lines have them ----------------------------------------------- */

MC_WHEN(has_task)
{
    return ((const McLogRow *)row)->has_task;
}

MC_WHEN(is_by_cpu)
{
    return knows_caller(line_of(row), true);
}

MC_WHEN(is_by_pid)
{
    return knows_caller(line_of(row), false);
}

MC_WHEN(has_stack)
{
    return o->stacks;
}

/* ---- the table ----------------------------------------------------------- */

#define L_AS(key_, member_, look_, text_, help_, ...) \
    MC_VIA(key_, McLogRow, line, member_, look_, text_, help_, __VA_ARGS__)
#define L(member_, ...) L_AS(#member_, member_, __VA_ARGS__)

const McObject mc_log_object = MC_LONG_OBJECT("log",
    "ka log, and ka events for lines that a program wrote to /dev/kmsg", false,
    L(number, NUMBER, "% ", "number of the line", .flags = MC_TEXT_V),
    L(boot, NUMBER, NULL, "0, 1 ..., grows with each reset"),
    L(seq, NUMBER, NULL, "the kernel's number of the record"),
    L(lost, NUMBER, NULL, "records before it that were not read"),
    L(ns, NUMBER, NULL, "the kernel's time"),
    L(us, NUMBER, "%us ", "time of the VM's clock", .flags = MC_TEXT_V),
    L_AS("seen", flags, NUMBER, NULL,
         "1 if the line was read when it was stored, so that comm, pid, cpu, "
         "module and us are those of its writer, 0 if us is the time at which "
         "ka read it", .mask = KT_LOG_SEEN),
    MC_COLUMN(McLogRow, comm, TEXT, NULL, "name of the task",
              .when = has_task),
    MC_COLUMN(McLogRow, pid, NUMBER, NULL, "its pid", .when = has_task),
    L(cpu, NUMBER, "cpu=% ", "vCPU", .flags = MC_TEXT_V,
      MC_IF_VIA(McLogRow, line, flags, .mask = KT_LOG_SEEN)),
    MC_GET("caller_cpu", get_caller, NUMBER, NULL,
           "an interrupt that wrote the line, by its CPU",
           .when = is_by_cpu),
    MC_GET("caller_pid", get_caller, NUMBER, NULL,
           "the writer as the kernel stored it", .when = is_by_pid),
    MC_PUT(NULL, put_writer, "task=% ", NULL, .flags = MC_TEXT_V),
    MC_COLUMN(McLogRow, module, WORD, "module=% ", "module that wrote it",
              .flags = MC_TEXT_V | MC_OMIT),
    L(level, NUMBER, NULL, "0 to 7"),
    L(facility, NUMBER, NULL, "0 is the kernel"),
    MC_GET(NULL, get_priority, NUMBER, "<%>", NULL),
    MC_GET(NULL, get_time, TEXT, "%", NULL),
    L_AS("cut", flags, NUMBER, NULL,
         "1 if the text is longer than ka keeps", .mask = KT_LOG_CUT,
         .flags = MC_ZERO | MC_OMIT),
    MC_PUT("text", put_either, "%", "the text"),
    L(stack, FRAMES, " [%]", "with -s: its stack", .when = has_stack));

void mc_print_log(McOut *o, const McLogRow *row)
{
    mc_print(o, &mc_log_object, row);
}

void mc_print_log_event(McOut *o, const McLogRow *row)
{
    g_autoptr(GString) text = g_string_new(NULL);

    g_string_append_printf(text, "%12" PRIu64 "us log    <%u>",
                           row->line->us, priority(row->line));
    put_text(text, row);
    mc_print_line(o, &mc_log_object, row, text->str);
}

/* ---- ftrace -------------------------------------------------------------- */

void mc_ftrace_log(McOut *o, const McLogRow *row)
{
    const KtLogLine *line = row->line;
    const char flags[] = { '.', '.', knows_caller(line, true) ? 'h' : '.', '.',
                           '.', 0 };
    bool cpu_known = line->caller & KT_LOG_CALLER_CPU;

    mc_ftrace_begin(o->line, row->comm,
                    row->has_task ? row->pid : cpu_known ? 0 : line->caller,
                    line->flags & KT_LOG_SEEN ? line->cpu :
                    cpu_known ? line->caller & ~KT_LOG_CALLER_CPU : 0,
                    flags, line->us);
    g_string_append_printf(o->line, "ka_log: <%u>", priority(line));
    put_text(o->line, row);
    if (row->module) {
        g_string_append(o->line, " [");
        mc_put_word(o->line, row->module);
        g_string_append_c(o->line, ']');
    }
    mc_out_end_line(o);
}
