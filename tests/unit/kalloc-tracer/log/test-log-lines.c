/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lines of the kernel's log: they are read back in order and in batches, the
 * oldest are evicted and counted, a reset keeps them and a snapshot does not.
 * A frame of the journal has the same lines, and a damaged one none.
 */
#include "kalloc-tracer/log/log-lines.h"

#include <string.h>

#include "kalloc-tracer/tracer/tracer.h"
#include "tests/lib/bare-tracer.h"
#include "tests/lib/test-main.h"

static uint64_t add(KtTracer *t, uint64_t seq, const char *text)
{
    return kt_log_add(t, &(KtLogLine) { .seq = seq, .len = strlen(text) },
                      text);
}

TEST(test_batches, "/log-lines/batches")
{
    g_autoptr(KtTracer) t = bare_tracer(0);
    KtLogBatch b;
    uint64_t after = 0;
    unsigned n, read = 0;

    kt_log_batch_init(&b);
    g_assert_cmpuint(kt_log_last(t), ==, 0);
    g_assert_cmpuint(kt_log_read(t, 0, 10, &b), ==, 0);
    for (unsigned i = 0; i < 5000; i++) {
        g_autofree char *text = g_strdup_printf("line %u", i);

        g_assert_cmpuint(add(t, i, text), ==, i + 1);
    }
    while ((n = kt_log_read(t, after, 77, &b))) {
        size_t at = 0;

        for (unsigned i = 0; i < n; i++, read++) {
            const KtLogLine *l = &g_array_index(b.line, KtLogLine, i);
            g_autofree char *want = g_strdup_printf("line %u", read);

            g_assert_cmpuint(l->number, ==, read + 1);
            g_assert_cmpuint(l->seq, ==, read);
            g_assert_cmpmem(b.text->data + at, l->len, want, strlen(want));
            at += l->len;
            after = l->number;
        }
        g_assert_cmpuint(at, ==, b.text->len);
    }
    g_assert_cmpuint(read, ==, 5000);
    g_assert_cmpuint(kt_log_read(t, 4999, 10, &b), ==, 1);
    kt_log_batch_deinit(&b);
}

/* The lines stay within their share, and what is left is the newest. */
TEST(test_evicts, "/log-lines/evicts")
{
    g_autoptr(KtTracer) t = bare_tracer(64 << 20);
    g_autofree char *text = g_strnfill(1000, 'x');
    uint64_t n = 20000, first, evicted;
    KtStats stats;
    KtLogBatch b;

    for (uint64_t i = 0; i < n; i++) {
        g_assert_cmpuint(add(t, i, text), ==, i + 1);
    }
    kt_log_batch_init(&b);
    g_assert_cmpuint(kt_log_read(t, 0, 1, &b), ==, 1);
    first = g_array_index(b.line, KtLogLine, 0).number;
    evicted = kt_tracer_counter(t, KT_CNT_LOG_EVICTED);
    g_assert_cmpuint(first, ==, evicted + 1);
    g_assert_cmpuint(evicted, >, n / 2);
    g_assert_cmpuint(evicted, <, n);
    stats = tracer_stats(t);
    g_assert_cmpuint(stats.part_bytes[KT_MEM_LOG], <=, (64 << 20) / 8);
    kt_log_batch_deinit(&b);
}

TEST(test_long_text, "/log-lines/long-text")
{
    g_autoptr(KtTracer) t = bare_tracer(0);
    g_autofree char *text = g_strnfill(KT_LOG_TEXT_MAX, 'x');
    KtLogBatch b;

    kt_log_batch_init(&b);
    for (unsigned i = 0; i < 100; i++) {
        add(t, i, text);
    }
    g_assert_cmpuint(kt_log_read(t, 0, 1000, &b), ==, 100);
    g_assert_cmpuint(b.text->len, ==, 100 * KT_LOG_TEXT_MAX);
    kt_log_batch_deinit(&b);
}

TEST(test_boots, "/log-lines/boots")
{
    g_autoptr(KtTracer) t = bare_tracer(0);
    KtLogBatch b;

    kt_log_batch_init(&b);
    add(t, 0, "first boot");
    kt_tracer_clear(t);
    kt_tracer_reset(t);
    add(t, 0, "second boot");
    g_assert_cmpuint(kt_log_read(t, 0, 10, &b), ==, 2);
    g_assert_cmpuint(g_array_index(b.line, KtLogLine, 0).boot, ==, 0);
    g_assert_cmpuint(g_array_index(b.line, KtLogLine, 1).boot, ==, 1);
    g_assert_cmpuint(g_array_index(b.line, KtLogLine, 1).number, ==, 2);
    kt_log_batch_deinit(&b);
}

TEST(test_writer, "/log-lines/writer")
{
    g_autoptr(KtTracer) t = bare_tracer(0);
    KtLogLine from = { .task = { 7 }, .cpu = 3, .us = 99 }, l;
    KtLogBatch b;

    kt_log_batch_init(&b);
    add(t, 0, "a");
    add(t, 1, "b");
    kt_log_set_writer(t, 1, &from);
    kt_log_set_writer(t, 3, &from);
    kt_log_read(t, 0, 10, &b);
    l = g_array_index(b.line, KtLogLine, 0);
    g_assert_cmpuint(l.flags, ==, KT_LOG_SEEN);
    g_assert_cmpuint(l.cpu, ==, 3);
    g_assert_cmpuint(l.us, ==, 99);
    g_assert_cmpuint(g_array_index(b.line, KtLogLine, 1).flags, ==, 0);
    kt_log_batch_deinit(&b);
}

