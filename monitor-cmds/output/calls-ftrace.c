/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Calls in the text format of ftrace:
 *
 *     TASK-PID     CPU#  |||||   TIMESTAMP  FUNCTION
 *     insmod-6416 [001] .....   805.997615: ka_call: kfree(objp=0xff...) <- ...
 *     insmod-6416 [001] .....   805.997618: ka_ret: kfree 3us <- ...
 *
 * A line of an entry and one of the return, all sorted by time. Flags that are
 * not known are dots.
 */
#include "monitor-cmds/output/format-calls.h"

/* A line: the entry or the return of a row. */
typedef struct Line {
    uint64_t ns;
    const McCallRow *row;
    bool is_return;
} Line;

/* Equal times: returns of earlier calls come first, then entries. */
static gint by_time(gconstpointer pa, gconstpointer pb)
{
    const Line *a = pa, *b = pb;

    if (a->ns != b->ns) {
        return a->ns < b->ns ? -1 : 1;
    }
    if (a->row == b->row) {
        return (int)a->is_return - (int)b->is_return;
    }
    return a->row < b->row ? -1 : 1;
}

static GArray *make_lines(const McCallList *list)
{
    GArray *lines = g_array_new(false, false, sizeof(Line));

    for (unsigned i = 0; i < list->rows->len; i++) {
        const McCallRow *row = &g_array_index(list->rows, McCallRow, i);
        const KtCall *call = row->view.call;
        Line line = { call->start_ns, row, false };

        g_array_append_val(lines, line);
        if (!mc_call_is_mark(row) && !(call->flags & KT_CALL_UNFINISHED)) {
            line = (Line) { call->start_ns + call->took_ns, row, true };
            g_array_append_val(lines, line);
        }
    }
    g_array_sort(lines, by_time);
    return lines;
}

static void put_head(McOut *o, const McCallList *list)
{
    mc_out_printf(o, "# tracer: nop");
    mc_out_printf(o, "#");
    mc_out_printf(o, "# entries-in-buffer/entries-written: %u/%" PRIu64
                  "   #P:%u", list->rows->len, list->written, list->n_cpus);
    mc_out_printf(o, "#");
    mc_out_printf(o, "#                                _-----=> irqs-off");
    mc_out_printf(o, "#                               / _----=> need-resched");
    mc_out_printf(o, "#                              | / _---=> "
                  "hardirq/softirq");
    mc_out_printf(o, "#                              || / _--=> preempt-depth");
    mc_out_printf(o, "#                              ||| / _-=> "
                  "migrate-disable");
    mc_out_printf(o, "#                              |||| /     delay");
    mc_out_printf(o, "#           TASK-PID     CPU#  |||||  TIMESTAMP  "
                  "FUNCTION");
    mc_out_printf(o, "#              | |         |   |||||     |         |");
}

static void begin_line(McOut *o, const Line *line)
{
    const McCallRow *row = line->row;
    const KtCall *call = row->view.call;
    uint64_t us = line->ns / 1000;
    unsigned cpu = line->is_return ? call->return_cpu : call->cpu;

    g_string_append_printf(o->line, "%16s-%-7" PRIu32 " [%03u] .....",
                           row->has_task ? row->comm : "<...>", row->pid, cpu);
    g_string_append_printf(o->line, " %5" PRIu64 ".%06" PRIu64 ": ",
                           us / 1000000, us % 1000000);
}

static void put_mark(McOut *o, const McCallRow *row)
{
    g_autofree char *module = mc_call_mark_module(row);

    g_string_append_printf(o->line, "ka_session: %s %s", module,
                           row->view.call->flags & KT_CALL_BEGIN ? "begins" :
                                                                   "ends");
}

static void put_call(McOut *o, const McCallRow *row)
{
    g_string_append_printf(o->line, "ka_call: %s(", row->name.name);
    mc_put_call_args(o->line, row);
    g_string_append(o->line, ") ");
    mc_put_call_caller(o->line, row);
}

static void put_return(McOut *o, const McCallRow *row)
{
    const KtCall *call = row->view.call;
    g_autoptr(GString) result = g_string_new(NULL);

    g_string_append_printf(o->line, "ka_ret: %s ", row->name.name);
    if (mc_put_call_result(result, row)) {
        g_string_append_printf(o->line, "= %s", result->str);
        mc_put_call_result_derefs(o->line, row);
        g_string_append_c(o->line, ' ');
    }
    if (call->flags & KT_CALL_INJECTED) {
        g_string_append_printf(o->line, "INJECTED rule=%u ", call->rule);
    } else {
        g_string_append_printf(o->line, "%" PRIu64 "us ",
                               call->took_ns / 1000);
    }
    mc_put_call_caller(o->line, row);
}

void mc_calls_as_ftrace(McOut *o, const McCallList *list)
{
    g_autoptr(GArray) lines = make_lines(list);

    if (!list->goes_on) {
        put_head(o, list);
    }
    for (unsigned i = 0; i < lines->len && !o->closed; i++) {
        const Line *line = &g_array_index(lines, Line, i);

        begin_line(o, line);
        if (mc_call_is_mark(line->row)) {
            put_mark(o, line->row);
        } else if (line->is_return) {
            put_return(o, line->row);
        } else {
            put_call(o, line->row);
        }
        mc_out_end_line(o);
    }
}
