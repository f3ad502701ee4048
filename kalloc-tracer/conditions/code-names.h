/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Code names: how a condition names a function or a module, and whether the
 * kernel has it.
 *
 *     user                     stored
 *     kfree                    kfree
 *     snd-hda:azx_probe        snd_hda:azx_probe
 *     azx_probe[snd-hda]       snd_hda:azx_probe
 *
 * Any thread; nothing is kept between calls.
 */
#ifndef KT_CODE_NAMES_H
#define KT_CODE_NAMES_H

#include "guest-symbols/gs.h"

/** kt_code_module() - (owned) Return the name of a module as the kernel has it,
 *  with "_" for "-". */
char *kt_code_module(const char *name, size_t len);
/** kt_code_function() - (owned) Return "FUNC" or "MODULE:FUNC" for the name
 *  that a user gave, see above. */
char *kt_code_function(const char *name);
/** kt_code_matches() - Is the symbol the function of kt_code_function()? A name
 *  without a module matches the kernel's function, and that of any module. */
bool kt_code_matches(const char *name, const GsSymbol *sym);

/** kt_code_is_loaded() - Return true if a module of that name is loaded. */
bool kt_code_is_loaded(const GsKernel *k, const char *module);
/**
 * kt_code_missing() - Check that a kernel has a function
 * @name: of kt_code_function()
 *
 * A function of a module that is not loaded is not missing: the module can be
 * loaded later.
 *
 * Returns: (owned, nullable) what is expected instead, on one line, with
 * similar names; NULL: the kernel has it.
 */
char *kt_code_missing(const GsKernel *k, const char *name);

#endif /* KT_CODE_NAMES_H */
