/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Condition: the compiler. Precedence climbing makes postfix code in one pass;
 * jumps are filled in when their target is known. Runs on the thread of the
 * command. The text is untrusted: length, nesting, code and stack have limits.
 *
 * An error is kept in the parser (the first one counts), and all functions
 * return at once after it.
 */
#include <string.h>

#include "guest-symbols/base/suggest.h"
#include "kalloc-tracer/conditions/condition-internal.h"

#define DEPTH_MAX 64

/**
 * struct Parser - text on its way to code
 * @at: what is not parsed yet
 * @ops: operators so far
 * @depth: values on the stack at this point of the code
 * @nesting: of parentheses, unary operators and "?:"
 * @error: (owned) the first error, NULL: none
 */
typedef struct Parser {
    KtCondition *c;
    const KtConditionNames *names;
    const char *text, *at;
    unsigned ops, depth, nesting;
    char *error;
} Parser;

typedef struct Binary {
    const char *text;
    uint8_t precedence, op;
} Binary;

/* Longer ones first. */
static const Binary binaries[] = {
    { "||", 1, OP_OR }, { "&&", 2, OP_AND },
    { "==", 6, OP_EQ }, { "!=", 6, OP_NE },
    { "<<", 8, OP_SHL }, { ">>", 8, OP_SHR },
    { "<=", 7, OP_LE }, { ">=", 7, OP_GE },
    { "<", 7, OP_LT }, { ">", 7, OP_GT }, { "=", 6, OP_EQ },
    { "|", 3, OP_BIT_OR }, { "^", 4, OP_BIT_XOR }, { "&", 5, OP_BIT_AND },
    { "+", 9, OP_ADD }, { "-", 9, OP_SUB },
    { "*", 10, OP_MUL }, { "/", 10, OP_DIV }, { "%", 10, OP_MOD },
};

static void parse_expr(Parser *p);

/* ---- errors ------------------------------------------------------------- */

/* Keep an error at @where, which is part of the text; columns count from 1. */
G_GNUC_PRINTF(3, 4)
static void fail(Parser *p, const char *where, const char *format, ...)
{
    g_autofree char *what = NULL;
    va_list args;

    if (p->error) {
        return;
    }
    va_start(args, format);
    what = g_strdup_vprintf(format, args);
    va_end(args);
    p->error = g_strdup_printf("condition, column %zu: %s",
                               (size_t)(where - p->text) + 1, what);
}

/* Describe what is at @at: the end, or the character, printable. */
static const char *found(const char *at, char buf[16])
{
    unsigned char c = *at;

    if (!c) {
        return "the end";
    }
    g_snprintf(buf, 16, c < 0x20 || c >= 0x7f ? "byte 0x%02x" : "'%c'", c);
    return buf;
}

static void expected(Parser *p, const char *what)
{
    char buf[16];

    fail(p, p->at, "expected %s, found %s", what, found(p->at, buf));
}

static void skip_blanks(Parser *p)
{
    while (*p->at == ' ' || *p->at == '\t') {
        p->at++;
    }
}

/* ---- code --------------------------------------------------------------- */

static unsigned emit(Parser *p, KtConditionOp op, unsigned arg)
{
    KtCondition *c = p->c;

    if (p->error) {
        return 0;
    }
    p->ops += op > OP_VALUE && op != OP_BOOL && op != OP_JUMP;
    if (c->n_code == KT_CONDITION_CODE || p->ops > KT_CONDITION_OPS) {
        fail(p, p->at, "too long: at most %d operators and %d operators and "
             "values together", KT_CONDITION_OPS, KT_CONDITION_CODE);
        return 0;
    }
    c->code[c->n_code] = (KtConditionWord) { op, arg };
    return c->n_code++;
}

static void emit_push(Parser *p, KtConditionOp op, unsigned arg)
{
    emit(p, op, arg);
    if (++p->depth > KT_CONDITION_STACK) {
        fail(p, p->at, "nested too deeply: at most %d values wait for an "
             "operator at once", KT_CONDITION_STACK);
    }
}

/* Make the jump at word @i go to the next word. */
static void land(Parser *p, unsigned i)
{
    if (!p->error) {
        p->c->code[i].arg = p->c->n_code;
    }
}

static void push_constant(Parser *p, int64_t value)
{
    KtCondition *c = p->c;

    if (c->n_constants < KT_CONDITION_CODE) {
        c->constant[c->n_constants] = value;
        emit_push(p, OP_CONST, c->n_constants++);
    }
}

