/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of types, see types-internal.h.
 *
 * A chain of records is read from the outside in, and the declarator grows
 * around the name:
 *
 *     ARRAY[4] -> PTR -> CONST -> INT char      a declares
 *       "a[4]" -> "*a[4]"      -> "const char *a[4]"
 */
#include "guest-symbols/types/types-internal.h"

#define CHAIN_MAX 32

/* Compilers name the same type in different ways; the kernel's sources use the
 * names on the right. */
static const char *const int_names[][2] = {
    { "_Bool", "bool" },
    { "long int", "long" },
    { "long unsigned int", "unsigned long" },
    { "long long int", "long long" },
    { "long long unsigned int", "unsigned long long" },
    { "short int", "short" },
    { "short unsigned int", "unsigned short" },
};

static const char *int_name(const char *name)
{
    for (size_t i = 0; i < G_N_ELEMENTS(int_names); i++) {
        if (!strcmp(int_names[i][0], name)) {
            return int_names[i][1];
        }
    }
    return name;
}

static const char *keyword(const GsBtfType *t)
{
    switch (t->kind) {
    case GS_BTF_STRUCT:
        return "struct ";
    case GS_BTF_UNION:
        return "union ";
    case GS_BTF_ENUM:
    case GS_BTF_ENUM64:
        return "enum ";
    case GS_BTF_FWD:
        return t->flag ? "union " : "struct ";
    default:
        return "";
    }
}

/* @center: the declarator so far; @quals: qualifiers of the next type */
typedef struct Declaration {
    GString *center;
    GString *quals;
    bool after_pointer;
} Declaration;

/* An array of pointers is "*a[4]", a pointer to an array "(*a)[4]". */
static void add_suffix(Declaration *d, const char *suffix)
{
    if (d->after_pointer) {
        g_string_prepend_c(d->center, '(');
        g_string_append_c(d->center, ')');
    }
    g_string_append(d->center, suffix);
    d->after_pointer = false;
}

static void add_pointer(Declaration *d)
{
    if (d->quals->len) {
        g_string_prepend(d->center, d->quals->str);
        g_string_truncate(d->quals, 0);
    }
    g_string_prepend_c(d->center, '*');
    d->after_pointer = true;
}

static void add_array(Declaration *d, uint32_t n)
{
    char suffix[16];

    g_snprintf(suffix, sizeof(suffix), "[%u]", n);
    add_suffix(d, suffix);
}

/* Add one record. Set *@id to the type that it refers to. Return false if it is
 * the end of the chain. */
static bool add_record(Declaration *d, const GsBtfType *t, uint32_t *id)
{
    *id = t->word;
    switch (t->kind) {
    case GS_BTF_PTR:
        add_pointer(d);
        return true;
    case GS_BTF_ARRAY:
        add_array(d, gs_btf_word(t, 2));
        *id = gs_btf_word(t, 0);
        return true;
    case GS_BTF_FUNC_PROTO:
        add_suffix(d, t->vlen ? "(...)" : "(void)");
        return true;
    case GS_BTF_CONST:
        g_string_append(d->quals, "const ");
        return true;
    case GS_BTF_VOLATILE:
        g_string_append(d->quals, "volatile ");
        return true;
    case GS_BTF_RESTRICT:
    case GS_BTF_TYPE_TAG:
        return true;
    default:
        return false;
    }
}

static void add_base(GString *to, const GsBtfRecords *r, const GsBtfType *t)
{
    const char *name = int_name(gs_btf_name(r, t->name));

    name = *name ? name : "{...}";
    g_string_append(to, keyword(t));
    g_string_append_len(to, name, strnlen(name, GS_TYPE_NAME_MAX));
}

/* Return false if the chain does not end in a type with a name, or is too
 * long. */
static bool declare(Declaration *d, GString *to, const GsBtfRecords *r,
                    uint32_t id)
{
    GsBtfType t;

    for (unsigned i = 0; i < CHAIN_MAX; i++) {
        if (!id) {
            g_string_append(to, d->quals->str);
            g_string_append(to, "void");
            return true;
        }
        if (!gs_btf_type(r, id, &t)) {
            return false;
        }
        if (!add_record(d, &t, &id)) {
            g_string_append(to, d->quals->str);
            add_base(to, r, &t);
            return true;
        }
    }
    return false;
}

static void make_printable(char *s)
{
    for (; *s; s++) {
        if (!g_ascii_isprint(*s)) {
            *s = '?';
        }
    }
}

/* Put base and declarator together. */
static void join(GString *base, const GString *center)
{
    if (center->len && (*center->str != '[')) {
        g_string_append_c(base, ' ');
    }
    g_string_append(base, center->str);
    make_printable(base->str);
}

void gs_type_declare(GString *to, const GsBtfRecords *r, uint32_t id,
                     const char *name)
{
    g_autoptr(GString) base = g_string_new(NULL);
    g_autoptr(GString) center = g_string_new(name);
    g_autoptr(GString) quals = g_string_new(NULL);
    Declaration d = { .center = center, .quals = quals };

    if (!declare(&d, base, r, id)) {
        g_string_assign(base, "?");
        g_string_assign(center, name ? name : "");
    }
    join(base, center);
    g_string_append_len(to, base->str,
                        MIN(base->len, GS_TYPE_NAME_MAX - 1 +
                                       (name ? strlen(name) : 0)));
}
