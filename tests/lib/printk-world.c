/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A log of printk records that is followed: see printk-world.h. */
#include "tests/lib/printk-world.h"

#include <string.h>

void printk_world_init_of(PrintkWorld *x, PrintkWriter *w, bool types)
{
    const KtConfig config = KT_CONFIG_DEFAULT;

    x->w = w;
    pw_kernel_init(&x->k, w, types, NULL);
    x->t = kt_tracer_new(&config, NULL);
    x->log = kt_printk_log_new(&x->k, x->t);
    kt_log_batch_init(&x->batch);
}

void printk_world_init(PrintkWorld *x)
{
    printk_world_init_of(x, pw_new(4, 10, true), true);
}

void printk_world_deinit(PrintkWorld *x)
{
    kt_log_batch_deinit(&x->batch);
    kt_printk_log_free(x->log);
    kt_tracer_free(x->t);
    pw_kernel_deinit(&x->k);
    g_free(x->w);
}

bool printk_world_read(PrintkWorld *x, const KtPrintkWriter *by, uint64_t us)
{
    const GsMem mem = pw_memory(x->w);

    return kt_printk_log_read(x->log, &mem, by, &(KtPrintkNow) { .us = us });
}

uint64_t printk_world_end(PrintkWorld *x)
{
    const GsMem mem = pw_memory(x->w);

    return kt_printk_log_end(x->log, &mem);
}

const char *printk_world_lines(PrintkWorld *x)
{
    static GString *s;
    size_t at = 0;

    s = s ? g_string_truncate(s, 0) : g_string_new(NULL);
    kt_log_read(x->t, 0, 10000, &x->batch);
    for (unsigned i = 0; i < x->batch.line->len; i++) {
        const KtLogLine *line = &g_array_index(x->batch.line, KtLogLine, i);

        g_string_append_printf(s, "%s%u:%.*s", i ? " " : "",
                               (unsigned)line->seq, line->len,
                               (const char *)x->batch.text->data + at);
        at += line->len;
    }
    return s->str;
}

KtLogLine printk_world_line(PrintkWorld *x, unsigned i)
{
    kt_log_read(x->t, 0, 10000, &x->batch);
    g_assert_cmpuint(i, <, x->batch.line->len);
    return g_array_index(x->batch.line, KtLogLine, i);
}

PwRecord printk_by(uint32_t caller, const char *text)
{
    return (PwRecord) { .text = text, .len = strlen(text), .caller = caller,
                        .level = 6 };
}
