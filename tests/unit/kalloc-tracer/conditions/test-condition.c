/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Conditions. The values that they must have come from the C compiler: each
 * row of a table is one text, for ka as a string and for C as an expression.
 * Then what C has not: "=", suffixes, calls, unknown values, and errors.
 */
#include <inttypes.h>
#include <string.h>

#include "kalloc-tracer/conditions/condition.h"
#include "tests/lib/test-main.h"

enum { A, B, C, Z, BIG, LOW, UNKNOWN, STACK, N_VARS };

static const char *const names[N_VARS] = {
    "a", "b", "c", "z", "big", "low", "unknown",
};

static const int64_t values[N_VARS] = {
    [A] = 7, [B] = -3, [C] = 40, [Z] = 0, [BIG] = INT64_MAX, [LOW] = INT64_MIN,
    [STACK] = 1,
};

static unsigned fetched[N_VARS];

static bool find(void *opaque, const char *name, KtConditionName *out)
{
    *out = (KtConditionName) { .constant = true, .value = 0xdc0 };
    if (!strcmp(name, "GFP_TEST")) {
        return true;
    }
    for (unsigned i = 0; i < N_VARS; i++) {
        if (names[i] && !strcmp(names[i], name)) {
            *out = (KtConditionName) { .var = i };
            return true;
        }
    }
    return false;
}

static bool call(void *opaque, const char *function, const char *arg,
                 KtConditionName *out, char **why)
{
    if (strcmp(function, "stack")) {
        return false;
    }
    if (strcmp(arg, "init_module") && strcmp(arg, "mod:a b")) {
        *why = g_strdup("a function");
        return false;
    }
    *out = (KtConditionName) { .var = STACK };
    return true;
}

static void each(void *opaque, KtConditionOffer *offer, void *to)
{
    for (unsigned i = 0; i < N_VARS; i++) {
        if (names[i]) {
            offer(to, names[i]);
        }
    }
    offer(to, "stack");
}

static const KtConditionNames all = { find, call, each, NULL };

static int64_t fetch(void *opaque, unsigned var, bool *known)
{
    g_assert_cmpuint(var, <, N_VARS);
    g_assert_true(*known);
    fetched[var]++;
    *known = var != UNKNOWN;
    return values[var];
}

static KtCondition *compile(const char *text)
{
    g_autoptr(GError) err = NULL;
    KtCondition *c = kt_condition_new(text, &all, &err);

    g_assert_no_error(err);
    g_assert_cmpstr(kt_condition_text(c), ==, text);
    memset(fetched, 0, sizeof(fetched));
    return c;
}

static KtTruth verdict(const char *text)
{
    g_autoptr(KtCondition) c = compile(text);

    return kt_condition_eval(c, fetch, NULL);
}

static int64_t value(const char *text)
{
    g_autoptr(KtCondition) c = compile(text);
    int64_t v = 0;
    KtTruth got = kt_condition_value(c, fetch, NULL, &v);

    g_assert_cmpint(got, ==, v ? KT_TRUTH_TRUE : KT_TRUTH_FALSE);
    return v;
}

/* ---- against C ---------------------------------------------------------- */

