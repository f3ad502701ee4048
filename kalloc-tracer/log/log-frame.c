/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frames of log lines: see log-frame.h. */
#include "kalloc-tracer/log/log-frame.h"

#include "kalloc-tracer/base/fields.h"
#include "kalloc-tracer/tracer/frame-ids.h"

#define FLAGS (KT_LOG_SEEN | KT_LOG_CALLER | KT_LOG_CUT)

static const KtField fields[] = {
    KT_DELTA(KtLogLine, number), KT_DELTA(KtLogLine, seq),
    KT_DELTA(KtLogLine, ns), KT_DELTA(KtLogLine, us),
    KT_NUMBER(KtLogLine, lost), KT_NUMBER(KtLogLine, boot),
    KT_NUMBER(KtLogLine, caller), KT_UPTO(KtLogLine, flags, FLAGS, NULL),
    KT_UPTO(KtLogLine, level, 7, NULL), KT_FIXED(KtLogLine, facility, 1),
    KT_NUMBER(KtLogLine, cpu),
    { 0 }
};

/* ---- writing ------------------------------------------------------------- */

static void write_line(KtTracer *t, const KtLogLine *line,
                       const KtLogLine *before, const void *text, GsOut *out)
{
    kt_fields_pack(fields, line, before, out);
    kt_frame_write_task(t, line->task, before->task, out);
    kt_frame_write_stack(t, line->stack, before->stack, out);
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

/* Read one line; @text: (out, borrowed from @in) NULL if it is malformed. */
static KtLogLine read_line(KtTracer *t, const GsKernel *k, GsBytes *in,
                           const KtLogLine *before, const uint8_t **text)
{
    KtLogLine line = { 0 };

    kt_fields_unpack(fields, &line, before, NULL, in);
    line.task = kt_frame_read_task(t, in, before->task);
    line.stack = kt_frame_read_stack(t, k, in, before->stack);
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
