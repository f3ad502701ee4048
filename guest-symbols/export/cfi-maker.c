/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Chooses what makes call frame information, and reads the code of functions
 * for those that make it of code; see cfi-maker.h.
 *
 * Code is untrusted: a function may be as large as the guest says, and there
 * may be as many. Functions above FUNCTION_MAX are not read, and none is after
 * GS_CFI_CODE_MAX bytes.
 */
#include "guest-symbols/export/cfi-maker.h"

#define FUNCTION_MAX    ((size_t)1 << 20)

/* system_state is at least this after the kernel has freed its init code
 * (linux/kernel.h: SYSTEM_RUNNING, since 5.17 SYSTEM_FREEING_INITMEM). */
#define FREED_INIT      2

const GsCfiMaker *gs_cfi_maker_find(const GsKernel *k)
{
    return k->arch->has_orc && k->unwind_by != GS_UNWIND_BY_FRAMES ?
               &gs_orc_cfi_maker : k->arch->cfi;
}

GsRange gs_cfi_freed(const GsKernel *k, const GsMem *mem)
{
    uint64_t va = gs_kernel_address(k, "system_state");
    uint32_t state = 0;
    bool boots = va && mem && mem->read(mem->opaque, va, &state,
                                        sizeof(state)) &&
                 GUINT32_FROM_LE(state) < FREED_INIT;

    return boots ? (GsRange) { 0 } :
                   (GsRange) { gs_kernel_address(k, "_sinittext"),
                               gs_kernel_address(k, "_einittext") };
}

void gs_cfi_foreach_function(const GsCfiCode *code, const GsMem *mem,
                             GsCfiFunction fn, void *opaque)
{
    g_autofree uint8_t *bytes = g_malloc(FUNCTION_MAX);
    GsRange left = code->range;
    size_t i = 0;

    while (left.start < left.end) {
        GsRange r = gs_cfi_next_piece(&left, code->start, code->n, &i);
        size_t len = MIN(r.end - r.start, FUNCTION_MAX + 1);
        bool known = len <= MIN(FUNCTION_MAX, *code->room) &&
                     mem->read(mem->opaque, r.start, bytes, len);

        *code->room -= known ? len : 0;
        fn(opaque, r, known ? bytes : NULL);
    }
}
