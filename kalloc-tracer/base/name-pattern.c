/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Patterns of names: of tasks, caches, functions, modules. A name may be any
 * bytes of the guest, so characters are bytes.
 *
 * Pure function: any thread.
 */
#include "kalloc-tracer/api/kt-types.h"

bool kt_name_matches(const char *pattern, const char *name)
{
    const char *star = NULL;
    const char *from = NULL;

    while (*name) {
        if (*pattern == '*') {
            star = pattern++;
            from = name;
        } else if (*pattern == '?' || *pattern == *name) {
            pattern++;
            name++;
        } else if (star) {
            /* let the last star match one byte more */
            pattern = star + 1;
            name = ++from;
        } else {
            return false;
        }
    }
    while (*pattern == '*') {
        pattern++;
    }
    return !*pattern;
}

/* ---- parts of texts ------------------------------------------------------ */

void kt_add_part(GString *s, const char *format, ...)
{
    va_list ap;

    if (s->len) {
        g_string_append(s, ", ");
    }
    va_start(ap, format);
    g_string_append_vprintf(s, format, ap);
    va_end(ap);
}
