/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Profiles: key files, see profile.h. Read once, at install, in QEMU's main
 * thread; constant afterwards.
 *
 * A group's keys are a table of where their values go and how they are read;
 * what a hook needs is a table by its role.
 */
#include "kalloc-tracer/hooks/profile.h"

#include <string.h>

#define FILE_MAX    65536
#define HOOKS_MAX   254

typedef struct Profile {
    KtProfile p;
    KtReserveRule sizes; /* of hooks that do not say themselves */
    GStringChunk *strings;
    GPtrArray *outermost;
    GArray *hooks;              /* KtHook, once they are complete */
    GPtrArray *sizes_of;        /* KtReserveRule of single hooks */
} Profile;

/* A hook's group. */
typedef struct Draft {
    KtHook hook;
    KtReserveRule sizes;
    bool has_role, has_layer, inner;
} Draft;

/**
 * struct Key - a row of a group
 * @parse: @value to @field, false when it cannot be one
 * @at: where the field is in the group's struct
 * @roles: of hooks that may have it, bits
 */
typedef struct Key {
    const char *name;
    bool (*parse)(Profile *p, void *field, const char *value);
    size_t at;
    const char *wants;
    unsigned roles;
} Key;

#define ROLE(r) (1u << KT_ROLE_##r)

/* ---- values ------------------------------------------------------------- */

static bool number(const char *s, uint64_t max, uint64_t *out)
{
    char *end;

    if (!g_ascii_isdigit(*s)) {
        return false;
    }
    *out = g_ascii_strtoull(s, &end, 0);
    return !*end && *out <= max;
}

static bool parse_argument(Profile *p, void *field, const char *value)
{
    uint64_t n;

    if (!number(value, 5, &n)) {
        return false;
    }
    *(int8_t *)field = n;
    return true;
}

static bool parse_offset(Profile *p, void *field, const char *value)
{
    uint64_t n;

    if (!number(value, 65535, &n)) {
        return false;
    }
    *(uint32_t *)field = n;
    return true;
}

static bool parse_width(Profile *p, void *field, const char *value)
{
    uint64_t n;

    if (!number(value, 8, &n) || (n != 2 && n != 4 && n != 8)) {
        return false;
    }
    *(unsigned *)field = n;
    return true;
}

static bool parse_bits(Profile *p, void *field, const char *value)
{
    uint64_t n;

    if (!number(value, 63, &n) || n < 32) {
        return false;
    }
    *(unsigned *)field = n;
    return true;
}

static bool parse_bytes(Profile *p, void *field, const char *value)
{
    return number(value, 1ull << 40, field) && *(uint64_t *)field;
}

static bool parse_rounding(Profile *p, void *field, const char *value)
{
    uint64_t *n = field;

    return parse_bytes(p, field, value) && !(*n & (*n - 1));
}

static bool parse_yes(Profile *p, void *field, const char *value)
{
    *(bool *)field = !strcmp(value, "yes");
    return *(bool *)field || !strcmp(value, "no");
}

static bool is_name(const char *s)
{
    size_t len = strlen(s);

    for (size_t i = 0; i < len; i++) {
        if (!g_ascii_isgraph(s[i])) {
            return false;
        }
    }
    return len && len <= KT_HOOK_NAME_MAX;
}

static bool parse_name(Profile *p, void *field, const char *value)
{
    if (!is_name(value)) {
        return false;
    }
    *(const char **)field = g_string_chunk_insert_const(p->strings, value);
    return true;
}

/* Words are apart by blanks. */
static bool each_word(Profile *p, void *field, const char *value,
                      bool (*take)(Profile *, void *, const char *))
{
    g_auto(GStrv) words = g_strsplit_set(value, " \t", -1);
    unsigned n = 0;

    for (char **w = words; *w; w++) {
        if (**w && (!take(p, field, *w) || !++n)) {
            return false;
        }
    }
    return n > 0;
}

static bool take_outermost(Profile *p, void *field, const char *word)
{
    const char *name;

    if (p->outermost->len == GS_OUTERMOST_MAX ||
        !parse_name(p, &name, word)) {
        return false;
    }
    g_ptr_array_add(p->outermost, (char *)name);
    return true;
}

static bool parse_outermost(Profile *p, void *field, const char *value)
{
    return each_word(p, field, value, take_outermost);
}

