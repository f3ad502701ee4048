/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of functions: see helper-functions.h. Called by identity.c. */
#include "monitor-cmds/output/helper-functions.h"

#include <string.h>

static const char *const helpers[] = {
#define MC_HELPER(pattern) pattern,
#define MC_ENTRY(prefix)
#define MC_SYSCALL(prefix)
#include "monitor-cmds/output/helper-functions.def"
};

static const char *const entries[] = {
#define MC_HELPER(pattern)
#define MC_ENTRY(prefix) prefix,
#define MC_SYSCALL(prefix)
#include "monitor-cmds/output/helper-functions.def"
};

static const char *const syscalls[] = {
#define MC_HELPER(pattern)
#define MC_ENTRY(prefix)
#define MC_SYSCALL(prefix) prefix,
#include "monitor-cmds/output/helper-functions.def"
};

/* Return the length of the prefix of a system call's function, 0: none. */
static size_t syscall_prefix(const char *name)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(syscalls); i++) {
        size_t len = strlen(syscalls[i]);

        if (!strncmp(name, syscalls[i], len) && name[len]) {
            return len;
        }
    }
    return 0;
}

char *mc_source_function(const char *name)
{
    size_t skip = syscall_prefix(name);
    g_autoptr(GString) s = g_string_new(skip ? "sys_" : NULL);
    size_t first;

    g_string_append(s, name + skip);
    first = strspn(s->str, ".");
    g_string_truncate(s, first + strcspn(s->str + first, "."));
    if (g_str_has_suffix(s->str, "_noprof")) {
        g_string_truncate(s, s->len - strlen("_noprof"));
    }
    return g_string_free(g_steal_pointer(&s), FALSE);
}

bool mc_is_helper(const char *name)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(helpers); i++) {
        if (g_pattern_match_simple(helpers[i], name)) {
            return true;
        }
    }
    return false;
}

bool mc_is_entry(const char *name)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(entries); i++) {
        if (g_str_has_prefix(name, entries[i])) {
            return true;
        }
    }
    return false;
}
