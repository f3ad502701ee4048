/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Boot: the data on the running kernel, from the moment it is found until the
 * VM is reset, kexec starts another kernel, or a snapshot is loaded.
 *
 *     unknown --kt_capture_look() finds it--> kt_capture_new_boot()
 *        ^                                        | kt_capture_publish()
 *        |                                        v
 *        '------ kt_capture_drop_boot() ------ running
 *
 * The pointer to the boot is published with a release store and read with an
 * acquire load by all callbacks. It is dropped only while no vCPU executes, so
 * callbacks need no lock and no reference.
 *
 * Blocks that were translated before a change of state have the wrong hooks.
 * So each change requests a flush of QEMU's translated code.
 */
#include "kalloc-tracer/capture/capture-internal.h"
#include "kalloc-tracer/capture/seam.h"
#include "kalloc-tracer/faults/fault-rules.h"
#include "kalloc-tracer/tracer/tracer.h"

#include <stdio.h>

/* ---- the start of a boot ------------------------------------------------- */

void kt_capture_set_kernel(KtCapture *c, GsKernel *k)
{
    c->shared.kernel = k;
    for (unsigned i = 0; i < c->max_vcpus; i++) {
        if (c->vcpu[i].ready) {
            kt_vcpu_set_kernel(&c->vcpu[i], k);
        }
    }
}

/* Arguments of the page allocator changed their places without a new name, so
 * its functions are hooked only if their prototypes are known. */
static bool has_page_prototypes(const GsKernel *k)
{
    static const char *const names[] = {
        "__alloc_pages_nodemask", "__alloc_pages", "__alloc_pages_noprof",
        "__alloc_frozen_pages_noprof",
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(names); i++) {
        if (gs_kernel_func_param(k, names[i], "order") >= 0) {
            return true;
        }
    }
    return false;
}

static bool read_code(void *opaque, uint64_t va, void *buf, size_t len)
{
    return kt_guest_read(opaque, va, buf, len);
}

/* Code may be read only while its vCPU executes: later, what was found at first
 * is kept. */
static void check_calls(KtBoot *boot, const GsKernel *k, const KtHooks *before)
{
    const KtCodeReader reader = { read_code, boot->guest };

    if (before) {
        kt_hooks_keep_calls(boot->hooks, before);
    } else {
        kt_hooks_check_calls(boot->hooks, k, &reader);
    }
}

/* @before: (nullable) the hooks of this boot so far */
static void resolve_hooks(KtCapture *c, KtBoot *boot, const KtHooks *before)
{
    const GsKernel *k = c->shared.kernel;

    if (c->pages && has_page_prototypes(k)) {
        boot->pages = kt_struct_page_new(k, boot->guest);
    }
    boot->hooks = kt_hooks_resolve(kt_tracer_hooks(c->shared.tracer), k,
                                   (boot->pages ? KT_HOOKS_PAGES : 0) |
                                       (boot->log ? KT_HOOKS_LOG : 0));
    check_calls(boot, k, before);
    gs_kernel_replaced_returns(k, boot->replaced);
    for (unsigned id = 0; id < G_N_ELEMENTS(boot->row); id++) {
        boot->row[id] = kt_hooks_row(boot->hooks, (KtHookId) { id });
    }
}

/* Read memory through a pointer that may have a tag. A view has no other
 * argument, so there is one for kernels that keep tags in the top byte. */
static const void *view_of_tagged(uint64_t va, size_t *avail)
{
    return qemu_plugin_vaddr_to_host(gs_untag(0xffull << 56, va), avail);
}

KtBoot *kt_capture_new_boot(KtCapture *c)
{
    GsKernel *k = c->shared.kernel;
    KtBudget *budget = kt_tracer_budget(c->shared.tracer);
    KtBoot *boot = g_aligned_alloc0(1, sizeof(KtBoot), 64);

    kt_capture_choose_types(c, k);
    boot->guest = kt_guest_new(k, c->shared.tracer,
                               gs_kernel_tag_bits(k) ?
                                   view_of_tagged : qemu_plugin_vaddr_to_host);
    if (c->shared.profile) {
        kt_guest_set_caches(boot->guest, &c->shared.profile->caches);
    }
    kt_guest_check_types(boot->guest, &c->fit);
    boot->log = c->log && !c->shared.profile ?
                    kt_printk_log_new(k, c->shared.tracer) : NULL;
    resolve_hooks(c, boot, NULL);
    kt_budget_set(budget, KT_MEM_KERNEL, gs_kernel_bytes(k));
    if (boot->pages) {
        kt_tracer_find_backing(c->shared.tracer, k);
    }
    kt_tracer_save_kernel(c->shared.tracer, k, true);
    return boot;
}

void kt_capture_publish(KtCapture *c, KtBoot *boot)
{
    kt_faults_begin_boot(c->shared.tracer, c->shared.kernel);
    kt_calls_begin_boot(c->shared.watched, c->shared.kernel);
    __atomic_store_n(&c->boot, boot, __ATOMIC_RELEASE);
    kt_moment(&c->shared.moments, KT_MOMENT_FOUND, NULL);
}

static void say_line(const char *line)
{
    fprintf(stderr, "ka: %s\n", line);
}

/* A kernel whose symbols are only exports has allocators that are not hooked,
 * for example those of task stacks. If pointers have tags, and nobody knows in
 * which bits, an allocation and its free can name different addresses. */
