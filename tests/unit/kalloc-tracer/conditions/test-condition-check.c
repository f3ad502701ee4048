/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Conditions are checked before their function is known. */
#include <string.h>

#include "kalloc-tracer/api/kt-derefs.h"
#include "tests/lib/test-main.h"

TEST(good, "/condition-check/good")
{
    static const char *const texts[] = {
        "1", "!in_init && rnd100 < 20", "any_argument = 3 || times % 3 = 0",
        "size > 4k && flags & GFP_ATOMIC", "cap = CAP_SYS_ADMIN",
        "stack(m:foo) || caller(foo[m])",
        "stack(foo) && mod(\"m\") && task(sh*) && child(12)",
        "(caller_address < 0xfe2ab8d0) || (caller_address > 0xfe2ab970)",
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(GError) err = NULL;

        g_assert_true(kt_condition_check(texts[i], &err));
        g_assert_no_error(err);
    }
}

TEST(bad, "/condition-check/bad")
{
    static const char *const texts[] = {
        "", "1 +", "(1", "a b", "GFP_KERNLE = flags", "stak(foo)", "1k2",
        "\"text\"",
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(GError) err = NULL;

        g_assert_false(kt_condition_check(texts[i], &err));
        g_assert_nonnull(err);
        g_assert_null(strchr(err->message, '\n'));
        g_test_message("%s", err->message);
    }
}
