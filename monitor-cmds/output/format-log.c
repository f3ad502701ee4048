/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A line of the kernel's log in each form. The text is the guest's: no byte of
 * it can end a line, or the value of a JSON key.
 *
 *     text    <6>[    1.234567] r8169 0000:02:00.0 eth0: link up
 *     ftrace       insmod-6416    [001] .....   805.997615: ka_log: <6>link up
 *
 * Called by the formatters and by ka log, on the thread of one command.
 */
#include "monitor-cmds/output/ftrace-text.h"
#include "monitor-cmds/output/json-parts.h"

void mc_put_log_text(GString *s, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = text[i];

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

/* ---- text ---------------------------------------------------------------- */

static void put_task(GString *s, const McLogRow *row)
{
    const KtLogLine *line = row->line;

    if (row->has_task) {
        mc_put_word(s, *row->comm ? row->comm : "-");
        g_string_append_printf(s, "-%u", row->pid);
    } else if (!(line->flags & KT_LOG_CALLER)) {
        g_string_append_c(s, '-');
    } else if (line->caller & KT_LOG_CALLER_CPU) {
        g_string_append_printf(s, "C%u", line->caller & ~KT_LOG_CALLER_CPU);
    } else {
        g_string_append_printf(s, "T%u", line->caller);
    }
}

static void put_details(GString *s, const McLogRow *row)
{
    const KtLogLine *line = row->line;

    g_string_append_printf(s, "%" PRIu64 " %" PRIu64 "us ", line->number,
                           line->us);
    if (line->flags & KT_LOG_SEEN) {
        g_string_append_printf(s, "cpu=%u ", line->cpu);
    }
    g_string_append(s, "task=");
    put_task(s, row);
    if (row->module) {
        g_string_append(s, " module=");
        mc_put_word(s, row->module);
    }
    g_string_append_c(s, ' ');
}

static void put_stack(McOut *o, const KtLogLine *line)
{
    McStack stack = mc_stack(o->ctx->tracer, line->stack);

    g_string_append(o->line, " [");
    for (unsigned i = 0; i < stack.n; i++) {
        McFrame frame = mc_frame(&stack, i);

        if (i) {
            g_string_append_c(o->line, ' ');
        }
        mc_put_pc(o->line, o->symbols, &frame);
    }
    g_string_append_c(o->line, ']');
}

/* As record_print_text() of the kernel does it for syslog(2). */
void mc_text_log(McOut *o, const McLogRow *row)
{
    const KtLogLine *line = row->line;

    if (o->verbose) {
        put_details(o->line, row);
    }
    g_string_append_printf(o->line, "<%u>[%5" PRIu64 ".%06u] ",
                           priority(line), line->ns / 1000000000,
                           (unsigned)(line->ns / 1000 % 1000000));
    mc_put_log_text(o->line, row->text, line->len);
    if (o->symbols) {
        put_stack(o, line);
    }
    mc_out_end_line(o);
}

void mc_text_log_event(McOut *o, const McLogRow *row)
{
    g_string_append_printf(o->line, "%12" PRIu64 "us log    <%u>",
                           row->line->us, priority(row->line));
    mc_put_log_text(o->line, row->text, row->line->len);
    mc_out_end_line(o);
}

/* ---- ftrace -------------------------------------------------------------- */

static char in_interrupt(const KtLogLine *line)
{
    return line->flags & KT_LOG_CALLER && line->caller & KT_LOG_CALLER_CPU ?
           'h' : '.';
}

void mc_ftrace_log(McOut *o, const McLogRow *row)
{
    const KtLogLine *line = row->line;
    const char flags[] = { '.', '.', in_interrupt(line), '.', '.', 0 };
    bool cpu_known = line->caller & KT_LOG_CALLER_CPU;

    mc_ftrace_begin(o->line, row->comm,
                    row->has_task ? row->pid : cpu_known ? 0 : line->caller,
                    line->flags & KT_LOG_SEEN ? line->cpu :
                    cpu_known ? line->caller & ~KT_LOG_CALLER_CPU : 0,
                    flags, line->us);
    g_string_append_printf(o->line, "ka_log: <%u>", priority(line));
    mc_put_log_text(o->line, row->text, line->len);
    if (row->module) {
        g_string_append(o->line, " [");
        mc_put_word(o->line, row->module);
        g_string_append_c(o->line, ']');
    }
    mc_out_end_line(o);
}

/* ---- JSON ---------------------------------------------------------------- */

static void put_writer(GString *s, const McLogRow *row)
{
    const KtLogLine *line = row->line;

    if (row->has_task) {
        mc_json_text(s, "comm", row->comm);
        mc_json_number(s, "pid", row->pid);
    }
    if (line->flags & KT_LOG_SEEN) {
        mc_json_number(s, "cpu", line->cpu);
    }
    if (line->flags & KT_LOG_CALLER) {
        bool cpu = line->caller & KT_LOG_CALLER_CPU;

        mc_json_number(s, cpu ? "caller_cpu" : "caller_pid",
                       line->caller & ~KT_LOG_CALLER_CPU);
    }
    mc_json_text(s, "module", row->module);
}

static void put_json_stack(McOut *o, const KtLogLine *line)
{
    McStack stack = mc_stack(o->ctx->tracer, line->stack);
    g_autoptr(GString) names = g_string_new(NULL);

    for (unsigned i = 0; i < stack.n; i++) {
        McFrame frame = mc_frame(&stack, i);

        if (i) {
            g_string_append_c(names, ' ');
        }
        mc_put_pc(names, o->symbols, &frame);
    }
    mc_json_text(o->line, "stack", names->str);
}

void mc_json_log(McOut *o, const McLogRow *row)
{
    const KtLogLine *line = row->line;
    GString *s = o->line;

    mc_json_begin(o, MC_OBJ_LOG);
    mc_json_number(s, "number", line->number);
    mc_json_number(s, "boot", line->boot);
    mc_json_number(s, "seq", line->seq);
    mc_json_number(s, "lost", line->lost);
    mc_json_number(s, "ns", line->ns);
    mc_json_number(s, "us", line->us);
    mc_json_number(s, "seen", line->flags & KT_LOG_SEEN ? 1 : 0);
    put_writer(s, row);
    mc_json_number(s, "level", line->level);
    mc_json_number(s, "facility", line->facility);
    if (line->flags & KT_LOG_CUT) {
        mc_json_number(s, "cut", 1);
    }
    mc_json_key(s, "text");
    mc_json_bytes(s, row->text, line->len);
    if (o->symbols) {
        put_json_stack(o, line);
    }
    mc_json_end(o);
}
