/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Profiles: see profile.h. This file reads the groups of the key file and
 * checks that each hook is complete. profile-keys.c reads single values.
 */
#include "kalloc-tracer/hooks/profile-internal.h"

#include <string.h>


#define FILE_MAX    65536

/* ---- groups ------------------------------------------------------------- */

static void fail(GError **errp, const char *group, const char *format, ...)
    G_GNUC_PRINTF(3, 4);

static void fail(GError **errp, const char *group, const char *format, ...)
{
    g_autofree char *safe = g_strescape(group, NULL);
    g_autofree char *why = NULL;
    va_list ap;

    va_start(ap, format);
    why = g_strdup_vprintf(format, ap);
    va_end(ap);
    g_set_error(errp, GS_ERROR, GS_ERROR_FORMAT, "[%s] %s", safe, why);
}

static bool parse_key(KtProfileReader *p, GKeyFile *file, const char *group,
                      const char *name, const KtProfileKey *key, void *base,
                      GError **errp)
{
    g_autofree char *value = g_key_file_get_value(file, group, name, NULL);
    g_autofree char *safe = NULL;

    g_strchomp(value);
    if (key->parse(p, (char *)base + key->at, value)) {
        return true;
    }
    safe = g_strescape(value, NULL);
    fail(errp, group, "%s = %.80s: not right, use %s", name, safe, key->wants);
    return false;
}

/* Read a group. Each of its keys must be in @keys; if @role is set, the key
 * must suit that role, too. */
static bool parse_group(KtProfileReader *p, GKeyFile *file, const char *group,
                        const KtProfileKeys *keys, const unsigned *role,
                        void *base, GError **errp)
{
    g_auto(GStrv) names = g_key_file_get_keys(file, group, NULL, NULL);

    for (char **name = names; name && *name; name++) {
        const KtProfileKey *key = kt_profile_find_key(keys, *name);

        if (!key || (role && !(key->roles & 1u << *role))) {
            g_autofree char *all =
                kt_profile_key_names(keys, role ? 1u << *role : 0);
            g_autofree char *safe = g_strescape(*name, NULL);

            fail(errp, group,
                 "'%.80s' is not a key of this group: use one of %s", safe,
                 all);
            return false;
        }
        if (!parse_key(p, file, group, *name, key, base, errp)) {
            return false;
        }
    }
    return true;
}

/* ---- hooks -------------------------------------------------------------- */

static bool has_sizes(const KtProfileReader *p, const KtHookDraft *d)
{
    return d->hook.size != KT_NO_ARG || d->sizes.fixed ||
           (d->hook.cache != KT_NO_ARG &&
            p->p.caches.size != KT_NO_MEMBER);
}

/* Return an error if the hook lacks a key or has one too many, else NULL. */
static const char *missing_key(const KtProfileReader *p,
                                   const KtHookDraft *d)
{
    bool alloc = d->hook.role == KT_ROLE_ALLOC;
    bool frees = d->hook.role == KT_ROLE_FREE;
    bool realloc = d->hook.role == KT_ROLE_REALLOC;

    if ((alloc || frees) && !d->has_layer) {
        return "layer is missing: add kmalloc, cache or vmalloc";
    }
    if (alloc && d->hook.layer == KT_LAYER_NONE) {
        return "layer = any is for functions that free: use kmalloc, cache or "
               "vmalloc";
    }
    if (alloc && !has_sizes(p, d)) {
        return "the block's size is not known: add size (an argument), fixed, "
               "or cache and the group [cache] with size_at";
    }
    if (alloc && d->sizes.fixed && d->hook.size != KT_NO_ARG) {
        return "size and fixed exclude each other: remove one of them";
    }
    if ((frees || realloc) && d->hook.ptr == KT_NO_ARG) {
        return "ptr is missing: add the number of the argument that is freed "
               "or resized";
    }
    if (realloc && d->hook.size == KT_NO_ARG) {
        return "size is missing: add the number of the argument with the new "
               "size";
    }
    return NULL;
}

static const KtReserveRule *copy_sizes(KtProfileReader *p,
                                       const KtReserveRule *sizes)
{
    KtReserveRule *kept = g_memdup2(sizes, sizeof(*sizes));

    g_ptr_array_add(p->sizes_of, kept);
    return kept;
}

static bool parse_role_of(KtProfileReader *p, GKeyFile *file, const char *group,
                          KtHookDraft *d, GError **errp)
{
    const KtProfileKey *role = kt_profile_find_key(&kt_profile_hook_keys,
                                                   "role");

    if (!g_key_file_has_key(file, group, "role", NULL)) {
        fail(errp, group, "role is missing: add %s", role->wants);
        return false;
    }
    return parse_key(p, file, group, "role", role, d, errp);
}

