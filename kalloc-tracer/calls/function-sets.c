/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Named sets of functions: see function-sets.h. The rows are in
 * function-sets.def. */
#include "kalloc-tracer/calls/function-sets.h"

#include <glib.h>
#include <string.h>

typedef enum SetId {
#define KT_FUNCTION_SET(id, ...) SET_##id,
#include "kalloc-tracer/calls/function-sets.def"
    SET__COUNT
} SetId;

static const KtFunctionSet sets[SET__COUNT] = {
#define KT_FUNCTION_SET(id, name_, other_, within, help_) \
    [SET_##id] = { .name = name_, .other_name = other_, .help = help_ },
#include "kalloc-tracer/calls/function-sets.def"
};

/* The set that contains all functions of the set. */
static const SetId is_within[SET__COUNT] = {
#define KT_FUNCTION_SET(id, name, other, within, help) \
    [SET_##id] = SET_##within,
#include "kalloc-tracer/calls/function-sets.def"
};

typedef struct Row {
    SetId set;
    KtSetFunction function;
} Row;

static const Row rows[] = {
#define KT_SET_FUNCTION(id, name_, how_, names_) \
    { SET_##id, { .name = name_, .how = KT_SET_##how_, .names = names_ } },
#include "kalloc-tracer/calls/function-sets.def"
};

const KtFunctionSet *kt_function_set_nth(unsigned i)
{
    return i < SET__COUNT ? &sets[i] : NULL;
}

const KtFunctionSet *kt_function_set_find(const char *name)
{
    name += *name == '@';
    for (unsigned i = 0; i < SET__COUNT; i++) {
        if (!strcmp(sets[i].name, name) ||
            !g_strcmp0(sets[i].other_name, name)) {
            return &sets[i];
        }
    }
    return NULL;
}

char *kt_function_set_names(void)
{
    g_autoptr(GString) s = g_string_new(NULL);

    for (unsigned i = 0; i < SET__COUNT; i++) {
        g_string_append_printf(s, "%s@%s", i ? ", " : "", sets[i].name);
    }
    return g_string_free(g_steal_pointer(&s), FALSE);
}

const KtSetFunction *kt_function_set_function(const KtFunctionSet *set,
                                              unsigned i)
{
    SetId id = set - sets;

    for (unsigned r = 0; r < G_N_ELEMENTS(rows); r++) {
        SetId of = rows[r].set;

        if ((of == id || is_within[of] == id) && !i--) {
            return &rows[r].function;
        }
    }
    return NULL;
}

char *kt_set_function_in(const KtSetFunction *f, KtHasFunction has,
                         void *opaque)
{
    g_auto(GStrv) names = g_strsplit(f->names, " ", -1);

    for (unsigned i = 0; names[i]; i++) {
        if (has(opaque, names[i])) {
            return g_strdup(names[i]);
        }
    }
    return NULL;
}

char **kt_function_set_resolve(const KtFunctionSet *set, KtHasFunction has,
                               void *opaque, unsigned *missing)
{
    g_autoptr(GPtrArray) found = g_ptr_array_new_with_free_func(g_free);
    unsigned n_missing = 0;
    const KtSetFunction *f;

    for (unsigned i = 0; (f = kt_function_set_function(set, i)); i++) {
        g_autofree char *name = kt_set_function_in(f, has, opaque);

        n_missing += !name;
        if (name && !g_ptr_array_find_with_equal_func(found, name, g_str_equal,
                                                      NULL)) {
            g_ptr_array_add(found, g_steal_pointer(&name));
        }
    }
    if (missing) {
        *missing = n_missing;
    }
    g_ptr_array_add(found, NULL);
    return (char **)g_ptr_array_free(g_steal_pointer(&found), FALSE);
}
