/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Identity of a finding: by what two reports are told to be of the same bug,
 * over boots, builds and kernels.
 *
 *     title   double-free in close_it
 *     alt     bad-free of kmalloc-64 from open_it
 *     fold    hash of the functions of its stacks: the same in other builds
 *     exact   hash with the offsets of the calls, too: the same in this build
 *
 * A stack counts from the leaf to the entry of a system call, an interrupt or
 * an exception. The title names the first function that does more than the work
 * of its caller. For fold helpers are left out, and a function counts once in
 * a stack: neither an inlined wrapper nor the depth of a recursion matters.
 * Neither hash has addresses, so KASLR does not matter.
 *
 * An McIdentityMaker belongs to one thread.
 */
#ifndef MC_IDENTITY_H
#define MC_IDENTITY_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/** Hex digits of the hashes: the first half of SHA-256. */
#define MC_IDENTITY_DIGITS 32

/** What a title has between the kind and the function. */
#define MC_TITLE_IN " in "

/** Kind of all leaks: one that a search finds, and one of a cache that is
 *  destroyed with objects. */
#define MC_KIND_LEAK "leak"

/** The stacks of a finding, in the order in which they are hashed. */
typedef enum McIdentityStack {
    MC_IDENTITY_ERROR,      /* where the error was made */
    MC_IDENTITY_FREE,       /* of the block's free, or of its kfree_rcu() */
    MC_IDENTITY_ALLOC,      /* of the block's allocation */
    MC_IDENTITY__COUNT
} McIdentityStack;

/**
 * struct McIdentity - who a finding is
 * @alt: (owned) NULL-terminated: more titles. If one of the titles of two
 *       findings is the same, they are probably one bug
 * @weak: a stack ended early, is not known, or has frames without a name: the
 *        hashes are of what is known
 */
typedef struct McIdentity {
    char *title;
    char **alt;
    char fold[MC_IDENTITY_DIGITS + 1];
    char exact[MC_IDENTITY_DIGITS + 1];
    bool weak;
} McIdentity;

void mc_identity_free(McIdentity *id);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(McIdentity, mc_identity_free)

typedef struct McIdentityMaker McIdentityMaker;

/** mc_identity_begin() - (owned) Begin an identity. @kind: (borrowed) in the
 *  words of the user. */
McIdentityMaker *mc_identity_begin(const char *kind);
void mc_identity_maker_free(McIdentityMaker *m);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(McIdentityMaker, mc_identity_maker_free)

/** mc_identity_stack() - Begin the next stack; in the order of the enum. */
void mc_identity_stack(McIdentityMaker *m, McIdentityStack which);
/** mc_identity_frame() - Add a frame, the leaf first. @module: (nullable) NULL
 *  is the kernel proper; @name: (nullable) NULL: no symbol covers it. */
void mc_identity_frame(McIdentityMaker *m, const char *module,
                       const char *name, uint64_t offset);
/** mc_identity_stack_end() - End the stack. @whole: its last frame is where the
 *  stack ends. */
void mc_identity_stack_end(McIdentityMaker *m, bool whole);

/** mc_identity_function() - (borrowed, nullable) Return the function of a stack
 *  that a finding is named after. */
const char *mc_identity_function(const McIdentityMaker *m,
                                 McIdentityStack which);
/** mc_identity_alt() - Add the title "@what from F", F as in
 *  mc_identity_function(); nothing if it is not known. */
void mc_identity_alt(McIdentityMaker *m, const char *what,
                     McIdentityStack which);
/** mc_identity_end() - (owned) Return the identity. The title names the
 *  function of the stack @which; @otherwise: (nullable) if it is not known. */
McIdentity *mc_identity_end(McIdentityMaker *m, McIdentityStack which,
                            const char *otherwise);

/** mc_identity_cache() - (owned) Return the name of a cache as all boots have
 *  it: kmalloc-rnd-05-64, one of copies that the kernel chooses by chance, is
 *  kmalloc-64. */
char *mc_identity_cache(const char *name);

#endif /* MC_IDENTITY_H */
