/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What makes the call frame information of a kernel; see cfi-maker.c. Called by
 * debug-file.c, while a debug file is made, by that thread.
 */
#ifndef GS_CFI_MAKER_H
#define GS_CFI_MAKER_H

#include "guest-symbols/export/cfi-writer.h"
#include "guest-symbols/kernel/kernel.h"

/**
 * struct GsCfiCode - code of the kernel or of one module, in one piece
 * @range: run-time addresses
 * @start: (borrowed) where functions begin, ascending, @n of them; they may be
 *         outside of @range
 * @module: address of the struct module, 0: the kernel
 * @room: (in, out) bytes of code that may still be read for this file
 */
typedef struct GsCfiCode {
    GsRange range;
    const uint64_t *start;
    size_t n;
    uint64_t module;
    size_t *room;
} GsCfiCode;

/**
 * struct GsCfiMaker - makes the call frame information of one architecture
 * @made_of: what it is made of, for GsDebugFile
 * @begin: write the CIEs. @mem: (nullable) memory of the guest. @w, @k and @mem
 *         live longer. Returns: (owned) to be freed with g_free(); NULL if
 *         there is nothing to make rules of, then nothing was written.
 * @add: write the FDEs of code; @maker was returned by @begin
 */
typedef struct GsCfiMaker {
    const char *made_of;
    void *(*begin)(GsCfi *w, const GsKernel *k, const GsMem *mem);
    void (*add)(void *maker, const GsCfiCode *code);
} GsCfiMaker;

/** gs_orc_cfi_maker - of kernels with ORC tables */
extern const GsCfiMaker gs_orc_cfi_maker;

/** gs_cfi_maker_find() - find what makes the rules of @k. Returns: (static)
 *  NULL if nothing can. */
const GsCfiMaker *gs_cfi_maker_find(const GsKernel *k);

/**
 * typedef GsCfiFunction - receives a function
 * @code: its instructions; NULL if they cannot be read
 */
typedef void (*GsCfiFunction)(void *opaque, GsRange range, const uint8_t *code);

/** gs_cfi_freed() - find the code for the boot. Returns: empty if @k still
 *  boots; if that is not known, the code counts as freed. @mem: (nullable) */
GsRange gs_cfi_freed(const GsKernel *k, const GsMem *mem);

/** Bytes of code that are read at most for one file. */
#define GS_CFI_CODE_MAX ((size_t)256 << 20)

/** gs_cfi_foreach_function() - read the code of each function, in order, and
 *  call @fn with it. Code in front of the first symbol counts as a function,
 *  too. */
void gs_cfi_foreach_function(const GsCfiCode *code, const GsMem *mem,
                             GsCfiFunction fn, void *opaque);

#endif /* GS_CFI_MAKER_H */