static bool parse_hook(KtProfileReader *p, GKeyFile *file, const char *group,
                       GError **errp)
{
    KtHookDraft d = {
        .hook = { .size = KT_NO_ARG, .ptr = KT_NO_ARG, .cache = KT_NO_ARG,
                  .gfp = KT_NO_ARG, .array = KT_NO_ARG, .count = KT_NO_ARG },
        .sizes = p->sizes,
    };
    const char *missing;
    unsigned role;

    if (!kt_profile_parse_name(p, &d.hook.symbol, group + strlen("hook "))) {
        fail(errp, group, "not right, use %s", KT_PROFILE_WANTS_NAME);
        return false;
    }
    if (!parse_role_of(p, file, group, &d, errp)) {
        return false;
    }
    role = d.hook.role;
    if (!parse_group(p, file, group, &kt_profile_hook_keys, &role, &d, errp)) {
        return false;
    }
    missing = missing_key(p, &d);
    if (missing || p->hooks->len == KT_HOOKS_MAX) {
        fail(errp, group, "%s",
             missing ? missing : "more than 254 hooks: remove some");
        return false;
    }
    d.hook.flags = d.inner ? KT_HOOK_INNER : 0;
    d.hook.sizes = role == KT_ROLE_ALLOC ? copy_sizes(p, &d.sizes) : NULL;
    g_array_append_val(p->hooks, d.hook);
    return true;
}

/* If the profile has setup functions, calls from them are no events. */
static void mark_setup(KtProfileReader *p)
{
    bool any = false;

    for (unsigned i = 0; i < p->hooks->len; i++) {
        any |= g_array_index(p->hooks, KtHook, i).role == KT_ROLE_SETUP;
    }
    for (unsigned i = 0; any && i < p->hooks->len; i++) {
        g_array_index(p->hooks, KtHook, i).flags |= KT_HOOK_SETUP;
    }
}

/* ---- the file ----------------------------------------------------------- */

static bool parse_groups(KtProfileReader *p, GKeyFile *file, GError **errp)
{
    g_auto(GStrv) groups = g_key_file_get_groups(file, NULL);

    /* Hooks need the values of these groups, so read them first. */
    if (!parse_group(p, file, "kernel", &kt_profile_kernel_keys, NULL, p,
                     errp) ||
        !parse_group(p, file, "cache", &kt_profile_cache_keys, NULL, p, errp)) {
        return false;
    }
    for (char **g = groups; *g; g++) {
        if (g_str_has_prefix(*g, "hook ")) {
            if (!parse_hook(p, file, *g, errp)) {
                return false;
            }
        } else if (strcmp(*g, "kernel") && strcmp(*g, "cache")) {
            fail(errp, *g, "is not a group: use [kernel], [cache] or "
                 "[hook FUNCTION]");
            return false;
        }
    }
    if (!p->hooks->len) {
        g_set_error(errp, GS_ERROR, GS_ERROR_FORMAT,
                    "no group [hook FUNCTION]: add one, else nothing is "
                    "traced");
        return false;
    }
    return true;
}

static bool load(KtProfileReader *p, const char *data, size_t len,
                 GError **errp)
{
    g_autoptr(GKeyFile) file = g_key_file_new();
    g_autoptr(GError) err = NULL;

    if (len > FILE_MAX) {
        g_set_error(errp, GS_ERROR, GS_ERROR_FORMAT,
                    "more than %d bytes: this is not a profile", FILE_MAX);
        return false;
    }
    if (!g_key_file_load_from_data(file, data, len, G_KEY_FILE_NONE, &err)) {
        g_autofree char *valid = g_utf8_make_valid(err->message, -1);

        g_strdelimit(valid, "\n\r\033\t", ' ');
        g_set_error(errp, GS_ERROR, GS_ERROR_FORMAT, "%s", valid);
        return false;
    }
    return parse_groups(p, file, errp);
}

static KtProfileReader *profile_new(void)
{
    KtProfileReader *p = g_new0(KtProfileReader, 1);

    p->strings = g_string_chunk_new(256);
    p->outermost = g_ptr_array_new();
    p->hooks = g_array_new(FALSE, FALSE, sizeof(KtHook));
    p->sizes_of = g_ptr_array_new_with_free_func(g_free);
    p->p.caches = (KtCacheLayout) {
        .name = KT_NO_MEMBER, .size = KT_NO_MEMBER, .size_bytes = 4,
    };
    return p;
}

void kt_profile_free(KtProfile *profile)
{
    KtProfileReader *p = (KtProfileReader *)profile;

    if (p) {
        g_string_chunk_free(p->strings);
        g_ptr_array_free(p->outermost, TRUE);
        g_array_free(p->hooks, TRUE);
        g_ptr_array_free(p->sizes_of, TRUE);
        g_free(p);
    }
}

KtProfile *kt_profile_new_from_data(const char *data, size_t len,
                                    const char *name, GError **errp)
{
    KtProfileReader *p = profile_new();

    if (!load(p, data, len, errp)) {
        g_prefix_error(errp, "%s: ", name);
        kt_profile_free(&p->p);
        return NULL;
    }
    mark_setup(p);
    g_ptr_array_add(p->outermost, NULL);
    p->p.elf.outermost = (const char *const *)p->outermost->pdata;
    p->p.hook = (const KtHook *)p->hooks->data;
    p->p.n_hooks = p->hooks->len;
    return &p->p;
}

KtProfile *kt_profile_open(const char *path, GError **errp)
{
    g_autoptr(GBytes) bytes = gs_file_read_named(path, FILE_MAX, errp);
    const char *data;
    size_t len;

    if (!bytes) {
        return NULL;
    }
    data = g_bytes_get_data(bytes, &len);
    return kt_profile_new_from_data(data, len, path, errp);
}
