/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Members of the JSON objects of a page. No character can end the script
 * element in which they stand: "<" is \u003c. Commas are put as needed. One
 * thread.
 */
#ifndef MC_JSON_MEMBERS_H
#define MC_JSON_MEMBERS_H

#include <glib.h>
#include <stdint.h>

/** mc_put_json_text() - append a string of JSON that can stand in a page. */
void mc_put_json_text(GString *to, const char *text);
/** mc_put_key() - append a key; its value follows. */
void mc_put_key(GString *to, const char *key);
/** mc_put_text() - append a member that is a text. */
void mc_put_text(GString *to, const char *key, const char *text);
/** mc_put_number() - append a member that is a number. */
void mc_put_number(GString *to, const char *key, int64_t n);
/** mc_put_item() - append a number to a list. */
void mc_put_item(GString *to, int64_t n);
/** mc_put_ids() - append a member that is a list; @ids: unsigned */
void mc_put_ids(GString *to, const char *key, const GArray *ids);

#endif /* MC_JSON_MEMBERS_H */
