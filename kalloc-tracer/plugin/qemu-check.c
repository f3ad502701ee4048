/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The QEMU that loads the plugin: see qemu-check.h. */
#include "kalloc-tracer/plugin/qemu-check.h"

static char *arch_names(void)
{
    GString *names = g_string_new(NULL);
    const GsArch *arch;

    for (unsigned i = 0; (arch = gs_arch_nth(i)); i++) {
        g_string_append_printf(names, "%s%s", i ? ", " : "", arch->name);
    }
    return g_string_free(names, FALSE);
}

/* Return the first function of the patches that QEMU lacks, NULL for none. */
static const char *missing_function(void)
{
#define KT_CHECK_WEAK(fn) if (!fn) { \
        return #fn; \
    }
    KT_PATCHED_API(KT_CHECK_WEAK)
#undef KT_CHECK_WEAK
    return NULL;
}

char *kt_qemu_check(const qemu_info_t *info)
{
    const char *missing = missing_function();
    g_autofree char *names = NULL;

    if (missing) {
        return g_strdup_printf("this QEMU has no %s(): build QEMU with ka's "
                               "patches, see qemu-patches/README.md",
                               missing);
    }
    if (!info->system_emulation) {
        return g_strdup_printf("ka traces a kernel, and qemu-%s has none: use "
                               "qemu-system-%s", info->target_name,
                               info->target_name);
    }
    if (!gs_arch_find(info->target_name)) {
        names = arch_names();
        return g_strdup_printf("guest architecture '%s' is not supported: use "
                               "one of %s", info->target_name, names);
    }
    return NULL;
}
