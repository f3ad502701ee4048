/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The statement alias: see alias-statement.h. */
#include "tests/lib/alias-statement.h"

void alias_statement(TestWorld *w, GHashTable *a)
{
    const char *va = g_hash_table_lookup(a, "va");

    kt_cache_alias_add(test_world_tracer(w), &(KtCacheAlias) {
        .cache_va = g_ascii_strtoull(va ? va : "0", NULL, 16),
        .name = g_hash_table_lookup(a, "name") });
}
