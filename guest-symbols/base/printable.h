/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Checks that text can be printed as it is: for names in files and streams,
 * before they are used.
 */
#ifndef GS_PRINTABLE_H
#define GS_PRINTABLE_H

#include <glib.h>
#include <stdbool.h>

/** gs_is_printable() - are all characters of @s printable ASCII? */
static inline bool gs_is_printable(const char *s)
{
    while (g_ascii_isprint(*s)) {
        s++;
    }
    return !*s;
}

#endif /* GS_PRINTABLE_H */
