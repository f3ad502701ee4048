/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: any memory where the kernel's ring of printk records should be,
 * with types and without, and any frame of log lines.
 *
 * The first byte says how the input is used: bit 0: the kernel has types;
 * bit 1: the ring is written first, and the rest of the input is a list of
 * changes, 4 bytes each: an offset, a byte and how often the ring is read
 * afterwards; otherwise the rest is the memory itself. Bit 2: the input is a
 * frame. Nothing may be read outside, and a call ends.
 */
#include "tests/fuzz/fuzz.h"
#include "kalloc-tracer/kernel/printk-log.h"
#include "kalloc-tracer/log/log-lines.h"
#include "tests/lib/printk-writer.h"

#define CHANGES 256

static void write_ring(PrintkWriter *w)
{
    for (unsigned i = 0; i < 24; i++) {
        g_autofree char *text = g_strnfill(i * 5, 'a' + i);

        pw_print(w, text);
    }
}

/* The parts of the ring that a change can be in, side by side. */
static void change(PrintkWriter *w, unsigned at, uint8_t value)
{
    const struct {
        uint64_t va;
        unsigned len;
    } part[] = {
        { PW_PRB, 8 }, { pw_struct(w), 128 }, { pw_desc(w, 0), 24 * 16 },
        { pw_info(w, 0), PW_INFO * 16 }, { pw_data(w), 1024 },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(part); i++) {
        if (at < part[i].len) {
            *(uint8_t *)pw_at(w, part[i].va + at, 1) = value;
            return;
        }
        at -= part[i].len;
    }
}

static void read_ring(KtPrintkLog *log, PrintkWriter *w, uint64_t *us)
{
    const GsMem mem = pw_memory(w);
    unsigned turn = *us / 60000;
    const KtPrintkWriter by = {
        .us = *us, .since = kt_printk_log_end(log, &mem), .known = true,
    };

    *us += 60000;
    kt_printk_log_read(log, &mem, turn & 1 ? &by : NULL, &(KtPrintkNow) {
        .us = *us, .stopped = turn & 2,
    });
}

static void run_ring(KtTracer *t, const uint8_t *data, size_t len, bool types,
                     bool written)
{
    g_autofree PrintkWriter *w = pw_new(4, 10, true);
    KtPrintkLog *log;
    uint64_t us = 1;
    GsKernel k;

    pw_kernel_init(&k, w, types, NULL);
    log = kt_printk_log_new(&k, t);
    if (written) {
        write_ring(w);
    } else {
        for (size_t i = 0; len && i < PW_BYTES; i += len) {
            memcpy(w->mem + i, data, MIN(len, PW_BYTES - i));
        }
    }
    read_ring(log, w, &us);
    for (size_t i = 0; written && i + 4 <= len && i < 4 * CHANGES; i += 4) {
        change(w, data[i] | data[i + 1] << 8, data[i + 2]);
        for (unsigned n = data[i + 3] & 3; n; n--) {
            read_ring(log, w, &us);
        }
    }
    kt_printk_log_free(log);
    pw_kernel_deinit(&k);
}

static void run_frame(KtTracer *t, const uint8_t *data, size_t len)
{
    GsBytes in = gs_bytes(data, len);
    KtLogBatch b;

    kt_log_batch_init(&b);
    kt_log_frame_read(t, NULL, &in, &b);
    kt_log_batch_deinit(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    const KtConfig config = KT_CONFIG_DEFAULT;
    g_autoptr(KtTracer) t = NULL;

    if (!len) {
        return 0;
    }
    t = kt_tracer_new(&config, NULL);
    if (data[0] & 4) {
        run_frame(t, data + 1, len - 1);
    } else {
        run_ring(t, data + 1, len - 1, data[0] & 1, data[0] & 2);
    }
    return 0;
}
