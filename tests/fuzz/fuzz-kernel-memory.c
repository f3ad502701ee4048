/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: a kernel in guest memory.
 *
 * The input changes a correct kernel, with its tables of symbols, types and
 * unwind data. Byte 0 selects the order of the symbol table. Then each four
 * bytes change one byte of the read-only data: a position (2 bytes), a value,
 * and a byte that is odd to store the value, even to xor it.
 *
 * Checks: if the kernel is found, all queries return.
 */
#include "tests/fuzz/fuzz.h"
#include "tests/lib/kallsyms-writer.h"
#include "tests/lib/orc-writer.h"
#include "kalloc-tracer/kernel/kernel-finder.h"

#define BASE    0xffffffff9ae00000ull
#define RODATA  (BASE + 0x2000)
#define ORC_IP  (RODATA + 0x800)
#define ORC     (RODATA + 0xa00)
#define BTF     (RODATA + 0xc00)
#define TABLE   (RODATA + 0x1000)
#define BYTES   0x5000

static const OrcRow rows[] = {
    { BASE, GS_ORC_CALL, R_SP, 8 },
    { BASE + 0x100, GS_ORC_CALL, R_SP, 32, R_PREV_SP, -16 },
    { BASE + 0x200, GS_ORC_CALL, R_BP, 16, R_PREV_SP, -16 },
    { BASE + 0x300, GS_ORC_END },
};
#define N_ORC   (G_N_ELEMENTS(rows) + 1)

static const KsSymbol symbols[] = {
    { 0x100, 'A', "pcpu_hot" },
    { BASE, 'T', "_stext" },
    { BASE + 0x100, 'T', "kfree" },
    { BASE + 0x200, 'T', "ftrace_caller" },
    { BASE + 0x300, 'T', "start_kernel" },
    { BASE + 0x800, 'T', "_etext" },
    { BASE + 0x1000, 'T', "_sinittext" },
    { BASE + 0x1800, 'T', "_einittext" },
    { RODATA + 0x20, 'D', "slab_state" },
    { RODATA + KS_BANNER_AT, 'D', "linux_banner" },
    { ORC_IP, 'D', "__start_orc_unwind_ip" },
    { ORC_IP + 4 * N_ORC, 'D', "__stop_orc_unwind_ip" },
    { ORC, 'D', "__start_orc_unwind" },
    { ORC + 6 * N_ORC, 'D', "__stop_orc_unwind" },
    { BTF, 'D', "__start_BTF" },
    { BTF + 24 + 16 + 4, 'D', "__stop_BTF" },
};

/* Header, one type (an int of four bytes), strings: see linux/btf.h. */
static const uint32_t btf[] = {
    0x0001eb9f, 24, 0, 16, 16, 4,
    1, 0x01000000, 4, 32,
    0x00746e00 | 'i' << 8,
};

static uint8_t guest[BYTES];

static const void *view(uint64_t va, size_t *avail)
{
    *avail = 4096 - va % 4096;
    return va - BASE < BYTES ? guest + (va - BASE) : NULL;
}

static const void *page(void *opaque, uint64_t va)
{
    size_t avail;

    return view(va & ~0xfffull, &avail);
}

static void make_guest(KsOrder order)
{
    static uint8_t made[KS_ORDER__COUNT][BYTES];
    uint8_t *m = made[order];
    KsWriter w = {
        .order = order, .addresses = KS_PERCPU, .syms = symbols,
        .n = G_N_ELEMENTS(symbols), .va = TABLE,
    };

    if (!m[0]) {
        g_auto(OrcArrays) a = orc_writer_finish(GS_ORC_LAYOUT_6_4,
                                                BASE + 0x800, rows,
                                                G_N_ELEMENTS(rows));

        memset(m, 0xcc, RODATA - BASE);
        memcpy(m + (RODATA - BASE) + KS_BANNER_AT, KS_BANNER,
               sizeof(KS_BANNER));
        for (size_t i = 0; i < MIN(a.n, N_ORC); i++) {
            uint64_t to = a.ip_va + 4 * i + (int64_t)a.ip[i];
            int32_t ip = to - (ORC_IP + 4 * i);

            memcpy(m + (ORC_IP - BASE) + 4 * i, &ip, sizeof(ip));
        }
        memcpy(m + (ORC - BASE), a.orc, 6 * MIN(a.n, N_ORC));
        memcpy(m + (BTF - BASE), btf, sizeof(btf));
        ks_write(&w);
        memcpy(m + (TABLE - BASE), w.out->data,
               MIN(w.out->len, BYTES - (TABLE - BASE)));
        g_byte_array_unref(w.out);
    }
    memcpy(guest, m, BYTES);
}

static void bend(const uint8_t *data, size_t len)
{
    for (size_t i = 0; i + 4 <= len; i += 4) {
        size_t at = (data[i] | data[i + 1] << 8) % (BYTES - (RODATA - BASE));
        uint8_t *byte = &guest[RODATA - BASE + at];

        *byte = data[i + 3] & 1 ? data[i + 2] : *byte ^ data[i + 2];
    }
}

/* Check that the answers of an accepted kernel agree with each other. */
static void query(GsKernel *k)
{
    g_autoptr(GsUnwinder) u = gs_unwinder_new(k);
    const GsRegs regs = { BASE + 0x50, BASE + 0x2f00, BASE + 0x2f80, false };
    uint64_t frames[32], start, end;
    GsSymbol sym, covering;
    uint32_t size;
    unsigned n;

    if (gs_kernel_lookup(k, "kfree", &sym) &&
        gs_kernel_symbolize(k, sym.va, &covering) && covering.va != sym.va) {
        abort();
    }
    if (gs_kernel_text_range(k, &start, &end) && start >= end) {
        abort();
    }
    gs_kernel_type_size(k, "int", &size);
    gs_unwind(u, &regs, page, NULL, frames, G_N_ELEMENTS(frames), &n);
    if (!n || n > G_N_ELEMENTS(frames)) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    g_autoptr(KtFinder) f = kt_finder_new(gs_arch_nth(0), NULL, view);
    bool complete;
    uint64_t slide;
    GsKernel *k;

    if (!len) {
        return 0;
    }
    make_guest(data[0] % KS_ORDER__COUNT);
    bend(data + 1, len - 1);
    k = kt_finder_try(f, BASE + 0xd3, &slide, &complete);
    if (k) {
        query(k);
    } else if (!kt_finder_why_not(f) || len == 1) {
        abort();                /* nothing was changed */
    }
    return 0;
}
