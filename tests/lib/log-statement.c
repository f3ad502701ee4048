/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/lib/log-statement.h"

#include <string.h>

#include "kalloc-tracer/log/log-lines.h"

static const char *text(GHashTable *a, const char *key)
{
    const char *s = g_hash_table_lookup(a, key);

    return s ? s : "";
}

static uint64_t number(GHashTable *a, const char *key)
{
    return g_ascii_strtoull(text(a, key), NULL, 10);
}

static KtStackId read_stack(KtTracer *t, GHashTable *a)
{
    g_auto(GStrv) words = g_strsplit(text(a, "stack"), ",", KT_MAX_FRAMES);
    uint64_t frames[KT_MAX_FRAMES];
    unsigned n = 0;

    for (; words[n]; n++) {
        frames[n] = g_ascii_strtoull(words[n], NULL, 16);
    }
    return kt_tracer_intern_stack(t, frames, n, GS_STOP_END);
}

static void set_writer(KtTracer *t, GHashTable *a, KtLogLine *line)
{
    char comm[16] = "";

    memcpy(comm, text(a, "comm"), MIN(strlen(text(a, "comm")), sizeof(comm)));
    line->flags |= KT_LOG_SEEN;
    line->task = kt_tracer_intern_task(t, number(a, "pid"), comm);
    line->cpu = number(a, "cpu");
    line->stack = read_stack(t, a);
}

void log_statement(TestWorld *w, GHashTable *a)
{
    KtTracer *t = test_world_tracer(w);
    const char *irq = g_hash_table_lookup(a, "irq");
    KtLogLine line = {
        .seq = number(a, "seq"), .ns = number(a, "ns"), .us = number(a, "us"),
        .lost = number(a, "lost"), .level = number(a, "level"),
        .facility = number(a, "facility"), .len = strlen(text(a, "text")),
        .flags = KT_LOG_CALLER, .caller = number(a, "pid"),
    };

    if (irq) {
        line.caller = KT_LOG_CALLER_CPU | number(a, "irq");
    }
    if (g_hash_table_contains(a, "comm")) {
        set_writer(t, a, &line);
    }
    kt_log_add(t, &line, text(a, "text"));
}
