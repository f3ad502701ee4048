/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The module functions of gs.h: each asks the table of modules (modules/). Any
 * thread, except for gs_kernel_unpack_modules().
 */
#include "guest-symbols/kernel/kernel.h"
#include "guest-symbols/modules/modules.h"

bool gs_kernel_module(const GsKernel *k, uint64_t module_va, GsModule *out)
{
    return gs_modules_get(k->modules, module_va, out);
}

bool gs_kernel_nth_module(const GsKernel *k, unsigned i, GsModule *out)
{
    return gs_modules_nth(k->modules, i, out);
}

bool gs_kernel_module_at(const GsKernel *k, uint64_t va, GsModule *out)
{
    return gs_modules_at(k->modules, va, out);
}

void gs_kernel_module_symbols(const GsKernel *k, uint64_t module_va,
                              GsModuleSymbolFn fn, void *opaque)
{
    gs_modules_foreach_symbol(k->modules, module_va, fn, opaque);
}

size_t gs_kernel_n_modules(const GsKernel *k)
{
    return gs_modules_counts(k->modules).modules;
}

void gs_kernel_set_module_room(GsKernel *k, uint64_t bytes)
{
    gs_modules_set_room(k->modules, bytes);
}

void gs_kernel_drop_module(GsKernel *k, uint64_t module_va)
{
    gs_modules_drop(k->modules, k->orc, module_va);
}

void gs_kernel_pack_modules(const GsKernel *k, GsOut *out)
{
    gs_modules_pack(k->modules, k->orc, out);
}

uint32_t gs_kernel_load_at(const GsKernel *k, uint64_t pc, uint32_t era)
{
    uint32_t load = gs_modules_load_at(k->modules, pc, era);

    return load || !pc ? load : gs_modules_load_at(k->modules, pc - 1, era);
}

GsStackEra gs_kernel_era(const GsKernel *k, const uint64_t *frames, unsigned n)
{
    unsigned i = 0;

    while (i < n && gs_orc_set_in_image(k->orc, frames[i])) {
        i++;
    }
    return i < n ? gs_modules_era(k->modules, frames, n) : (GsStackEra) { 0 };
}

unsigned gs_kernel_n_evicted_modules(GsKernel *k)
{
    return gs_modules_n_evicted(k->modules);
}

unsigned gs_kernel_n_untyped_modules(GsKernel *k)
{
    return gs_modules_n_untyped(k->modules);
}

unsigned gs_kernel_unpack_modules(GsKernel *k, GsBytes *in, uint64_t room,
                                  bool loads)
{
    uint64_t bytes = gs_modules_bytes(k->modules);
    unsigned refused;

    gs_kernel_set_slide(k, k->slide);
    refused = gs_modules_unpack(k->modules, k->orc, in,
                                bytes + MIN(room, UINT64_MAX - bytes), loads);
    if (!gs_bytes_ok(in)) {
        gs_kernel_set_slide(k, k->slide);
    }
    return refused;
}
