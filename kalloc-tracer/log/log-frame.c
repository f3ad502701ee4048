/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frames of log lines: see log-frame.h. */
#include "kalloc-tracer/log/log-frame.h"

#include <string.h>

#define COMM 16

/* How a task or stack is written. */
enum { ID_UNKNOWN, ID_SAME, ID_NEW };

#define FLAGS (KT_LOG_SEEN | KT_LOG_CALLER | KT_LOG_CUT)

/* ---- writing ------------------------------------------------------------- */

static void write_task(KtTracer *t, KtTaskId id, KtTaskId before, GsOut *out)
{
    uint32_t pid;
    char comm[COMM + 1];

    if (id.v && id.v == before.v) {
        gs_out_u8(out, ID_SAME);
    } else if (id.v && kt_tracer_task(t, id, &pid, comm)) {
        gs_out_u8(out, ID_NEW);
        gs_out_varint(out, pid);
        gs_out_bytes(out, comm, COMM);
    } else {
        gs_out_u8(out, ID_UNKNOWN);
    }
}

static void write_stack(KtTracer *t, KtStackId id, KtStackId before,
                        GsOut *out)
{
    GsStop stop = 0;
    unsigned n = 0;
    const uint64_t *pc = id.v ? kt_tracer_stack(t, id, &n, &stop) : NULL;

    if (!pc || !n) {
        gs_out_u8(out, ID_UNKNOWN);
        return;
    }
    if (id.v == before.v) {
        gs_out_u8(out, ID_SAME);
        return;
    }
    gs_out_u8(out, ID_NEW);
    gs_out_u8(out, stop);
    gs_out_varint(out, n);
    for (unsigned i = 0; i < n; i++) {
        gs_out_step(out, i ? pc[i - 1] : 0, pc[i]);
    }
}

static void write_line(KtTracer *t, const KtLogLine *line,
                       const KtLogLine *before, const void *text, GsOut *out)
{
    gs_out_step(out, before->number, line->number);
    gs_out_step(out, before->seq, line->seq);
    gs_out_step(out, before->ns, line->ns);
    gs_out_step(out, before->us, line->us);
    gs_out_varint(out, line->lost);
    gs_out_varint(out, line->boot);
    gs_out_varint(out, line->caller);
    gs_out_u8(out, line->flags);
    gs_out_u8(out, line->level);
    gs_out_u8(out, line->facility);
    gs_out_varint(out, line->cpu);
    write_task(t, line->task, before->task, out);
    write_stack(t, line->stack, before->stack, out);
    gs_out_varint(out, line->len);
    gs_out_bytes(out, text, line->len);
}

void kt_log_frame_write(KtTracer *t, const KtLogBatch *b, GsOut *out)
{
    KtLogLine before = { 0 };
    size_t at = 0;

    gs_out_varint(out, b->line->len);
    for (unsigned i = 0; i < b->line->len; i++) {
        const KtLogLine *line = &g_array_index(b->line, KtLogLine, i);

        write_line(t, line, &before, b->text->data + at, out);
        at += line->len;
        before = *line;
    }
}

/* ---- reading ------------------------------------------------------------- */

static KtTaskId read_task(KtTracer *t, GsBytes *in, KtTaskId before)
{
    unsigned how = gs_bytes_varint(in, ID_NEW);
    char comm[COMM];
    uint32_t pid;

    if (how != ID_NEW) {
        return how == ID_SAME ? before : (KtTaskId) { 0 };
    }
    pid = gs_bytes_varint(in, UINT32_MAX);
    gs_bytes_copy(in, comm, sizeof(comm));
    return in->failed ? before : kt_tracer_intern_task(t, pid, comm);
}

static KtStackId read_stack(KtTracer *t, const GsKernel *k, GsBytes *in,
                            KtStackId before)
{
    unsigned how = gs_bytes_varint(in, ID_NEW);
    uint64_t pc[KT_MAX_FRAMES];
    GsStop stop;
    unsigned n;

    if (how != ID_NEW) {
        return how == ID_SAME ? before : (KtStackId) { 0 };
    }
    stop = gs_bytes_varint(in, GS_STOP__COUNT - 1);
    n = gs_bytes_varint(in, KT_MAX_FRAMES);
    for (unsigned i = 0; i < n; i++) {
        pc[i] = gs_bytes_step(in, i ? pc[i - 1] : 0);
    }
    if (in->failed) {
        return before;
    }
    return k ? kt_tracer_intern_stack_of(t, pc, n, stop,
                                         gs_kernel_era(k, pc, n)) :
               kt_tracer_intern_stack(t, pc, n, stop);
}

/* Read one line; @text: (out, borrowed from @in) NULL if it is malformed. */
static KtLogLine read_line(KtTracer *t, const GsKernel *k, GsBytes *in,
                           const KtLogLine *before, const uint8_t **text)
{
    KtLogLine line = { .number = gs_bytes_step(in, before->number) };

    line.seq = gs_bytes_step(in, before->seq);
    line.ns = gs_bytes_step(in, before->ns);
    line.us = gs_bytes_step(in, before->us);
    line.lost = gs_bytes_varint(in, UINT64_MAX);
    line.boot = gs_bytes_varint(in, UINT32_MAX);
    line.caller = gs_bytes_varint(in, UINT32_MAX);
    line.flags = gs_bytes_varint(in, FLAGS);
    line.level = gs_bytes_varint(in, 7);
    line.facility = gs_bytes_u8(in);
    line.cpu = gs_bytes_varint(in, UINT16_MAX);
    line.task = read_task(t, in, before->task);
    line.stack = read_stack(t, k, in, before->stack);
    line.len = gs_bytes_varint(in, KT_LOG_TEXT_MAX);
    *text = gs_bytes_take(in, line.len);
    return line;
}

bool kt_log_frame_read(KtTracer *t, const GsKernel *k, GsBytes *in,
                       KtLogBatch *b)
{
    uint64_t n = gs_bytes_varint(in, KT_LOG_FRAME_LINES);
    KtLogLine before = { 0 };

    g_array_set_size(b->line, 0);
    g_byte_array_set_size(b->text, 0);
    for (uint64_t i = 0; i < n; i++) {
        const uint8_t *text;
        KtLogLine line = read_line(t, k, in, &before, &text);

        if (in->failed) {
            return false;
        }
        g_array_append_val(b->line, line);
        g_byte_array_append(b->text, text, line.len);
        before = line;
    }
    return !in->failed;
}
