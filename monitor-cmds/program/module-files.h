/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files of modules in a folder, by the names of the modules. One thread. */
#ifndef MC_MODULE_FILES_H
#define MC_MODULE_FILES_H

#include <glib.h>
#include <stdbool.h>

/** ka_module_files_new() - (owned) find all files of modules below a folder:
 *  name -> path; "" if several files have the name */
GHashTable *ka_module_files_new(const char *folder);
/** ka_module_name_equal() - return true if both are names of one module; "-"
 *  and "_" are the same */
bool ka_module_name_equal(const char *a, const char *b);
/** ka_module_files_find() - return (borrowed) the path of a module, NULL if
 *  there is none */
const char *ka_module_files_find(GHashTable *files, const char *name);

#endif /* MC_MODULE_FILES_H */