static bool take_bucket(Profile *p, void *field, const char *word)
{
    KtReserveRule *s = field;
    uint64_t n;

    if (s->n_buckets == KT_BUCKETS_MAX || !parse_bytes(p, &n, word) ||
        (s->n_buckets && n <= s->bucket[s->n_buckets - 1])) {
        return false;
    }
    s->bucket[s->n_buckets++] = n;
    return true;
}

static bool parse_buckets(Profile *p, void *field, const char *value)
{
    ((KtReserveRule *)field)->n_buckets = 0;
    return each_word(p, field, value, take_bucket);
}

static bool parse_role(Profile *p, void *field, const char *value)
{
    static const struct {
        const char *name;
        KtRole role;
    } roles[] = {
        { "alloc", KT_ROLE_ALLOC }, { "free", KT_ROLE_FREE },
        { "realloc", KT_ROLE_REALLOC }, { "wrapper", KT_ROLE_WRAPPER },
        { "setup", KT_ROLE_SETUP },
    };
    Draft *d = field;

    for (size_t i = 0; i < G_N_ELEMENTS(roles); i++) {
        if (!strcmp(value, roles[i].name)) {
            d->hook.role = roles[i].role;
            d->has_role = true;
        }
    }
    return d->has_role;
}

static bool parse_layer(Profile *p, void *field, const char *value)
{
    static const struct {
        const char *name;
        KtLayer layer;
        KtFamily family;
    } layers[] = {
        { "kmalloc", KT_LAYER_KMALLOC, KT_FAMILY_KMALLOC },
        { "cache", KT_LAYER_CACHE, KT_FAMILY_ZONE },
        { "vmalloc", KT_LAYER_VMALLOC, KT_FAMILY_VFREE },
        { "any", KT_LAYER_NONE, KT_FAMILY_ANY },
    };
    Draft *d = field;

    for (size_t i = 0; i < G_N_ELEMENTS(layers); i++) {
        if (!strcmp(value, layers[i].name)) {
            d->hook.layer = layers[i].layer;
            d->hook.family = layers[i].family;
            d->has_layer = true;
        }
    }
    return d->has_layer;
}

/* ---- keys --------------------------------------------------------------- */

#define WANTS_ARGUMENT "an argument's number, 0 to 5"
#define WANTS_OFFSET "an offset in bytes, less than 65536"
#define WANTS_BYTES "a number of bytes, such as 4096 or 0x180"
#define WANTS_ROUNDING "a power of two, such as 16"
#define WANTS_BUCKETS "sizes in bytes, ascending, at most 64 of them"
#define WANTS_NAME "a function's name"

static const Key kernel_keys[] = {
    { "start", parse_name, offsetof(Profile, p.elf.start), WANTS_NAME },
    { "outermost", parse_outermost, 0, "functions' names, at most 16" },
    { "va_bits", parse_bits, offsetof(Profile, p.elf.va_bits),
      "the bits of an address, 32 to 63" },
    { "rounding", parse_rounding, offsetof(Profile, sizes.rounding),
      WANTS_ROUNDING },
    { "buckets", parse_buckets, offsetof(Profile, sizes), WANTS_BUCKETS },
};

static const Key cache_keys[] = {
    { "name_at", parse_offset, offsetof(Profile, p.caches.name),
      WANTS_OFFSET },
    { "size_at", parse_offset, offsetof(Profile, p.caches.size),
      WANTS_OFFSET },
    { "size_bytes", parse_width, offsetof(Profile, p.caches.size_bytes),
      "2, 4 or 8" },
};

#define ARGUMENT(field, roles) \
    { #field, parse_argument, offsetof(Draft, hook.field), WANTS_ARGUMENT, \
      roles }

static const Key hook_keys[] = {
    { "role", parse_role, 0, "alloc, free, realloc, wrapper or setup", ~0u },
    { "layer", parse_layer, 0, "kmalloc, cache, vmalloc, or any (of a free)",
      ROLE(ALLOC) | ROLE(FREE) },
    ARGUMENT(size, ROLE(ALLOC) | ROLE(FREE) | ROLE(REALLOC)),
    ARGUMENT(ptr, ROLE(FREE) | ROLE(REALLOC)),
    ARGUMENT(cache, ROLE(ALLOC) | ROLE(FREE)),
    { "flags", parse_argument, offsetof(Draft, hook.gfp), WANTS_ARGUMENT,
      ROLE(ALLOC) },
    { "fixed", parse_bytes, offsetof(Draft, sizes.fixed), WANTS_BYTES,
      ROLE(ALLOC) },
    { "rounding", parse_rounding, offsetof(Draft, sizes.rounding),
      WANTS_ROUNDING, ROLE(ALLOC) },
    { "buckets", parse_buckets, offsetof(Draft, sizes), WANTS_BUCKETS,
      ROLE(ALLOC) },
    { "inner", parse_yes, offsetof(Draft, inner), "yes or no",
      ROLE(ALLOC) | ROLE(FREE) },
};

