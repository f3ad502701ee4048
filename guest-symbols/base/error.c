/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The error domain of guest-symbols. Errors are made where something is
 * found wrong and reported by the embedder; nothing is printed here.
 */
#include "guest-symbols/gs.h"

G_DEFINE_QUARK(gs-error-quark, gs_error)

void *gs_fail(GError **errp, GsErrorCode code, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    g_propagate_error(errp, g_error_new_valist(GS_ERROR, code, format, args));
    va_end(args);
    return NULL;
}
