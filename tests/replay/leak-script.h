/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The small guest of lib/leak-guest.h for golden cases: its memory is looked
 * through by real commands. A script sets it up, one statement a line, '#'
 * begins a comment; all numbers but US are hex:
 *
 *   alloc VA SIZE US [PC]...   an object, with its stack
 *   free VA US
 *   word VA VALUE              8 bytes of memory
 *   reg VALUE                  the only register
 *   hold                       the objects that it has from the beginning are
 *                              referred to
 *   running                    the VM runs
 */
#ifndef LEAK_SCRIPT_H
#define LEAK_SCRIPT_H

#include <glib.h>

typedef struct LeakScript LeakScript;

LeakScript *leak_script_new(void);
void leak_script_free(LeakScript *w);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LeakScript, leak_script_free)

/** leak_script_events() - run a script; a wrong one fails the test. */
void leak_script_events(LeakScript *w, const char *script);
/** leak_script_run() - (owned) what a command printed, with N for times of the
 *  host; @rc: its result. */
char *leak_script_run(LeakScript *w, const char *line, int *rc);

#endif /* LEAK_SCRIPT_H */
