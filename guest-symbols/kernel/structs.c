/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Structs of a kernel and its modules by an expression, see gs-structs.h:
 * chooses the types, then the definition; struct-place.c follows the path. And
 * prototypes of functions, see gs-prototypes.h. Any thread.
 *
 *     [module:]name[:number][.path]
 */
#include "guest-symbols/kernel/kernel.h"
#include "guest-symbols/modules/modules.h"
#include "guest-symbols/types/btf.h"
#include "guest-symbols/types/prototype.h"
#include "guest-symbols/types/struct-place.h"

#include <stdlib.h>

#define NUMBER_MAX 100000

/* @module: (nullable); @number: 0 if none is given. All owned */
typedef struct Expr {
    char *module, *name, *path;
    unsigned number;
} Expr;

static void expr_clear(Expr *e)
{
    g_free(e->module);
    g_free(e->name);
    g_free(e->path);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Expr, expr_clear)

static bool is_number(const char *s)
{
    return *s && !s[strspn(s, "0123456789")];
}

static bool fail_form(const char *expr, GError **errp)
{
    return gs_fail(errp, GS_ERROR_FORMAT,
                   "\"%s\": a struct is [module:]name[:number][.member...]",
                   expr);
}

static bool parse(const char *expr, Expr *e, GError **errp)
{
    const char *dot = strchr(expr, '.');
    g_autofree char *head = g_strndup(expr, dot ? (size_t)(dot - expr) :
                                                  strlen(expr));
    g_auto(GStrv) part = g_strsplit(head, ":", 4);
    unsigned n = g_strv_length(part), first;

    *e = (Expr) { .path = g_strdup(dot ? dot + 1 : "") };
    if (n > 1 && is_number(part[n - 1])) {
        e->number = strtoul(part[--n], NULL, 10);
        if (!e->number || e->number > NUMBER_MAX) {
            return fail_form(expr, errp);
        }
    }
    if (!n || n > 2) {
        return fail_form(expr, errp);
    }
    first = n - 1;
    e->module = first ? g_strdup(part[0]) : NULL;
    e->name = g_strdup(part[first]);
    return (*e->name && (!first || *e->module) && (!dot || dot[1])) ||
           fail_form(expr, errp);
}

/* ---- definitions --------------------------------------------------------- */

static uint32_t size_of(GsBtf *btf, uint32_t id)
{
    uint32_t size;

    return gs_btf_size(gs_btf_records(btf), id, &size) ? size : 0;
}

/* Say which definitions there are. */
static void fail_several(const Expr *e, GsBtf *btf, const GArray *ids,
                         GError **errp)
{
    g_autoptr(GString) list = g_string_new(NULL);

    for (guint i = 0; i < ids->len; i++) {
        g_string_append_printf(list, "%s%s%s%s:%u (%u bytes)", i ? ", " : "",
                               e->module ? e->module : "",
                               e->module ? ":" : "", e->name, i + 1,
                               size_of(btf, g_array_index(ids, uint32_t, i)));
    }
    g_set_error(errp, GS_ERROR, GS_ERROR_FORMAT, "\"%s\": %u definitions, %s",
                e->name, ids->len, list->str);
}

/* Choose one of @ids, which are not empty. Return false if it is not clear. */
static bool choose(const Expr *e, GsBtf *btf, const GArray *ids, uint32_t *id,
                   GError **errp)
{
    unsigned i = e->number ? e->number - 1 : 0;

    if (i >= ids->len || (!e->number && ids->len > 1)) {
        fail_several(e, btf, ids, errp);
        return false;
    }
    *id = g_array_index(ids, uint32_t, i);
    return true;
}

static GsStruct *of_types(const Expr *e, GsBtf *btf, const GArray *ids,
                          const char *source, GError **errp)
{
    uint32_t id;

    return choose(e, btf, ids, &id, errp) ?
           gs_struct_new(btf, id, e->name, e->path, source, errp) : NULL;
}

/* ---- modules ------------------------------------------------------------- */

static GsBtf *types_of_module(const GsKernel *k, const char *module,
                              const char **why)
{
    *why = "with types=FILE the types of modules are not known";
    return k->btf_from_file ? NULL :
           gs_modules_types(k->modules, module, k->btf, why);
}

static GsBtf *find_types_of_module(const GsKernel *k, const char *module,
                                   GError **errp)
{
    const char *why;
    GsBtf *btf = types_of_module(k, module, &why);

    return btf ? btf : gs_fail(errp, GS_ERROR_NO_SYMBOLS, "\"%s\": %s", module,
                               why);
}

/* Return true if a type is one of the module's own. */
static bool is_own(const GsBtf *btf, const GArray *ids)
{
    return ids->len &&
           g_array_index(ids, uint32_t, 0) >= gs_btf_records(btf)->first;
}

static GsStruct *of_module(const GsKernel *k, const Expr *e, GError **errp)
{
    g_autofree char *source = g_strdup_printf("BTF of %s", e->module);
    g_autoptr(GsBtf) btf = find_types_of_module(k, e->module, errp);
    g_autoptr(GArray) ids = NULL;

    if (!btf) {
        return NULL;
    }
    ids = gs_struct_definitions(btf, e->name);
    if (!ids->len) {
        g_autofree char *near = gs_struct_near(btf, e->name);

        return gs_fail(errp, GS_ERROR_FORMAT,
                       "\"%s\": no struct or union of that name in module "
                       "%s%s%s", e->name, e->module, *near ? "; near: " : "",
                       near);
    }
    return of_types(e, btf, ids, is_own(btf, ids) ? source : "BTF", errp);
}

