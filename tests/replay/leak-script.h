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
#ifndef LEAK_WORLD_H
#define LEAK_WORLD_H

#include <glib.h>

typedef struct LeakWorld LeakWorld;

LeakWorld *leak_world_new(void);
void leak_world_free(LeakWorld *w);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LeakWorld, leak_world_free)

/** leak_world_events() - run a script; a wrong one fails the test. */
void leak_world_events(LeakWorld *w, const char *script);
/** leak_world_run() - (owned) what a command printed, with N for times of the
 *  host; @rc: its result. */
char *leak_world_run(LeakWorld *w, const char *line, int *rc);

#endif /* LEAK_WORLD_H */
