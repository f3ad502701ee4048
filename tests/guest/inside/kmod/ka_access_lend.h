/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka_access: what it exports to ka_access_gone, which allocates an object,
 * frees it, and is unloaded.
 */
#ifndef KA_ACCESS_LEND_H
#define KA_ACCESS_LEND_H

#include <linux/slab.h>

/* The cache of which the object must be. */
struct kmem_cache *ka_access_cache(void);
/* Say which object will be freed, before it is. */
void ka_access_lend(void *p);

#endif /* KA_ACCESS_LEND_H */
