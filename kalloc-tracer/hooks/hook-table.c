/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The hook table: see hook-table.h. */
#include "kalloc-tracer/hooks/hook-table.h"

#include <string.h>

enum {
    HOOK_NONE,
#define KT_HOOK(id, ...) HOOK_##id,
#include "kalloc-tracer/hooks/hooks.def"
    HOOK__COUNT
};
G_STATIC_ASSERT(HOOK__COUNT - 1 <= KT_HOOKS_MAX);

/* KT_NO_ARG comes first, then the columns of a row override it. */
_Pragma("GCC diagnostic push")
_Pragma("GCC diagnostic ignored \"-Woverride-init\"")
static const KtHook linux_rows[HOOK__COUNT] = {
#define KT_HOOK(id, name, what, ...) [HOOK_##id] = { \
    .symbol = name, .role = KT_ROLE_##what, .size = KT_NO_ARG, \
    .ptr = KT_NO_ARG, .cache = KT_NO_ARG, .gfp = KT_NO_ARG, \
    .array = KT_NO_ARG, .count = KT_NO_ARG, ##__VA_ARGS__ },
#include "kalloc-tracer/hooks/hooks.def"
};
_Pragma("GCC diagnostic pop")

const KtRoleRow kt_roles[KT_ROLE__COUNT] = {
#define KT_ROLE(id, what, note, ...) [KT_ROLE_##id] = { \
    .does = what, .missing = note, ##__VA_ARGS__ },
#include "kalloc-tracer/hooks/roles.def"
};

/* @row: Linux's or @own */
struct KtHookTable {
    const KtHook *row;
    unsigned n;
    KtHook own[KT_HOOKS_MAX];
    GStringChunk *text;         /* names of @own */
};

static void use_linux_rows(KtHookTable *t)
{
    t->row = linux_rows + 1;    /* HOOK_NONE has no row */
    t->n = HOOK__COUNT - 1;
}

KtHookTable *kt_hook_table_new(void)
{
    KtHookTable *t = g_new0(KtHookTable, 1);

    t->text = g_string_chunk_new(4096);
    use_linux_rows(t);
    return t;
}

void kt_hook_table_free(KtHookTable *t)
{
    if (t) {
        g_string_chunk_free(t->text);
        g_free(t);
    }
}

static const char *copy_name(KtHookTable *t, const char *name)
{
    return name ? g_string_chunk_insert(t->text, name) : NULL;
}

void kt_hook_table_set(KtHookTable *t, const KtHook *rows, unsigned n)
{
    g_string_chunk_clear(t->text);
    if (!rows) {
        use_linux_rows(t);
        return;
    }
    t->n = MIN(n, KT_HOOKS_MAX);
    t->row = t->own;
    for (unsigned i = 0; i < t->n; i++) {
        t->own[i] = rows[i];
        t->own[i].symbol = copy_name(t, rows[i].symbol);
        t->own[i].undone_by = copy_name(t, rows[i].undone_by);
    }
}

unsigned kt_hook_table_count(const KtHookTable *t)
{
    return t->n;
}

const KtHook *kt_hook_table_row(const KtHookTable *t, KtHookId id)
{
    return id.v && id.v <= t->n ? &t->row[id.v - 1] : NULL;
}

KtHookId kt_hook_table_find(const KtHookTable *t, const char *symbol)
{
    for (unsigned i = 0; i < t->n; i++) {
        if (!strcmp(t->row[i].symbol, symbol)) {
            return (KtHookId) { i + 1 };
        }
    }
    return (KtHookId) { 0 };
}

const char *kt_hook_table_name(const KtHookTable *t, KtHookId id)
{
    const KtHook *hook = kt_hook_table_row(t, id);

    return hook ? hook->symbol : "?";
}

bool kt_hook_table_has_gfp(const KtHookTable *t, KtHookId id)
{
    const KtHook *hook = kt_hook_table_row(t, id);

    return !hook || hook->role != KT_ROLE_ALLOC || hook->gfp != KT_NO_ARG;
}

bool kt_hook_table_is_pages(const KtHookTable *t, KtHookId id)
{
    const KtHook *hook = kt_hook_table_row(t, id);

    return hook && kt_role_is_pages(hook->role);
}

const char *kt_hook_table_missing_note(const KtHookTable *t, KtHookId id)
{
    const KtHook *hook = kt_hook_table_row(t, id);

    return !hook ? "" : hook->flags & KT_HOOK_SITES ?
               "hooked only where its callers are inlined" :
               kt_roles[hook->role].missing;
}

/* ---- reserved sizes ------------------------------------------------------ */

static uint64_t round_up(uint64_t size, uint64_t to)
{
    uint64_t up = (size + to - 1) & -to;

    return up < size ? size : up ? up : to;
}

uint64_t kt_reserve_rule_bytes(const KtReserveRule *s, uint64_t size)
{
    if (s->fixed) {
        return s->fixed;
    }
    for (unsigned i = 0; i < s->n_buckets; i++) {
        if (size <= s->bucket[i]) {
            return s->bucket[i];
        }
    }
    return s->rounding ? round_up(size, s->rounding) : size;
}
