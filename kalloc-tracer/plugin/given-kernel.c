/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernel= and profile= options: see given-kernel.h.
 *
 * Called once, at install, in QEMU's main thread.
 */
#include "kalloc-tracer/plugin/given-kernel.h"
#include "kalloc-tracer/hooks/hooks.h"

/* A profile with none of its functions in the kernel is for another kernel. */
static bool profile_fits(const GsKernel *k, const KtHookTable *table,
                         const KtOptions *o, GError **errp)
{
    g_autoptr(KtHooks) hooks = kt_hooks_resolve(table, k, false);

    if (!kt_hooks_n_found(hooks)) {
        g_set_error(errp, GS_ERROR, GS_ERROR_UNSUPPORTED,
                    "%s: the kernel has none of the functions that profile %s "
                    "names: use the profile for this kernel", o->kernel,
                    o->profile);
        return false;
    }
    return true;
}

/* Open a kernel that is not Linux: read the profile, put its rows into @table,
 * and compare its functions with the kernel's symbols. */
static GsKernel *open_by_profile(KtGivenKernel *out, KtHookTable *table,
                                 const KtOptions *o, GError **errp)
{
    g_autoptr(GsKernel) k = NULL;

    out->profile = kt_profile_open(o->profile, errp);
    if (!out->profile) {
        return NULL;
    }
    kt_hook_table_set(table, out->profile->hook, out->profile->n_hooks);
    k = gs_kernel_open_elf(o->kernel, &out->profile->elf, errp);
    return k && profile_fits(k, table, o, errp) ? g_steal_pointer(&k) : NULL;
}

bool kt_given_kernel_open(KtGivenKernel *out, KtHookTable *table,
                          const GsArch *arch, const KtOptions *o,
                          GError **errp)
{
    *out = (KtGivenKernel) { 0 };
    if (!o->kernel) {
        return true;
    }
    out->kernel = o->profile ? open_by_profile(out, table, o, errp)
                             : gs_kernel_open(o->kernel, errp);
    if (out->kernel && gs_kernel_arch(out->kernel) != arch) {
        g_set_error(errp, GS_ERROR, GS_ERROR_UNSUPPORTED,
                    "%s: this kernel is for %s, but the guest is %s", o->kernel,
                    gs_kernel_arch(out->kernel)->name, arch->name);
        g_clear_pointer(&out->kernel, gs_kernel_free);
    }
    if (out->kernel && o->without) {
        gs_kernel_hide(out->kernel, o->without);
    }
    return out->kernel != NULL;
}
