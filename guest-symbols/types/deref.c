/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Members that an argument leads to, see GsDeref of gs-values.h. An expression
 * is compiled once, into offsets; the caller reads guest memory.
 */
#include "guest-symbols/types/prototype.h"
#include "guest-symbols/base/bytes.h"
#include "guest-symbols/base/printable.h"
#include "guest-symbols/types/btf.h"
#include "guest-symbols/types/btf-records.h"
#include "guest-symbols/types/types-internal.h"
#include "guest-symbols/types/value.h"

#define OFFSET_MAX  (1u << 20)  /* no kernel has such a struct */
#define CHAIN_MAX   32
#define RESULT      "ret"

/* @p: NULL if it was unpacked; @own: NULL if it was compiled; @btf: (borrowed)
 * of one of them */
struct GsDeref {
    GsPrototype *p;
    GsBtf *own;
    const GsBtf *btf;
    GsDerefAt at;
    GsParam value;
    char *name;
    char *type;
};

/* (owned) The names of the parameters. */
static char *param_names(const GsPrototype *p)
{
    GString *s = g_string_new(NULL);

    for (unsigned i = 0; i < gs_prototype_n(p); i++) {
        const char *name = gs_prototype_param(p, i)->name;

        g_string_append_printf(s, "%s%s", i ? ", " : "", name ? name : "?");
    }
    return g_string_free(s, FALSE);
}

static bool find_param(GsDeref *d, const char *name, uint32_t *type,
                       GError **errp)
{
    g_autofree char *names = param_names(d->p);
    int i = gs_prototype_find(d->p, name);
    bool is_result = i < 0 && !strcmp(name, RESULT);

    if (i < 0 && !is_result) {
        return gs_fail(errp, GS_ERROR_FORMAT,
                       "no parameter \"%s\": the function has %s", name,
                       *names ? names : "none");
    }
    d->at.param = is_result ? GS_DEREF_RESULT : (unsigned)i;
    *type = is_result ? gs_prototype_result(d->p)->id :
                        gs_prototype_param(d->p, i)->id;
    return true;
}

/* Return true if a type is a pointer to characters. Numbers of a byte have
 * names of their own, as u8. */
static bool is_text(const GsBtf *btf, uint32_t id)
{
    const GsBtfRecords *r = gs_btf_records(btf);
    GsBtfType t;

    if (!gs_btf_real(r, &id, &t) || t.kind != GS_BTF_PTR) {
        return false;
    }
    for (unsigned i = 0; i < CHAIN_MAX && gs_btf_type(r, t.word, &t); i++) {
        if (t.kind == GS_BTF_INT) {
            const char *name = gs_btf_name(r, t.name);

            return !strcmp(name, "char") || !strcmp(name, "unsigned char");
        }
        if (t.kind != GS_BTF_CONST && t.kind != GS_BTF_VOLATILE &&
            t.kind != GS_BTF_TYPE_TAG) {
            break;
        }
    }
    return false;
}

/* Follow a pointer: *@type becomes what it leads to. */
static bool follow(GsDeref *d, const char *what, uint32_t *type, GError **errp)
{
    const GsBtfRecords *r = gs_btf_records(d->btf);
    uint32_t id = *type;
    GsBtfType t;

    if (!gs_btf_real(r, &id, &t) || t.kind != GS_BTF_PTR) {
        return gs_fail(errp, GS_ERROR_FORMAT, "\"%s\" is no pointer", what);
    }
    if (d->at.n == GS_DEREF_MAX) {
        return gs_fail(errp, GS_ERROR_FORMAT, "more than %d pointers",
                       GS_DEREF_MAX);
    }
    *type = t.word;
    d->at.offset[d->at.n++] = 0;
    return true;
}

static bool find_member(GsDeref *d, const char *path, GsBtfPlace *place,
                        GError **errp)
{
    g_autoptr(GString) in = g_string_new(NULL);

    gs_type_declare(in, gs_btf_records(d->btf), place->type, NULL);
    place->bit = place->bits = 0;
    if (!gs_btf_find_path(d->btf, path, place)) {
        return gs_fail(errp, GS_ERROR_FORMAT, "%s has no member \"%s\"",
                       in->str, path);
    }
    if (place->bit / 8 > OFFSET_MAX) {
        return gs_fail(errp, GS_ERROR_FORMAT, "%s of %s is too far away", path,
                       in->str);
    }
    d->at.offset[d->at.n - 1] = place->bit / 8;
    return true;
}

/* @part: the names between the arrows, at least one */
static bool follow_all(GsDeref *d, char **part, GsBtfPlace *place,
                       GError **errp)
{
    if (!find_param(d, *part, &place->type, errp)) {
        return false;
    }
    for (; part[1]; part++) {
        if (!follow(d, *part, &place->type, errp) ||
            !find_member(d, part[1], place, errp)) {
            return false;
        }
    }
    return d->at.n || is_text(d->btf, place->type) ||
           gs_fail(errp, GS_ERROR_FORMAT,
                   "\"%s\" leads to no member: write ARG->MEMBER, or *ARG",
                   *part);
}

