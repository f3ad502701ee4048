/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Values of the options of ka access on. Called by the parser. No locks. */
#include "monitor-cmds/parse/parse.h"

bool mc_set_in(McArgs *args, const char *value, GError **errp)
{
    g_free(args->in);
    args->in = g_strdup(value);
    return true;
}

/* The kinds that access checks find. */
#define FIRST_KIND KT_ERR_USE_AFTER_FREE
#define END_KIND   (KT_ERR_FREE_SLOT + 1)

static const char *kind_name(unsigned i)
{
    return kt_error_name((KtErrorKind)i);
}

bool mc_set_only(McArgs *args, const char *value, GError **errp)
{
    g_auto(GStrv) names = g_strsplit(value, ",", -1);

    args->kinds = 0;
    for (unsigned i = 0; i == 0 || names[i]; i++) {
        const char *name = names[i] ? names[i] : "";
        KtErrorKind kind;

        if (!kt_error_parse(name, &kind) || kind < FIRST_KIND ||
            kind >= END_KIND) {
            return mc_fail_choice(name, "kinds", kind_name, FIRST_KIND,
                                  END_KIND, errp);
        }
        args->kinds |= 1u << kind;
    }
    return true;
}
