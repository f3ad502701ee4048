/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: what is found in a kernel's memory without symbols: the tables
 * of exported symbols, and ORC tables.
 *
 * The input changes an image with correct tables of exported symbols. Bit 0 of
 * byte 0 selects their form. Then each four bytes change one byte: a position
 * (2 bytes), a value, and a byte that is odd to store the value, even to xor
 * it.
 *
 * Checks: found symbols have names, and are found again by these.
 */
#include "tests/fuzz/fuzz.h"
#include "tests/lib/exports-writer.h"
#include "guest-symbols/orc/orc.h"

#define BASE    0xffffffff81000000ull
#define LEN     0x4000u
#define TABLE   0x1000u
#define STRINGS 0x3000u

static uint8_t memory[LEN];

static ExportsWriter make_memory(bool relative)
{
    ExportsWriter w = {
        .image = memory, .len = LEN, .va = BASE, .at = TABLE,
        .strings = STRINGS, .relative = relative,
    };

    memset(memory, 0, LEN);
    exports_write_many(&w, "a", 40, BASE + 0x100);
    exports_write(&w, "kfree", BASE + 0x800);
    w.at += 16;
    exports_write_many(&w, "gpl_", 5, BASE + 0x900);
    return w;
}

static void bend(const uint8_t *data, size_t len)
{
    for (size_t i = 0; i + 4 <= len; i += 4) {
        uint8_t *byte = &memory[(data[i] | data[i + 1] << 8) % LEN];

        *byte = data[i + 3] & 1 ? data[i + 2] : *byte ^ data[i + 2];
    }
}

static void check_symbol(uint64_t va, const char *text, size_t len,
                         void *opaque)
{
    GsSymbol sym;

    if (len < 2 || !gs_symtab_lookup(opaque, text + 1, &sym) || sym.size) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    const GsSection all = {
        .name = "", .va = BASE, .data = memory, .len = LEN
    };
    ExportsWriter w = make_memory(!len || data[0] & 1);
    g_autoptr(GsSymtab) tab = NULL;
    uint64_t at;
    GsOrcRaw raw;

    if (len) {
        bend(data + 1, len - 1);
    }
    tab = exports_decode(&w, &at);
    if (tab) {
        gs_symtab_foreach(tab, check_symbol, tab);
    }
    if (gs_orc_find(&all, &raw)) {
        gs_orc_layout_probe(&raw);
    }
    return 0;
}
