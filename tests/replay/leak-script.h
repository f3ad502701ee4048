/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Golden cases of leak commands. A script changes the small guest of
 * tests/lib/guest-memory.h, then real commands scan its memory. One statement
 * a line; '#' begins a comment; all numbers but US are hex:
 *
 *   alloc VA SIZE US [PC]...   allocate an object, with its stack
 *   object CACHE VA SIZE US [PC]...    the same, of a cache with this name
 *   task COMM                  the task of allocations that follow
 *   free VA US                 free an object
 *   word VA VALUE              write 8 bytes of memory
 *   reg VALUE                  set the only register
 *   hold                       write pointers to all initial blocks
 *   load NAME VA BASE SIZE [FUNCTION]  load a module with one function,
 *                              run() if there is no name
 *   unload VA                  unload it
 *   running                    the VM runs
 *
 * In a word \NNN is a byte, in octal.
 *
 * Single-threaded.
 */
#ifndef LEAK_SCRIPT_H
#define LEAK_SCRIPT_H

#include <glib.h>

typedef struct LeakScript LeakScript;

LeakScript *leak_script_new(void);
void leak_script_free(LeakScript *w);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LeakScript, leak_script_free)

/** leak_script_events() - run a script. An error in the script aborts. */
void leak_script_events(LeakScript *w, const char *script);
/** leak_script_run() - run a command; @rc is its result. Returns: (owned) its
 *  output, with N in place of host times. */
char *leak_script_run(LeakScript *w, const char *line, int *rc);

#endif /* LEAK_SCRIPT_H */
