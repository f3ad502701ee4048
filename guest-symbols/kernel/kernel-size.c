/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is known of a kernel, in bytes of host memory, for who bounds them.
 */
#include "guest-symbols/kernel/kernel.h"
#include "guest-symbols/types/btf.h"
#include "guest-symbols/modules/modules.h"
#include "guest-symbols/orc/orc.h"
#include "guest-symbols/symbols/symtab.h"

/* An address, a rule, and its share of the index. */
#define ORC_ROW_BYTES 13

uint64_t gs_kernel_bytes(const GsKernel *k)
{
    const GsOrcTable *orc = gs_orc_set_table(k->orc);

    return gs_symtab_bytes(k->symtab) + (k->btf ? gs_btf_bytes(k->btf) : 0) +
           (orc ? gs_orc_table_n(orc) * ORC_ROW_BYTES : 0) +
           gs_modules_bytes(k->modules);
}

void gs_kernel_set_module_room(GsKernel *k, uint64_t bytes)
{
    gs_modules_set_room(k->modules, bytes);
}

size_t gs_kernel_symbol_bytes(const GsKernel *k)
{
    return k->saved.on ? k->saved.symbol_bytes : gs_symtab_bytes(k->symtab);
}
