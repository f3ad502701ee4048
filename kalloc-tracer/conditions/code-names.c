/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of functions and modules in conditions: see code-names.h. */
#include "kalloc-tracer/conditions/code-names.h"

#include <string.h>

#include "guest-symbols/base/suggest.h"

#define SUGGESTIONS 3

char *kt_code_module(const char *name, size_t len)
{
    return g_strdelimit(g_strndup(name, len), "-", '_');
}

char *kt_code_function(const char *name)
{
    const char *colon = strchr(name, ':'), *open = strchr(name, '[');
    size_t len = strlen(name);
    g_autofree char *module = NULL;

    if (colon) {
        module = kt_code_module(name, colon - name);
        return g_strconcat(module, colon, NULL);
    }
    if (open && open > name && name[len - 1] == ']') {
        module = kt_code_module(open + 1, name + len - 1 - (open + 1));
        return g_strdup_printf("%s:%.*s", module, (int)(open - name), name);
    }
    return g_strdup(name);
}

bool kt_code_matches(const char *name, const GsSymbol *sym)
{
    const char *colon = strchr(name, ':');
    size_t len = colon ? colon - name : 0;

    if (!colon) {
        return !strcmp(sym->name, name);
    }
    return sym->module && !strncmp(sym->module, name, len) &&
           !sym->module[len] && !strcmp(sym->name, colon + 1);
}

/* ---- is it there? -------------------------------------------------------- */

bool kt_code_is_loaded(const GsKernel *k, const char *module)
{
    GsModule m;

    for (unsigned i = 0; gs_kernel_nth_module(k, i, &m); i++) {
        if (m.live && !strcmp(m.name, module)) {
            return true;
        }
    }
    return false;
}

/** struct Wanted - a search; @n: symbols of the module that were seen */
typedef struct Wanted {
    const char *name;
    GsSuggest *near;
    unsigned n;
    bool found;
} Wanted;

static bool is_code(char type)
{
    return strchr("tTwW", type);
}

static bool visit_named(const GsSymbol *sym, void *opaque)
{
    Wanted *w = opaque;

    w->found = is_code(sym->type);
    return !w->found;
}

static bool visit_module(const GsModuleSymbol *sym, void *opaque)
{
    Wanted *w = opaque;

    w->n++;
    if (is_code(sym->type)) {
        w->found |= !strcmp(sym->name, w->name);
        gs_suggest_offer(w->near, sym->name);
    }
    return !w->found;
}

/* (owned) Describe what is expected; @near: (owned, g_strfreev) similar
 * names, which @prefix and @colon precede. */
static char *describe(const char *what, char **near, const char *prefix,
                      const char *colon)
{
    GString *s = g_string_new(what);

    for (unsigned i = 0; near[i]; i++) {
        g_string_append_printf(s, "%s%s%s%s", i ? ", " : "; did you mean ",
                               prefix, colon, near[i]);
    }
    g_string_append(s, near[0] ? "?" : "");
    g_strfreev(near);
    return g_string_free(s, FALSE);
}

/* A module whose symbols are not known can have any function. */
static char *missing_in_module(const GsKernel *k, const char *module,
                               const char *name)
{
    Wanted w = { .name = name, .near = gs_suggest_new(name, SUGGESTIONS) };
    g_autofree char *what = g_strdup_printf(
        "a function of module %s, which has no '%s'", module, name);
    bool loaded = false;
    char **near;
    GsModule m;

    for (unsigned i = 0; gs_kernel_nth_module(k, i, &m); i++) {
        if (m.live && !strcmp(m.name, module)) {
            loaded = true;
            gs_kernel_module_symbols(k, m.va, visit_module, &w);
        }
    }
    near = gs_suggest_finish(w.near);
    if (!loaded || w.found || !w.n) {
        g_strfreev(near);
        return NULL;
    }
    return describe(what, near, module, ":");
}

static char *missing_anywhere(const GsKernel *k, const char *name)
{
    Wanted w = { 0 };
    g_autofree char *what = g_strdup_printf(
        "a function of this kernel or of a loaded module, which have no '%s'; "
        "one of another module is MODULE:%s", name, name);

    gs_kernel_foreach_ever_named(k, name, visit_named, &w);
    return w.found ? NULL :
           describe(what, gs_kernel_suggest(k, name, SUGGESTIONS), "", "");
}

char *kt_code_missing(const GsKernel *k, const char *name)
{
    const char *colon = strchr(name, ':');
    g_autofree char *module = colon ? g_strndup(name, colon - name) : NULL;

    return colon ? missing_in_module(k, module, colon + 1) :
                   missing_anywhere(k, name);
}
