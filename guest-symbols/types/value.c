/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copied values as text, see value.h. */
#include "guest-symbols/types/value.h"
#include "guest-symbols/types/btf.h"
#include "guest-symbols/types/types-internal.h"

#include <inttypes.h>

#define ERRNO_MAX   4095        /* MAX_ERRNO of include/linux/err.h */
#define STEPS_MAX   4096        /* of a walk */
#define NAME_BYTES   64          /* printed bytes of a member or enumerator */
#define CHAIN_MAX   32
#define ELLIPSIS    "..."

/* ---- bytes ---- */

static bool read_bits(const uint8_t *bytes, size_t len, uint64_t bit,
                      unsigned bits, uint64_t *value)
{
    uint64_t first = bit / 8, n = (bit % 8 + bits + 7) / 8;
    unsigned __int128 all = 0;

    if (!bits || bits > 64 || first > len || n > len - first) {
        return false;
    }
    for (unsigned i = 0; i < n; i++) {
        all |= (unsigned __int128)bytes[first + i] << i * 8;
    }
    *value = (uint64_t)(all >> bit % 8) & (UINT64_MAX >> (64 - bits));
    return true;
}

/* ---- numbers ---- */

/* A number that was read. @type: behind typedefs */
typedef struct Number {
    const GsBtf *btf;
    const GsLeaf *leaf;
    GsBtfType type;
    GsValueKind kind;
    uint64_t value;
    bool is_signed;
} Number;

static bool has_any(const char *name, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (strstr(name, words[i])) {
            return true;
        }
    }
    return false;
}

static bool names_bits(const char *name)
{
    static const char *const words[] = { "flags", "mask", "addr" };

    return has_any(name, words, G_N_ELEMENTS(words));
}

static bool names_count(const char *name)
{
    static const char *const words[] = { "size", "len", "count", "nr", "num" };

    return has_any(name, words, G_N_ELEMENTS(words)) || !strcmp(name, "n");
}

/* Return true if a name of the number or of one of its typedefs is that of
 * flags or an address. *@named: it has a typedef */
static bool is_bits(const Number *n, bool *named)
{
    const GsBtfRecords *r = gs_btf_records(n->btf);
    uint32_t id = n->leaf->type;
    GsBtfType t;

    *named = false;
    for (unsigned i = 0; i < CHAIN_MAX && gs_btf_type(r, id, &t) &&
                         t.kind != n->type.kind; i++) {
        if (t.kind == GS_BTF_TYPEDEF) {
            *named = true;
            if (names_bits(gs_btf_name(r, t.name))) {
                return true;
            }
        }
        id = t.word;
    }
    return names_bits(n->leaf->name);
}

/* An unsigned long without a typedef is often an address. */
static bool is_hex(const Number *n)
{
    bool named, bits;

    if (n->kind != GS_VALUE_UNSIGNED || n->leaf->bits) {
        return false;
    }
    bits = is_bits(n, &named);
    return bits || (!named && n->leaf->size == 8 &&
                    !names_count(n->leaf->name));
}

static unsigned width(const GsLeaf *leaf)
{
    return leaf->bits ? leaf->bits : leaf->size * 8;
}

static void print_plain(GString *to, const Number *n)
{
    unsigned bits = width(n->leaf);

    if (n->leaf->hex && bits) {
        g_string_append_printf(to, "0x%" PRIx64,
                               n->value & UINT64_MAX >> (64 - MIN(bits, 64)));
    } else if (n->is_signed) {
        g_string_append_printf(to, "%" PRId64, (int64_t)n->value);
    } else {
        g_string_append_printf(to, is_hex(n) ? "0x%" PRIx64 : "%" PRIu64,
                               n->value);
    }
}

/* @name: (nullable) of the number */
static void print_named(GString *to, const Number *n, const char *name)
{
    print_plain(to, n);
    if (name) {
        g_string_append_printf(to, " %s", name);
    }
}

static void print_error_number(GString *to, const Number *n)
{
    int64_t value = n->value;

    print_named(to, n, value < 0 && value >= -ERRNO_MAX ?
                           gs_number_name(GS_NAMES_ERRNO, -value) : NULL);
}

static void print_capability(GString *to, const Number *n)
{
    print_named(to, n, gs_number_name(GS_NAMES_CAPABILITY, n->value));
}

static void print_gfp(GString *to, const Number *n)
{
    g_string_append_printf(to, "0x%" PRIx64, n->value);
    if (n->value) {
        g_string_append_c(to, ' ');
        gs_gfp_print(to, gs_btf_gfp_names(n->btf), n->value);
    }
}

static void print_number(GString *to, const Number *n)
{
    static void (*const print[])(GString *to, const Number *n) = {
        [GS_NAMES_NONE] = print_plain,
        [GS_NAMES_ERRNO] = print_error_number,
        [GS_NAMES_CAPABILITY] = print_capability,
        [GS_NAMES_GFP] = print_gfp,
    };

    print[n->leaf->names](to, n);
}

