/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The keys of a profile: how each value is read, and which field it sets. Each
 * kind of group ([kernel], [cache], [hook NAME]) has a table. To add a key, add
 * a row, and if needed a function that parses its value.
 */
#include "kalloc-tracer/hooks/profile-internal.h"

#include <string.h>

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

static bool parse_argument(KtProfileReader *p, void *field, const char *value)
{
    uint64_t n;

    if (!number(value, 5, &n)) {
        return false;
    }
    *(int8_t *)field = n;
    return true;
}

static bool parse_offset(KtProfileReader *p, void *field, const char *value)
{
    uint64_t n;

    if (!number(value, 65535, &n)) {
        return false;
    }
    *(uint32_t *)field = n;
    return true;
}

static bool parse_width(KtProfileReader *p, void *field, const char *value)
{
    uint64_t n;

    if (!number(value, 8, &n) || (n != 2 && n != 4 && n != 8)) {
        return false;
    }
    *(unsigned *)field = n;
    return true;
}

static bool parse_bits(KtProfileReader *p, void *field, const char *value)
{
    uint64_t n;

    if (!number(value, 63, &n) || n < 32) {
        return false;
    }
    *(unsigned *)field = n;
    return true;
}

static bool parse_bytes(KtProfileReader *p, void *field, const char *value)
{
    return number(value, 1ull << 40, field) && *(uint64_t *)field;
}

static bool parse_rounding(KtProfileReader *p, void *field, const char *value)
{
    uint64_t *n = field;

    return parse_bytes(p, field, value) && !(*n & (*n - 1));
}

static bool parse_yes(KtProfileReader *p, void *field, const char *value)
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

bool kt_profile_parse_name(KtProfileReader *p, void *field, const char *value)
{
    if (!is_name(value)) {
        return false;
    }
    *(const char **)field = g_string_chunk_insert_const(p->strings, value);
    return true;
}

/* Call @add for each word of @value; blanks separate words. Return false if
 * there is none, or one is wrong. */
static bool each_word(KtProfileReader *p, void *field, const char *value,
                      bool (*add)(KtProfileReader *, void *, const char *))
{
    g_auto(GStrv) words = g_strsplit_set(value, " \t", -1);
    unsigned n = 0;

    for (char **w = words; *w; w++) {
        if (**w && (!add(p, field, *w) || !++n)) {
            return false;
        }
    }
    return n > 0;
}

static bool add_outermost(KtProfileReader *p, void *field, const char *word)
{
    const char *name;

    if (p->outermost->len == GS_OUTERMOST_MAX ||
        !kt_profile_parse_name(p, &name, word)) {
        return false;
    }
    g_ptr_array_add(p->outermost, (char *)name);
    return true;
}

static bool parse_outermost(KtProfileReader *p, void *field, const char *value)
{
    return each_word(p, field, value, add_outermost);
}

static bool add_bucket(KtProfileReader *p, void *field, const char *word)
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

static bool parse_buckets(KtProfileReader *p, void *field, const char *value)
{
    ((KtReserveRule *)field)->n_buckets = 0;
    return each_word(p, field, value, add_bucket);
}

static bool parse_role(KtProfileReader *p, void *field, const char *value)
{
    KtHookDraft *d = field;

    for (KtRole role = 0; role < KT_ROLE__COUNT; role++) {
        if (!g_strcmp0(value, kt_roles[role].word)) {
            d->hook.role = role;
            d->has_role = true;
        }
    }
    return d->has_role;
}

static bool parse_layer(KtProfileReader *p, void *field, const char *value)
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
    KtHookDraft *d = field;

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

static const KtProfileKey kernel_keys[] = {
    { "start", kt_profile_parse_name, offsetof(KtProfileReader, p.elf.start),
      KT_PROFILE_WANTS_NAME },
    { "outermost", parse_outermost, 0, "functions' names, at most 16" },
    { "va_bits", parse_bits, offsetof(KtProfileReader, p.elf.va_bits),
      "the bits of an address, 32 to 63" },
    { "rounding", parse_rounding, offsetof(KtProfileReader, sizes.rounding),
      WANTS_ROUNDING },
    { "buckets", parse_buckets, offsetof(KtProfileReader, sizes),
      WANTS_BUCKETS },
};

static const KtProfileKey cache_keys[] = {
    { "name_at", parse_offset, offsetof(KtProfileReader, p.caches.name),
      WANTS_OFFSET },
    { "size_at", parse_offset, offsetof(KtProfileReader, p.caches.size),
      WANTS_OFFSET },
    { "size_bytes", parse_width, offsetof(KtProfileReader, p.caches.size_bytes),
      "2, 4 or 8" },
};

#define ARGUMENT(field, roles) \
    { #field, parse_argument, offsetof(KtHookDraft, hook.field), \
      WANTS_ARGUMENT, roles }

static const KtProfileKey hook_keys[] = {
    { "role", parse_role, 0, "alloc, free, realloc, wrapper or setup", ~0u },
    { "layer", parse_layer, 0, "kmalloc, cache, vmalloc, or any (of a free)",
      ROLE(ALLOC) | ROLE(FREE) },
    ARGUMENT(size, ROLE(ALLOC) | ROLE(FREE) | ROLE(REALLOC)),
    ARGUMENT(ptr, ROLE(FREE) | ROLE(REALLOC)),
    ARGUMENT(cache, ROLE(ALLOC) | ROLE(FREE)),
    { "flags", parse_argument, offsetof(KtHookDraft, hook.gfp), WANTS_ARGUMENT,
      ROLE(ALLOC) },
    { "fixed", parse_bytes, offsetof(KtHookDraft, sizes.fixed), WANTS_BYTES,
      ROLE(ALLOC) },
    { "rounding", parse_rounding, offsetof(KtHookDraft, sizes.rounding),
      WANTS_ROUNDING, ROLE(ALLOC) },
    { "buckets", parse_buckets, offsetof(KtHookDraft, sizes), WANTS_BUCKETS,
      ROLE(ALLOC) },
    { "inner", parse_yes, offsetof(KtHookDraft, inner), "yes or no",
      ROLE(ALLOC) | ROLE(FREE) },
};

#define TABLE(keys) { keys, G_N_ELEMENTS(keys) }
const KtProfileKeys kt_profile_kernel_keys = TABLE(kernel_keys);
const KtProfileKeys kt_profile_cache_keys = TABLE(cache_keys);
const KtProfileKeys kt_profile_hook_keys = TABLE(hook_keys);

char *kt_profile_key_names(const KtProfileKeys *t, unsigned roles)
{
    GString *s = g_string_new(NULL);

    for (unsigned i = 0; i < t->n; i++) {
        if (!roles || (t->key[i].roles & roles)) {
            g_string_append_printf(s, "%s%s", s->len ? ", " : "",
                                   t->key[i].name);
        }
    }
    return g_string_free(s, FALSE);
}

const KtProfileKey *kt_profile_find_key(const KtProfileKeys *t,
                                        const char *name)
{
    for (unsigned i = 0; i < t->n; i++) {
        if (!strcmp(t->key[i].name, name)) {
            return &t->key[i];
        }
    }
    return NULL;
}
