/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/lib/module-table.h"

ModuleTable *module_table_new(void)
{
    ModuleTable *t = g_new0(ModuleTable, 1);

    t->orc = gs_orc_set_new();
    t->modules = gs_modules_new();
    return t;
}

void module_table_free(ModuleTable *t)
{
    gs_modules_free(t->modules);
    gs_orc_set_free(t->orc);
    g_free(t);
}

bool module_table_add(ModuleTable *t, uint64_t id, const char *name,
                      uint64_t base, const GsModuleSymbol *syms, size_t n,
                      GError **errp)
{
    GsModuleInfo info = {
        .mem = { { base, base + MODULE_SIZE } }, .n_mem = 1,
        .text = { { base, base + MODULE_SIZE } }, .n_text = 1,
        .syms = (GsModuleSymbol *)syms, .n_syms = n,
    };

    g_strlcpy(info.name, name, sizeof(info.name));
    return gs_modules_add(t->modules, t->orc, id, &info, errp);
}

void module_table_drop(ModuleTable *t, uint64_t id)
{
    gs_modules_drop(t->modules, t->orc, id);
}
