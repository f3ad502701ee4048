/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What profile.c and profile-keys.c share: a profile while it is read. */
#ifndef KT_PROFILE_INTERNAL_H
#define KT_PROFILE_INTERNAL_H

#include "kalloc-tracer/hooks/profile.h"

/**
 * struct KtProfileReader - a profile and the memory that it owns
 * @p: what kt_profile_open() returns; the first member
 * @sizes: the rule of [kernel], for hooks without keys of their own
 * @strings: owns all names
 * @outermost: names of @p.elf.outermost
 * @hooks: of KtHook, complete ones
 * @sizes_of: owns a KtReserveRule for each allocating hook
 */
typedef struct KtProfileReader {
    KtProfile p;
    KtReserveRule sizes;
    GStringChunk *strings;
    GPtrArray *outermost;
    GArray *hooks;
    GPtrArray *sizes_of;
} KtProfileReader;

/** struct KtHookDraft - a [hook] group while its keys are read */
typedef struct KtHookDraft {
    KtHook hook;
    KtReserveRule sizes;
    bool has_role, has_layer, inner;
} KtHookDraft;

/**
 * struct KtProfileKey - a key that a group may have
 * @parse: stores @value in @field; returns false if the value is wrong
 * @at: offset of the field in the group's struct
 * @wants: what a right value is, for the error
 * @roles: bits 1 << KT_ROLE_*: hooks with these roles may have the key
 */
typedef struct KtProfileKey {
    const char *name;
    bool (*parse)(KtProfileReader *p, void *field, const char *value);
    size_t at;
    const char *wants;
    unsigned roles;
} KtProfileKey;

/** struct KtProfileKeys - the keys of one kind of group */
typedef struct KtProfileKeys {
    const KtProfileKey *key;
    unsigned n;
} KtProfileKeys;

/** kt_profile_kernel_keys, kt_profile_cache_keys - fields of KtProfileReader */
extern const KtProfileKeys kt_profile_kernel_keys, kt_profile_cache_keys;
/** kt_profile_hook_keys - fields of a KtHookDraft */
extern const KtProfileKeys kt_profile_hook_keys;

#define KT_PROFILE_WANTS_NAME "a function's name"

/** kt_profile_parse_name() - Copy a function's name to @field, a const char *;
 *  false if @value is no name. */
bool kt_profile_parse_name(KtProfileReader *p, void *field, const char *value);
/** kt_profile_find_key() - (nullable) Return the row of a key. */
const KtProfileKey *kt_profile_find_key(const KtProfileKeys *t,
                                        const char *name);
/** kt_profile_key_names() - (owned) List the keys that @roles may have, with
 *  commas in between; 0: all keys. */
char *kt_profile_key_names(const KtProfileKeys *t, unsigned roles);

#endif /* KT_PROFILE_INTERNAL_H */
