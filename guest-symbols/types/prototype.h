/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Prototypes of functions, made of the types of a kernel or a module; see
 * gs-prototypes.h. A prototype keeps the types that it is from.
 */
#ifndef GS_PROTOTYPE_H
#define GS_PROTOTYPE_H

#include "guest-symbols/api/gs-prototypes.h"

typedef struct GsBtf GsBtf;

/**
 * gs_prototype_new() - find the prototype of a function
 * @func: its symbol
 * @why: (out, static) if there is none
 * Returns: (owned) or NULL.
 */
GsPrototype *gs_prototype_new(GsBtf *btf, const GsArch *arch,
                              const char *func, const char **why);
/** gs_prototype_types() - (borrowed) return the types that @p is from. */
const GsBtf *gs_prototype_types(const GsPrototype *p);

/** gs_prototype_arch() - (static) return the architecture that it was made
 *  for. */
const GsArch *gs_prototype_arch(const GsPrototype *p);
/** gs_prototype_func() - (borrowed) return the name of its function in the
 *  sources. */
const char *gs_prototype_func(const GsPrototype *p);
/** gs_param_set_type() - set what @param has by its type, except the text of
 *  the type. */
void gs_param_set_type(GsParam *param, const GsBtf *btf, uint32_t id);
/** gs_prototype_pack_types() - (owned, nullable) return a .BTF section with the
 *  types of @p; NULL as for gs_types_pack(). */
GByteArray *gs_prototype_pack_types(const GsPrototype *p);
/** gs_types_pack() - (owned, nullable) return a .BTF section whose type 1 is a
 *  copy of @type, with all that its values are printed by; NULL if that has
 *  about GS_PROTOTYPE_MAX bytes or more. */
GByteArray *gs_types_pack(const GsBtf *btf, uint32_t type);

#endif /* GS_PROTOTYPE_H */
