/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rules of leak scans: the built-in ones of leak-rules.def, and those of the
 * file of option leak-rules=.
 *
 * Per scan, each rule's function is looked up once in the kernel's symbols, and
 * each stack is compared with all functions once: the result is kept by stack
 * id. So the cost per block is O(1), except for scan-area rules.
 *
 * Runs in the thread of monitor commands.
 */
#include "kalloc-tracer/leak/leak-internal.h"

#include <errno.h>
#include <string.h>

#include "kalloc-tracer/tracer/tracer.h"

#define RULES_MAX   1024
#define FILE_MAX    (1u << 20)
#define WORK_PER_CHECK (1u << 16)   /* comparisons between two checks of the
                                     * deadline */

static const char *const kind_name[] = {
    [KT_LEAK_RULE_NOT_LEAK] = "not-leak",
    [KT_LEAK_RULE_IGNORE] = "ignore",
    [KT_LEAK_RULE_NO_SCAN] = "no-scan",
    [KT_LEAK_RULE_SCAN_AREA] = "scan-area",
};

static const char *const by_name[] = {
    [KT_LEAK_BY_FUNC] = "func",
    [KT_LEAK_BY_CACHE] = "cache",
};

static const KtLeakRule built_in[] = {
#define KT_LEAK_RULE(kind_, by_, name_, lo_, hi_, why_) { \
        .kind = KT_LEAK_RULE_##kind_, .by = KT_LEAK_BY_##by_, \
        .name = (char *)(name_), .lo = (lo_), .hi = (hi_) },
#include "kalloc-tracer/leak/leak-rules.def"
};

static void clear_rule(gpointer rule)
{
    g_free(((KtLeakRule *)rule)->name);
}

void *kt_leak_scanner_new(KtBudget *unused)
{
    KtLeakScanner *l = g_new0(KtLeakScanner, 1);

    l->rules = g_array_new(FALSE, FALSE, sizeof(KtLeakRule));
    g_array_set_clear_func(l->rules, clear_rule);
    l->dismissed = g_hash_table_new_full(gs_number_hash, g_int64_equal, g_free,
                                       NULL);
    l->last = g_array_new(FALSE, FALSE, sizeof(KtLeakFinding));
    for (unsigned i = 0; i < G_N_ELEMENTS(built_in); i++) {
        KtLeakRule r = built_in[i];

        r.name = g_strdup(r.name);
        g_array_append_val(l->rules, r);
    }
    return l;
}

void kt_leak_scanner_free(void *scanner)
{
    KtLeakScanner *l = scanner;

    if (l) {
        g_array_unref(l->rules);
        g_hash_table_unref(l->dismissed);
        g_array_unref(l->last);
        g_free(l->why_not);
        g_free(l);
    }
}

KtLeakScanner *kt_leak_scanner_of(KtTracer *t)
{
    static const KtBootPart part = {
        .name = "leak-scanner",
        .new = kt_leak_scanner_new,
        .free = kt_leak_scanner_free,
    };

    return kt_tracer_part(t, &part);
}

KtLeakScanner *kt_leak_scanner_now(KtTracer *t)
{
    KtLeakScanner *l = kt_leak_scanner_of(t);
    uint64_t epoch = kt_tracer_epoch(t);

    if (l->epoch != epoch) {
        l->epoch = epoch;
        g_hash_table_remove_all(l->dismissed);
        g_array_set_size(l->last, 0);
        l->last_us = 0;
        l->scanned = false;
    }
    return l;
}

/* ---- a file ------------------------------------------------------------- */

static bool find_name(const char *const *names, unsigned n, const char *word,
                      unsigned *out)
{
    for (*out = 0; *out < n; *out += 1) {
        if (!g_strcmp0(names[*out], word)) {
            return true;
        }
    }
    return false;
}

/* Parse a range of hex offsets such as "10-40", the second excluded. */
static bool parse_area(const char *word, KtLeakRule *r)
{
    char *end;

    if (!word || !g_ascii_isxdigit(*word)) {
        return false;
    }
    errno = 0;
    r->lo = g_ascii_strtoull(word, &end, 16);
    if (*end != '-' || !g_ascii_isxdigit(end[1])) {
        return false;
    }
    r->hi = g_ascii_strtoull(end + 1, &end, 16);
    return !errno && !*end && r->lo < r->hi;
}

/* Parse the words of a rule. Return (static) the error, NULL if there is
 * none. */
