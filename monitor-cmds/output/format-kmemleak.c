/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A block in the format of the kernel's /sys/kernel/debug/kmemleak, for scripts
 * that read that file.
 *
 * Called by ka leak, on the thread of the command; no locks.
 */
#include "monitor-cmds/output/block-row.h"

#include <zlib.h>

/* Return the kernel's crc32(0, data, len). Unlike zlib's, it inverts neither
 * the initial value nor the result. */
static uint32_t checksum(const uint8_t *data, size_t len)
{
    return ~(uint32_t)crc32(0xffffffff, data, (uInt)len);
}

static void print_bytes(McOut *out, const uint8_t *data, size_t len)
{
    mc_out_printf(out, "  hex dump (first %zu bytes):", len);
    for (size_t at = 0; at < len; at += 16) {
        size_t n = MIN(16, len - at);

        g_string_append(out->line, "    ");
        for (size_t i = 0; i < 16; i++) {
            if (i < n) {
                mc_put_hex(out->line, data[at + i], 2);
                g_string_append_c(out->line, ' ');
            } else {
                g_string_append(out->line, "   ");
            }
        }
        g_string_append_c(out->line, ' ');
        for (size_t i = 0; i < n; i++) {
            uint8_t c = data[at + i];

            g_string_append_c(out->line, g_ascii_isprint(c) ? c : '.');
        }
        mc_out_end_line(out);
    }
}

static void print_backtrace(McOut *out, const KtBlock *b, uint32_t crc)
{
    McStack stack = mc_stack(out->ctx->tracer, b->alloc_stack);

    mc_out_printf(out, "  backtrace (crc %x):", crc);
    for (unsigned i = 0; i < stack.n; i++) {
        McFrame frame = mc_frame(&stack, i);

        g_string_append(out->line, "    [<");
        mc_put_hex(out->line, frame.pc, 16);
        g_string_append(out->line, ">] ");
        mc_put_pc_as_kernel(out->line, mc_symbols(out->ctx), &frame);
        mc_out_end_line(out);
    }
}

void mc_print_kmemleak(McOut *out, const KtBlock *b, uint64_t now_us,
                       const uint8_t *data, size_t len)
{
    uint64_t age = now_us > b->alloc_us ? now_us - b->alloc_us : 0;
    uint32_t pid = 0;
    char comm[17] = "-";

    kt_tracer_task(out->ctx->tracer, b->alloc_task, &pid, comm);
    mc_out_printf(out, "unreferenced object 0x%016" PRIx64 " (size %" PRIu64
                  "):", b->va, b->requested);
    mc_out_printf(out, "  comm \"%s\", pid %u, jiffies - (age %" PRIu64
                  ".%03us)", comm, pid, age / 1000000,
                  (unsigned)(age / 1000 % 1000));
    if (data) {
        print_bytes(out, data, MIN(len, MC_KMEMLEAK_DUMP));
    }
    print_backtrace(out, b, data && len == b->requested ?
                            checksum(data, len) : 0);
}
