/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the name of a function says: the function of the source that it stands
 * for, and whether a finding may be named after it. The lists are in
 * helper-functions.def.
 *
 * Constant tables: any thread.
 */
#ifndef MC_HELPER_FUNCTIONS_H
#define MC_HELPER_FUNCTIONS_H

#include <glib.h>
#include <stdbool.h>

/** mc_source_function() - (owned) Return the name without what compilers and
 *  kernels add to it. Compilers append .isra.0, .constprop.0, .part.0, .cold,
 *  .llvm.123 and others; no name in C has a dot. Kernels append _noprof, and
 *  name the function of a system call in several ways: it becomes sys_NAME. */
char *mc_source_function(const char *name);

/** mc_is_helper() - Return true if a function of the kernel proper only does
 *  the work of its caller. @name: as mc_source_function() returns it. */
bool mc_is_helper(const char *name);

/** mc_is_entry() - Return true if a stack ends in front of this function of the
 *  kernel proper: system calls, interrupts and exceptions begin there. */
bool mc_is_entry(const char *name);

#endif /* MC_HELPER_FUNCTIONS_H */
