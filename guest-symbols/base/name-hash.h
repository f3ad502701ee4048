/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One hash for all names that a guest chooses: it is another one in each
 * process, so that nobody can choose names which collide. Internal to
 * guest-symbols; any thread.
 */
#ifndef GS_NAME_HASH_H
#define GS_NAME_HASH_H

#include <glib.h>
#include <stddef.h>
#include <stdint.h>

/** gs_name_hash() - of @len bytes. */
uint32_t gs_name_hash(const char *name, size_t len);
/** gs_name_hash_str() - the same as a GHashFunc, in g_str_hash()'s place. */
guint gs_name_hash_str(gconstpointer name);

#endif /* GS_NAME_HASH_H */