/* The rows are written without parentheses on purpose. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wparentheses"
#pragma GCC diagnostic ignored "-Wlogical-not-parentheses"
#pragma GCC diagnostic ignored "-Wint-in-bool-context"
TEST(as_in_c, "/condition/as-in-c")
{
    int64_t a = values[A], b = values[B], c = values[C], z = values[Z];
    int64_t big = values[BIG], low = values[LOW];
#define ROW(...) { #__VA_ARGS__, (int64_t)(__VA_ARGS__) }
    const struct {
        const char *text;
        int64_t value;
    } rows[] = {
        ROW(1), ROW(0), ROW(a), ROW(-a), ROW(~a), ROW(!a), ROW(!z), ROW(+a),
        ROW(- -a), ROW(!!a), ROW(~-b), ROW(-~b), ROW(!~z), ROW((a)),
        ROW(a + b * c), ROW((a + b) * c), ROW(a - b - c), ROW(a - (b - c)),
        ROW(c / a), ROW(c / b), ROW(b / a), ROW(c % a), ROW(c % b), ROW(b % a),
        ROW(a * b % c / 2), ROW(c / a * a + c % a), ROW(a << 3), ROW(c >> 2),
        ROW(b >> 1), ROW(a << 3 >> 1), ROW(a + 1 << 2), ROW(a << 1 + 2),
        ROW(a < b), ROW(a > b), ROW(a <= a), ROW(a >= c), ROW(b < z),
        ROW(low < big), ROW(big > low), ROW(a == 7), ROW(a != 7),
        ROW(a == b == z), ROW(a < b == z), ROW(a < b < c), ROW(c > a > z),
        ROW(a & c), ROW(a | c), ROW(a ^ c), ROW(a & 3 | 8), ROW(a | 8 & c),
        ROW(a ^ 3 & 1), ROW(a | 1 ^ 3), ROW(a & 1 == 1), ROW((a & 1) == 1),
        ROW(a & b ^ c | z), ROW(~a & 0xff), ROW(a && b), ROW(a && z),
        ROW(z && a), ROW(z || a), ROW(z || z), ROW(a || z && z), ROW(!a || b),
        ROW((a || z) && z), ROW(a && b && c), ROW(a && z || c && b),
        ROW(z || z || c), ROW(z && z && c), ROW(a | z && c), ROW(a == 7 && b),
        ROW(a ? b : c), ROW(z ? b : c), ROW(a ? z ? 1 : 2 : 3),
        ROW(z ? 1 : z ? 2 : 3), ROW(a ? 1 : z ? 2 : 3), ROW(z ? 1 : a ? 2 : 3),
        ROW(a > 5 ? b + 1 : c + 1), ROW(a + (z ? 1 : 2) * 3),
        ROW(a && z ? 4 : 5), ROW(1 + 2 * 3 - 4 / 2 % 3), ROW(0x7fffffff),
        ROW(0XAB + 010 * 0), ROW(a*b+c), ROW(a&&b||c), ROW(c>>1&1),
        ROW(1 ? 2 ? 3 : 4 : 5), ROW((a ? 1 : 2) + (z ? 1 : 2)),
        ROW(a == 7 ? c == 40 ? 11 : 12 : 13), ROW(-a * -b), ROW(a - -b),
        ROW(-(a + b)), ROW(!(a && z)), ROW(!a == z), ROW(~(a | b) ^ ~(c & a)),
        ROW(((((((((a + 1)))))))) * (((2)))), ROW(big / 3 * 2 + low / 2),
        ROW(big & low), ROW(big ^ low), ROW(low >> 62), ROW(low % 1000),
        ROW(a * a * a * a * a * a * a * a), ROW(b * b * b * b * b * b * b),
    };

    (void)a, (void)b, (void)c, (void)z, (void)big, (void)low;
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (value(rows[i].text) != rows[i].value) {
            g_error("%s is %" PRId64 " in C, %" PRId64 " here", rows[i].text,
                    rows[i].value, value(rows[i].text));
        }
    }
}

#pragma GCC diagnostic pop

/* What is undefined in C wraps, or is masked. */
TEST(wraps, "/condition/wraps")
{
    static const struct {
        const char *text;
        int64_t value;
    } rows[] = {
        { "big + 1", INT64_MIN }, { "low - 1", INT64_MAX },
        { "-low", INT64_MIN }, { "low / -1", INT64_MIN }, { "low % -1", 0 },
        { "big * 2", -2 }, { "1 << 64", 1 }, { "1 << 65", 2 },
        { "1 << -1", INT64_MIN }, { "a << 63", INT64_MIN }, { "b >> 64", -3 },
        { "0xffffffffffffffff", -1 }, { "18446744073709551615", -1 },
        { "0xffff888000000000 < 0", 1 },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_assert_cmpint(value(rows[i].text), ==, rows[i].value);
    }
}

/* ---- what C has not ----------------------------------------------------- */

TEST(own_forms, "/condition/own-forms")
{
    static const struct {
        const char *text;
        int64_t value;
    } rows[] = {
        { "a = 7", 1 }, { "a=8", 0 }, { "a = 7 = 1", 1 }, { "4k", 4096 },
        { "2M", 2 << 20 }, { "0x10k", 16384 }, { "4k-1", 4095 },
        { "010", 10 }, { " \ta\t", 7 }, { "GFP_TEST", 0xdc0 },
        { "stack(init_module)", 1 }, { "!stack( init_module )", 0 },
        { "stack (\"init_module\") + 1", 2 }, { "stack(\"mod:a b\")", 1 },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_assert_cmpint(value(rows[i].text), ==, rows[i].value);
    }
}

TEST(false_by_other_causes, "/condition/false-by-other-causes")
{
    static const struct {
        const char *text;
        KtTruth verdict;
    } rows[] = {
        { "unknown", KT_TRUTH_UNKNOWN },
        { "!unknown", KT_TRUTH_UNKNOWN },
        { "z && unknown", KT_TRUTH_FALSE },
        { "a || unknown", KT_TRUTH_TRUE },
        { "unknown || a", KT_TRUTH_UNKNOWN },
        { "z ? unknown : a", KT_TRUTH_TRUE },
        { "a / z", KT_TRUTH_DIVIDED },
        { "a % z || a", KT_TRUTH_DIVIDED },
        { "z && a / z", KT_TRUTH_FALSE },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_assert_cmpint(verdict(rows[i].text), ==, rows[i].verdict);
    }
}

