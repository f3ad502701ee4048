/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of a module's functions at the time of its load. Later other code may
 * be at the same addresses: after the unload, and in the area of the init code
 * even before. Immutable after kt_module_names_new(), so any thread may read.
 */
#ifndef KT_MODULE_NAMES_H
#define KT_MODULE_NAMES_H

#include "kalloc-tracer/kt.h"

typedef struct KtModuleNames KtModuleNames;

/** kt_module_names_new() - Copy the names of the module that @k has as
 *  @module_va. At most @room bytes: further functions get no name. Returns:
 *  (owned). */
KtModuleNames *kt_module_names_new(const GsKernel *k, uint64_t module_va,
                                   uint64_t room);
void kt_module_names_free(KtModuleNames *n);
/** kt_module_names_bytes() - Return the bytes of memory; 0 for NULL. */
uint64_t kt_module_names_bytes(const KtModuleNames *n);

/** kt_module_names_of() - Format a return address in @area. Returns: (owned,
 *  nullable) "function+0xoff[module]"; NULL if there is no name. */
char *kt_module_names_of(const KtModuleNames *n, const GsModuleArea *area,
                         uint64_t pc);

#endif /* KT_MODULE_NAMES_H */
