/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A table of modules, for tests of modules/. */
#ifndef MODULE_TABLE_H
#define MODULE_TABLE_H

#include "guest-symbols/modules/modules.h"

#define MODULE_SIZE 0x4000ull

/** struct ModuleTable - a table of modules, and the ORC set that they are in */
typedef struct ModuleTable {
    GsModules *modules;
    GsOrcSet *orc;
} ModuleTable;

ModuleTable *module_table_new(void);
void module_table_free(ModuleTable *t);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ModuleTable, module_table_free)

/** module_table_add() - load a module of MODULE_SIZE bytes at @base. @id: the
 *  address of its struct module */
bool module_table_add(ModuleTable *t, uint64_t id, const char *name,
                      uint64_t base, const GsModuleSymbol *syms, size_t n,
                      GError **errp);
void module_table_drop(ModuleTable *t, uint64_t id);

#endif /* MODULE_TABLE_H */
