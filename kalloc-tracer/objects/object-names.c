/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of objects, see kt-structs.h. Owns no state; any thread; no lock. */
#include "kalloc-tracer/api/kt-structs.h"
#include "kalloc-tracer/layout/layout.h"
#include "kalloc-tracer/objects/objects-internal.h"

#include <string.h>

/* A name is that of another object at most so often. */
#define STEPS 2u

/** struct NameRow - a row of object-names.def; @array: of KT_NAME_IN(); @by:
 *  (nullable) of KT_NAME_OF() */
typedef struct NameRow {
    const char *type;
    KtMember member;
    bool array;
    const char *by;
} NameRow;

static const NameRow name_rows[] = {
#define KT_NAME_IN(type_, member_) { type_, KT_M_##member_, true, NULL },
#define KT_NAME_AT(type_, member_) { type_, KT_M_##member_, false, NULL },
#define KT_NAME_OF(type_, member_, by_) { type_, KT_M_##member_, false, by_ },
#include "kalloc-tracer/objects/object-names.def"
};

/* Read the name that a row tells of. @by: (out) for KT_NAME_OF(): the struct of
 * the object at @va (in, out) that has the name; else NULL */
static bool read_by_row(const KtObjects *o, const NameRow *row, uint64_t *va,
                        const char **by, char *name)
{
    KtLayout l;
    uint64_t at;

    *by = NULL;
    if (!kt_layout_find(&l, o->kernel, row->member, row->member)) {
        return false;
    }
    at = *va + l.at[row->member];
    if (row->array) {
        return kt_objects_text(o, at, name,
                               MIN(l.size[row->member], KT_OBJECT_NAME_MAX) +
                               1) && *name;
    }
    if (!kt_objects_pointer(o, at, &at) || !at) {
        return false;
    }
    if (row->by) {
        *va = at;
        *by = row->by;
        return true;
    }
    return kt_objects_text(o, at, name, KT_OBJECT_NAME_MAX + 1) && *name;
}

/* As read_by_row(), by the first row of the type that has an answer. */
static bool read_name(const KtObjects *o, const char *type, uint64_t *va,
                      const char **by, char *name)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(name_rows); i++) {
        if (!strcmp(name_rows[i].type, type) &&
            read_by_row(o, &name_rows[i], va, by, name)) {
            return true;
        }
    }
    return false;
}

bool kt_object_name(const KtObjects *o, const char *type, uint64_t va,
                    char *name)
{
    *name = 0;
    if (!o->kernel || !o->vm) {
        return false;
    }
    type += g_str_has_prefix(type, "struct ") ? strlen("struct ") : 0;
    for (unsigned i = 0; type && i < STEPS; i++) {
        if (!read_name(o, type, &va, &type, name)) {
            return false;
        }
    }
    return !type;
}

/* ---- what a pointer leads to --------------------------------------------- */

/* Many pointers to unsigned char lead to data. Names are printable, in UTF-8 at
 * most. */
static bool is_text(const char *s)
{
    for (const char *c = s; *c; c++) {
        if (g_ascii_iscntrl(*c)) {
            return false;
        }
    }
    return *s && g_utf8_validate(s, -1, NULL);
}

static bool is_char(const char *type)
{
    return !strcmp(type, "char") || !strcmp(type, "unsigned char");
}

static const char *without_const(const char *type)
{
    size_t n = strlen("const ");

    return strncmp(type, "const ", n) ? type : type + n;
}

bool kt_pointer_name(const KtObjects *o, const char *ctype, uint64_t va,
                     char *name)
{
    g_autofree char *type = NULL;

    ctype = without_const(ctype);
    *name = 0;
    if (!va || !o->kernel || !o->vm || !g_str_has_suffix(ctype, " *")) {
        return false;
    }
    type = g_strndup(ctype, strlen(ctype) - strlen(" *"));
    return is_char(type) ?
           kt_objects_text(o, va, name, KT_OBJECT_NAME_MAX + 1) &&
               is_text(name) :
           g_str_has_prefix(type, "struct ") &&
               kt_object_name(o, type, va, name);
}
