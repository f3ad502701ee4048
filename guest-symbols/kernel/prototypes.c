/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Prototypes of a kernel's functions, see gs-prototypes.h: chooses the types
 * that a function is searched in. Any thread.
 */
#include "guest-symbols/kernel/kernel.h"
#include "guest-symbols/types/prototype.h"

GsPrototype *gs_kernel_prototype(const GsKernel *k, const char *module,
                                 const char *func, const char **why)
{
    const char *reason = NULL;
    GsPrototype *p = NULL;

    if (module) {
        reason = "the types of this module are not known";
    } else if (!k->btf) {
        reason = "the types of this kernel are not known";
    } else {
        p = gs_prototype_new(k->btf, k->arch->id, func, &reason);
    }
    if (why) {
        *why = reason;
    }
    return p;
}
