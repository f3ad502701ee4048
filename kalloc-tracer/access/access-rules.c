/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reader of access rules: see code-classes.h.
 *
 * Owns KtAccessRules. Called at install, in QEMU's main thread. A line has a
 * class, a name, and columns of the form key=number; which ones a class has is
 * in keys[].
 */
#include "kalloc-tracer/access/code-classes.h"
#include "kalloc-tracer/tracer/tracer.h"

#include <string.h>

#define MAX_BYTES (1u << 20)
#define MAX_ROWS 4096u
#define MAX_OVERREAD 63u
#define MAX_ARG 5u
#define MAX_SIZE (1u << 30)

/*
 * @rows: KtCodeRow; their names are in @names
 * @lines: name -> number of its line, while the file is read
 */
struct KtAccessRules {
    GArray *rows;
    GStringChunk *names;
    GHashTable *lines;
};

/*
 * A column.
 * @class: the class that has it
 * @min, @max: bounds of its number
 * @at: offset of an int in KtCodeRow
 */
typedef struct Key {
    const char *name;
    KtCodeClass class;
    unsigned min, max;
    size_t at;
} Key;

static const Key keys[] = {
    { "past", KT_CODE_OVERREAD, 0, MAX_OVERREAD,
      offsetof(KtCodeRow, max_past) },
    { "before", KT_CODE_OVERREAD, 0, MAX_OVERREAD,
      offsetof(KtCodeRow, max_before) },
    { "dst", KT_CODE_RANGE, 0, MAX_ARG, offsetof(KtCodeRow, dst) },
    { "src", KT_CODE_RANGE, 0, MAX_ARG, offsetof(KtCodeRow, src) },
    { "n", KT_CODE_RANGE, 0, MAX_ARG, offsetof(KtCodeRow, n) },
    { "size", KT_CODE_RANGE, 1, MAX_SIZE, offsetof(KtCodeRow, unit) },
};

/* ---- errors: "file:line: why" -------------------------------------------- */

/* Where the reader is. */
typedef struct Place {
    const char *name;
    unsigned line;
    GError **errp;
} Place;

static bool G_GNUC_PRINTF(2, 3) fail(const Place *at, const char *format, ...)
{
    g_autofree char *why = NULL;
    g_autofree char *safe = NULL;
    va_list ap;

    va_start(ap, format);
    why = g_strdup_vprintf(format, ap);
    va_end(ap);
    safe = g_strescape(why, NULL);
    g_set_error(at->errp, GS_ERROR, GS_ERROR_FORMAT, "%s:%u: %s", at->name,
                at->line, safe);
    return false;
}

/* Return the columns of a class: "past, before"; NULL if it has none. */
static char *key_names(KtCodeClass class)
{
    g_autoptr(GString) s = g_string_new(NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(keys); i++) {
        if (keys[i].class == class) {
            g_string_append_printf(s, "%s%s=", s->len ? ", " : "",
                                   keys[i].name);
        }
    }
    return s->len ? g_string_free(g_steal_pointer(&s), FALSE) : NULL;
}

static bool wrong_key(const Place *at, const KtCodeRow *row, const char *word)
{
    g_autofree char *names = key_names(row->class);
    const char *class = kt_code_class_name(row->class);

    if (!names) {
        return fail(at, "'%.80s': class %s has no columns, remove it", word,
                    class);
    }
    return fail(at, "'%.80s': class %s has the columns %s", word, class,
                names);
}

/* ---- one line ------------------------------------------------------------ */

static bool parse_class(const Place *at, KtCodeRow *row, const char *word)
{
    g_autoptr(GString) all = g_string_new(NULL);

    for (unsigned i = 0; i < KT_CODE__COUNT; i++) {
        if (!strcmp(word, kt_code_class_name(i))) {
            row->class = i;
            return true;
        }
        g_string_append_printf(all, "%s%s", i ? ", " : "",
                               kt_code_class_name(i));
    }
    return fail(at, "'%.80s' is not a class: use one of %s", word, all->str);
}

