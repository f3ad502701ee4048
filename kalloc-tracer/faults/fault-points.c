/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fault points: see faults-internal.h. */
#include "kalloc-tracer/faults/faults-internal.h"

#include <errno.h>
#include <string.h>

#include "guest-symbols/base/name-hash.h"
#include "kalloc-tracer/calls/function-sets.h"

typedef enum PointId {
#define KT_FAULT_POINT(id, ...) POINT_##id,
#include "kalloc-tracer/faults/faults.def"
    POINT__COUNT
} PointId;

static const struct {
    const char *name;
    bool allocates;
    const char *help;
} points[POINT__COUNT] = {
#define KT_FAULT_POINT(id, name, allocates, help) { name, allocates, help },
#include "kalloc-tracer/faults/faults.def"
};

typedef struct Row {
    PointId point;              /* POINT__COUNT: of no point */
    const char *name;
    KtFaultKind kind;
    KtCallRoles role;
} Row;

#define ROLES(...) { .size = KT_NO_ARG, .gfp = KT_NO_ARG, .order = KT_NO_ARG, \
                     .cap = KT_NO_ARG, .cache = KT_NO_ARG, \
                     .slab = KT_NO_ARG, ##__VA_ARGS__ }

/* A column that a row does not have is KT_NO_ARG: the first of two initialisers
 * of a member has no effect. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
static const Row rows[] = {
#define KT_FAULT(p, function, fails, ...) \
    { POINT_##p, function, KT_FAILS_##fails, ROLES(__VA_ARGS__) },
#define KT_FAULT_KNOWN(function, fails, ...) \
    { POINT__COUNT, function, KT_FAILS_##fails, ROLES(__VA_ARGS__) },
#include "kalloc-tracer/faults/faults.def"
};
#pragma GCC diagnostic pop

static const struct {
    PointId point;
    KtLayer layer;
} layers[] = {
#define KT_FAULT_HOOKS(point, layer) { POINT_##point, layer },
#include "kalloc-tracer/faults/faults.def"
};

static const char *const insides[] = {
#define KT_FAULT_INSIDE(function) function,
#include "kalloc-tracer/faults/faults.def"
};

static const struct {
    const char *text;
    uint64_t value;
} kinds[] = {
    [KT_FAILS_UNKNOWN] = { "?", 0 },
    [KT_FAILS_VOID] = { "void", 0 },
    [KT_FAILS_NULL] = { "NULL", 0 },
    [KT_FAILS_ZERO] = { "0", 0 },
    [KT_FAILS_FALSE] = { "false", 0 },
    [KT_FAILS_ERRNO] = { "-ENOMEM", -(uint64_t)ENOMEM },
    [KT_FAILS_ERRPTR] = { "-ENOMEM", -(uint64_t)ENOMEM },
    [KT_FAILS_FAULT] = { "-EFAULT", -(uint64_t)EFAULT },
    [KT_FAILS_INTR] = { "-EINTR", -(uint64_t)EINTR },
    [KT_FAILS_REST] = { "size", 0 },
    [KT_FAILS_ONES] = { "~0", UINT64_MAX },
};

const char *kt_fault_kind_text(KtFaultKind kind)
{
    return kinds[kind].text;
}

uint64_t kt_fault_default(KtFaultKind kind, uint64_t size)
{
    return kind == KT_FAILS_REST ? size : kinds[kind].value;
}

/* ---- the functions of a point ------------------------------------------- */

static void function_clear(gpointer f)
{
    g_free(((KtFaultFunction *)f)->name);
}

GArray *kt_fault_functions_new(void)
{
    GArray *a = g_array_new(FALSE, FALSE, sizeof(KtFaultFunction));

    g_array_set_clear_func(a, function_clear);
    return a;
}

static uint64_t address_of(const GsKernel *k, const char *name)
{
    GsSymbol sym;

    return k && gs_kernel_lookup(k, name, &sym) && !sym.module ? sym.va : 0;
}

static bool exists(const GsKernel *k, const char *name)
{
    return !k || address_of(k, name);
}

static void use_btf(const GsKernel *k, const char *func, const char *param,
                    int8_t *at)
{
    int n = k ? gs_kernel_func_param(k, func, param) : -1;

    *at = n >= 0 && n < 8 ? n : *at;
}

