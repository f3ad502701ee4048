/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: any bytes as ORC arrays.
 *
 * Byte 0 selects the layout. Bit 0 of byte 1 says whether there is a header.
 * Check: each row of an accepted table is found by its address.
 */
#include "tests/fuzz/fuzz.h"
#include "guest-symbols/orc/orc.h"

#define IP_VA 0xffffffff82000000ull

static void search(const GsOrcTable *t, const uint8_t *data, size_t len)
{
    for (size_t i = 0; i < gs_orc_table_n(t); i++) {
        uint64_t va;
        const GsOrcRule *rule = gs_orc_table_nth(t, i, &va);

        if (gs_orc_table_find(t, va) != rule) {
            abort();
        }
        if (rule->type == GS_ORC_NONE || rule->type > GS_ORC_REGS_PARTIAL ||
            rule->bp >= GS_ORC_BP_INVALID) {
            abort();
        }
    }
    for (size_t i = 0; i + 8 <= len; i += 8) {
        uint64_t va;

        memcpy(&va, data + i, sizeof(va));
        gs_orc_table_find(t, va);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    GsOrcRaw raw = { .ip_va = IP_VA };
    g_autoptr(GsOrcTable) t = NULL;
    g_autoptr(GError) err = NULL;
    size_t n;

    if (len < 32) {
        return 0;
    }
    if (data[1] & 1) {
        raw.header = data + 2;
        raw.header_len = 20;
    }
    n = (len - 22) / 10;
    raw.ip = data + 22;
    raw.ip_len = n * 4;
    raw.orc = data + 22 + raw.ip_len;
    raw.orc_len = n * 6 + (data[1] & 2);
    raw.orc_len = MIN(raw.orc_len, len - 22 - raw.ip_len);
    t = gs_orc_table_new(&raw, data[0] % GS_ORC_LAYOUT__COUNT, &err);
    if (!t != !!err) {
        abort();
    }
    if (t) {
        search(t, data, len);
    }
    return 0;
}
