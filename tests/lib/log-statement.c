/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/lib/statements.h"

#include <string.h>

#include "kalloc-tracer/log/log-lines.h"

static void set_writer(KtTracer *t, GHashTable *a, KtLogLine *line)
{
    line->flags |= KT_LOG_SEEN;
    line->task = arg_task(t, a);
    line->cpu = arg_dec(a, "cpu");
    line->stack = arg_stack(t, a);
}

void log_statement(TestWorld *w, GHashTable *a)
{
    KtTracer *t = test_world_tracer(w);
    const char *irq = g_hash_table_lookup(a, "irq");
    KtLogLine line = {
        .seq = arg_dec(a, "seq"), .ns = arg_dec(a, "ns"),
        .us = arg_dec(a, "us"), .lost = arg_dec(a, "lost"),
        .level = arg_dec(a, "level"), .facility = arg_dec(a, "facility"),
        .len = strlen(arg_text(a, "text", "")),
        .flags = KT_LOG_CALLER, .caller = arg_dec(a, "pid"),
    };

    if (irq) {
        line.caller = KT_LOG_CALLER_CPU | arg_dec(a, "irq");
    }
    if (g_hash_table_contains(a, "comm")) {
        set_writer(t, a, &line);
    }
    kt_log_add(t, &line, arg_text(a, "text", ""));
}
