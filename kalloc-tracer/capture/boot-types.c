/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Types of the kernel that was found: its own, those of types=FILE, or none.
 * Prints one line that names the sources that the kernel lacks.
 *
 *     kt_capture_choose_types()   before the boot is made
 *     on_refused()                a vCPU finds that the file does not fit
 *        '--> drop_types()        while no vCPU executes: all offsets of the
 *                                 boot are worked out again, without types
 *
 * What was recorded before stays: each cache that was believed had its name
 * where the file says.
 */
#include "kalloc-tracer/capture/capture-internal.h"

/* Each boot of the same kernel would say the same. */
static void say_once(KtCapture *c, char *line)
{
    if (g_strcmp0(line, c->said)) {
        c->say(line);
    }
    g_free(c->said);
    c->said = line;
}

/* Work out again what depends on types. No vCPU executes. */
static void retype(KtCapture *c)
{
    KtBoot *boot = c->boot;
    GsKernel *k = c->shared.kernel;

    kt_guest_drop_types(boot->guest);
    if (boot->log) {
        kt_printk_log_drop_types(boot->log, k);
    }
    g_clear_pointer(&boot->pages, kt_struct_page_free);
    kt_hooks_free(boot->hooks);
    kt_capture_resolve_hooks(c, boot);
    for (unsigned i = 0; i < c->max_vcpus; i++) {
        if (c->vcpu[i].ready) {
            kt_vcpu_reset(&c->vcpu[i]);
        }
    }
    kt_capture_set_kernel(c, k);
    qemu_plugin_request_flush();
}

/* The journal has the kernel with the types of the file, and is corrected. A
 * kernel begins without modules there. */
static void drop_types_of(KtCapture *c, GsKernel *k)
{
    gs_kernel_set_types(k, NULL);
    kt_tracer_save_kernel(c->shared.tracer, k, true);
    kt_tracer_inherit_modules(c->shared.tracer, k);
}

static void drop_types(void *userdata)
{
    KtCapture *c = userdata;

    g_mutex_lock(&c->lock);
    if (c->boot && c->fit.state == KT_TYPES_REFUSED) {
        drop_types_of(c, c->shared.kernel);
        say_once(c, g_strdup_printf("types=FILE does not fit: %s; it is not "
                                    "used", c->fit.why));
        retype(c);
        c->fit.state = KT_TYPES_NOT_FROM_FILE;
    }
    g_mutex_unlock(&c->lock);
}

static void on_refused(void *opaque)
{
    qemu_plugin_request_exclusive(drop_types, opaque);
}

/* Use the file until it is refused. */
static void use_file(KtCapture *c, GsKernel *k)
{
    g_autofree char *why = kt_types_fit_banner(c->types, k);

    if (why) {
        say_once(c, g_strdup_printf("types=FILE does not fit: %s; it is not "
                                    "used", why));
        return;
    }
    gs_kernel_set_types(k, c->types);
    c->fit = (KtTypesFit) {
        .kernel = k, .state = KT_TYPES_OPEN, .refused = on_refused,
        .opaque = c,
    };
}

void kt_capture_choose_types(KtCapture *c, GsKernel *k)
{
    c->fit = (KtTypesFit) { .state = KT_TYPES_NOT_FROM_FILE };
    if (gs_kernel_is_plain(k) || !c->say) {
        return;
    }
    if (gs_kernel_has_btf(k)) {
        if (c->types) {
            say_once(c, g_strdup("types=FILE is not used: the kernel has "
                                 "types of its own (BTF)"));
        }
    } else if (!c->types) {
        say_once(c, g_strdup("this kernel has no types "
                             "(CONFIG_DEBUG_INFO_BTF): cache names, slab sizes "
                             "and tasks are unknown until they are learned, "
                             "all else is unknown; give types=FILE (its "
                             "vmlinux with debug info, or BTF made by "
                             "pahole)"));
    } else {
        use_file(c, k);
    }
}

void kt_capture_set_types(KtCapture *c, const GsTypesFile *types,
                          void (*say)(const char *line))
{
    c->types = types;
    c->say = say;
}
