/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/lib/orc-writer.h"

static unsigned orc_writer_reg(GsOrcLayout layout, OrcReg reg)
{
    static const uint8_t old[R__COUNT] = {
        [R_PREV_SP] = 1, [R_DX] = 2, [R_DI] = 3, [R_BP] = 4, [R_SP] = 5,
        [R_R10] = 6, [R_R13] = 7, [R_AT_BP] = 8, [R_AT_SP] = 9, [R_AX] = 10,
    };
    static const uint8_t since_7_1[R__COUNT] = {
        [R_AX] = 1, [R_DX] = 2, [R_SP] = 3, [R_BP] = 4, [R_DI] = 5,
        [R_R10] = 6, [R_R13] = 7, [R_PREV_SP] = 8, [R_AT_SP] = 9,
        [R_AT_BP] = 10,
    };

    return layout == GS_ORC_LAYOUT_7_1 ? since_7_1[reg] : old[reg];
}

/* Encode the last two bytes of an entry. */
static uint16_t orc_writer_flags(GsOrcLayout layout, const OrcRow *row)
{
    unsigned regs = orc_writer_reg(layout, row->sp) |
                    orc_writer_reg(layout, row->bp) << 4;
    bool is_regs = row->type >= GS_ORC_REGS;
    bool is_end = row->type == GS_ORC_END;
    unsigned old_type = is_regs ? row->type - GS_ORC_CALL : 0;

    switch (layout) {
    case GS_ORC_LAYOUT_4_14:
        return regs | old_type << 8;
    case GS_ORC_LAYOUT_4_18:
        return regs | old_type << 8 | is_end << 10;
    case GS_ORC_LAYOUT_6_3:
        return regs | old_type << 8 | is_regs << 10 | is_end << 11;
    default:
        return regs | (row->type - GS_ORC_UNDEFINED) << 8 | is_regs << 11;
    }
}

OrcArrays orc_writer_finish(GsOrcLayout layout, uint64_t ip_va,
                            const OrcRow *rows, size_t n)
{
    OrcArrays a = { ip_va, g_new0(int32_t, n), g_malloc0(n * 6), n };

    for (size_t i = 0; i < n; i++) {
        uint16_t words[3] = {
            (uint16_t)rows[i].sp_off, (uint16_t)rows[i].bp_off,
            orc_writer_flags(layout, &rows[i]),
        };

        a.ip[i] = (int32_t)(rows[i].va - (ip_va + 4 * i));
        memcpy(a.orc + 6 * i, words, 6);
    }
    return a;
}

GsOrcRaw orc_writer_raw(const OrcArrays *a)
{
    return (GsOrcRaw) {
        .ip_va = a->ip_va, .ip = (const uint8_t *)a->ip, .ip_len = a->n * 4,
        .orc = a->orc, .orc_len = a->n * 6,
    };
}

void orc_writer_clear(OrcArrays *a)
{
    g_free(a->ip);
    g_free(a->orc);
}
