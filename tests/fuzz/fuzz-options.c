/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: the plugin's options, one a line.
 *
 * Checks: each list is accepted, or refused with one line of text. An accepted
 * list is accepted again if its last option is repeated, with the same meaning.
 */
#include "tests/fuzz/fuzz.h"

#include <glib.h>

#include "kalloc-tracer/plugin/options.h"

static void one_line(const char *why)
{
    g_assert_nonnull(why);
    g_assert_cmpuint(strlen(why), >, 0);
    for (; *why; why++) {
        g_assert_true(*why >= 0x20 && *why < 0x7f);
    }
}

static void same(const KtOptions *a, const KtOptions *b)
{
#define KT_OPTION(field, type, ...) same_##type(a->field, b->field);
#define same_PATH(x, y) g_assert_cmpstr(x, ==, y)
#define same_SIZE(x, y) g_assert_cmpuint(x, ==, y)
#define same_SECONDS(x, y) g_assert_cmpuint(x, ==, y)
#define same_WORDS(x, y) g_assert_cmpstr(x, ==, y)
#define same_ACCESS(x, y) g_assert_cmpstr(x, ==, y)
#define same_REPORT(x, y) g_assert_cmpstr(x, ==, y)
#define same_BOOL(x, y) g_assert_cmpint(x, ==, y)
#include "kalloc-tracer/plugin/options.def"
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree char *text = g_strndup((const char *)data, size);
    g_auto(GStrv) words = g_strsplit(text, "\n", 32);
    g_autofree char *why = NULL;
    unsigned n = g_strv_length(words);
    KtOptions options, again;

    if (!kt_options_parse(&options, n, words, &why)) {
        one_line(why);
        return 0;
    }
    g_assert_null(why);
    if (n) {
        g_auto(GStrv) more = g_new0(char *, n + 2);

        for (unsigned i = 0; i <= n; i++) {
            more[i] = g_strdup(words[MIN(i, n - 1)]);
        }
        g_assert_true(kt_options_parse(&again, n + 1, more, &why));
        same(&options, &again);
    }
    return 0;
}