static void print_bool(GString *to, const Number *n)
{
    if (n->value > 1) {
        print_plain(to, n);
    } else {
        g_string_append(to, n->value ? "true" : "false");
    }
}

static void print_pointer(GString *to, const Number *n)
{
    const char *name = n->value >= -(uint64_t)ERRNO_MAX ?
                       gs_number_name(GS_NAMES_ERRNO, -n->value) : NULL;

    if (name) {
        g_string_append_printf(to, "-%s", name);
    } else {
        g_string_append_printf(to, "0x%" PRIx64, n->value);
    }
}

static void add_name(GString *to, const char *name)
{
    for (unsigned i = 0; name[i] && i < NAME_BYTES; i++) {
        g_string_append_c(to, g_ascii_isgraph(name[i]) ? name[i] : '?');
    }
}

static void print_enum(GString *to, const Number *n)
{
    const char *name = gs_btf_enumerator(n->btf, &n->type, n->value);

    if (!name || !*name) {
        print_plain(to, n);
        return;
    }
    add_name(to, name);
    g_string_append_c(to, '(');
    print_plain(to, n);
    g_string_append_c(to, ')');
}

/* ---- leaves ---- */

static void print_float(GString *to, const uint8_t *bytes, uint32_t size)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    double d = 0;
    float f = 0;

    if (size == sizeof(f)) {
        memcpy(&f, bytes, sizeof(f));
        d = (double)f;
    } else {
        memcpy(&d, bytes, sizeof(d));
    }
    g_string_append(to, g_ascii_formatd(text, sizeof(text), "%g", d));
}

static void print_wide(GString *to, const uint8_t *bytes)
{
    uint64_t low, high;

    read_bits(bytes, 16, 0, 64, &low);
    read_bits(bytes, 16, 64, 64, &high);
    g_string_append_printf(to, "0x%016" PRIx64 "%016" PRIx64, high, low);
}

/* Print a leaf that is no number of 64 bits at most; false if it is one. */
static bool print_other(GString *to, const Number *n, const uint8_t *bytes,
                        size_t len)
{
    const GsLeaf *leaf = n->leaf;
    uint64_t at = leaf->bit / 8;
    bool is_float = n->kind == GS_VALUE_FLOAT;
    bool known = at <= len && leaf->size <= len - at && !leaf->bits;

    if (n->kind >= GS_VALUE_SIGNED && !is_float &&
        (leaf->bits || leaf->size <= 8)) {
        return false;
    }
    if (known && is_float && (leaf->size == 4 || leaf->size == 8)) {
        print_float(to, bytes + at, leaf->size);
    } else if (known && leaf->size == 16 && n->kind >= GS_VALUE_SIGNED) {
        print_wide(to, bytes + at);
    } else {
        g_string_append_c(to, '?');
    }
    return true;
}

static void extend_sign(Number *n, unsigned bits)
{
    if (n->is_signed && bits < 64) {
        n->value = (uint64_t)((int64_t)(n->value << (64 - bits)) >>
                              (64 - bits));
    }
}

/* Find out how a leaf is read. Return false if its type is unknown. */
static bool number_init(Number *n, const GsBtf *btf, const GsLeaf *leaf)
{
    uint32_t id = leaf->type;

    *n = (Number) {
        .btf = btf, .leaf = leaf, .kind = gs_value_kind(btf, id),
    };
    n->is_signed = gs_value_is_signed(btf, id, n->kind);
    return gs_btf_real(gs_btf_records(btf), &id, &n->type);
}

/* The kinds that are numbers of at most 64 bits. */
static void (*const print_kind[])(GString *to, const Number *n) = {
    [GS_VALUE_SIGNED] = print_number, [GS_VALUE_UNSIGNED] = print_number,
    [GS_VALUE_BOOL] = print_bool, [GS_VALUE_ENUM] = print_enum,
    [GS_VALUE_POINTER] = print_pointer,
};

static bool number_read(Number *n, const uint8_t *bytes, size_t len)
{
    unsigned bits = width(n->leaf);

    if (n->kind >= G_N_ELEMENTS(print_kind) || !print_kind[n->kind] ||
        !read_bits(bytes, len, n->leaf->bit, bits, &n->value)) {
        return false;
    }
    extend_sign(n, bits);
    return true;
}

bool gs_value_number(const GsBtf *btf, const GsLeaf *leaf,
                     const uint8_t *bytes, size_t len, uint64_t *value)
{
    Number n;
    bool ok = number_init(&n, btf, leaf) && number_read(&n, bytes, len);

    *value = ok ? n.value : 0;
    return ok;
}