TEST(fetches_once_and_late, "/condition/fetches-once-and-late")
{
    g_autoptr(KtCondition) c = compile("a > 4 && a < 9 && z && b");

    g_assert_true(kt_condition_uses(c, B));
    g_assert_false(kt_condition_uses(c, C));
    g_assert_cmpint(kt_condition_eval(c, fetch, NULL), ==, KT_TRUTH_FALSE);
    g_assert_cmpuint(fetched[A], ==, 1);
    g_assert_cmpuint(fetched[Z], ==, 1);
    g_assert_cmpuint(fetched[B], ==, 0);
}

/* ---- errors ------------------------------------------------------------- */

static void one_error(const char *text, const char *why)
{
    g_autoptr(GError) err = NULL;
    KtCondition *c = kt_condition_new(text, &all, &err);

    g_assert_null(c);
    g_assert_nonnull(err);
    if (!strstr(err->message, why)) {
        g_error("'%s': '%s' is not in '%s'", text, why, err->message);
    }
}

TEST(errors, "/condition/errors")
{
    static const struct {
        const char *text, *why;
    } rows[] = {
        { "", "column 1: expected a number, a name or '(', found the end" },
        { "a +", "column 4: expected a number, a name or '(', found the end" },
        { "a + * b", "column 5: expected a number, a name or '(', found '*'" },
        { "a b", "column 3: expected an operator or the end, found 'b'" },
        { "(a", "column 3: expected an operator or ')', found the end" },
        { "a)", "column 2: expected an operator or the end, found ')'" },
        { "a ? b", "column 6: expected an operator or ':', found the end" },
        { "a : b", "column 3: expected an operator or the end, found ':'" },
        { "12z", "column 3: expected the number's end, k or M, found 'z'" },
        { "0x", "column 3: expected a hex digit, found the end" },
        { "a\x01", "column 2: expected an operator or the end, found byte 0x01"
        },
        { "99999999999999999999", "column 1: the number does not fit" },
        { "0x10000000000000000", "column 1: the number does not fit" },
        { "17592186044416M", "column 1: the number does not fit" },
        { "a + unknwon",
          "column 5: no name 'unknwon' here; did you mean unknown?" },
        { "stakc(x)",
          "column 1: no function 'stakc' here; did you mean stack?" },
        { "stack(x)", "column 7: stack(): expected a function" },
        { "stack(init_module", "column 18: expected ')', found the end" },
        { "stack(\"mod", "column 11: expected '\"', found the end" },
        { "stack()", "column 7: expected an argument: a word, or \"text\"" },
        { "a += 1", "column 4: expected a number, a name or '(', found '='" },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        one_error(rows[i].text, rows[i].why);
    }
}

static char *repeat(const char *piece, unsigned n, const char *end)
{
    GString *s = g_string_new(NULL);

    for (unsigned i = 0; i < n; i++) {
        g_string_append(s, piece);
    }
    g_string_append(s, end);
    return g_string_free(s, FALSE);
}

TEST(limits, "/condition/limits")
{
    g_autofree char *ops = repeat("a+", KT_CONDITION_OPS, "a");
    g_autofree char *more_ops = repeat("a+", KT_CONDITION_OPS + 1, "a");
    g_autofree char *depth = repeat("a+(", KT_CONDITION_STACK - 1,
                                    "a)))))))))))))))");
    g_autofree char *deeper = repeat("a+(", KT_CONDITION_STACK, "a");
    g_autofree char *nested = repeat("(", 400, "a");
    g_autofree char *signs = repeat("!", 400, "a");
    g_autofree char *words = repeat("a", KT_CONDITION_WORD + 1, "");
    g_autofree char *blanks = repeat(" ", KT_CONDITION_TEXT, "a");

    g_assert_cmpint(value(ops), ==, 7 * (KT_CONDITION_OPS + 1));
    g_assert_cmpint(value(depth), ==, 7 * KT_CONDITION_STACK);
    one_error(more_ops, "too long: at most 64 operators");
    one_error(deeper, "nested too deeply: at most 16 values");
    one_error(nested, "nested too deeply: at most 64 levels");
    one_error(signs, "nested too deeply: at most 64 levels");
    one_error(words, "column 1: too long: at most 128 characters");
    one_error(blanks, "column 1025: too long: at most 1024 characters");
}
