/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes ORC tables in the layout of any release.
 *
 * A test names each row by its meaning. orc_writer_finish() encodes the rows
 * in one layout, as the two arrays that objtool makes. The writer does not
 * check its arguments. Single-threaded.
 */
#ifndef ORC_WRITER_H
#define ORC_WRITER_H

#include "guest-symbols/orc/orc.h"
#include <string.h>

typedef enum OrcReg {
    R_NONE, R_PREV_SP, R_DX, R_DI, R_BP, R_SP, R_R10, R_R13, R_AT_BP,
    R_AT_SP, R_AX, R__COUNT
} OrcReg;

/** struct OrcRow - one entry; @type has the meaning that it has in
 *  GsOrcRule */
typedef struct OrcRow {
    uint64_t va;
    GsOrcType type;
    OrcReg sp;
    int16_t sp_off;
    OrcReg bp;
    int16_t bp_off;
} OrcRow;

/** struct OrcArrays - the encoded table; orc_writer_clear() frees @ip and
 *  @orc */
typedef struct OrcArrays {
    uint64_t ip_va;
    int32_t *ip;
    uint8_t *orc;
    size_t n;
} OrcArrays;

/** orc_writer_finish() - encode rows; the first of @ip is at @ip_va. */
OrcArrays orc_writer_finish(GsOrcLayout layout, uint64_t ip_va,
                            const OrcRow *rows, size_t n);

/** orc_writer_raw() - describe the arrays to the reader. They are
 *  borrowed. */
GsOrcRaw orc_writer_raw(const OrcArrays *a);

void orc_writer_clear(OrcArrays *a);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(OrcArrays, orc_writer_clear)

#endif /* ORC_WRITER_H */