/* ---- groups ------------------------------------------------------------- */

static char *key_names(const Key *keys, size_t n, unsigned role)
{
    GString *s = g_string_new(NULL);

    for (size_t i = 0; i < n; i++) {
        if (!role || (keys[i].roles & role)) {
            g_string_append_printf(s, "%s%s", s->len ? ", " : "",
                                   keys[i].name);
        }
    }
    return g_string_free(s, FALSE);
}

static const Key *find_key(const Key *keys, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (!strcmp(keys[i].name, name)) {
            return &keys[i];
        }
    }
    return NULL;
}

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

static bool parse_key(Profile *p, GKeyFile *file, const char *group,
                      const char *name, const Key *key, void *base,
                      GError **errp)
{
    g_autofree char *value = g_key_file_get_value(file, group, name, NULL);
    g_autofree char *safe = NULL;

    g_strchomp(value);
    if (key->parse(p, (char *)base + key->at, value)) {
        return true;
    }
    safe = g_strescape(value, NULL);
    fail(errp, group, "%s = %.80s: wants %s", name, safe, key->wants);
    return false;
}

/* Each key of the group must be a row, and of hooks one that suits @role. */
static bool parse_group(Profile *p, GKeyFile *file, const char *group,
                        const Key *keys, size_t n, const unsigned *role,
                        void *base, GError **errp)
{
    g_auto(GStrv) names = g_key_file_get_keys(file, group, NULL, NULL);

    for (char **name = names; name && *name; name++) {
        const Key *key = find_key(keys, n, *name);

        if (!key || (role && !(key->roles & 1u << *role))) {
            g_autofree char *all = key_names(keys, n, role ? 1u << *role : 0);
            g_autofree char *safe = g_strescape(*name, NULL);

            fail(errp, group, "no key '%.80s' here: there are %s", safe, all);
            return false;
        }
        if (!parse_key(p, file, group, *name, key, base, errp)) {
            return false;
        }
    }
    return true;
}

#define GROUP(p, file, group, keys, role, base, errp) \
    parse_group(p, file, group, keys, G_N_ELEMENTS(keys), role, base, errp)

/* ---- hooks -------------------------------------------------------------- */

static bool has_sizes(const Profile *p, const Draft *d)
{
    return d->hook.size != KT_NO_ARG || d->sizes.fixed ||
           (d->hook.cache != KT_NO_ARG &&
            p->p.caches.size != KT_NO_MEMBER);
}

/* NULL, or what the hook lacks. */
static const char *what_is_missing(const Profile *p, const Draft *d)
{
    bool alloc = d->hook.role == KT_ROLE_ALLOC;
    bool frees = d->hook.role == KT_ROLE_FREE;
    bool realloc = d->hook.role == KT_ROLE_REALLOC;

    if ((alloc || frees) && !d->has_layer) {
        return "layer is missing: kmalloc, cache or vmalloc";
    }
    if (alloc && d->hook.layer == KT_LAYER_NONE) {
        return "layer = any is for functions that free";
    }
    if (alloc && !has_sizes(p, d)) {
        return "nothing tells the size: add size (an argument), fixed, or "
               "cache and the group [cache] with size_at";
    }
    if (alloc && d->sizes.fixed && d->hook.size != KT_NO_ARG) {
        return "size and fixed are both given: one of them";
    }
    if ((frees || realloc) && d->hook.ptr == KT_NO_ARG) {
        return "ptr is missing: the argument that is freed or resized";
    }
    if (realloc && d->hook.size == KT_NO_ARG) {
        return "size is missing: the argument with the new size";
    }
    return NULL;
}

static const KtReserveRule *keep_sizes(Profile *p, const KtReserveRule *sizes)
{
    KtReserveRule *kept = g_memdup2(sizes, sizeof(*sizes));

    g_ptr_array_add(p->sizes_of, kept);
    return kept;
}