static const char *parse_words(char **word, KtLeakRule *r)
{
    unsigned kind, by, n = 3;

    if (!find_name(kind_name, G_N_ELEMENTS(kind_name), word[0], &kind)) {
        return "a rule is not-leak, ignore, no-scan or scan-area";
    }
    if (!find_name(by_name, G_N_ELEMENTS(by_name), word[1], &by)) {
        return "the second word is func or cache";
    }
    if (!word[2]) {
        return "the third word is the name of a function or cache";
    }
    *r = (KtLeakRule) { .kind = kind, .by = by, .name = word[2] };
    if (kind == KT_LEAK_RULE_SCAN_AREA) {
        if (!parse_area(word[3], r)) {
            return "the fourth word is a range of hex offsets, as 10-40";
        }
        n = 4;
    }
    return word[n] ? "one word too many; comments begin with #" : NULL;
}

/* Return (owned) the words of a line, without its comment. */
static char **split_row(const char *row)
{
    g_autofree char *text = g_strndup(row, strcspn(row, "#"));
    g_auto(GStrv) parts = g_strsplit_set(text, " \t\r", -1);
    GPtrArray *words = g_ptr_array_new();

    for (unsigned i = 0; parts[i]; i++) {
        if (*parts[i]) {
            g_ptr_array_add(words, g_strdup(parts[i]));
        }
    }
    g_ptr_array_add(words, NULL);
    return (char **)g_ptr_array_free(words, FALSE);
}

static bool fail(const char *name, unsigned line, const char *why,
                 GError **errp)
{
    g_set_error(errp, GS_ERROR, GS_ERROR_FORMAT, "%s:%u: %s", name, line, why);
    return false;
}

bool kt_leaks_parse(KtLeakScanner *l, const char *text, const char *name,
                    GError **errp)
{
    g_auto(GStrv) rows = g_strsplit(text, "\n", -1);
    unsigned before = l->rules->len;

    for (unsigned i = 0; rows[i]; i++) {
        g_auto(GStrv) words = split_row(rows[i]);
        const char *why;
        KtLeakRule r;

        if (!words[0]) {
            continue;
        }
        why = l->rules->len < RULES_MAX ? parse_words(words, &r) :
              "too many rules";
        if (why) {
            g_array_set_size(l->rules, before);
            return fail(name, i + 1, why, errp);
        }
        r.name = g_strdup(r.name);
        g_array_append_val(l->rules, r);
    }
    return true;
}

bool kt_leak_rules_load(KtTracer *t, const char *path, GError **errp)
{
    g_autoptr(GBytes) bytes = gs_file_read_named(path, FILE_MAX, errp);
    const char *text;
    size_t len;

    if (!bytes) {
        return false;
    }
    text = g_bytes_get_data(bytes, &len);
    if (strlen(text) != len) {
        g_set_error(errp, GS_ERROR, GS_ERROR_FORMAT,
                    "%s: no file of rules: it has bytes that are no text",
                    path);
        return false;
    }
    return kt_leaks_parse(kt_leak_scanner_of(t), text, path, errp);
}

/* ---- apply -------------------------------------------------------------- */

/* One function that a rule names: several functions may have one name. */
typedef struct Code {
    uint64_t va, size;
    uint32_t rule;
} Code;

/*
 * struct Applying - state of kt_leak_apply_rules()
 * @code: Code
 * @rule: index of the rule whose function is looked up now
 * @n_stacks: length of @by_stack
 * @by_stack: by stack id: 0 if not compared yet, else 1 + a bit for each kind
 *            of rule that matches
 * @work: comparisons since the last check of the deadline
 */
typedef struct Applying {
    const KtLeakScanner *l;
    KtLiveSet *w;
    GArray *code;
    uint32_t rule;
    uint32_t n_stacks;
    uint8_t *by_stack;
    uint64_t work;
} Applying;

/* Check the deadline now and then: the guest decides how many stacks there are,
 * and how many symbols have the name of a rule. */
static bool goes_on(Applying *a)
{
    if (a->work >= WORK_PER_CHECK) {
        a->work = 0;
        kt_live_set_progress(a->w, 0);
    }
    return !a->w->ended;
}

static bool add_code(const GsSymbol *sym, void *opaque)
{
    Applying *a = opaque;
    Code c = { sym->va, sym->size, a->rule };

    g_array_append_val(a->code, c);
    return true;
}

static const KtLeakRule *rule_at(const KtLeakScanner *l, uint32_t i)
{
    return &g_array_index(l->rules, KtLeakRule, i);
}

static void find_code(Applying *a)
{
    for (a->rule = 0; a->rule < a->l->rules->len; a->rule++) {
        const KtLeakRule *r = rule_at(a->l, a->rule);

        if (r->by == KT_LEAK_BY_FUNC) {
            gs_kernel_foreach_named(a->w->plan->kernel, r->name, add_code, a);
        }
    }
}

