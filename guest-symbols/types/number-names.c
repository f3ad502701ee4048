/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of numbers, see number-names.h. */
#include "guest-symbols/types/number-names.h"

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

static const Name gfp_bits[] = {
#define GS_GFP_BIT(number, name) { number, name },
#include "guest-symbols/types/number-names.def"
};

static const struct {
    const char *name;
    uint32_t flags;
} gfp_sums[] = {
#define GS_GFP(name, flags) { name, flags },
#include "guest-symbols/types/number-names.def"
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
