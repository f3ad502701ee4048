/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Similar names, for errors. No locks; any thread.
 *
 *     g_auto(McNear) near = { .word = word };
 *
 *     mc_near_try(&near, ...);         for each name that exists
 *     if (near.best) ...
 */
#ifndef MC_NEAR_H
#define MC_NEAR_H

#include <glib.h>

/**
 * struct McNear - search names for one whose misspelling @word may be
 * @word: (borrowed) the unknown word
 * @best: (owned) the nearest name so far, NULL: none is near
 * @edits: letters in which @best differs
 */
typedef struct McNear {
    const char *word;
    char *best;
    unsigned edits;
} McNear;

/** mc_near_try() - compare one more name */
void mc_near_try(McNear *near, const char *name);
void mc_near_deinit(McNear *near);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(McNear, mc_near_deinit)

#endif /* MC_NEAR_H */