static void push_variable(Parser *p, unsigned var)
{
    KtCondition *c = p->c;
    unsigned i = 0;

    while (i < c->n_vars && c->var[i] != var) {
        i++;
    }
    if (i == G_N_ELEMENTS(c->var)) {
        fail(p, p->at, "too many names: at most %zu different ones",
             G_N_ELEMENTS(c->var));
        return;
    }
    c->var[i] = var;
    c->n_vars = MAX(c->n_vars, i + 1);
    emit_push(p, OP_VALUE, i);
}

static void push_name(Parser *p, const KtConditionName *name)
{
    if (name->constant) {
        push_constant(p, name->value);
    } else {
        push_variable(p, name->var);
    }
}

/* ---- values ------------------------------------------------------------- */

static bool multiply(uint64_t *n, uint64_t by, uint64_t add)
{
    return !__builtin_mul_overflow(*n, by, n) &&
           !__builtin_add_overflow(*n, add, n);
}

static bool parse_digits(Parser *p, unsigned base, uint64_t *n)
{
    bool fits = true;
    int digit;

    while ((digit = g_ascii_xdigit_value(*p->at)) >= 0 &&
           (unsigned)digit < base) {
        fits = fits && multiply(n, base, digit);
        p->at++;
    }
    return fits;
}

static bool is_word_char(char c)
{
    return g_ascii_isalnum(c) || c == '_';
}

static void parse_number(Parser *p)
{
    const char *from = p->at;
    bool hex = from[0] == '0' && (from[1] == 'x' || from[1] == 'X');
    uint64_t n = 0;
    bool fits;

    p->at += hex ? 2 : 0;
    if (hex && !g_ascii_isxdigit(*p->at)) {
        expected(p, "a hex digit");
        return;
    }
    fits = parse_digits(p, hex ? 16 : 10, &n);
    if (*p->at == 'k' || *p->at == 'M') {
        fits = fits && multiply(&n, *p->at == 'k' ? 1024 : 1024 * 1024, 0);
        p->at++;
    }
    if (is_word_char(*p->at)) {
        expected(p, "the number's end, k or M");
    } else if (!fits) {
        fail(p, from, "the number does not fit in 64 bits");
    } else {
        push_constant(p, n);
    }
}

/* Copy @len bytes of the text. Return false if they are too many. */
static bool copy_word(Parser *p, const char *from, size_t len,
                      char out[KT_CONDITION_WORD + 1])
{
    if (len > KT_CONDITION_WORD) {
        fail(p, from, "too long: at most %d characters", KT_CONDITION_WORD);
        return false;
    }
    memcpy(out, from, len);
    out[len] = 0;
    return true;
}

static bool is_argument_char(char c)
{
    return is_word_char(c) || (c && strchr(".:*?-[]", c));
}

/* Parse the argument behind a "(", and the ")". */
static bool parse_argument(Parser *p, char out[KT_CONDITION_WORD + 1])
{
    const char *from;
    bool quoted;

    skip_blanks(p);
    quoted = *p->at == '"';
    p->at += quoted;
    from = p->at;
    while (*p->at && (quoted ? *p->at != '"' : is_argument_char(*p->at))) {
        p->at++;
    }
    if (p->at == from) {
        expected(p, "an argument: a word, or \"text\"");
        return false;
    }
    if (!copy_word(p, from, p->at - from, out)) {
        return false;
    }
    if (quoted && *p->at != '"') {
        expected(p, "'\"'");
        return false;
    }
    p->at += quoted;
    skip_blanks(p);
    if (*p->at != ')') {
        expected(p, "')'");
        return false;
    }
    p->at++;
    return true;
}

static void offer(void *to, const char *name)
{
    gs_suggest_offer(to, name);
}

/* Fail because nothing has that name; say which names are similar. */
static void unknown(Parser *p, const char *from, const char *kind,
                    const char *name)
{
    GsSuggest *s = gs_suggest_new(name, 3);
    g_auto(GStrv) near = NULL;
    g_autofree char *list = NULL;

    if (p->names->each) {
        p->names->each(p->names->opaque, offer, s);
    }
    near = gs_suggest_finish(s);
    list = g_strjoinv(", ", near);
    fail(p, from, "no %s '%s' here%s%s%s", kind, name,
         near[0] ? "; did you mean " : "", list, near[0] ? "?" : "");
}

static void parse_call(Parser *p, const char *from, const char *function)
{
    char arg[KT_CONDITION_WORD + 1];
    g_autofree char *why = NULL;
    KtConditionName name = { 0 };
    const char *arg_at = p->at;

    if (!parse_argument(p, arg)) {
        return;
    }
    if (p->names->call && p->names->call(p->names->opaque, function, arg,
                                         &name, &why)) {
        push_name(p, &name);
    } else if (why) {
        fail(p, arg_at, "%s(): expected %s", function, why);
    } else {
        unknown(p, from, "function", function);
    }
}