static bool parse_name(const Place *at, KtAccessRules *r, KtCodeRow *row,
                       const char *word)
{
    unsigned before;

    if (!word) {
        return fail(at, "no function: write its name behind the class");
    }
    for (const char *p = word; *p; p++) {
        if (!g_ascii_isalnum(*p) && !strchr("_.*", *p)) {
            return fail(at, "'%.80s' is not a function's name: use letters, "
                        "digits, '_', '.', and '*' for any characters", word);
        }
    }
    if (strlen(word) > GS_SYMBOL_NAME_MAX || *word == '*') {
        return fail(at, "'%.80s' is not a function's name: use at most %d "
                    "characters, and no '*' at the start", word,
                    GS_SYMBOL_NAME_MAX);
    }
    if (row->class == KT_CODE_RANGE && strchr(word, '*')) {
        return fail(at, "'%.80s': class range needs whole names, since it "
                    "depends on arguments", word);
    }
    before = GPOINTER_TO_UINT(g_hash_table_lookup(r->lines, word));
    if (before) {
        return fail(at, "'%.80s' is in line %u already: remove one", word,
                    before);
    }
    row->name = g_string_chunk_insert(r->names, word);
    g_hash_table_insert(r->lines, (gpointer)row->name,
                        GUINT_TO_POINTER(at->line));
    return true;
}

static bool parse_column(const Place *at, KtCodeRow *row, const char *word)
{
    size_t len = strcspn(word, "=");
    guint64 value;

    for (size_t i = 0; i < G_N_ELEMENTS(keys); i++) {
        const Key *k = &keys[i];

        if (k->class != row->class || strlen(k->name) != len ||
            strncmp(word, k->name, len) || word[len] != '=') {
            continue;
        }
        if (!g_ascii_string_to_unsigned(word + len + 1, 10, k->min, k->max,
                                        &value, NULL)) {
            return fail(at, "'%.80s': use a number from %u to %u", word,
                        k->min, k->max);
        }
        *(int *)((char *)row + k->at) = (int)value;
        return true;
    }
    return wrong_key(at, row, word);
}

static bool check_row(const Place *at, const KtCodeRow *row)
{
    bool is_checked = row->dst != KT_NO_ARG || row->src != KT_NO_ARG;
    bool has_n = row->n != KT_NO_ARG;

    if (row->class == KT_CODE_OVERREAD && !row->max_past && !row->max_before) {
        return fail(at, "%.80s: class overread needs past= or before=",
                    row->name);
    }
    if (row->class == KT_CODE_RANGE && is_checked && has_n == !!row->unit) {
        return fail(at, "%.80s: class range needs either n= or size= with "
                    "dst= or src=", row->name);
    }
    return true;
}

/* @words: the line's, without empty ones; at least one */
static bool parse_words(const Place *at, KtAccessRules *r, char **words)
{
    KtCodeRow row = { .dst = KT_NO_ARG, .src = KT_NO_ARG, .n = KT_NO_ARG };

    if (!parse_class(at, &row, words[0]) ||
        !parse_name(at, r, &row, words[1])) {
        return false;
    }
    for (char **word = words + 2; *word; word++) {
        if (!parse_column(at, &row, *word)) {
            return false;
        }
    }
    if (!check_row(at, &row)) {
        return false;
    }
    if (row.n != KT_NO_ARG) {
        row.unit = 1;
    }
    if (r->rows->len == MAX_ROWS) {
        return fail(at, "too many rules: a file has at most %u", MAX_ROWS);
    }
    g_array_append_val(r->rows, row);
    return true;
}

/* A comment begins with "#" and ends with the line. */
static bool parse_line(const Place *at, KtAccessRules *r, char *line)
{
    g_autoptr(GPtrArray) words = g_ptr_array_new();
    char *rest = line;
    char *word;

    line[strcspn(line, "#")] = 0;
    while ((word = strsep(&rest, " \t\r"))) {
        if (*word) {
            g_ptr_array_add(words, word);
        }
    }
    if (!words->len) {
        return true;
    }
    g_ptr_array_add(words, NULL);
    return parse_words(at, r, (char **)words->pdata);
}

/* ---- files --------------------------------------------------------------- */

