/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Members that an argument leads to, see GsDeref of gs-values.h. An expression
 * is compiled once, into offsets; the caller reads guest memory.
 */
#include "guest-symbols/types/prototype.h"
#include "guest-symbols/types/btf.h"
#include "guest-symbols/types/btf-records.h"
#include "guest-symbols/types/type-name.h"
#include "guest-symbols/api/gs-values.h"

#define EXPR_MAX    128         /* bytes of an expression */
#define OFFSET_MAX  (1u << 20)  /* no kernel has such a struct */

struct GsDeref {
    GsPrototype *p;
    GsDerefAt at;
    GsParam value;
    char *name;
    char *type;
};

G_GNUC_PRINTF(2, 3)
static bool fail(GError **errp, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    g_propagate_error(errp, g_error_new_valist(GS_ERROR, GS_ERROR_FORMAT,
                                               format, args));
    va_end(args);
    return false;
}

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

    if (i < 0) {
        return fail(errp, "no parameter \"%s\": the function has %s", name,
                    *names ? names : "none");
    }
    d->at.param = i;
    *type = gs_prototype_param(d->p, i)->id;
    return true;
}

/* Follow a pointer: *@type becomes what it leads to. */
static bool follow(GsDeref *d, const char *what, uint32_t *type, GError **errp)
{
    const GsBtfRecords *r = gs_btf_records(gs_prototype_types(d->p));
    uint32_t id = *type;
    GsBtfType t;

    if (!gs_btf_real(r, &id, &t) || t.kind != GS_BTF_PTR) {
        return fail(errp, "\"%s\" is no pointer", what);
    }
    if (d->at.n == GS_DEREF_MAX) {
        return fail(errp, "more than %d pointers", GS_DEREF_MAX);
    }
    *type = t.word;
    d->at.offset[d->at.n++] = 0;
    return true;
}

static bool find_member(GsDeref *d, const char *path, GsBtfPlace *place,
                        GError **errp)
{
    const GsBtf *btf = gs_prototype_types(d->p);
    g_autoptr(GString) in = g_string_new(NULL);

    gs_type_declare(in, gs_btf_records(btf), place->type, NULL);
    place->bit = place->bits = 0;
    if (!gs_btf_find_path(btf, path, place)) {
        return fail(errp, "%s has no member \"%s\"", in->str, path);
    }
    if (place->bit / 8 > OFFSET_MAX) {
        return fail(errp, "%s of %s is too far away", path, in->str);
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
    return d->at.n || fail(errp, "\"%s\" leads to no member: write "
                           "ARG->MEMBER, or *ARG", *part);
}

static bool compile(GsDeref *d, const char *expr, GsBtfPlace *place,
                    GError **errp)
{
    g_auto(GStrv) part = g_strsplit(expr + (*expr == '*'), "->", -1);

    if (strlen(expr) > EXPR_MAX || !*part) {
        return fail(errp, "an expression has 1 to %d characters", EXPR_MAX);
    }
    if (*expr != '*') {
        return follow_all(d, part, place, errp);
    }
    if (!(part[1] ? follow_all(d, part, place, errp) :
                    find_param(d, *part, &place->type, errp))) {
        return false;
    }
    return place->bits ? fail(errp, "\"%s\" is no pointer", expr + 1) :
                         follow(d, expr + 1, &place->type, errp);
}

static bool set_value(GsDeref *d, const char *expr, const GsBtfPlace *place,
                      GError **errp)
{
    const GsBtf *btf = gs_prototype_types(d->p);
    g_autoptr(GString) type = g_string_new(NULL);

    gs_type_declare(type, gs_btf_records(btf), place->type, NULL);
    gs_param_set_type(&d->value, btf, place->type);
    d->type = g_strdup(type->str);
    d->name = g_strdup(expr);
    d->value.name = d->name;
    d->value.type = d->type;
    if (place->bits) {
        d->value.bit = place->bit % 8;
        d->value.bits = MIN(place->bits, 64);
        d->value.size = (d->value.bit + d->value.bits + 7) / 8;
    }
    return d->value.size ||
           fail(errp, "%s is of type %s, which has no size", expr, d->type);
}

GsDeref *gs_deref_new(GsPrototype *p, const char *expr, GError **errp)
{
    g_autoptr(GsDeref) d = g_new0(GsDeref, 1);
    GsBtfPlace place = { 0 };

    d->p = gs_prototype_ref(p);
    if (!compile(d, expr, &place, errp)) {
        return NULL;
    }
    if (*expr == '*') {
        place.bit = place.bits = 0;
    }
    return set_value(d, expr, &place, errp) ? g_steal_pointer(&d) : NULL;
}

void gs_deref_free(GsDeref *d)
{
    if (d) {
        gs_prototype_free(d->p);
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
