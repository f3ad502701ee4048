/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lists in words, "a, b, c", such as the filters of a command.
 *
 * Pure function: any thread.
 */
#include "kalloc-tracer/api/kt-types.h"

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
