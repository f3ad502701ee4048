/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: any bytes as a System.map: alone, and behind two lines that make
 * them one.
 */
#include "tests/fuzz/fuzz.h"
#include "guest-symbols/gs.h"

static const char head[] = "ffffffff81000000 T _stext\n"
                           "ffffffff81001000 T _etext\n";

static void open_text(const void *data, size_t len)
{
    g_autoptr(GError) err = NULL;
    g_autoptr(GsKernel) k = gs_kernel_new_from_data(data, len, "fuzz", &err);
    uint64_t start, end;
    GsSymbol sym;

    if (!k) {
        if (!err || !g_str_has_prefix(err->message, "fuzz: ") ||
            strpbrk(err->message, "\n\033")) {
            abort();
        }
        return;
    }
    if (!gs_kernel_text_range(k, &start, &end) || start >= end ||
        !gs_kernel_is_text(k, start) ||
        !gs_kernel_lookup(k, "_stext", &sym)) {
        abort();
    }
    gs_kernel_set_slide(k, 0x200000);
    gs_kernel_symbolize(k, start + 0x200010, &sym);
    gs_kernel_symbolize(k, UINT64_MAX, &sym);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    g_autofree uint8_t *text = g_malloc(sizeof(head) - 1 + len);

    memcpy(text, head, sizeof(head) - 1);
    if (len) {
        memcpy(text + sizeof(head) - 1, data, len);
    }
    open_text(text, sizeof(head) - 1 + len);
    open_text(data, len);
    return 0;
}