static bool parse(KtAccessRules *r, const char *data, size_t len,
                  const char *name, GError **errp)
{
    g_autofree char *text = g_strndup(data, len);
    Place at = { .name = name, .errp = errp };
    char *rest = text;
    char *line;

    if (strlen(text) != len || len > MAX_BYTES) {
        g_set_error(errp, GS_ERROR, GS_ERROR_FORMAT, "%s: not a text file of "
                    "at most 1 MiB", name);
        return false;
    }
    while ((line = strsep(&rest, "\n"))) {
        at.line++;
        if (!parse_line(&at, r, line)) {
            return false;
        }
    }
    return true;
}

KtAccessRules *kt_access_rules_new_from_data(const char *data, size_t len,
                                             const char *name, GError **errp)
{
    g_autoptr(KtAccessRules) r = g_new0(KtAccessRules, 1);
    bool good;

    r->rows = g_array_new(FALSE, FALSE, sizeof(KtCodeRow));
    r->names = g_string_chunk_new(1024);
    r->lines = g_hash_table_new(g_str_hash, g_str_equal);
    good = parse(r, data, len, name, errp);
    g_clear_pointer(&r->lines, g_hash_table_unref);
    return good ? g_steal_pointer(&r) : NULL;
}

KtAccessRules *kt_access_rules_open(const char *path, GError **errp)
{
    g_autoptr(GBytes) bytes = gs_file_read_named(path, MAX_BYTES, errp);
    const char *data;
    size_t len;

    if (!bytes) {
        return NULL;
    }
    data = g_bytes_get_data(bytes, &len);
    return kt_access_rules_new_from_data(data, len, path, errp);
}

void kt_access_rules_free(KtAccessRules *r)
{
    if (r) {
        g_array_unref(r->rows);
        g_string_chunk_free(r->names);
        g_clear_pointer(&r->lines, g_hash_table_unref);
        g_free(r);
    }
}

const KtCodeRow *kt_access_rules_nth(const KtAccessRules *r, unsigned i)
{
    return r && i < r->rows->len ? &g_array_index(r->rows, KtCodeRow, i)
                                 : NULL;
}

/* ---- modules ------------------------------------------------------------- */

/* @names: of the rules; @found: a symbol has one of them */
typedef struct Names {
    GHashTable *names;
    bool found;
} Names;

static bool visit_symbol(const GsModuleSymbol *sym, void *opaque)
{
    Names *n = opaque;

    n->found = g_hash_table_contains(n->names, sym->name);
    return !n->found;
}

bool kt_access_rules_concern(const KtAccessRules *r, const GsKernel *k,
                             uint64_t module_va)
{
    g_autoptr(GHashTable) names = NULL;
    Names n = { .found = false };
    const KtCodeRow *row;

    if (!r) {
        return false;
    }
    names = g_hash_table_new(g_str_hash, g_str_equal);
    for (unsigned i = 0; (row = kt_access_rules_nth(r, i)); i++) {
        g_hash_table_add(names, (gpointer)row->name);
    }
    n.names = names;
    gs_kernel_module_symbols(k, module_va, visit_symbol, &n);
    return n.found;
}

/* ---- of a tracer --------------------------------------------------------- */

/* @rules: (owned, nullable) */
typedef struct Holder {
    KtAccessRules *rules;
} Holder;

static void *holder_new(KtBudget *budget)
{
    return g_new0(Holder, 1);
}

static void holder_free(void *part)
{
    Holder *h = part;

    kt_access_rules_free(h->rules);
    g_free(h);
}

static Holder *holder_of(KtTracer *t)
{
    static const KtBootPart part = {
        .name = "access rules", .new = holder_new, .free = holder_free,
    };

    return kt_tracer_part(t, &part);
}

bool kt_access_rules_load(KtTracer *t, const char *path, GError **errp)
{
    Holder *h = holder_of(t);

    h->rules = kt_access_rules_open(path, errp);
    return h->rules != NULL;
}

const KtAccessRules *kt_access_rules_of(KtTracer *t)
{
    return holder_of(t)->rules;
}
