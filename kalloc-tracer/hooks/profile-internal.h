/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What profile.c and profile-keys.c share: a profile while it is read. */
#ifndef KT_PROFILE_INTERNAL_H
#define KT_PROFILE_INTERNAL_H

#include "kalloc-tracer/hooks/profile.h"

typedef struct KtProfileReader {
    KtProfile p;
    KtReserveRule sizes; /* of hooks that do not say themselves */
    GStringChunk *strings;
    GPtrArray *outermost;
    GArray *hooks;              /* KtHook, once they are complete */
    GPtrArray *sizes_of;        /* KtReserveRule of single hooks */
} KtProfileReader;

/* A hook's group. */
typedef struct KtHookDraft {
    KtHook hook;
    KtReserveRule sizes;
    bool has_role, has_layer, inner;
} KtHookDraft;

/**
 * struct KtProfileKey - a row of a group
 * @parse: @value to @field, false when it cannot be one
 * @at: where the field is in the group's struct
 * @roles: of hooks that may have it, bits
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
