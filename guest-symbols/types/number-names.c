/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of numbers, see types-internal.h. */
#include "guest-symbols/types/types-internal.h"

#include <string.h>

#define GFP_PREFIX  "___GFP_"
#define GFP_SUFFIX  "_BIT"

typedef struct Name {
    int number;
    const char *name;
} Name;

static const Name errnos[] = {
#define GS_ERRNO(number, name) { number, name },
#include "guest-symbols/types/number-names.def"
};

static const Name capabilities[] = {
#define GS_CAPABILITY(number, name) { number, name },
#include "guest-symbols/types/number-names.def"
};

/* Bits of gfp_t that are the same in all kernels with BTF (5.2 and later). From
 * 6.10 on, enum ___GFP_*_BIT has these and all others. */
static const Name gfp_bits[] = {
#define GS_GFP_BIT(name, bit) { bit, #name },
#define GS_GFP_OLD_BIT(name, bit) { bit, #name },
#include "guest-symbols/api/gfp-flags.def"
};

enum {
#define GS_GFP_BIT(name, bit) GFP_##name = 1 << (bit),
#define GS_GFP_OLD_BIT(name, bit) GFP_##name = 1 << (bit),
#include "guest-symbols/api/gfp-flags.def"
};

static const struct {
    const char *name;
    uint32_t flags;
} gfp_sums[] = {
#define B(name) GFP_##name
#define GS_GFP_SUM(name, bits) { name, bits },
#define GS_GFP_OLD_SUM(name, bits) { name, bits },
#include "guest-symbols/api/gfp-flags.def"
#undef B
};

static const char *find(const Name *names, size_t n, int64_t number)
{
    for (size_t i = 0; i < n; i++) {
        if (names[i].number == number) {
            return names[i].name;
        }
    }
    return NULL;
}

const char *gs_number_name(GsNumberNames names, int64_t number)
{
    return names == GS_NAMES_ERRNO ?
           find(errnos, G_N_ELEMENTS(errnos), number) :
           names == GS_NAMES_CAPABILITY ?
           find(capabilities, G_N_ELEMENTS(capabilities), number) : NULL;
}

static bool find_number(const Name *names, size_t n, const char *name,
                        int64_t *number)
{
    for (size_t i = 0; i < n; i++) {
        if (!strcmp(names[i].name, name)) {
            *number = names[i].number;
            return true;
        }
    }
    return false;
}

bool gs_number_find(const char *name, int64_t *number)
{
    return find_number(errnos, G_N_ELEMENTS(errnos), name, number) ||
           find_number(capabilities, G_N_ELEMENTS(capabilities), name, number);
}

const char *gs_number_nth(unsigned i)
{
    if (i < G_N_ELEMENTS(errnos)) {
        return errnos[i].name;
    }
    i -= G_N_ELEMENTS(errnos);
    return i < G_N_ELEMENTS(capabilities) ? capabilities[i].name : NULL;
}

/* ---- gfp_t ---- */

/* Is it the name of a bit, which is between prefix and suffix? */
static bool is_gfp_bit(const char *name, size_t *len)
{
    size_t n = strnlen(name, 64);

    if (n >= 64 || !g_str_has_prefix(name, GFP_PREFIX) ||
        !g_str_has_suffix(name, GFP_SUFFIX) ||
        n <= strlen(GFP_PREFIX) + strlen(GFP_SUFFIX)) {
        return false;
    }
    *len = n - strlen(GFP_PREFIX) - strlen(GFP_SUFFIX);
    return true;
}

static void set_bit(GsGfpNames *names, uint32_t bit, const char *name,
                    size_t len)
{
    if (bit < G_N_ELEMENTS(names->bit) && len < sizeof(names->bit[0])) {
        memcpy(names->bit[bit], name, len);
        names->bit[bit][len] = '\0';
        for (char *c = names->bit[bit]; *c; c++) {
            *c = g_ascii_isgraph(*c) ? *c : '?';
        }
    }
}

/* LAST is the number of bits, and UNUSED is none. */
static bool is_real_bit(const char *name, size_t len)
{
    return !(len == 4 && !strncmp(name, "LAST", len)) &&
           !(len == 6 && !strncmp(name, "UNUSED", len));
}

static bool read_enum(GsGfpNames *names, const GsBtfRecords *r,
                      const GsBtfType *t)
{
    bool found = false;
    size_t len;

    for (uint32_t i = 0; i < t->vlen; i++) {
        const char *name = gs_btf_name(r, gs_btf_word(t, i * 2ul));

        if (!is_gfp_bit(name, &len)) {
            break;
        }
        found = true;
        if (is_real_bit(name + strlen(GFP_PREFIX), len)) {
            set_bit(names, gs_btf_word(t, i * 2ul + 1),
                    name + strlen(GFP_PREFIX), len);
        }
    }
    return found;
}

GsGfpNames *gs_gfp_names_new(const GsBtfRecords *r)
{
    GsGfpNames *names = g_new0(GsGfpNames, 1);
    GsBtfType t;

    for (uint32_t id = 1; id < r->n; id++) {
        if (gs_btf_type(r, id, &t) && t.kind == GS_BTF_ENUM &&
            read_enum(names, r, &t)) {
            return names;
        }
    }
    for (size_t i = 0; i < G_N_ELEMENTS(gfp_bits); i++) {
        set_bit(names, gfp_bits[i].number, gfp_bits[i].name,
                strlen(gfp_bits[i].name));
    }
    return names;
}

static void add_word(GString *to, size_t start, const char *word)
{
    g_string_append_printf(to, "%s%s", to->len > start ? "|" : "", word);
}

void gs_gfp_print(GString *to, const GsGfpNames *names, uint32_t flags)
{
    size_t start = to->len;

    for (size_t i = 0; i < G_N_ELEMENTS(gfp_sums); i++) {
        if ((flags & gfp_sums[i].flags) == gfp_sums[i].flags) {
            add_word(to, start, gfp_sums[i].name);
            flags &= ~gfp_sums[i].flags;
            break;
        }
    }
    for (unsigned bit = 0; bit < G_N_ELEMENTS(names->bit); bit++) {
        if (flags >> bit & 1 && *names->bit[bit]) {
            add_word(to, start, names->bit[bit]);
            flags &= ~(1u << bit);
        }
    }
    if (flags) {
        g_string_append_printf(to, "%s0x%x", to->len > start ? "|" : "",
                               flags);
    }
}
