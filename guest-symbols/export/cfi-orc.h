/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Call frame information of x86-64 code; see cfi-orc.c. */
#ifndef GS_CFI_ORC_H
#define GS_CFI_ORC_H

#include "guest-symbols/export/cfi-writer.h"
#include "guest-symbols/orc/orc.h"

/** struct GsOrcCies - the two common information entries (CIE) of x86-64
 *  @usual: for code that was called
 *  @signal: for entry code, whose frame is a struct pt_regs of the code that
 *           was interrupted */
typedef struct GsOrcCies {
    uint32_t usual, signal;
} GsOrcCies;

/**
 * struct GsOrcCode - code that an ORC table is for
 * @table: (borrowed)
 * @slide: run-time minus table's addresses
 * @freed: code that does not run any more, run time
 */
typedef struct GsOrcCode {
    const GsOrcTable *table;
    uint64_t slide;
    GsRange freed;
} GsOrcCode;

/** gs_orc_cies() - write the CIEs. */
GsOrcCies gs_orc_cies(GsCfi *w);

/**
 * gs_orc_cfi() - write the rules of an ORC table
 * @range: code, run time
 * @start: (borrowed) starts of functions, ascending, @n of them; those in
 *         @range begin a table (FDE) each
 */
void gs_orc_cfi(GsCfi *w, const GsOrcCies *cies, const GsOrcCode *code,
                GsRange range, const uint64_t *start, size_t n);

/** gs_orc_cfi_by_bp() - write the rules of code without ORC that keeps frame
 *  pointers, as BPF programs do. */
void gs_orc_cfi_by_bp(GsCfi *w, const GsOrcCies *cies, GsRange range,
                      const uint64_t *start, size_t n);

#endif /* GS_CFI_ORC_H */
