/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Statements that write to the journal: see journal-statements.h. */
#include "tests/lib/journal-statements.h"

void kernel_statement(TestWorld *w, GHashTable *a)
{
    const GsKernel *k;

    test_world_make_kernel(w);
    k = test_world_context(w)->kernel;
    g_assert_nonnull(k);
    kt_tracer_save_kernel(test_world_tracer(w), k, true);
}

void mark_statement(TestWorld *w, GHashTable *a)
{
    g_autoptr(GError) err = NULL;

    kt_tracer_set_mark(test_world_tracer(w), g_hash_table_lookup(a, "name"),
                       &err);
    g_assert_no_error(err);
}
