/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of a module's functions as they were when it was loaded: later other
 * code may lie in their places, in that of its init code even while it is
 * loaded. Immutable.
 */
#ifndef KT_MODULE_NAMES_H
#define KT_MODULE_NAMES_H

#include "kalloc-tracer/kt.h"

typedef struct KtModuleNames KtModuleNames;

/** kt_module_names_new() - (owned) @k knows the module as @module_va.
 *  @room: bytes of memory for it, at most: the rest is not named */
KtModuleNames *kt_module_names_new(const GsKernel *k, uint64_t module_va,
                                   uint64_t room);
void kt_module_names_free(KtModuleNames *n);
/** kt_module_names_bytes() - of memory; 0 for NULL. */
uint64_t kt_module_names_bytes(const KtModuleNames *n);

/** kt_module_names_of() - (owned, nullable) "function+0xoff[module]" of a
 *  return address that lies in @area; NULL of NULL. */
char *kt_module_names_of(const KtModuleNames *n, const GsModuleArea *area,
                         uint64_t pc);

#endif /* KT_MODULE_NAMES_H */
