/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which functions does a pattern name: see point-match.h. */
#include "kalloc-tracer/calls/point-match.h"

#include <string.h>

#include "guest-symbols/base/source-name.h"
#include "kalloc-tracer/calls/function-sets.h"

#define SUGGESTIONS     3

/* Symbols of code that is no function of its own: padding before a function,
 * and rare paths that are jumped to. */
static bool is_function(const char *name, char type)
{
    return strchr("tTwW", type) && !g_str_has_prefix(name, "__pfx_") &&
           !g_str_has_prefix(name, "__cfi_") && !strstr(name, ".cold");
}

bool kt_point_is_clone(const char *name)
{
    return memchr(name, '.', gs_source_name_len(name, strlen(name)));
}

/* ---- the array ----------------------------------------------------------- */

static void clear_found(void *found)
{
    KtFoundFunction *f = found;

    g_free(f->name);
    g_free(f->module);
}

GArray *kt_found_functions_new(void)
{
    GArray *found = g_array_new(false, false, sizeof(KtFoundFunction));

    g_array_set_clear_func(found, clear_found);
    return found;
}

/* ---- patterns ------------------------------------------------------------ */

/**
 * struct Pattern - a pattern in its parts
 * @module: (owned) NULL: of the kernel or any module
 * @name: (borrowed) name or glob
 * @glob: @name is a glob
 * @clones: match the copies that the compiler made of @name, not @name itself
 */
typedef struct Pattern {
    char *module;
    const char *name;
    bool glob, clones;
} Pattern;

static void pattern_init(Pattern *p, const char *text)
{
    const char *colon = strchr(text, ':');

    *p = (Pattern) { .name = colon ? colon + 1 : text };
    p->glob = strpbrk(p->name, "*?");
    if (colon) {
        p->module = g_strdelimit(g_strndup(text, colon - text), "-", '_');
    }
}

static bool matches(const Pattern *p, const char *name)
{
    size_t len = strlen(p->name);

    if (p->glob) {
        return kt_name_matches(p->name, name);
    }
    if (p->clones) {
        return !strncmp(name, p->name, len) && name[len] == '.';
    }
    return !strncmp(name, p->name, len) &&
           gs_source_name_len(name, strlen(name)) == len;
}

/* ---- the kernel and its modules ------------------------------------------ */

typedef struct Search {
    const GsKernel *k;
    const Pattern *pattern;
    const GsModule *module;
    GArray *found;
} Search;

static void add_found(Search *s, const char *name, uint64_t va, uint64_t size)
{
    const KtFoundFunction f = {
        .va = va, .size = size, .name = g_strdup(name),
        .module = s->module ? g_strdup(s->module->name) : NULL,
        .module_va = s->module ? s->module->va : 0,
    };

    g_array_append_val(s->found, f);
}

static bool visit_kernel(const GsSymbol *sym, void *opaque)
{
    Search *s = opaque;

    if (!sym->module && matches(s->pattern, sym->name) &&
        is_function(sym->name, sym->type) && gs_kernel_is_code(s->k, sym)) {
        add_found(s, sym->name, sym->va, sym->size);
    }
    return true;
}

static bool visit_module(const GsModuleSymbol *sym, void *opaque)
{
    Search *s = opaque;

    if (matches(s->pattern, sym->name) && is_function(sym->name, sym->type)) {
        add_found(s, sym->name, sym->va, 0);
    }
    return true;
}

static void search_module(const GsKernel *k, const GsModule *module,
                          const Pattern *p, GArray *found)
{
    Search s = { k, p, module, found };

    if (module->live && (!p->module || !strcmp(p->module, module->name))) {
        gs_kernel_module_symbols(k, module->va, visit_module, &s);
    }
}

static void search_kernel(const GsKernel *k, const Pattern *p, GArray *found)
{
    Search s = { k, p, NULL, found };

    if (p->glob || p->clones) {
        gs_kernel_foreach_symbol(k, visit_kernel, &s);
    } else {
        gs_kernel_foreach_named(k, p->name, visit_kernel, &s);
    }
}

