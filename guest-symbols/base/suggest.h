/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds names that are similar to a mistyped one: every known name is offered.
 * Cold path; a GsSuggest belongs to one thread.
 */
#ifndef GS_SUGGEST_H
#define GS_SUGGEST_H

#include "guest-symbols/gs.h"

typedef struct GsSuggest GsSuggest;

/**
 * gs_suggest_new() - (owned) begin a search for names similar to @name
 * @max: keep at most this many
 */
GsSuggest *gs_suggest_new(const char *name, unsigned max);

/** gs_suggest_offer() - compare a candidate; it is copied if it is similar. */
void gs_suggest_offer(GsSuggest *s, const char *candidate);

/** gs_suggest_finish() - end the search and free @s. Returns: (owned,
 *  g_strfreev) the most similar names, best first, each once. */
char **gs_suggest_finish(GsSuggest *s);

#endif /* GS_SUGGEST_H */
