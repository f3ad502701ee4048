/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Prototypes of a kernel's functions, see gs-prototypes.h: chooses the types
 * that a function is searched in. Any thread.
 */
#include "guest-symbols/kernel/kernel.h"
#include "guest-symbols/modules/modules.h"
#include "guest-symbols/types/btf.h"
#include "guest-symbols/types/prototype.h"

static GsPrototype *of_module(const GsKernel *k, const char *module,
                              const char *func, const char **why)
{
    g_autoptr(GsBtf) btf = NULL;

    if (k->btf_from_file) {
        *why = "with types=FILE the types of modules are not known";
        return NULL;
    }
    btf = gs_modules_types(k->modules, module, k->btf, why);
    return btf ? gs_prototype_new(btf, k->arch, func, why) : NULL;
}

GsPrototype *gs_kernel_prototype(const GsKernel *k, const char *module,
                                 const char *func, const char **why)
{
    const char *reason = NULL;
    GsPrototype *p = NULL;

    if (!k->btf) {
        reason = "the types of this kernel are not known";
    } else if (module) {
        p = of_module(k, module, func, &reason);
    } else {
        p = gs_prototype_new(k->btf, k->arch, func, &reason);
    }
    if (why) {
        *why = reason;
    }
    return p;
}