/* A module that defines the struct; if several do, only the first. */
typedef struct Found {
    GsBtf *btf;
    GArray *ids;
    GString *modules;
    unsigned n;
} Found;

static void found_clear(Found *f)
{
    gs_btf_free(f->btf);
    g_clear_pointer(&f->ids, g_array_unref);
    g_string_free(f->modules, TRUE);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Found, found_clear)

static void search_module(const GsKernel *k, const char *module,
                          const char *name, Found *f)
{
    const char *why;
    g_autoptr(GsBtf) btf = types_of_module(k, module, &why);
    g_autoptr(GArray) ids = btf ? gs_struct_definitions(btf, name) : NULL;

    if (!ids || !is_own(btf, ids)) {
        return;
    }
    g_string_append_printf(f->modules, "%s%s:%s", f->n++ ? ", " : "", module,
                           name);
    if (!f->btf) {
        f->btf = g_steal_pointer(&btf);
        f->ids = g_steal_pointer(&ids);
    }
}

/* Search the types of all loaded modules. */
static GsStruct *of_any_module(const GsKernel *k, const Expr *e, GError **errp)
{
    g_auto(Found) f = { .modules = g_string_new(NULL) };
    g_autofree char *source = NULL;
    GsModule mod;

    for (unsigned i = 0; gs_kernel_nth_module(k, i, &mod); i++) {
        if (mod.live && strcmp(mod.name, "bpf")) {
            search_module(k, mod.name, e->name, &f);
        }
    }
    if (f.n == 1) {
        source = g_strdup_printf("BTF of %.*s", (int)strcspn(f.modules->str,
                                 ":"), f.modules->str);
        return of_types(e, f.btf, f.ids, source, errp);
    }
    if (f.n) {
        g_set_error(errp, GS_ERROR, GS_ERROR_FORMAT,
                    "\"%s\": several modules have it: %s", e->name,
                    f.modules->str);
    } else {
        g_autofree char *near = gs_struct_near(k->btf, e->name);

        g_set_error(errp, GS_ERROR, GS_ERROR_FORMAT,
                    "\"%s\": no struct or union of that name%s%s", e->name,
                    *near ? "; near: " : "", near);
    }
    return NULL;
}

/* ---- the kernel ---------------------------------------------------------- */

static bool has_types(const GsKernel *k, GError **errp)
{
    if (k->btf) {
        return true;
    }
    if (k->saved.on) {
        g_set_error(errp, GS_ERROR, GS_ERROR_NO_SYMBOLS,
                    "a journal has no types: use ka -f FILE --types TYPES, "
                    "or ask the monitor of the VM");
    } else {
        g_set_error(errp, GS_ERROR, GS_ERROR_NO_SYMBOLS,
                    "this kernel has no types (CONFIG_DEBUG_INFO_BTF); see "
                    "types=FILE");
    }
    return false;
}

GsStruct *gs_kernel_struct(const GsKernel *k, const char *expr, GError **errp)
{
    g_autoptr(GArray) ids = NULL;
    g_auto(Expr) e = { 0 };

    if (!has_types(k, errp) || !parse(expr, &e, errp)) {
        return NULL;
    }
    if (e.module) {
        return of_module(k, &e, errp);
    }
    ids = gs_struct_definitions(k->btf, e.name);
    if (!ids->len) {
        return of_any_module(k, &e, errp);
    }
    return of_types(&e, k->btf, ids, gs_kernel_types_from(k), errp);
}

bool gs_kernel_struct_names(const GsKernel *k, const char *pattern,
                            GsStructNameFn fn, void *opaque, GError **errp)
{
    const char *colon = strchr(pattern, ':');
    g_autofree char *module = colon ? g_strndup(pattern, colon - pattern) :
                                      NULL;
    g_autoptr(GsBtf) btf = NULL;

    if (!has_types(k, errp)) {
        return false;
    }
    btf = module ? find_types_of_module(k, module, errp) : gs_btf_ref(k->btf);
    if (btf) {
        gs_struct_foreach_name(btf, colon ? colon + 1 : pattern, module, fn,
                               opaque);
    }
    return btf;
}

GsPrototype *gs_kernel_prototype(const GsKernel *k, const char *module,
                                 const char *func, const char **why)
{
    const char *reason = "the types of this kernel are not known";
    g_autoptr(GsBtf) btf = NULL;
    GsPrototype *p = NULL;

    if (k->btf) {
        btf = module ? types_of_module(k, module, &reason) :
                       gs_btf_ref(k->btf);
    }
    if (btf) {
        p = gs_prototype_new(btf, k->arch, func, &reason);
    }
    if (why) {
        *why = reason;
    }
    return p;
}

unsigned gs_kernel_n_types(const GsKernel *k)
{
    return k->btf ? gs_btf_records(k->btf)->n - 1 : 0;
}

unsigned gs_kernel_n_typed_modules(const GsKernel *k)
{
    return gs_modules_counts(k->modules).typed;
}

bool gs_kernel_has_types(const GsKernel *k)
{
    return k->btf != NULL;
}

const char *gs_kernel_types_from(const GsKernel *k)
{
    return k->btf_from_file || k->saved.types_file ? "file" :
           gs_kernel_has_btf(k) ? "BTF" : "none";
}
