/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Code classes of a kernel: see code-classes.h.
 *
 * Owns KtCodeClasses. Called when access checks are switched on, and asked when
 * code is translated. Rows are found by name in two tables, the user's and the
 * built-in one; each symbol of the kernel is looked up there once:
 *
 *     "link_path_walk.part.0.constprop.0"
 *         -> the whole name, in the user's table, then in the built-in one
 *         -> "link_path_walk", in the same order, but no RANGE row
 *         -> patterns with "*", in the same order
 */
#include "kalloc-tracer/access/code-classes.h"
#include "kalloc-tracer/api/kt-types.h"
#include "guest-symbols/base/sorted.h"

#include <string.h>

typedef enum Need { MUST, MAY } Need;

/* A row of access-code.def. @row: without a name */
typedef struct Source {
    Need need;
    const char *names;
    KtCodeRow row;
} Source;

#define ROW(kind, past, before, to, from, count, bytes) { \
    .class = KT_CODE_##kind, .max_past = past, .max_before = before, \
    .dst = to, .src = from, .n = count, .unit = bytes, \
}
#define NO_RANGE(kind, past, before) \
    ROW(kind, past, before, KT_NO_ARG, KT_NO_ARG, KT_NO_ARG, 0)

#define KT_ALLOCATOR(need, names) \
    { need, names, NO_RANGE(ALLOCATOR, 0, 0) },
#define KT_LEAF(names) { MAY, names, NO_RANGE(LEAF, 0, 0) },
#define KT_RANGE(need, names, dst, src, n, unit) \
    { need, names, ROW(RANGE, 0, 0, dst, src, n, unit) },
#define KT_OVERREAD(names, past, before) \
    { MAY, names, NO_RANGE(OVERREAD, past, before) },
#define KT_LOADS_OK(names) { MAY, names, NO_RANGE(LOADS_OK, 0, 0) },

static const Source any[] = {
#include "kalloc-tracer/access/access-code.def"
};
static const Source x86_64[] = {
#include "kalloc-tracer/access/code-x86_64.def"
};
static const Source arm64[] = {
#include "kalloc-tracer/access/code-arm64.def"
};
static const Source riscv64[] = {
#include "kalloc-tracer/access/code-riscv64.def"
};

/* By the number of the architecture. */
typedef struct Sources {
    const Source *at;
    size_t n;
} Sources;

static const Sources of_arch[] = {
#define GS_ARCH(name) { name, G_N_ELEMENTS(name) },
#include "guest-symbols/api/archs.def"
};

/*
 * Rows by name.
 * @exact: name -> Entry, borrowed from the table's @entries
 * @patterns: Entry*, borrowed
 */
typedef struct Table {
    GHashTable *exact;
    GPtrArray *patterns;
} Table;

/*
 * A row with one name, its own copy.
 * @built_in: not a row of the user's
 * @found: the kernel has such a function
 */
typedef struct Entry {
    KtCodeRow row;
    bool built_in;
    bool found;
} Entry;

/*
 * @functions: KtCodeFunction, sorted by address, without overlaps
 * @entries: Entry*, owned; the user's first: a row in front has precedence
 * @names: holds the names of rows
 * @missing, @unused: char*, owned
 */
struct KtCodeClasses {
    GArray *functions;
    GPtrArray *entries;
    GStringChunk *names;
    GPtrArray *missing;
    GPtrArray *unused;
};

/* Used while the functions are looked up. */
typedef struct Search {
    KtCodeClasses *c;
    const GsKernel *k;
    Table user, built_in;
} Search;

const char *kt_code_class_name(KtCodeClass class)
{
    static const char *const names[KT_CODE__COUNT] = {
        "plain", "allocator", "range", "leaf", "overread", "loads-ok"
    };

    return names[class];
}

/* ---- tables of rows ------------------------------------------------------ */

static void table_init(Table *t)
{
    t->exact = g_hash_table_new(g_str_hash, g_str_equal);
    t->patterns = g_ptr_array_new();
}

static void table_deinit(Table *t)
{
    g_hash_table_unref(t->exact);
    g_ptr_array_unref(t->patterns);
}

static void add_entry(Search *s, Table *t, const char *name,
                      const KtCodeRow *row)
{
    Entry *e = g_new0(Entry, 1);

    e->row = *row;
    e->row.name = g_string_chunk_insert(s->c->names, name);
    e->built_in = t == &s->built_in;
    if (row->unit == KT_PAGE) {
        e->row.unit = 1u << gs_kernel_page_shift(s->k);
    }
    g_ptr_array_add(s->c->entries, e);
    if (strchr(name, '*')) {
        g_ptr_array_add(t->patterns, e);
    } else {
        g_hash_table_insert(t->exact, (gpointer)e->row.name, e);
    }
}