/* "*" of a pointer to a text is the text, as without "*". */
static bool compile(GsDeref *d, const char *expr, GsBtfPlace *place,
                    GError **errp)
{
    g_auto(GStrv) part = g_strsplit(expr + (*expr == '*'), "->", -1);

    if (strlen(expr) > GS_DEREF_EXPR_MAX || !*part) {
        return gs_fail(errp, GS_ERROR_FORMAT,
                       "an expression has 1 to %d characters",
                       GS_DEREF_EXPR_MAX);
    }
    if (*expr != '*') {
        return follow_all(d, part, place, errp);
    }
    if (!(part[1] ? follow_all(d, part, place, errp) :
                    find_param(d, *part, &place->type, errp))) {
        return false;
    }
    if (!place->bits && is_text(d->btf, place->type)) {
        return true;
    }
    if (place->bits) {
        return gs_fail(errp, GS_ERROR_FORMAT, "\"%s\" is no pointer", expr + 1);
    }
    place->bit = 0;
    return follow(d, expr + 1, &place->type, errp);
}

/* A text that an argument itself points to gets another name than it. */
static bool is_name(const char *expr)
{
    return *expr != '*' && !strstr(expr, "->");
}

static bool set_value(GsDeref *d, const char *expr, const GsBtfPlace *place,
                      GError **errp)
{
    g_autoptr(GString) type = g_string_new(NULL);

    gs_type_declare(type, gs_btf_records(d->btf), place->type, NULL);
    gs_param_set_type(&d->value, d->btf, place->type);
    d->type = g_strdup(type->str);
    d->name = g_strconcat(is_name(expr) ? "*" : "", expr, NULL);
    d->value.name = d->name;
    d->value.type = d->type;
    d->value.is_text = !place->bits && is_text(d->btf, place->type);
    if (place->bits) {
        d->value.bit = place->bit % 8;
        d->value.bits = MIN(place->bits, 64);
        d->value.size = (d->value.bit + d->value.bits + 7) / 8;
    }
    return d->value.size ||
           gs_fail(errp, GS_ERROR_FORMAT, "%s is of type %s, which has no size",
                   expr, d->type);
}

GsDeref *gs_deref_new(GsPrototype *p, const char *expr, GError **errp)
{
    g_autoptr(GsDeref) d = g_new0(GsDeref, 1);
    GsBtfPlace place = { 0 };

    d->p = gs_prototype_ref(p);
    d->btf = gs_prototype_types(p);
    if (!compile(d, expr, &place, errp)) {
        return NULL;
    }
    return set_value(d, expr, &place, errp) ? g_steal_pointer(&d) : NULL;
}

void gs_deref_free(GsDeref *d)
{
    if (d) {
        gs_prototype_free(d->p);
        gs_btf_free(d->own);
        g_free(d->name);
        g_free(d->type);
        g_free(d);
    }
}

const GsDerefAt *gs_deref_at(const GsDeref *d)
{
    return &d->at;
}

const GsParam *gs_deref_value(const GsDeref *d)
{
    return &d->value;
}

/* (borrowed) Return the name of the last member of an expression. */
static const char *last_name(const char *expr)
{
    const char *at = expr + strlen(expr);

    while (at > expr && (g_ascii_isalnum(at[-1]) || at[-1] == '_')) {
        at--;
    }
    return at;
}

void gs_deref_print(GString *to, const GsDeref *d, const void *bytes,
                    size_t len)
{
    GsLeaf value = gs_value_leaf(&d->value, last_name(d->name));

    if (d->value.is_text) {
        gs_value_print_text(to, bytes, len);
    } else {
        gs_value_print(to, d->btf, &value, bytes, len);
    }
}

/* ---- as bytes ------------------------------------------------------------ */

bool gs_deref_pack(const GsDeref *d, GByteArray *to)
{
    g_autoptr(GByteArray) types = gs_types_pack(d->btf, d->value.id);
    GsOut out = gs_out(to);

    if (!types || types->len > GS_DEREF_PACKED_MAX - GS_DEREF_EXPR_MAX - 4) {
        return false;
    }
    gs_out_str(&out, d->name);
    gs_out_u8(&out, d->at.param == GS_DEREF_RESULT);
    gs_out_u8(&out, d->value.bit);
    gs_out_u8(&out, d->value.bits);
    gs_out_bytes(&out, types->data, types->len);
    return true;
}

GsDeref *gs_deref_unpack(const void *bytes, size_t len)
{
    GsBytes in = gs_bytes(bytes, len);
    const char *name = gs_bytes_str(&in, GS_DEREF_EXPR_MAX, NULL);
    g_autoptr(GsDeref) d = g_new0(GsDeref, 1);
    GsBtfPlace place = { .type = 1 };

    d->at.param = gs_bytes_u8(&in) ? GS_DEREF_RESULT : 0;
    place.bit = gs_bytes_u8(&in);
    place.bits = gs_bytes_u8(&in);
    if (in.failed || len > GS_DEREF_PACKED_MAX || !gs_is_printable(name)) {
        return NULL;
    }
    d->own = gs_btf_new(gs_bytes_at(&in), gs_bytes_left(&in), NULL);
    d->btf = d->own;
    return d->own && set_value(d, name, &place, NULL) ? g_steal_pointer(&d) :
                                                        NULL;
}
