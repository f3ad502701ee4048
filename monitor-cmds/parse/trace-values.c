/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Values of the options of ka trace on. Called by the parser. No locks. */
#include "monitor-cmds/parse/parse.h"

bool mc_set_size(McArgs *args, const char *value, GError **errp)
{
    KtBlockSpec *s = &args->filter.spec;
    McRange size = { 0 };

    s->has_size = mc_parse_sizes(value, &size, errp);
    s->size_lo = size.lo;
    s->size_hi = size.hi;
    return s->has_size;
}

bool mc_set_alloc(McArgs *args, const char *value, GError **errp)
{
    return mc_parse_code(args->ctx, value, args->pcs, errp);
}

bool mc_set_ring(McArgs *args, const char *value, GError **errp)
{
    g_autofree char *quoted = NULL;

    if (!mc_parse_decimal(value, "", &args->ring, errp)) {
        return false;
    }
    if (args->ring && args->ring <= KT_TRACE_RING_MAX) {
        return true;
    }
    quoted = mc_quote(value);
    g_set_error(errp, MC_ERROR, MC_ERROR_SYNTAX,
                "%s: a ring has 1 to %u entries", quoted, KT_TRACE_RING_MAX);
    return false;
}