static void add_user_rows(Search *s, const KtAccessRules *rules)
{
    const KtCodeRow *row;

    for (unsigned i = 0; (row = kt_access_rules_nth(rules, i)); i++) {
        add_entry(s, &s->user, row->name, row);
    }
}

static void add_sources(Search *s, Sources from)
{
    for (size_t i = 0; i < from.n; i++) {
        g_auto(GStrv) names = g_strsplit(from.at[i].names, " ", -1);

        for (unsigned n = 0; names[n]; n++) {
            add_entry(s, &s->built_in, names[n], &from.at[i].row);
        }
    }
}

static Entry *find_pattern(const Table *t, const char *base)
{
    for (unsigned i = 0; i < t->patterns->len; i++) {
        Entry *e = t->patterns->pdata[i];

        if (kt_name_matches(e->row.name, base)) {
            return e;
        }
    }
    return NULL;
}

/* @base: @name without the suffix of a clone */
static Entry *find_in(const Table *t, const char *name, const char *base)
{
    Entry *e = g_hash_table_lookup(t->exact, name);

    if (!e) {
        e = g_hash_table_lookup(t->exact, base);
        e = e && e->row.class == KT_CODE_RANGE ? NULL : e;
    }
    return e ? e : find_pattern(t, base);
}

/* ---- functions ----------------------------------------------------------- */

static void add_function(Search *s, Entry *e, uint64_t va)
{
    KtCodeFunction f = { .start = va, .row = &e->row };
    GsSymbol sym;

    e->found = true;
    if (e->row.class != KT_CODE_PLAIN && gs_kernel_symbolize(s->k, va, &sym)) {
        f.end = va + sym.size;
        g_array_append_val(s->c->functions, f);
    }
}

/* A built-in row that the user replaces is not missing. */
static bool visit_kernel(const GsSymbol *sym, void *opaque)
{
    Search *s = opaque;
    char base[GS_SYMBOL_NAME_MAX + 1];
    Entry *user, *built_in;

    g_strlcpy(base, sym->name, sizeof(base));
    base[strcspn(base, ".")] = 0;
    user = find_in(&s->user, sym->name, base);
    built_in = find_in(&s->built_in, sym->name, base);
    if ((user || built_in) && gs_kernel_is_code(s->k, sym)) {
        if (built_in) {
            built_in->found = true;
        }
        add_function(s, user ? user : built_in, sym->va);
    }
    return true;
}

/* Functions of modules are looked up by the user's whole names only. */
static bool visit_module(const GsSymbol *sym, void *opaque)
{
    Search *s = opaque;
    Entry *e = g_hash_table_lookup(s->user.exact, sym->name);

    if (e && sym->module && gs_kernel_is_code(s->k, sym)) {
        add_function(s, e, sym->va);
    }
    return true;
}

static void visit_modules(Search *s)
{
    GHashTableIter iter;
    gpointer name;

    g_hash_table_iter_init(&iter, s->user.exact);
    while (g_hash_table_iter_next(&iter, &name, NULL)) {
        gs_kernel_foreach_named(s->k, name, visit_module, s);
    }
}

static gint by_address(gconstpointer a, gconstpointer b)
{
    const KtCodeFunction *x = a, *y = b;

    return x->start < y->start ? -1 : x->start > y->start;
}

/* Of names for one address, the symbol that comes first counts. */
static void sort_functions(GArray *a)
{
    KtCodeFunction *f = (KtCodeFunction *)a->data;
    guint n = 0;

    g_array_sort(a, by_address);
    for (guint i = 0; i < a->len; i++) {
        if (!n || f[i].start != f[n - 1].start) {
            f[n++] = f[i];
        }
        f[n - 1].end = MAX(f[n - 1].end, f[n - 1].start);
        if (n > 1) {
            f[n - 2].end = MIN(f[n - 2].end, f[n - 1].start);
        }
    }
    g_array_set_size(a, n);
}

/* ---- names that were not found ------------------------------------------- */

/* Has the kernel one of these functions? No such name is a pattern. */
static bool has_one(const Table *t, char **names)
{
    const Entry *e = NULL;

    for (; *names && !(e && e->found); names++) {
        e = g_hash_table_lookup(t->exact, *names);
    }
    return e && e->found;
}

