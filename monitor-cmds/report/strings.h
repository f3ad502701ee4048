/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A table of strings: each different text has a number. One thread. */
#ifndef MC_STRINGS_H
#define MC_STRINGS_H

#include <glib.h>

/** struct McStrings - @text: (const char *) by number. */
typedef struct McStrings {
    GPtrArray *text;
    GHashTable *ids;
    GStringChunk *bytes;
} McStrings;

McStrings *mc_strings_new(void);
void mc_strings_free(McStrings *s);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(McStrings, mc_strings_free)

/** mc_strings_add() - return the number of a text. */
unsigned mc_strings_add(McStrings *s, const char *text);
/** mc_strings_text() - return (borrowed) the text of a number. */
const char *mc_strings_text(const McStrings *s, unsigned id);

#endif /* MC_STRINGS_H */
