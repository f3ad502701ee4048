/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Near misses of a mistyped name, found by offering every known name.
 * Cold path; one GsSuggest belongs to one caller.
 */
#ifndef GS_SUGGEST_H
#define GS_SUGGEST_H

#include "guest-symbols/gs.h"

typedef struct GsSuggest GsSuggest;

/**
 * gs_suggest_new() - look for names like @name
 * @max: keep at most this many
 */
GsSuggest *gs_suggest_new(const char *name, unsigned max);

/** gs_suggest_offer() - a candidate; copied if it is near. */
void gs_suggest_offer(GsSuggest *s, const char *candidate);

/** gs_suggest_finish() - frees @s. Returns: (owned, g_strfreev) the best,
 *  best first, each once. */
char **gs_suggest_finish(GsSuggest *s);

#endif /* GS_SUGGEST_H */