/* Positions can differ by version: parameters are found by their names. */
static void find_params(const GsKernel *k, KtFaultFunction *f)
{
    KtCallRoles *role = &f->role;

    use_btf(k, f->name, "gfp_mask", &role->gfp);
    use_btf(k, f->name, "gfp_flags", &role->gfp);
    use_btf(k, f->name, "gfpflags", &role->gfp);
    use_btf(k, f->name, "gfp", &role->gfp);
    if (role->gfp != KT_NO_ARG) {
        use_btf(k, f->name, "flags", &role->gfp);
    }
    if (role->order != KT_NO_ARG) {
        use_btf(k, f->name, "order", &role->order);
    }
    use_btf(k, f->name, "cap", &role->cap);
    if (role->slab != KT_NO_ARG) {
        use_btf(k, f->name, "flags", &role->slab);
    }
}

static KtFaultFunction function_of(const GsKernel *k, const Row *row)
{
    KtFaultFunction f = {
        .name = g_strdup(row->name), .va = address_of(k, row->name),
        .kind = row->kind, .role = row->role,
        .allocates = row->point < POINT__COUNT && points[row->point].allocates,
    };

    find_params(k, &f);
    return f;
}

static void add_row(GArray *a, const GsKernel *k, const Row *row)
{
    KtFaultFunction f = function_of(k, row);

    g_array_append_val(a, f);
}

static bool is_of_point(const KtHook *h, PointId point, bool pages)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(layers); i++) {
        if (layers[i].point == point &&
            (pages ? layers[i].layer == KT_LAYER_PAGES &&
                         h->role == KT_ROLE_PAGE_ALLOC :
                     h->role == KT_ROLE_ALLOC &&
                         h->layer == layers[i].layer &&
                         !(h->flags & KT_HOOK_PUT_PAGES))) {
            return true;
        }
    }
    return false;
}

static Row row_of_hook(const KtHook *h, PointId point, bool pages)
{
    return (Row) {
        .point = point, .name = h->symbol, .kind = KT_FAILS_NULL,
        .role = {
            .size = pages ? KT_NO_ARG : h->size, .gfp = h->gfp,
            .order = pages ? h->size : KT_NO_ARG, .cap = KT_NO_ARG,
            .cache = h->cache, .slab = KT_NO_ARG,
        },
    };
}

static void add_hooks(GArray *a, const KtHookTable *hooks, const GsKernel *k,
                      PointId point)
{
    for (unsigned i = 1; i <= kt_hook_table_count(hooks); i++) {
        KtHookId id = { i };
        const KtHook *h = kt_hook_table_row(hooks, id);
        bool pages = kt_hook_table_is_pages(hooks, id);

        if (is_of_point(h, point, pages) && exists(k, h->symbol)) {
            Row row = row_of_hook(h, point, pages);

            add_row(a, k, &row);
        }
    }
}

static GArray *list(const KtHookTable *hooks, const GsKernel *k, PointId point)
{
    GArray *a = kt_fault_functions_new();

    add_hooks(a, hooks, k, point);
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (rows[i].point == point && exists(k, rows[i].name)) {
            add_row(a, k, &rows[i]);
        }
    }
    return a;
}

static PointId find_point(const char *name)
{
    unsigned i = 0;

    while (i < POINT__COUNT && strcmp(points[i].name, name)) {
        i++;
    }
    return i;
}

GArray *kt_fault_point_functions(const KtHookTable *hooks, const GsKernel *k,
                                 const char *point)
{
    PointId id = find_point(point);

    return id < POINT__COUNT ? list(hooks, k, id) : NULL;
}

bool kt_fault_point_known(const char *name)
{
    return find_point(name) < POINT__COUNT;
}

bool kt_fault_point_nth(unsigned i, KtFaultPointInfo *out)
{
    if (i >= POINT__COUNT) {
        return false;
    }
    *out = (KtFaultPointInfo) { points[i].name, points[i].help };
    return true;
}

GHashTable *kt_fault_allocators(const KtHookTable *hooks)
{
    GHashTable *set = g_hash_table_new_full(gs_name_hash_str, g_str_equal,
                                            g_free, NULL);

    for (unsigned p = 0; p < POINT__COUNT; p++) {
        g_autoptr(GArray) a = points[p].allocates ? list(hooks, NULL, p) :
                                                    NULL;

        for (unsigned i = 0; a && i < a->len; i++) {
            g_hash_table_add(set, g_strdup(
                g_array_index(a, KtFaultFunction, i).name));
        }
    }
    return set;
}