static bool parse_role_of(Profile *p, GKeyFile *file, const char *group,
                          Draft *d, GError **errp)
{
    if (!g_key_file_has_key(file, group, "role", NULL)) {
        fail(errp, group, "role is missing: %s", hook_keys[0].wants);
        return false;
    }
    return parse_key(p, file, group, "role", &hook_keys[0], d, errp);
}

static bool parse_hook(Profile *p, GKeyFile *file, const char *group,
                       GError **errp)
{
    Draft d = {
        .hook = { .size = KT_NO_ARG, .ptr = KT_NO_ARG, .cache = KT_NO_ARG,
                  .gfp = KT_NO_ARG, .array = KT_NO_ARG, .count = KT_NO_ARG },
        .sizes = p->sizes,
    };
    const char *missing;
    unsigned role;

    if (!parse_name(p, &d.hook.symbol, group + strlen("hook "))) {
        fail(errp, group, "wants %s", WANTS_NAME);
        return false;
    }
    if (!parse_role_of(p, file, group, &d, errp)) {
        return false;
    }
    role = d.hook.role;
    if (!GROUP(p, file, group, hook_keys, &role, &d, errp)) {
        return false;
    }
    missing = what_is_missing(p, &d);
    if (missing || p->hooks->len == HOOKS_MAX) {
        fail(errp, group, "%s", missing ? missing : "more than 254 hooks");
        return false;
    }
    d.hook.flags = d.inner ? KT_HOOK_INNER : 0;
    d.hook.sizes = role == KT_ROLE_ALLOC ? keep_sizes(p, &d.sizes) : NULL;
    g_array_append_val(p->hooks, d.hook);
    return true;
}

/* Calls from inside a function that fills the allocator are no events. */
static void note_setup(Profile *p)
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

static bool parse_groups(Profile *p, GKeyFile *file, GError **errp)
{
    g_auto(GStrv) groups = g_key_file_get_groups(file, NULL);

    /* The groups that hooks depend on come first, wherever they stand. */
    if (!GROUP(p, file, "kernel", kernel_keys, NULL, p, errp) ||
        !GROUP(p, file, "cache", cache_keys, NULL, p, errp)) {
        return false;
    }
    for (char **g = groups; *g; g++) {
        if (g_str_has_prefix(*g, "hook ")) {
            if (!parse_hook(p, file, *g, errp)) {
                return false;
            }
        } else if (strcmp(*g, "kernel") && strcmp(*g, "cache")) {
            fail(errp, *g, "is no group: there are [kernel], [cache] and "
                 "[hook FUNCTION]");
            return false;
        }
    }
    if (!p->hooks->len) {
        g_set_error(errp, GS_ERROR, GS_ERROR_FORMAT,
                    "no group [hook FUNCTION]: nothing would be traced");
        return false;
    }
    return true;
}

static bool load(Profile *p, const char *data, size_t len, GError **errp)
{
    g_autoptr(GKeyFile) file = g_key_file_new();
    g_autoptr(GError) err = NULL;

    if (len > FILE_MAX) {
        g_set_error(errp, GS_ERROR, GS_ERROR_FORMAT,
                    "more than %d bytes: is it a profile?", FILE_MAX);
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

static Profile *profile_new(void)
{
    Profile *p = g_new0(Profile, 1);

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
    Profile *p = (Profile *)profile;

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
    Profile *p = profile_new();

    if (!load(p, data, len, errp)) {
        g_prefix_error(errp, "%s: ", name);
        kt_profile_free(&p->p);
        return NULL;
    }
    note_setup(p);
    g_ptr_array_add(p->outermost, NULL);
    p->p.elf.outermost = (const char *const *)p->outermost->pdata;
    p->p.hook = (const KtHook *)p->hooks->data;
    p->p.n_hooks = p->hooks->len;
    return &p->p;
}

KtProfile *kt_profile_open(const char *path, GError **errp)
{
    g_autofree char *data = NULL;
    size_t len;

    if (!g_file_test(path, G_FILE_TEST_IS_REGULAR)) {
        g_set_error(errp, GS_ERROR, GS_ERROR_IO,
                    "%s: no such file, or not a regular one", path);
        return NULL;
    }
    return g_file_get_contents(path, &data, &len, errp)
           ? kt_profile_new_from_data(data, len, path, errp) : NULL;
}