static bool has_frame(const Applying *a, KtStackId id, const Code *c)
{
    GsStop stop;
    unsigned n;
    const uint64_t *frame = kt_tracer_stack(a->w->tracer, id, &n, &stop);

    for (unsigned i = 0; i < n; i++) {
        if (frame[i] - 1 - c->va < c->size) {
            return true;
        }
    }
    return false;
}

/* Return a bit for each kind of rule that names a function of the stack. */
static unsigned kinds_of_stack(Applying *a, KtStackId id)
{
    unsigned kinds = 0;

    if (id.v >= a->n_stacks) {
        return 0;
    }
    if (a->by_stack[id.v]) {
        return a->by_stack[id.v] - 1;
    }
    a->work += a->code->len + 1;
    for (unsigned i = 0; i < a->code->len; i++) {
        const Code *c = &g_array_index(a->code, Code, i);

        if (has_frame(a, id, c)) {
            kinds |= 1u << rule_at(a->l, c->rule)->kind;
        }
    }
    a->by_stack[id.v] = kinds + 1;
    return kinds;
}

static bool is_cache(const Applying *a, KtCacheId id, const KtLeakRule *r)
{
    KtCacheInfo info;

    return r->by == KT_LEAK_BY_CACHE &&
           kt_tracer_cache(a->w->tracer, id, &info) &&
           !strcmp(info.name, r->name);
}

/* Return (owned) an array by cache id, with a bit for each kind of rule that
 * names the cache. */
static unsigned *kinds_of_caches(const Applying *a)
{
    unsigned *kinds = g_new0(unsigned, UINT16_MAX + 1);

    for (unsigned i = 0; i < a->l->rules->len; i++) {
        const KtLeakRule *r = rule_at(a->l, i);
        KtCacheInfo info;

        for (unsigned id = 1; r->by == KT_LEAK_BY_CACHE &&
             kt_tracer_cache(a->w->tracer, (KtCacheId) { id }, &info); id++) {
            kinds[id] |= is_cache(a, (KtCacheId) { id }, r) ? 1u << r->kind :
                                                              0;
        }
    }
    return kinds;
}

/* Add the area of each scan-area rule that matches the block. */
static void add_areas(Applying *a, uint32_t block)
{
    const KtLiveBlock *b = kt_live_set_block(a->w, block);

    for (unsigned i = 0; i < a->l->rules->len; i++) {
        const KtLeakRule *r = rule_at(a->l, i);
        bool match = is_cache(a, b->cache, r);

        a->work += a->code->len;
        for (unsigned j = 0; !match && j < a->code->len; j++) {
            const Code *c = &g_array_index(a->code, Code, j);

            match = c->rule == i && has_frame(a, b->stack, c);
        }
        if (match && r->kind == KT_LEAK_RULE_SCAN_AREA) {
            kt_marker_area(a->w->scan, (KtMarkerArea) { block, r->lo, r->hi });
        }
    }
}

static unsigned flags_of(unsigned kinds)
{
    bool ignore = kinds >> KT_LEAK_RULE_IGNORE & 1;

    return (ignore || kinds >> KT_LEAK_RULE_NOT_LEAK & 1 ? KT_MARKERF_ROOT :
                                                           0) |
           (ignore || kinds >> KT_LEAK_RULE_NO_SCAN & 1 ? KT_MARKERF_NO_SCAN :
                                                          0);
}

void kt_leak_apply_rules(const KtLeakScanner *l, KtLiveSet *w, uint8_t *excused)
{
    uint32_t n_stacks = kt_depot_count(w->tracer->stacks) + 1;
    g_autofree uint8_t *by_stack = g_new0(uint8_t, n_stacks);
    Applying a = {
        .l = l, .w = w, .code = g_array_new(FALSE, FALSE, sizeof(Code)),
        .n_stacks = n_stacks, .by_stack = by_stack,
    };
    g_autofree unsigned *of_cache = kinds_of_caches(&a);

    find_code(&a);
    for (uint32_t i = 0; i < w->live->len && goes_on(&a); i++) {
        const KtLiveBlock *b = kt_live_set_block(w, i);
        unsigned kinds = kinds_of_stack(&a, b->stack) | of_cache[b->cache.v];
        unsigned flags = flags_of(kinds);

        if (flags) {
            kt_marker_set_flags(w->scan, i, flags);
        }
        if (kinds >> KT_LEAK_RULE_SCAN_AREA & 1) {
            add_areas(&a, i);
        }
        excused[i] = (flags & KT_MARKERF_ROOT) != 0;
    }
    g_array_unref(a.code);
}
