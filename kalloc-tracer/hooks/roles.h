/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Roles: what hooked functions do. roles.def has a row for each role, and
 * hooks.def gives each function its role. What an entry and a return do is in
 * the table of capture/record.c. Immutable, any thread.
 */
#ifndef KT_ROLES_H
#define KT_ROLES_H

#include "kalloc-tracer/api/kt-event.h"

/** KtRole - what a hooked function does: KT_ROLE_* for each row of
 *  roles.def */
typedef enum KtRole {
#define KT_ROLE(id, ...) KT_ROLE_##id,
#include "kalloc-tracer/hooks/roles.def"
    KT_ROLE__COUNT
} KtRole;

/** Properties of a role. */
typedef enum KtDoes {
    /** Hands memory to its caller, so that its return is an event. */
    KT_DOES_ALLOCATE = 1 << 0,
    /** What it hands out are new blocks of the row's .layer. */
    KT_DOES_MAKE = 1 << 1,
    /** Frees blocks of the row's .family. */
    KT_DOES_FREE = 1 << 2,
    /** Is a wrapper: backtraces that begin in it begin at its caller. */
    KT_DOES_WRAP = 1 << 3,
    /** Is only recognised as a caller: its entry is not hooked. */
    KT_DOES_UNHOOKED = 1 << 4,
    /** Shows where a struct of the kernel has a member. */
    KT_DOES_WITNESS = 1 << 5,
    /** Is followed while recording is off, too: later backtraces need the
     *  symbols of code that is loaded, and the log is no event. */
    KT_DOES_FOLLOW = 1 << 6,
    /** An entry that repeats the one before, which trapped, is the same
     *  call. */
    KT_DOES_RETRY = 1 << 7,
} KtDoes;

/** Rows that are found only on request, for kt_hooks_resolve(). */
typedef enum KtHookSets {
    KT_HOOKS_PAGES = 1 << 0,    /* those of the page allocator */
    KT_HOOKS_LOG = 1 << 1,      /* KT_ROLE_LOG */
    KT_HOOKS_UNTYPED = 1 << 2,  /* set by kt_hooks_resolve() itself: those of a
                                 * kernel without types */
} KtHookSets;

#define KT_LAYERS_SLAB (1u << KT_LAYER_KMALLOC | 1u << KT_LAYER_LARGE | \
                        1u << KT_LAYER_CACHE)
#define KT_LAYERS_VMALLOC (1u << KT_LAYER_VMALLOC)

/** struct KtRoleRow - a row of roles.def, which describes the members
 *  @does: KtDoes bits
 *  @set: KtHookSets bits; 0: always hooked
 *  @word: NULL: a profile cannot have the role */
typedef struct KtRoleRow {
    unsigned does, set;
    unsigned needs_allocs, needs_frees;
    const char *missing, *word;
} KtRoleRow;

/** kt_roles - the rows by KtRole */
extern const KtRoleRow kt_roles[KT_ROLE__COUNT];

/** kt_role_does() - Return true if functions of that role do one of @what,
 *  KtDoes bits. */
static inline bool kt_role_does(KtRole role, unsigned what)
{
    return kt_roles[role].does & what;
}

/** kt_role_is_pages() - Return true if the role is of the page allocator. */
static inline bool kt_role_is_pages(KtRole role)
{
    return kt_roles[role].set & KT_HOOKS_PAGES;
}

#endif /* KT_ROLES_H */