static void say_if_blind(KtCapture *c, const GsKernel *k)
{
    const KtEvent gap = { .kind = KT_EV_GAP, .flags = KT_EVF_BLIND };
    bool tags = gs_kernel_tags_pointers(k) && !gs_kernel_tag_bits(k);

    if (tags || !gs_kernel_has_all_symbols(k)) {
        kt_tracer_push(c->shared.tracer, 0, &gap);
    }
    if (tags) {
        say_line("this kernel keeps tags in its pointers (KASAN_SW_TAGS), and "
                 "where is known of arm64 only: no error is certain; errors "
                 "need a kernel without them");
    }
    if (!gs_kernel_has_all_symbols(k)) {
        say_line("this kernel has no symbol table (CONFIG_KALLSYMS), only "
                 "exported symbols: not every allocator is hooked, no error "
                 "is certain; give kernel=FILE (its vmlinux or System.map)");
    }
}

static void look_at_locked(KtCapture *c, uint64_t va)
{
    uint64_t slide;
    bool complete;
    KtBoot *boot;
    GsKernel *k;

    if (kt_capture_resume(c, va)) {
        c->seam->update(c);
        return;
    }
    k = kt_finder_try(c->finder, va, &slide, &complete);
    if (k) {
        kt_capture_cancel_resume(c);
        gs_kernel_set_slide(k, slide);
        kt_capture_set_kernel(c, k);
        kt_tracer_set_complete(c->shared.tracer, complete);
        say_if_blind(c, k);
        boot = kt_capture_new_boot(c);
        kt_access_watch_begin_boot(c, boot, false);
        kt_delay_free_begin_boot(c);
        kt_capture_publish(c, boot);
        kt_record_log_found(c->boot);
        c->seam->update(c);
    } else if (kt_finder_gives_up(c->finder)) {
        say_line(kt_finder_why_not(c->finder));
    }
}

bool kt_capture_may_find(const KtCapture *c, uint64_t va)
{
    return kt_finder_wants(c->finder, va) || kt_capture_may_resume(c, va);
}

void kt_capture_look(KtCapture *c, uint64_t va)
{
    if (kt_capture_boot(c) || !kt_capture_may_find(c, va)) {
        return;
    }
    g_mutex_lock(&c->lock);
    if (!c->boot) {
        uint64_t since = kt_clock_ns(CLOCK_THREAD_CPUTIME_ID);

        look_at_locked(c, va);
        kt_tracer_count(c->shared.tracer, KT_CNT_FIND_NS,
                        kt_clock_ns(CLOCK_THREAD_CPUTIME_ID) - since);
    }
    g_mutex_unlock(&c->lock);
}

/* ---- the end of points, and of a boot ----------------------------------- */

void kt_capture_reclaim_points(void *userdata)
{
    KtCapture *c = userdata;

    kt_calls_reclaim(c->shared.watched);
    if (!kt_call_points_set(c->shared.points)) {
        kt_return_sites_end_points(c->shared.sites);
        for (unsigned i = 0; i < c->max_vcpus; i++) {
            kt_vcpu_end_points(&c->vcpu[i]);
        }
    }
}

void kt_capture_drop_boot(KtCapture *c)
{
    KtBoot *boot = c->boot;

    __atomic_store_n(&c->boot, NULL, __ATOMIC_RELEASE);
    kt_access_watch_end_boot(c);
    kt_capture_end_block_watch(c);
    kt_delay_free_end_boot(c);
    kt_calls_save(c->shared.tracer);
    kt_calls_end_boot(c->shared.watched);
    kt_pending_calls_clear(c->shared.calls);
    kt_return_sites_clear(c->shared.sites);
    for (unsigned i = 0; i < c->max_vcpus; i++) {
        if (c->vcpu[i].ready) {
            kt_vcpu_reset(&c->vcpu[i]);
        }
    }
    if (boot) {
        kt_hooks_free(boot->hooks);
        kt_struct_page_free(boot->pages);
        kt_guest_free(boot->guest);
        kt_printk_log_free(boot->log);
        g_aligned_free(boot);
    }
}

/* Call while no vCPU executes. */
static void end_boot(KtCapture *c)
{
    kt_capture_drop_boot(c);
    kt_tracer_reset(c->shared.tracer);
    c->seam->update(c);
}

void kt_capture_end_by_kexec(void *userdata)
{
    KtCapture *c = userdata;

    g_mutex_lock(&c->lock);
    if (c->boot) {
        kt_finder_restart(c->finder, true);
        end_boot(c);
    }
    g_mutex_unlock(&c->lock);
}

/* The map of an unknown or lost boot must not become part of the next one. */
void kt_capture_reset(KtCapture *c)
{
    bool booted = c->boot || c->resume ||
                  kt_tracer_has_gap(c->shared.tracer);

    kt_capture_clear_resume(c);
    /* Blocks that were translated after the finder gave up have no callback. */
    if (c->finder && kt_finder_restart(c->finder, false)) {
        c->seam->update(c);
    }
    if (booted) {
        end_boot(c);
    }
}

/* ---- types --------------------------------------------------------------- */
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
    g_autoptr(KtHooks) before = boot->hooks;

    kt_guest_drop_types(boot->guest);
    if (boot->log) {
        kt_printk_log_drop_types(boot->log, k);
    }
    g_clear_pointer(&boot->pages, kt_struct_page_free);
    resolve_hooks(c, boot, before);
    for (unsigned i = 0; i < c->max_vcpus; i++) {
        if (c->vcpu[i].ready) {
            kt_vcpu_reset(&c->vcpu[i]);
        }
    }
    kt_capture_set_kernel(c, k);
    kt_access_watch_begin_again(c, boot);
    c->seam->update(c);
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
