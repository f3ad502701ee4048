/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Identity of a finding: see identity.h. Called by identity-row.c, on the
 * thread of a command; no lock.
 *
 * What is hashed, each word with its NUL:
 *     kind, then for each stack its name, and for each frame
 *     fold:  module, function of the source
 *     exact: module, symbol, offset
 */
#include "monitor-cmds/output/identity.h"
#include "monitor-cmds/output/helper-functions.h"

#include <inttypes.h>
#include <string.h>

/* Stands for what has no name. Symbols do not begin so. */
#define UNKNOWN "?"

/**
 * struct McIdentityMaker - an identity that is being made
 * @title: the function that each stack is named after (owned, nullable)
 * @first: the first function with a name of each stack (owned, nullable)
 * @seen: "module:function" of the current stack
 * @which: the current stack
 * @entered: its entry was reached; further frames do not count
 */
struct McIdentityMaker {
    char *kind;
    GChecksum *fold, *exact;
    char *title[MC_IDENTITY__COUNT];
    char *first[MC_IDENTITY__COUNT];
    GPtrArray *alt;
    GHashTable *seen;
    McIdentityStack which;
    bool entered;
    bool weak;
};

static const char *const stack_names[MC_IDENTITY__COUNT] = {
    [MC_IDENTITY_ERROR] = "error",
    [MC_IDENTITY_FREE] = "free",
    [MC_IDENTITY_ALLOC] = "alloc",
};

void mc_identity_free(McIdentity *id)
{
    if (!id) {
        return;
    }
    g_free(id->title);
    g_strfreev(id->alt);
    g_free(id);
}

static void hash(GChecksum *sum, const char *word)
{
    g_checksum_update(sum, (const guchar *)word, strlen(word) + 1);
}

McIdentityMaker *mc_identity_begin(const char *kind)
{
    McIdentityMaker *m = g_new0(McIdentityMaker, 1);

    m->kind = g_strdup(kind);
    m->fold = g_checksum_new(G_CHECKSUM_SHA256);
    m->exact = g_checksum_new(G_CHECKSUM_SHA256);
    m->alt = g_ptr_array_new_with_free_func(g_free);
    m->seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    hash(m->fold, kind);
    hash(m->exact, kind);
    return m;
}

void mc_identity_maker_free(McIdentityMaker *m)
{
    if (!m) {
        return;
    }
    for (unsigned i = 0; i < MC_IDENTITY__COUNT; i++) {
        g_free(m->title[i]);
        g_free(m->first[i]);
    }
    g_free(m->kind);
    g_checksum_free(m->fold);
    g_checksum_free(m->exact);
    g_ptr_array_unref(m->alt);
    g_hash_table_destroy(m->seen);
    g_free(m);
}

/* ---- stacks -------------------------------------------------------------- */

void mc_identity_stack(McIdentityMaker *m, McIdentityStack which)
{
    m->which = which;
    m->entered = false;
    g_hash_table_remove_all(m->seen);
    hash(m->fold, stack_names[which]);
    hash(m->exact, stack_names[which]);
}

static void add_exact(McIdentityMaker *m, const char *module, const char *name,
                      uint64_t offset)
{
    char text[20];

    g_snprintf(text, sizeof(text), "%" PRIx64, offset);
    hash(m->exact, module ? module : "");
    hash(m->exact, name);
    hash(m->exact, text);
}

/* A function counts once in a stack. */
static void add_fold(McIdentityMaker *m, const char *module,
                     const char *function)
{
    char *key = g_strdup_printf("%s:%s", module ? module : "", function);

    if (g_hash_table_add(m->seen, key)) {
        hash(m->fold, module ? module : "");
        hash(m->fold, function);
    }
}

static void keep_first(char **slot, const char *function)
{
    if (!*slot) {
        *slot = g_strdup(function);
    }
}

void mc_identity_frame(McIdentityMaker *m, const char *module,
                       const char *name, uint64_t offset)
{
    g_autofree char *function = name ? mc_source_function(name) : NULL;

    if (m->entered) {
        return;
    }
    if (!function) {
        m->weak = true;
        add_exact(m, NULL, UNKNOWN, 0);
        add_fold(m, NULL, UNKNOWN);
        return;
    }
    if (!module && mc_is_entry(function)) {
        m->entered = true;
        return;
    }
    add_exact(m, module, name, offset);
    keep_first(&m->first[m->which], function);
    if (!module && mc_is_helper(function)) {
        return;
    }
    add_fold(m, module, function);
    keep_first(&m->title[m->which], function);
}

void mc_identity_stack_end(McIdentityMaker *m, bool whole)
{
    if (!m->first[m->which] || !(whole || m->entered)) {
        m->weak = true;
    }
}

/* ---- titles -------------------------------------------------------------- */

const char *mc_identity_function(const McIdentityMaker *m,
                                 McIdentityStack which)
{
    return m->title[which] ? m->title[which] : m->first[which];
}

void mc_identity_alt(McIdentityMaker *m, const char *what,
                     McIdentityStack which)
{
    const char *function = mc_identity_function(m, which);

    if (function) {
        g_ptr_array_add(m->alt, g_strdup_printf("%s from %s", what, function));
    }
}

McIdentity *mc_identity_end(McIdentityMaker *m, McIdentityStack which,
                            const char *otherwise)
{
    const char *function = mc_identity_function(m, which);
    McIdentity *id = g_new0(McIdentity, 1);

    function = function ? function : otherwise;
    id->title = g_strconcat(m->kind, MC_TITLE_IN, function && *function ?
                            function : "an unknown function", NULL);
    g_ptr_array_add(m->alt, NULL);
    id->alt = g_strdupv((char **)m->alt->pdata);
    id->weak = m->weak;
    g_strlcpy(id->fold, g_checksum_get_string(m->fold), sizeof(id->fold));
    g_strlcpy(id->exact, g_checksum_get_string(m->exact), sizeof(id->exact));
    return id;
}

char *mc_identity_cache(const char *name)
{
    static const char random[] = "kmalloc-rnd-";
    const char *number, *size;

    if (!g_str_has_prefix(name, random)) {
        return g_strdup(name);
    }
    number = name + strlen(random);
    size = number + strspn(number, "0123456789");
    return size > number && *size == '-' ? g_strconcat("kmalloc", size, NULL) :
                                           g_strdup(name);
}
