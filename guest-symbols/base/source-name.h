/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which part of a symbol is its name in the sources. Link-time optimisation
 * makes static functions and variables global, and gives them a suffix so that
 * they are unique:
 *
 *     slab_caches.llvm.1503     slab_caches
 *     foo.lto_priv.0            foo
 *     foo.__uniq.77.llvm.1      foo
 *     foo.isra.0                the same: an optimised copy is another function
 *
 * Pure functions.
 */
#ifndef GS_SOURCE_NAME_H
#define GS_SOURCE_NAME_H

#include <glib.h>
#include <string.h>

static inline bool gs_ends_with(const char *name, size_t len, const char *end)
{
    size_t n = strlen(end);

    return len > n && !memcmp(name + len - n, end, n);
}

/** gs_source_name_len() - return how long the name of a symbol is without these
 *  suffixes. @len: of the symbol */
static inline size_t gs_source_name_len(const char *name, size_t len)
{
    static const char *const suffix[] = { ".llvm.", ".lto_priv.", ".__uniq." };
    size_t i = 0;

    while (i < G_N_ELEMENTS(suffix)) {
        size_t stem = len;

        while (stem && g_ascii_isdigit(name[stem - 1])) {
            stem--;
        }
        if (stem < len && gs_ends_with(name, stem, suffix[i])) {
            len = stem - strlen(suffix[i]);
            i = 0;
        } else {
            i++;
        }
    }
    return len;
}

#endif /* GS_SOURCE_NAME_H */
