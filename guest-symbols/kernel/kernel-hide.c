/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hides sources of a kernel that was opened, so that it is like a kernel that
 * was built without them. For tests: one stock kernel then stands for many
 * that people build themselves. Called once a kernel, before it is shared.
 *
 *     kallsyms      no CONFIG_KALLSYMS: the symbols are those that the kernel
 *                   exports. gs_kernel_hides_kallsyms() says so when a kernel
 *                   is opened in memory; no effect on files
 *     types         no BTF
 *     data          only functions have symbols: no CONFIG_KALLSYMS_ALL
 *     percpu        no per-CPU variable has a symbol
 *     unwind        no ORC tables, nor frame pointers if it was read in memory
 *     symbol:NAME   no symbol NAME, nor a clone of it (NAME.isra.0)
 */
#include "guest-symbols/kernel/kernel.h"
#include "guest-symbols/orc/orc.h"
#include "guest-symbols/symbols/symtab.h"
#include "guest-symbols/types/btf.h"

#include <string.h>

#define SYMBOL "symbol:"

/* Link-time ranges, ends included: labels at the end belong to it. */
typedef struct Hidden {
    bool kallsyms, types, data, percpu, unwind;
    GsRange percpu_at;
    const GsRange *text;
    char **words;
} Hidden;

static bool parse_word(Hidden *h, const char *word)
{
    const struct { const char *word; bool *on; } rows[] = {
        { "kallsyms", &h->kallsyms }, { "types", &h->types },
        { "data", &h->data },
        { "percpu", &h->percpu }, { "unwind", &h->unwind },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (!strcmp(word, rows[i].word)) {
            *rows[i].on = true;
            return true;
        }
    }
    return g_str_has_prefix(word, SYMBOL) && word[strlen(SYMBOL)];
}

static bool parse(Hidden *h, const char *words)
{
    h->words = g_strsplit(words, "+", -1);
    for (char **word = h->words; *word; word++) {
        if (!parse_word(h, *word)) {
            return false;
        }
    }
    return *h->words != NULL;
}

static bool in_range(const GsRange *r, uint64_t va)
{
    return r->end && va >= r->start && va <= r->end;
}

static bool is_named(const Hidden *h, const char *name)
{
    for (char **word = h->words; *word; word++) {
        const char *hidden = *word + strlen(SYMBOL);
        size_t len;

        if (!g_str_has_prefix(*word, SYMBOL)) {
            continue;
        }
        len = strlen(hidden);
        if (!strncmp(name, hidden, len) && (!name[len] || name[len] == '.')) {
            return true;
        }
    }
    return false;
}

static bool keep(uint64_t va, const char *name, void *opaque)
{
    const Hidden *h = opaque;

    return (!h->data || in_range(&h->text[0], va) ||
            in_range(&h->text[1], va)) &&
           (!h->percpu || !in_range(&h->percpu_at, va)) && !is_named(h, name);
}

static void find_percpu(Hidden *h, const GsSymtab *tab)
{
    GsSymbol from, to;

    if (gs_symtab_lookup(tab, "__per_cpu_start", &from) &&
        gs_symtab_lookup(tab, "__per_cpu_end", &to)) {
        h->percpu_at = (GsRange) { from.va, to.va };
    }
}

static void hide_symbols(GsKernel *k, Hidden *h)
{
    GsSymtab *rest;

    h->text = k->text;
    find_percpu(h, k->symtab);
    rest = gs_symtab_filter(k->symtab, keep, h);
    gs_symtab_free(k->symtab);
    k->symtab = rest;
    /* It may have the same symbols. */
    g_clear_pointer(&k->exported, gs_symtab_free);
}

bool gs_kernel_hide(GsKernel *k, const char *words)
{
    Hidden h = { 0 };
    bool right = parse(&h, words);

    if (right && k) {
        hide_symbols(k, &h);
        if (h.types) {
            g_clear_pointer(&k->btf, gs_btf_free);
        }
        if (h.unwind) {
            gs_orc_set_drop_table(k->orc);
            gs_kernel_find_unwinder(k);
        }
    }
    g_strfreev(h.words);
    return right;
}

bool gs_kernel_hides_kallsyms(const char *words)
{
    Hidden h = { 0 };

    parse(&h, words);
    g_strfreev(h.words);
    return h.kallsyms;
}
