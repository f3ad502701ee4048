/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Call frame information of arm64 code; see cfi-arm64.c. */
#ifndef GS_CFI_ARM64_H
#define GS_CFI_ARM64_H

#include "guest-symbols/export/cfi-writer.h"

/** Tables of exception vectors that a kernel has at most. */
#define GS_ARM64_VECTORS 3
/** Functions that stacks begin in, which are not recognised by their code. */
#define GS_ARM64_ENDS    1

/**
 * struct GsArm64Cfi - what all functions have in common
 * @w: (borrowed) the writer
 * @canonical: upper bits that are set in every address of code; there return
 *             addresses may be signed
 * @vectors: tables of exception vectors, 0: none
 * @ends: functions that stacks begin in, 0: none
 * @freed: code whose memory has other data now
 * @switches: the function that calls another one on the stack of interrupts,
 *            0: none
 * @boots: rest_init(): the code of its caller is freed after the boot. 0: the
 *         kernel has no such symbol
 * @usual, @signal: the CIEs
 */
typedef struct GsArm64Cfi {
    GsCfi *w;
    uint64_t canonical;
    uint64_t vectors[GS_ARM64_VECTORS], ends[GS_ARM64_ENDS], switches;
    uint64_t boots;
    GsRange freed;
    uint32_t usual, signal;
} GsArm64Cfi;

/** gs_arm64_cfi_begin() - write the CIEs; all members before them are set */
void gs_arm64_cfi_begin(GsArm64Cfi *c);

/** gs_arm64_cfi() - write the rules of a function. @code: (nullable) its
 *  instructions, NULL: not known */
void gs_arm64_cfi(const GsArm64Cfi *c, GsRange range, const uint8_t *code);

#endif /* GS_CFI_ARM64_H */