/* Return true if the pattern's module is loaded, or if it names none. */
static bool search_all(const GsKernel *k, const Pattern *p, GArray *found)
{
    bool loaded = !p->module;
    GsModule module;

    if (!p->module) {
        search_kernel(k, p, found);
    }
    for (unsigned i = 0; gs_kernel_nth_module(k, i, &module); i++) {
        loaded |= module.live && p->module && !strcmp(p->module, module.name);
        search_module(k, &module, p, found);
    }
    return loaded;
}

/* ---- errors -------------------------------------------------------------- */

static void set_unknown(const GsKernel *k, const Pattern *p, GError **errp)
{
    g_auto(GStrv) near = gs_kernel_suggest(k, p->name, SUGGESTIONS);
    g_autofree char *list = g_strjoinv(", ", near);

    if (p->glob) {
        g_set_error(errp, GS_ERROR, GS_ERROR_NO_SYMBOLS,
                    "no function matches '%s'%s%s", p->name,
                    p->module ? " in module " : "",
                    p->module ? p->module : "");
    } else if (p->module) {
        g_set_error(errp, GS_ERROR, GS_ERROR_NO_SYMBOLS,
                    "module %s has no function '%s'", p->module, p->name);
    } else {
        g_set_error(errp, GS_ERROR, GS_ERROR_NO_SYMBOLS,
                    "no function '%s' in this kernel%s%s; a function of a "
                    "module that is not loaded is named MODULE:%s", p->name,
                    *list ? ", similar names: " : "", list, p->name);
    }
}

static bool check_number(const char *text, unsigned n, GError **errp)
{
    if (n > KT_POINT_MATCHES_MAX) {
        g_set_error(errp, GS_ERROR, GS_ERROR_UNSUPPORTED,
                    "'%s' matches %u functions, the limit is %u: use a "
                    "narrower pattern", text, n, KT_POINT_MATCHES_MAX);
    }
    return n <= KT_POINT_MATCHES_MAX;
}

/* ---- the API ------------------------------------------------------------- */

static bool match_pattern(const GsKernel *k, Pattern *p, GArray *found,
                          GError **errp)
{
    unsigned before = found->len;
    bool loaded = search_all(k, p, found);

    if (found->len == before && !p->glob) {
        p->clones = true;
        search_all(k, p, found);
    }
    if (found->len == before && loaded) {
        set_unknown(k, p, errp);
        return false;
    }
    return true;
}

static bool has_function(void *opaque, const char *name)
{
    Pattern p = { .name = name };
    g_autoptr(GArray) found = kt_found_functions_new();

    search_kernel(opaque, &p, found);
    return found->len != 0;
}

/* Append those functions of a named set that the kernel has. */
static bool match_set(const GsKernel *k, const char *name, GArray *found,
                      GError **errp)
{
    const KtFunctionSet *set = kt_function_set_find(name);
    g_autofree char *sets = kt_function_set_names();
    g_auto(GStrv) functions = NULL;

    if (!set) {
        g_set_error(errp, GS_ERROR, GS_ERROR_NO_SYMBOLS,
                    "no set of functions '%s'; the sets are %s", name, sets);
        return false;
    }
    functions = kt_function_set_resolve(set, has_function, (void *)k, NULL);
    for (unsigned i = 0; functions[i]; i++) {
        Pattern p = { .name = functions[i] };

        search_kernel(k, &p, found);
    }
    if (!*functions) {
        g_set_error(errp, GS_ERROR, GS_ERROR_NO_SYMBOLS,
                    "this kernel has none of the functions of %s", name);
    }
    return *functions != NULL;
}

bool kt_point_match(const GsKernel *k, const char *pattern, GArray *found,
                    GError **errp)
{
    unsigned before = found->len;
    Pattern p;
    bool ok;

    if (*pattern == '@') {
        return match_set(k, pattern, found, errp);
    }
    pattern_init(&p, pattern);
    ok = match_pattern(k, &p, found, errp) &&
         check_number(pattern, found->len - before, errp);
    g_free(p.module);
    return ok;
}

void kt_point_match_module(const GsKernel *k, const GsModule *module,
                           const char *pattern, GArray *found)
{
    unsigned before = found->len;
    Pattern p;

    pattern_init(&p, pattern);
    search_module(k, module, &p, found);
    if (found->len == before && !p.glob) {
        p.clones = true;
        search_module(k, module, &p, found);
    }
    g_free(p.module);
}
