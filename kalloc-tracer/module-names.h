/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of a module's functions as they were when it was loaded: later other
 * code may lie in their places, in that of its init code even while it is
 * loaded. Immutable.
 */
#ifndef KT_MODULE_NAMES_H
#define KT_MODULE_NAMES_H

#include "kt.h"

typedef struct KtModuleNames KtModuleNames;

/** kt_module_names_new() - (owned) @k knows the module as @module_va. */
KtModuleNames *kt_module_names_new(const GsKernel *k, uint64_t module_va);
void kt_module_names_free(KtModuleNames *n);

/** kt_module_names_of() - (owned, nullable) "function+0xoff[module]" of a
 *  return address that lies in @area. */
char *kt_module_names_of(const KtModuleNames *n, const GsModuleArea *area,
                         uint64_t pc);

#endif /* KT_MODULE_NAMES_H */
