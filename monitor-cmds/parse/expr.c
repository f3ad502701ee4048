/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Address expressions. Grammar (expr.h has the rule for hex and symbols):
 *
 *   expr  = base ["+" hex]            kmalloc, kmalloc+1c, ffff888000001000+8
 *   base  = ["0x"] hex | [module ":"] symbol | ("pfn"|"phys"|"page") ":" hex
 *
 * The forms in kernel traces are accepted too: name+0x1c/0x90,
 * name+0x1c[module]. Called by parse.c only, on the thread of the command,
 * without locks.
 */
#include "monitor-cmds/parse/expr.h"

#include <string.h>

#define QUOTE_MAX 64
#define NEAR_MAX 3
/* A word of at least this many hex digits is an address, even if a symbol has
 * this name. */
#define SURE_DIGITS 8

/* One side of a range, split into its parts. */
typedef struct Term {
    char *module;           /* owned, NULL without a module */
    char *name;             /* owned; the digits of a number */
    uint64_t va;            /* the value, offset included */
    GsSymbol sym;           /* if it is a symbol */
    bool alone;             /* it is a symbol without offset */
    bool later;             /* its address is not known yet */
} Term;

static void term_deinit(Term *t)
{
    g_clear_pointer(&t->module, g_free);
    g_clear_pointer(&t->name, g_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Term, term_deinit)

const GsKernel *mc_symbols(const McContext *ctx)
{
    return ctx->kernel_found ? ctx->kernel : NULL;
}

char *mc_quote(const char *word)
{
    GString *s = g_string_new("\"");
    size_t n = 0;

    for (; word[n] && n < QUOTE_MAX; n++) {
        unsigned char c = word[n];

        if (c < 0x20 || c >= 0x7f || c == '"' || c == '\\') {
            g_string_append_printf(s, "\\x%02x", c);
        } else {
            g_string_append_c(s, c);
        }
    }
    g_string_append(s, word[n] ? "...\"" : "\"");
    return g_string_free(s, FALSE);
}

/* Set the error "<quoted word>: <format>". */
static bool fail(GError **errp, McErrorCode code, const char *word,
                 const char *format, ...) G_GNUC_PRINTF(4, 5);
static bool fail(GError **errp, McErrorCode code, const char *word,
                 const char *format, ...)
{
    g_autofree char *quoted = mc_quote(word);
    g_autofree char *text = NULL;
    va_list ap;

    va_start(ap, format);
    text = g_strdup_vprintf(format, ap);
    va_end(ap);
    g_set_error(errp, MC_ERROR, code, "%s: %s", quoted, text);
    return false;
}

/* ---- numbers ------------------------------------------------------------- */

static bool has_0x(const char *s)
{
    return s[0] == '0' && (s[1] == 'x' || s[1] == 'X');
}

/* Return true if @s is not empty and has only hex digits. */
static bool all_hex(const char *s)
{
    size_t n = 0;

    while (g_ascii_isxdigit(s[n])) {
        n++;
    }
    return n && !s[n];
}

bool mc_parse_hex(const char *word, uint64_t *out, GError **errp)
{
    const char *s = word + (has_0x(word) ? 2 : 0);
    uint64_t v = 0;

    if (!all_hex(s)) {
        return fail(errp, MC_ERROR_SYNTAX, word, "not a hex number");
    }
    for (; *s; s++) {
        if (v >> 60) {
            return fail(errp, MC_ERROR_SYNTAX, word,
                        "more than 64 bits (16 hex digits)");
        }
        v = v << 4 | g_ascii_xdigit_value(*s);
    }
    if (out) {
        *out = v;
    }
    return true;
}

bool mc_parse_decimal(const char *word, const char *unit, uint64_t *out,
                      GError **errp)
{
    const char *s = word;
    uint64_t v = 0;

    for (; g_ascii_isdigit(*s); s++) {
        unsigned d = *s - '0';

        if (v > (UINT64_MAX - d) / 10) {
            return fail(errp, MC_ERROR_SYNTAX, word,
                        "more than 64 bits (%" G_GUINT64_FORMAT ")",
                        UINT64_MAX);
        }
        v = v * 10 + d;
    }
    if (s == word || (*s && strcmp(s, unit))) {
        return fail(errp, MC_ERROR_SYNTAX, word, "not a decimal number%s%s",
                    *unit ? " of " : "", unit);
    }
    *out = v;
    return true;
}

/* ---- terms --------------------------------------------------------------- */

static bool fail_symbol(const McContext *ctx, const char *name, GError **errp)
{
    const GsKernel *k = mc_symbols(ctx);
    g_auto(GStrv) near = NULL;
    g_autoptr(GString) list = g_string_new(NULL);

    if (!ctx->kernel) {
        return fail(errp, MC_ERROR_UNKNOWN, name,
                    "not a hex address, and no symbols are known: %s",
                    mc_why_no_kernel(ctx));
    }
    if (!k) {
        return fail(errp, MC_ERROR_UNKNOWN, name,
                    "not a hex address, and symbols have no addresses before "
                    "the running kernel is recognised");
    }
    near = gs_kernel_suggest(k, name, NEAR_MAX);
    for (unsigned i = 0; near && near[i]; i++) {
        /* skip duplicates: several symbols may have one name */
        if (!i || strcmp(near[i], near[i - 1])) {
            g_string_append_printf(list, "%s%s", i ? ", " : "; near: ",
                                   near[i]);
        }
    }
    return fail(errp, MC_ERROR_UNKNOWN, name,
                "neither a hex address nor a kernel symbol%s", list->str);
}

static bool lookup(const McContext *ctx, const Term *t, GsSymbol *out)
{
    const GsKernel *k = mc_symbols(ctx);
    g_autofree char *full = NULL;

    if (!k) {
        return false;
    }
    if (t->module) {
        full = g_strconcat(t->module, ":", t->name, NULL);
    }
    return gs_kernel_lookup(k, full ? full : t->name, out);
}

/* Return true if t->name is a number by the rule of expr.h. */
static bool is_number(const McContext *ctx, const Term *t)
{
    GsSymbol sym;

    if (t->module) {
        return false;
    }
    if (has_0x(t->name)) {
        return true;
    }
    return all_hex(t->name) &&
           (strlen(t->name) >= SURE_DIGITS || !lookup(ctx, t, &sym));
}

/* Remove "[module]" or "/size", which kernel traces print, from the end of
 * @text. */
static bool cut_tail(char *text, Term *t, const char *word, GError **errp)
{
    size_t n = strlen(text);
    char *open = strchr(text, '[');
    char *slash;

    if (open) {
        if (text[n - 1] != ']' || open + 2 >= text + n) {
            return fail(errp, MC_ERROR_SYNTAX, word,
                        "after \"[\" a module name and \"]\" must follow");
        }
        text[n - 1] = 0;
        t->module = g_strdup(open + 1);
        *open = 0;
    }
    slash = strchr(text, '/');
    if (slash) {
        uint64_t size;

        if (!mc_parse_hex(slash + 1, &size, NULL)) {
            return fail(errp, MC_ERROR_SYNTAX, word,
                        "after \"/\" a size in hex must follow");
        }
        *slash = 0;
    }
    return true;
}

/* Split @word into module, name and offset. */
static bool split_term(const char *word, Term *t, uint64_t *off, bool *has_off,
                       GError **errp)
{
    g_autofree char *text = g_strdup(word);
    char *plus, *colon;

    if (!cut_tail(text, t, word, errp)) {
        return false;
    }
    plus = strchr(text, '+');
    *has_off = plus != NULL;
    if (plus) {
        *plus = 0;
        if (!mc_parse_hex(plus + 1, off, NULL)) {
            fail(errp, MC_ERROR_SYNTAX, word,
                 "after \"+\" an offset in hex must follow, "
                 "of at most 64 bits");
            return false;
        }
    }
    colon = strchr(text, ':');
    if (colon && !t->module) {
        *colon = 0;
        t->module = g_strdup(text);
        t->name = g_strdup(colon + 1);
    } else {
        t->name = g_strdup(text);
    }
    if (!*t->name || (t->module && !*t->module)) {
        return fail(errp, MC_ERROR_SYNTAX, word, "an address is <hex>, "
                    "<symbol>, <symbol>+<hex> or <module>:<symbol>");
    }
    return true;
}

/* ---- pages --------------------------------------------------------------- */

/* How the memory of a page is named otherwise than by its address. */
static const struct {
    const char *word, *what;
    bool (*find)(const KtObjects *o, uint64_t number, uint64_t *va);
} places[] = {
    { "pfn", "frame of this number", kt_objects_frame },
    { "phys", "page of this physical address", kt_objects_physical },
    { "page", "struct page at this address", kt_objects_page },
};

/* Return the index of the place that the term names; G_N_ELEMENTS(places) if it
 * is none. */
static unsigned place_of(const Term *t)
{
    unsigned i = 0;

    while (i < G_N_ELEMENTS(places) && (g_strcmp0(t->module, places[i].word) ||
                                        !mc_parse_hex(t->name, NULL, NULL))) {
        i++;
    }
    return i;
}

static bool find_place(const McContext *ctx, const char *word, unsigned i,
                       Term *t, GError **errp)
{
    const KtObjects o = { ctx->tracer, mc_symbols(ctx), ctx->vm };
    uint64_t number = 0;

    mc_parse_hex(t->name, &number, NULL);
    if (places[i].find(&o, number, &t->va)) {
        return true;
    }
    return fail(errp, MC_ERROR_UNKNOWN, word, !o.vm ?
                "pages are not found without the VM's memory" :
                "the direct map, which ka base prints, has no %s, or is not "
                "known", places[i].what);
}

/* ---- terms --------------------------------------------------------------- */

static bool parse_term(const McContext *ctx, const char *word, Term *t,
                       GError **errp)
{
    uint64_t off = 0;
    bool has_off;
    unsigned place;

    if (!split_term(word, t, &off, &has_off, errp)) {
        return false;
    }
    place = place_of(t);
    if (place < G_N_ELEMENTS(places) && !ctx->symbols_later) {
        if (!find_place(ctx, word, place, t, errp)) {
            return false;
        }
    } else if (is_number(ctx, t)) {
        if (!mc_parse_hex(t->name, &t->va, errp)) {
            return false;
        }
    } else if (ctx->symbols_later) {
        t->later = true;
    } else {
        if (!lookup(ctx, t, &t->sym)) {
            g_autofree char *base = t->module ?
                g_strconcat(t->module, ":", t->name, NULL) :
                g_strdup(t->name);

            return fail_symbol(ctx, base, errp);
        }
        t->va = t->sym.va;
        t->alone = !has_off;
    }
    if (t->va + off < t->va) {
        return fail(errp, MC_ERROR_SYNTAX, word,
                    "the sum is more than 64 bits");
    }
    t->va += off;
    if (mc_symbols(ctx)) {
        t->va = gs_untag(gs_kernel_tag_bits(mc_symbols(ctx)), t->va);
    }
    return true;
}

/* Split "a-b" into @a and @b (both owned). @b is NULL if there is no '-'. */
static bool split_range(const char *word, char **a, char **b, GError **errp)
{
    const char *dash = strchr(word, '-');

    *b = NULL;
    if (!dash) {
        *a = g_strdup(word);
        return true;
    }
    *a = g_strndup(word, dash - word);
    *b = g_strdup(dash + 1);
    if (!**a || !**b || strchr(*b, '-')) {
        return fail(errp, MC_ERROR_SYNTAX, word,
                    "a range is <start>-<end>, without spaces");
    }
    return true;
}

static bool check_order(const char *word, const McRange *r, GError **errp)
{
    if (r->hi >= r->lo) {
        return true;
    }
    return fail(errp, MC_ERROR_SYNTAX, word,
                "the end, %" PRIx64 ", is before the start, %" PRIx64,
                r->hi, r->lo);
}

bool mc_parse_address(const McContext *ctx, const char *word, uint64_t *out,
                      GError **errp)
{
    g_auto(Term) t = { 0 };

    if (strchr(word, '-')) {
        return fail(errp, MC_ERROR_SYNTAX, word,
                    "one address is needed here, not a range");
    }
    if (!parse_term(ctx, word, &t, errp)) {
        return false;
    }
    *out = t.va;
    return true;
}

bool mc_parse_range(const McContext *ctx, const char *word, McRange *out,
                    GError **errp)
{
    g_autofree char *first = NULL;
    g_autofree char *last = NULL;
    g_auto(Term) a = { 0 };
    g_auto(Term) b = { 0 };

    if (!split_range(word, &first, &last, errp) ||
        !parse_term(ctx, first, &a, errp) ||
        (last && !parse_term(ctx, last, &b, errp))) {
        return false;
    }
    *out = (McRange) { a.va, last ? b.va : a.va };
    return a.later || b.later || check_order(word, out, errp);
}

bool mc_parse_sizes(const char *word, McRange *out, GError **errp)
{
    g_autofree char *first = NULL;
    g_autofree char *last = NULL;

    if (!split_range(word, &first, &last, errp) ||
        !mc_parse_hex(first, &out->lo, errp)) {
        return false;
    }
    out->hi = out->lo;
    if (last && !mc_parse_hex(last, &out->hi, errp)) {
        return false;
    }
    return check_order(word, out, errp);
}

/* ---- code ---------------------------------------------------------------- */

/* Return the last address that a frame of the function can have. A call that
 * never returns may be its last instruction; the frame's address is then the
 * end of the function. */
static uint64_t function_last(const GsSymbol *s)
{
    return MAX(s->va + s->size, s->va);
}

typedef struct Functions {
    const GsKernel *k;
    const char *module;
    GArray *out;
} Functions;

static bool add_function(const GsSymbol *s, void *opaque)
{
    Functions *f = opaque;

    if (gs_kernel_is_code(f->k, s) &&
        (!f->module || g_strcmp0(f->module, s->module) == 0)) {
        McCode c = { s->va, function_last(s), s->load };

        g_array_append_val(f->out, c);
    }
    return true;
}

static int compare_code(const void *a, const void *b)
{
    const McCode *x = a;
    const McCode *y = b;

    if (x->load != y->load) {
        return x->load < y->load ? -1 : 1;
    }
    return x->lo < y->lo ? -1 : x->lo > y->lo;
}

/* Sort the ranges and join those that overlap. Modules that lay at one address
 * at different times have ranges of their own. */
static void tidy_ranges(GArray *ranges)
{
    McCode *r = (McCode *)ranges->data;
    unsigned n = 0;

    g_array_sort(ranges, compare_code);
    for (unsigned i = 0; i < ranges->len; i++) {
        if (n && r[i].load == r[n - 1].load && r[i].lo <= r[n - 1].hi) {
            r[n - 1].hi = MAX(r[n - 1].hi, r[i].hi);
        } else {
            r[n++] = r[i];
        }
    }
    g_array_set_size(ranges, n);
}

/* Add every function of the name, and its ".cold" part, also those of modules
 * that were unloaded. */
static bool add_functions(const McContext *ctx, const char *word,
                          const Term *t, GArray *out, GError **errp)
{
    const GsKernel *k = mc_symbols(ctx);
    g_autofree char *cold = g_strconcat(t->name, ".cold", NULL);
    Functions f = { .k = k, .module = t->module, .out = out };
    unsigned before = out->len;

    gs_kernel_foreach_ever_named(k, t->name, add_function, &f);
    if (out->len == before) {
        return fail(errp, MC_ERROR_UNKNOWN, word,
                    "a symbol, but not a function; <symbol>+0 is its address");
    }
    gs_kernel_foreach_ever_named(k, cold, add_function, &f);
    tidy_ranges(out);
    return true;
}

bool mc_parse_code(const McContext *ctx, const char *word, GArray *out,
                   GError **errp)
{
    g_autofree char *first = NULL;
    g_autofree char *last = NULL;
    g_auto(Term) a = { 0 };
    g_auto(Term) b = { 0 };
    McCode r;

    if (!split_range(word, &first, &last, errp) ||
        !parse_term(ctx, first, &a, errp) ||
        (last && !parse_term(ctx, last, &b, errp))) {
        return false;
    }
    if (a.later || b.later) {
        return true;
    }
    if (!last && a.alone) {
        return add_functions(ctx, word, &a, out, errp);
    }
    r = (McCode) { a.va, a.va, a.sym.load };
    if (last) {
        r.hi = b.alone ? function_last(&b.sym) : b.va;
    }
    g_array_append_val(out, r);
    return check_order(word, &(McRange) { r.lo, r.hi }, errp);
}
