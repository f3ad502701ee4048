/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes ORC tables as a kernel of any release has them, for tests.
 *
 * Rows are named by meaning; finishing them for a layout gives the two
 * arrays that objtool would have made. Single thread, no checks: the tests
 * know what they write.
 */
#ifndef ORC_WRITER_H
#define ORC_WRITER_H

#include "guest-symbols/orc/orc.h"
#include <string.h>

typedef enum OrcReg {
    R_NONE, R_PREV_SP, R_DX, R_DI, R_BP, R_SP, R_R10, R_R13, R_AT_BP,
    R_AT_SP, R_AX, R__COUNT
} OrcReg;

/** struct OrcRow - one entry; @type as in GsOrcRule */
typedef struct OrcRow {
    uint64_t va;
    GsOrcType type;
    OrcReg sp;
    int16_t sp_off;
    OrcReg bp;
    int16_t bp_off;
} OrcRow;

/** struct OrcArrays - the finished table; (owned) g_free() both */
typedef struct OrcArrays {
    uint64_t ip_va;
    int32_t *ip;
    uint8_t *orc;
    size_t n;
} OrcArrays;

static inline unsigned orc_writer_reg(GsOrcLayout layout, OrcReg reg)
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

/** orc_writer_flags() - the last two bytes of an entry. */
static inline uint16_t orc_writer_flags(GsOrcLayout layout, const OrcRow *row)
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

static inline OrcArrays orc_writer_finish(GsOrcLayout layout, uint64_t ip_va,
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

static inline GsOrcRaw orc_writer_raw(const OrcArrays *a)
{
    return (GsOrcRaw) {
        .ip_va = a->ip_va, .ip = (const uint8_t *)a->ip, .ip_len = a->n * 4,
        .orc = a->orc, .orc_len = a->n * 6,
    };
}

static inline void orc_writer_clear(OrcArrays *a)
{
    g_free(a->ip);
    g_free(a->orc);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(OrcArrays, orc_writer_clear)

#endif /* ORC_WRITER_H */