static void note_missing(Search *s, Sources from)
{
    for (size_t i = 0; i < from.n; i++) {
        g_auto(GStrv) names = g_strsplit(from.at[i].names, " ", -1);

        if (from.at[i].need == MUST && !has_one(&s->built_in, names)) {
            g_ptr_array_add(s->c->missing, g_strjoinv(" or ", names));
        }
    }
}

static void note_unused(KtCodeClasses *c)
{
    for (guint i = 0; i < c->entries->len; i++) {
        const Entry *e = c->entries->pdata[i];

        if (!e->built_in && !e->found) {
            g_ptr_array_add(c->unused, g_strdup(e->row.name));
        }
    }
}

/* ---- life and questions -------------------------------------------------- */

KtCodeClasses *kt_code_classes_new(const GsKernel *k,
                                   const KtAccessRules *more)
{
    KtCodeClasses *c = g_new0(KtCodeClasses, 1);
    Search s = { .c = c, .k = k };
    const Sources general = { any, G_N_ELEMENTS(any) };
    Sources own = of_arch[gs_arch_number(gs_kernel_arch(k))];

    c->functions = g_array_new(FALSE, FALSE, sizeof(KtCodeFunction));
    c->entries = g_ptr_array_new_with_free_func(g_free);
    c->names = g_string_chunk_new(4096);
    c->missing = g_ptr_array_new_with_free_func(g_free);
    c->unused = g_ptr_array_new_with_free_func(g_free);
    table_init(&s.user);
    table_init(&s.built_in);
    add_user_rows(&s, more);
    add_sources(&s, general);
    add_sources(&s, own);
    gs_kernel_foreach_symbol(k, visit_kernel, &s);
    visit_modules(&s);
    sort_functions(c->functions);
    note_unused(c);
    note_missing(&s, general);
    note_missing(&s, own);
    table_deinit(&s.user);
    table_deinit(&s.built_in);
    return c;
}

KtCodeClasses *kt_access_code(KtTracer *t, const GsKernel *k)
{
    return kt_code_classes_new(k, kt_access_rules_of(t));
}

void kt_code_classes_free(KtCodeClasses *c)
{
    if (c) {
        g_array_unref(c->functions);
        g_ptr_array_unref(c->entries);
        g_string_chunk_free(c->names);
        g_ptr_array_unref(c->missing);
        g_ptr_array_unref(c->unused);
        g_free(c);
    }
}

/* Count the functions that start at or below @va. */
static unsigned n_up_to(const KtCodeClasses *c, uint64_t va)
{
    return gs_sorted_up_to(c->functions->data, c->functions->len,
                           sizeof(KtCodeFunction), va);
}

const KtCodeFunction *kt_code_classes_nth(const KtCodeClasses *c, unsigned i)
{
    return i < c->functions->len ?
           &g_array_index(c->functions, KtCodeFunction, i) : NULL;
}

int kt_code_classes_index(const KtCodeClasses *c, uint64_t va)
{
    unsigned n = n_up_to(c, va);

    return n && va < kt_code_classes_nth(c, n - 1)->end ? (int)n - 1 : -1;
}

const KtCodeRow *kt_code_classes_at(const KtCodeClasses *c, uint64_t va)
{
    int i = kt_code_classes_index(c, va);

    return i < 0 ? NULL : kt_code_classes_nth(c, i)->row;
}

bool kt_code_classes_function(const KtCodeClasses *c, uint64_t va,
                              uint64_t *start, uint64_t *end)
{
    unsigned n = n_up_to(c, va);
    const KtCodeFunction *next = kt_code_classes_nth(c, n);
    const KtCodeFunction *f = n ? kt_code_classes_nth(c, n - 1) : NULL;
    bool is_in = f && va < f->end;

    *start = is_in ? f->start : f ? f->end : 0;
    *end = is_in ? f->end : next ? next->start : UINT64_MAX;
    return is_in;
}

static const char *nth_name(const GPtrArray *names, unsigned i)
{
    return i < names->len ? names->pdata[i] : NULL;
}

const char *kt_code_classes_missing(const KtCodeClasses *c, unsigned i)
{
    return nth_name(c->missing, i);
}

unsigned kt_code_classes_n_missing(const KtCodeClasses *c)
{
    return c->missing->len;
}

const char *kt_code_classes_unused(const KtCodeClasses *c, unsigned i)
{
    return nth_name(c->unused, i);
}