static void parse_name(Parser *p)
{
    const char *from = p->at;
    char word[KT_CONDITION_WORD + 1];
    KtConditionName name = { 0 };

    while (is_word_char(*p->at)) {
        p->at++;
    }
    if (!copy_word(p, from, p->at - from, word)) {
        return;
    }
    skip_blanks(p);
    if (*p->at == '(') {
        p->at++;
        parse_call(p, from, word);
    } else if (p->names->find(p->names->opaque, word, &name)) {
        push_name(p, &name);
    } else {
        unknown(p, from, "name", word);
    }
}

/* ---- expressions -------------------------------------------------------- */

/*
 * The text is the user's, and nest() bounds the depth.
 * NOLINTBEGIN(misc-no-recursion)
 */
static bool nest(Parser *p)
{
    if (p->nesting == DEPTH_MAX) {
        fail(p, p->at, "nested too deeply: at most %d levels", DEPTH_MAX);
        return false;
    }
    p->nesting++;
    return true;
}

static void parse_parentheses(Parser *p)
{
    p->at++;
    parse_expr(p);
    skip_blanks(p);
    if (!p->error && *p->at != ')') {
        expected(p, "an operator or ')'");
    } else if (!p->error) {
        p->at++;
    }
}

static void parse_primary(Parser *p)
{
    if (g_ascii_isdigit(*p->at)) {
        parse_number(p);
    } else if (is_word_char(*p->at)) {
        parse_name(p);
    } else if (*p->at == '(') {
        parse_parentheses(p);
    } else {
        expected(p, "a number, a name or '('");
    }
}

static void parse_unary(Parser *p)
{
    char c;

    skip_blanks(p);
    c = *p->at;
    if (p->error || !nest(p)) {
        return;
    }
    if (c && strchr("!~-+", c)) {
        p->at++;
        parse_unary(p);
        if (c != '+') {
            emit(p, c == '!' ? OP_NOT : c == '~' ? OP_INVERT : OP_NEGATE, 0);
        }
    } else {
        parse_primary(p);
    }
    p->nesting--;
}

/* (nullable) Return the operator at the parser's place. */
static const Binary *next_binary(Parser *p)
{
    skip_blanks(p);
    for (size_t i = 0; i < G_N_ELEMENTS(binaries); i++) {
        if (g_str_has_prefix(p->at, binaries[i].text)) {
            return &binaries[i];
        }
    }
    return NULL;
}

static void parse_binary(Parser *p, unsigned least);

static void parse_right(Parser *p, const Binary *b)
{
    bool jumps = b->op == OP_AND || b->op == OP_OR;
    unsigned from = jumps ? emit(p, b->op, 0) : 0;

    p->depth -= jumps;
    parse_binary(p, b->precedence + 1);
    if (jumps) {
        emit(p, OP_BOOL, 0);
        land(p, from);
    } else {
        emit(p, b->op, 0);
        p->depth--;
    }
}

static void parse_binary(Parser *p, unsigned least)
{
    const Binary *b;

    parse_unary(p);
    while (!p->error && (b = next_binary(p)) && b->precedence >= least) {
        p->at += strlen(b->text);
        parse_right(p, b);
    }
}

static void parse_choice(Parser *p)
{
    unsigned otherwise = emit(p, OP_JZ, 0), end;

    p->at++;
    p->depth--;
    parse_expr(p);
    skip_blanks(p);
    if (*p->at != ':') {
        expected(p, "an operator or ':'");
    }
    if (p->error) {
        return;
    }
    p->at++;
    end = emit(p, OP_JUMP, 0);
    land(p, otherwise);
    p->depth--;
    parse_expr(p);
    land(p, end);
}

static void parse_expr(Parser *p)
{
    if (p->error || !nest(p)) {
        return;
    }
    parse_binary(p, 1);
    skip_blanks(p);
    if (!p->error && *p->at == '?') {
        parse_choice(p);
    }
    p->nesting--;
}
/* NOLINTEND(misc-no-recursion) */

KtCondition *kt_condition_new(const char *text, const KtConditionNames *names,
                              GError **errp)
{
    g_autoptr(KtCondition) c = g_new0(KtCondition, 1);
    Parser p = { .c = c, .names = names, .text = text, .at = text };

    if (strlen(text) > KT_CONDITION_TEXT) {
        fail(&p, text + KT_CONDITION_TEXT, "too long: at most %d characters",
             KT_CONDITION_TEXT);
    } else {
        parse_expr(&p);
        skip_blanks(&p);
        if (!p.error && *p.at) {
            expected(&p, "an operator or the end");
        }
    }
    if (p.error) {
        g_set_error_literal(errp, GS_ERROR, GS_ERROR_FORMAT, p.error);
        g_free(p.error);
        return NULL;
    }
    c->text = g_strdup(text);
    return g_steal_pointer(&c);
}
