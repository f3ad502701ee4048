/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/lib/statements.h"

#include <stdlib.h>
#include <string.h>

/* ---- words --------------------------------------------------------------- */

const char *arg_text(GHashTable *a, const char *key, const char *none)
{
    const char *s = g_hash_table_lookup(a, key);

    return s ? s : none;
}

uint64_t arg_number(GHashTable *a, const char *key, int base, uint64_t none)
{
    const char *s = g_hash_table_lookup(a, key);
    char *end;
    uint64_t v;

    if (!s) {
        return none;
    }
    v = strtoull(s, &end, base);
    if (*end || end == s) {
        g_error("%s=%s is no number", key, s);
    }
    return v;
}

uint64_t arg_hex(GHashTable *a, const char *key)
{
    return arg_number(a, key, 16, 0);
}

uint64_t arg_dec(GHashTable *a, const char *key)
{
    return arg_number(a, key, 10, 0);
}

KtStackId arg_stack(KtTracer *t, GHashTable *a)
{
    g_auto(GStrv) words = g_strsplit(arg_text(a, "stack", ""), ",",
                                     KT_MAX_FRAMES);
    uint64_t frames[KT_MAX_FRAMES];
    unsigned n = 0;

    for (; words[n]; n++) {
        frames[n] = g_ascii_strtoull(words[n], NULL, 16);
    }
    return kt_tracer_intern_stack(t, frames, n, GS_STOP_END);
}

KtTaskId arg_task(KtTracer *t, GHashTable *a)
{
    const char *name = arg_text(a, "comm", "");
    char comm[16] = "";

    memcpy(comm, name, MIN(strlen(name), sizeof(comm)));
    return kt_tracer_intern_task(t, arg_dec(a, "pid"), comm);
}

/* ---- short statements ---------------------------------------------------- */

void alias_statement(TestWorld *w, GHashTable *a)
{
    kt_cache_alias_add(test_world_tracer(w), &(KtCacheAlias) {
        .cache_va = arg_hex(a, "va"),
        .name = arg_text(a, "name", NULL) });
}

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