void gs_value_print_leaf(GString *to, const GsBtf *btf, const GsLeaf *leaf,
                         const uint8_t *bytes, size_t len)
{
    Number n;
    bool ok = number_init(&n, btf, leaf);

    if (ok && print_other(to, &n, bytes, len)) {
        return;
    }
    if (ok && number_read(&n, bytes, len)) {
        print_kind[n.kind](to, &n);
    } else {
        g_string_append_c(to, '?');
    }
}

/* ---- text ---- */

static void add_char(GString *to, uint8_t c)
{
    static const char escaped[] = "\a\b\t\n\v\f\r\"\\";
    static const char letter[] = "abtnvfr\"\\";
    const char *at = c ? strchr(escaped, c) : NULL;

    if (at) {
        g_string_append_printf(to, "\\%c", letter[at - escaped]);
    } else if (g_ascii_isprint(c)) {
        g_string_append_c(to, c);
    } else {
        g_string_append_printf(to, "\\x%02x", c);
    }
}

void gs_value_print_text(GString *to, const void *bytes, size_t len)
{
    const uint8_t *s = bytes;
    size_t n = len ? strnlen(bytes, len) : 0;
    size_t i, start = to->len;

    g_string_append_c(to, '"');
    for (i = 0; i < n && to->len - start < GS_VALUE_TEXT_MAX - 8; i++) {
        add_char(to, s[i]);
    }
    g_string_append(to, i < len && !s[i] ? "\"" : "\"" ELLIPSIS);
}

/* ---- values with parts ---- */

static bool is_text(const GsBtf *btf, const GsTypeStep *s)
{
    return s->real.kind == GS_BTF_ARRAY && s->size &&
           gs_value_is_char(btf, gs_btf_word(&s->real, 0));
}

/* A char array may have no NUL. */
static void print_chars(GString *to, const GsTypeStep *s, const uint8_t *bytes,
                        size_t len)
{
    uint64_t at = s->bit / 8;
    size_t there = at < len ? MIN(s->size, len - at) : 0;
    size_t n = there ? strnlen((const char *)bytes + at, there) : 0;

    if (there < s->size && n == there) {
        g_string_append_c(to, '?');
        return;
    }
    gs_value_print_text(to, bytes + at, MIN(n + 1, there));
    if (n == s->size && g_str_has_suffix(to->str, "\"" ELLIPSIS)) {
        g_string_truncate(to, to->len - strlen(ELLIPSIS));
    }
}

static void print_part(GString *to, const GsBtf *btf, GsTypeWalk *w,
                       const GsTypeStep *s, const uint8_t *bytes, size_t len)
{
    const GsLeaf leaf = {
        .type = s->type, .name = s->name, .bit = s->bit, .bits = s->bits,
        .size = s->size, .names = gs_value_names(btf, s->type),
    };

    if (s->kind == GS_STEP_LEAVE) {
        g_string_append_c(to, '}');
        return;
    }
    g_string_append(to, s->index ? "," : "");
    if (*s->name) {
        g_string_append_c(to, '.');
        add_name(to, s->name);
        g_string_append_c(to, '=');
    }
    if (s->kind == GS_STEP_DEEP) {
        g_string_append(to, "{" ELLIPSIS "}");
    } else if (s->kind == GS_STEP_LEAF) {
        gs_value_print_leaf(to, btf, &leaf, bytes, len);
    } else if (is_text(btf, s)) {
        print_chars(to, s, bytes, len);
        gs_type_walk_skip(w);
    } else {
        g_string_append_c(to, '{');
    }
}

static void print_parts(GString *to, const GsBtf *btf, uint32_t type,
                        const uint8_t *bytes, size_t len)
{
    size_t start = to->len;
    GsTypeStep step;
    GsTypeWalk w;

    gs_type_walk_init(&w, gs_btf_records(btf), type, STEPS_MAX);
    while (to->len - start <= GS_VALUE_TEXT_MAX &&
           gs_type_walk_next(&w, &step)) {
        print_part(to, btf, &w, &step, bytes, len);
    }
    if (!w.steps || to->len - start > GS_VALUE_TEXT_MAX) {
        g_string_truncate(to, MIN(to->len, start + GS_VALUE_TEXT_MAX -
                                           strlen(ELLIPSIS)));
        g_string_append(to, ELLIPSIS);
    }
}

void gs_value_print(GString *to, const GsBtf *btf, const GsLeaf *value,
                    const uint8_t *bytes, size_t len)
{
    GsValueKind kind = gs_value_kind(btf, value->type);

    if (!value->bits && (kind == GS_VALUE_STRUCT || kind == GS_VALUE_ARRAY)) {
        print_parts(to, btf, value->type, bytes, len);
    } else {
        gs_value_print_leaf(to, btf, value, bytes, len);
    }
}
