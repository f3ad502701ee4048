/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds rows of the table of architectures. Constant data, any thread. */
#include "guest-symbols/arch/arch.h"
#include "guest-symbols/symbols/symtab.h"

#include <string.h>

static const GsArch *const archs[] = {
#define GS_ARCH(name) &gs_arch_##name,
#include "guest-symbols/api/archs.def"
};

const GsArch *gs_arch_nth(unsigned i)
{
    return i < G_N_ELEMENTS(archs) ? archs[i] : NULL;
}

unsigned gs_arch_number(const GsArch *arch)
{
    unsigned i = 0;

    while (i < G_N_ELEMENTS(archs) - 1 && archs[i] != arch) {
        i++;
    }
    return i;
}

const GsArch *gs_arch_find(const char *name)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(archs); i++) {
        if (!strcmp(archs[i]->name, name)) {
            return archs[i];
        }
    }
    return NULL;
}

const GsArch *gs_arch_of_machine(unsigned machine)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(archs); i++) {
        if (archs[i]->machine == machine) {
            return archs[i];
        }
    }
    return NULL;
}

const GsArch *gs_arch_of_symbols(const GsSymtab *tab)
{
    GsSymbol sym;

    for (unsigned i = 0; i < G_N_ELEMENTS(archs); i++) {
        if (gs_symtab_lookup(tab, archs[i]->marker, &sym)) {
            return archs[i];
        }
    }
    return archs[0];
}