/* ---- frames -------------------------------------------------------------- */

static void add_rich(KtTracer *t)
{
    const uint64_t pc[] = { 0xffffffff81000100, 0xffffffff81000050 };
    KtLogLine l = {
        .seq = 5, .ns = 1234567890123, .us = 77, .lost = 3,
        .caller = KT_LOG_CALLER_CPU | 2, .cpu = 2, .level = 4, .facility = 1,
        .flags = KT_LOG_SEEN | KT_LOG_CALLER, .len = 4,
        .task = kt_tracer_intern_task(t, 42, "some\xff name\n\0\0\0\0\0"),
        .stack = kt_tracer_intern_stack(t, pc, 2, GS_STOP_END),
    };

    kt_log_add(t, &l, "t\0\n\xff");
    l.seq++;
    kt_log_add(t, &l, "same");
    kt_log_add(t, &(KtLogLine) { .seq = 7, .len = 0 }, "");
}

static GByteArray *frame(KtTracer *t)
{
    GByteArray *out = g_byte_array_new();
    KtLogBatch b;

    kt_log_batch_init(&b);
    kt_log_read(t, 0, 100, &b);
    kt_log_frame_write(t, &b, &GS_OUT(out));
    kt_log_batch_deinit(&b);
    return out;
}

static void same_line(KtTracer *t, const KtLogLine *a, KtTracer *u,
                      const KtLogLine *b)
{
    char x[17] = "", y[17] = "";
    uint32_t p = 0, q = 0;

    g_assert_cmpuint(a->number, ==, b->number);
    g_assert_cmpuint(a->seq, ==, b->seq);
    g_assert_cmpuint(a->ns, ==, b->ns);
    g_assert_cmpuint(a->us, ==, b->us);
    g_assert_cmpuint(a->lost, ==, b->lost);
    g_assert_cmpuint(a->caller, ==, b->caller);
    g_assert_cmpuint(a->cpu, ==, b->cpu);
    g_assert_cmpuint(a->level, ==, b->level);
    g_assert_cmpuint(a->facility, ==, b->facility);
    g_assert_cmpuint(a->flags, ==, b->flags);
    g_assert_cmpuint(a->len, ==, b->len);
    g_assert_cmpint(kt_tracer_task(t, a->task, &p, x), ==,
                    kt_tracer_task(u, b->task, &q, y));
    g_assert_cmpuint(p, ==, q);
    g_assert_cmpmem(x, 16, y, 16);
    g_assert_cmpint(!a->stack.v, ==, !b->stack.v);
}

TEST(test_frame, "/log-lines/frame")
{
    g_autoptr(KtTracer) t = bare_tracer(0), u = bare_tracer(0);
    g_autoptr(GByteArray) bytes = NULL;
    KtLogBatch a, b;
    GsBytes in;
    GsStop stop;
    unsigned n;

    kt_log_batch_init(&a);
    kt_log_batch_init(&b);
    add_rich(t);
    bytes = frame(t);
    in = gs_bytes(bytes->data, bytes->len);
    g_assert_true(kt_log_frame_read(u, NULL, &in, &b));
    g_assert_cmpuint(gs_bytes_left(&in), ==, 0);
    kt_log_read(t, 0, 100, &a);
    g_assert_cmpuint(a.line->len, ==, 3);
    g_assert_cmpuint(b.line->len, ==, 3);
    g_assert_cmpmem(a.text->data, a.text->len, b.text->data, b.text->len);
    for (unsigned i = 0; i < 3; i++) {
        same_line(t, &g_array_index(a.line, KtLogLine, i), u,
                  &g_array_index(b.line, KtLogLine, i));
    }
    g_assert_cmphex(kt_tracer_stack(u, g_array_index(b.line, KtLogLine, 1)
                                           .stack, &n, &stop)[1], ==,
                    0xffffffff81000050);
    g_assert_cmpuint(n, ==, 2);
    kt_log_batch_deinit(&a);
    kt_log_batch_deinit(&b);
}

/* Each shorter frame is malformed; a changed byte does no harm. */
TEST(test_damaged_frame, "/log-lines/damaged-frame")
{
    g_autoptr(KtTracer) t = bare_tracer(0);
    g_autoptr(GByteArray) bytes = NULL;
    KtLogBatch b;

    kt_log_batch_init(&b);
    add_rich(t);
    bytes = frame(t);
    for (unsigned len = 0; len < bytes->len; len++) {
        g_autofree uint8_t *copy = g_memdup2(bytes->data, len);
        GsBytes in = gs_bytes(copy, len);

        g_assert_false(kt_log_frame_read(t, NULL, &in, &b));
    }
    for (unsigned i = 0; i < bytes->len; i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            g_autofree uint8_t *copy = g_memdup2(bytes->data, bytes->len);
            GsBytes in = gs_bytes(copy, bytes->len);

            copy[i] ^= 1u << bit;
            kt_log_frame_read(t, NULL, &in, &b);
        }
    }
    kt_log_batch_deinit(&b);
}