GHashTable *kt_fault_insides(void)
{
    GHashTable *set = g_hash_table_new(gs_name_hash_str, g_str_equal);

    for (unsigned i = 0; i < G_N_ELEMENTS(insides); i++) {
        g_hash_table_add(set, (gpointer)insides[i]);
    }
    return set;
}

/* ---- any function ------------------------------------------------------- */

static KtFaultKind kind_of(const GsParam *result)
{
    switch (result->kind) {
    case GS_VALUE_VOID:
        return KT_FAILS_VOID;
    case GS_VALUE_BOOL:
        return KT_FAILS_FALSE;
    case GS_VALUE_POINTER:
        return KT_FAILS_NULL;
    case GS_VALUE_SIGNED:
        return KT_FAILS_ERRNO;
    default:
        return KT_FAILS_UNKNOWN;
    }
}

static void use_prototype(KtFaultFunction *f, const GsKernel *k,
                          const char *module, bool known)
{
    g_autoptr(GsPrototype) p =
        k ? gs_kernel_prototype(k, module, f->name, NULL) : NULL;
    const GsParam *result = p ? gs_prototype_result(p) : NULL;

    if (result) {
        f->kind = known ? f->kind : kind_of(result);
        f->bits = result->size <= 8 ? result->size * 8 : 0;
    }
}

static bool find_hook_row(const KtHookTable *hooks, const char *name, Row *out)
{
    for (unsigned i = 1; i <= kt_hook_table_count(hooks); i++) {
        const KtHook *h = kt_hook_table_row(hooks, (KtHookId) { i });
        bool pages = kt_hook_table_is_pages(hooks, (KtHookId) { i });

        for (unsigned p = 0; !strcmp(h->symbol, name) && p < POINT__COUNT;
             p++) {
            if (is_of_point(h, p, pages)) {
                *out = row_of_hook(h, p, pages);
                return true;
            }
        }
    }
    return false;
}

static bool find_row(const KtHookTable *hooks, const char *name, Row *out)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (!strcmp(rows[i].name, name)) {
            *out = rows[i];
            return true;
        }
    }
    return find_hook_row(hooks, name, out);
}

KtFaultFunction kt_fault_function(const KtHookTable *hooks, const GsKernel *k,
                                  const char *module, const char *name)
{
    Row row = { .point = POINT__COUNT, .name = name, .role = ROLES() };
    bool known = !module && find_row(hooks, name, &row);
    KtFaultFunction f = function_of(module ? NULL : k, &row);

    use_prototype(&f, k, module, known);
    return f;
}

/* ---- sets --------------------------------------------------------------- */

static bool has_function(void *k, const char *name)
{
    return address_of(k, name);
}

/* (owned, g_strfreev) List all names that a function of the set can have. */
static char **all_names(const KtFunctionSet *set)
{
    g_autoptr(GString) s = g_string_new(NULL);
    const KtSetFunction *f;

    for (unsigned i = 0; (f = kt_function_set_function(set, i)); i++) {
        g_string_append_printf(s, "%s%s", i ? " " : "", f->names);
    }
    return g_strsplit(s->str, " ", -1);
}

GArray *kt_fault_set_functions(const KtHookTable *hooks, const GsKernel *k,
                               const char *set)
{
    const KtFunctionSet *found = *set == '@' ? kt_function_set_find(set) : NULL;
    g_auto(GStrv) names = NULL;
    GArray *a;

    if (!found) {
        return NULL;
    }
    names = k ? kt_function_set_resolve(found, has_function, (void *)k, NULL) :
                all_names(found);
    a = kt_fault_functions_new();
    for (unsigned i = 0; names[i]; i++) {
        KtFaultFunction f = kt_fault_function(hooks, k, NULL, names[i]);

        g_array_append_val(a, f);
    }
    return a;
}

/* ---- values ------------------------------------------------------------- */

static bool fits_width(unsigned bits, int64_t value)
{
    if (!bits || bits >= 64) {
        return true;
    }
    return value >= -((int64_t)1 << (bits - 1)) &&
           value < (int64_t)1 << bits;
}

bool kt_fault_fits(const KtFaultFunction *f, int64_t value)
{
    switch (f->kind) {
    case KT_FAILS_VOID:
        return false;
    case KT_FAILS_FALSE:
        return value == 0 || value == 1;
    default:
        return fits_width(f->bits, value);
    }
}
