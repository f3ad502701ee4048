/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Opens a kernel in guest memory, without its file, or completes a kernel whose
 * file is a System.map. Called once a boot, by the thread that finds the
 * kernel.
 *
 * Early in boot the kernel maps its image, from _text to _end, and nothing
 * around it (arch/x86/boot/startup/map_kernel.c, formerly head64.c;
 * arch/arm64/kernel/pi/map_kernel.c; arch/riscv/mm/init.c). The tables in its
 * read-only data are relocated by then. So the mapped range around the first
 * instruction that runs there is read like a file's image, but at run-time
 * addresses; each part is copied before it is read.
 *
 * The guest may lie: copies are bounded, and the readers of the copy are those
 * that read files.
 */
#include "guest-symbols/kernel/kernel.h"
#include "guest-symbols/orc/orc.h"
#include "guest-symbols/symbols/symtab.h"

#define IMAGE_MAX       (512ull << 20)

static bool is_mapped(const GsMem *mem, uint64_t va)
{
    uint8_t byte;

    return mem->read(mem->opaque, va, &byte, 1);
}

/* Finds the mapped steps around @va. */
static bool find_extent(const GsArch *arch, const GsMem *mem, uint64_t va,
                        uint64_t *start, uint64_t *end)
{
    uint64_t step = arch->map_step;

    *start = va & -step;
    *end = *start + step;
    if (va < arch->text_start || va >= arch->text_end ||
        !is_mapped(mem, va)) {
        return false;
    }
    while (*start > arch->text_start && *end - *start < IMAGE_MAX &&
           is_mapped(mem, *start - step)) {
        *start -= step;
    }
    while (*end < arch->text_end && *end - *start < IMAGE_MAX &&
           is_mapped(mem, *end)) {
        *end += step;
    }
    return true;
}

/* What was not copied for want of room reads as zeros: no table of it holds. */
static GsKernel *read_kernel(const GsArch *arch, GsGuestCopy *copy,
                             bool no_kallsyms, GError **errp)
{
    g_autoptr(GError) err = NULL;
    g_autoptr(GsKernel) k = NULL;

    k = gs_kernel_new_from_image(arch, gs_image_new_memory(copy), no_kallsyms,
                                 &err);
    if (gs_guest_copy_full(copy)) {
        return gs_fail(errp, GS_ERROR_UNSUPPORTED,
                       "mem= leaves too little memory to read a kernel there");
    }
    if (!k) {
        g_propagate_error(errp, g_steal_pointer(&err));
        return NULL;
    }
    g_clear_pointer(&k->image, gs_image_free);
    k->memory = true;
    return g_steal_pointer(&k);
}

static GsKernel *read_extent(const GsArch *arch, const GsMem *mem,
                             uint64_t start, uint64_t end, GError **errp)
{
    g_autoptr(GsGuestCopy) copy = gs_guest_copy_new(mem, start, end);
    GsKernel *k;

    if (!copy) {
        return gs_fail(errp, GS_ERROR_IO, "not enough memory");
    }
    k = read_kernel(arch, copy, mem->no_kallsyms, errp);
    if (!k) {
        g_prefix_error(errp, "guest memory 0x%" G_GINT64_MODIFIER "x-0x%"
                       G_GINT64_MODIFIER "x: ", start, end - 1);
        return NULL;
    }
    k->extent = (GsRange) { start, end };
    return k;
}

GsKernel *gs_kernel_new_from_memory(const GsArch *arch, const GsMem *mem,
                                    uint64_t va, GError **errp)
{
    uint64_t start, end;

    if (!find_extent(arch, mem, va, &start, &end)) {
        return gs_fail(errp, GS_ERROR_FORMAT, "0x%" G_GINT64_MODIFIER
                       "x is not where a kernel's image is mapped", va);
    }
    return read_extent(arch, mem, start, end, errp);
}

/* ---- a System.map ---- */

/* Guest memory in link-time addresses. */
typedef struct Slid {
    const GsMem *mem;
    uint64_t slide;
} Slid;

static bool read_slid(void *opaque, uint64_t va, void *buf, size_t len)
{
    const Slid *s = opaque;

    return s->mem->read(s->mem->opaque, va + s->slide, buf, len);
}

/* Read the tables at link-time addresses [@start, @end). If one cannot be used,
 * there is none. */
static bool add_tables(GsKernel *k, const GsMem *mem, uint64_t start,
                       uint64_t end)
{
    g_autoptr(GsGuestCopy) copy = gs_guest_copy_new(mem, start, end);

    if (!copy) {
        return false;
    }
    k->image = gs_image_new_memory(copy);
    if (!gs_kernel_load_tables(k, NULL)) {
        gs_orc_set_drop_table(k->orc);
    }
    gs_kernel_find_unwinder(k);
    g_clear_pointer(&k->image, gs_image_free);
    /* Another kernel may run next. */
    g_clear_pointer(&k->banner, g_free);
    k->banner_va = 0;
    return true;
}

bool gs_kernel_add_memory(GsKernel *k, const GsMem *mem, uint64_t slide,
                          uint64_t va)
{
    Slid slid = { mem, slide };
    const GsMem linked = {
        .read = read_slid, .opaque = &slid, .room = mem->room,
    };
    uint64_t start, end;

    if (k->image || k->memory || k->plain || k->saved.on || k->btf ||
        gs_orc_set_table(k->orc) ||
        !find_extent(k->arch, mem, va, &start, &end)) {
        return false;
    }
    return add_tables(k, &linked, start - slide, end - slide);
}

/* ---- opening again ---- */

static bool is_extent(const GsArch *arch, uint64_t start, uint64_t end)
{
    return start >= arch->text_start && end <= arch->text_end &&
           start < end && end - start <= IMAGE_MAX &&
           !((start | end) & (arch->map_step - 1));
}

GsKernel *gs_kernel_new_from_extent(const GsArch *arch, const GsMem *mem,
                                    uint64_t start, uint64_t end,
                                    GError **errp)
{
    if (!is_extent(arch, start, end)) {
        return gs_fail(errp, GS_ERROR_FORMAT, "0x%" G_GINT64_MODIFIER "x-0x%"
                       G_GINT64_MODIFIER
                       "x is not where a kernel's image can be", start, end);
    }
    return read_extent(arch, mem, start, end, errp);
}

bool gs_kernel_extent(const GsKernel *k, uint64_t *start, uint64_t *end)
{
    *start = k->extent.start;
    *end = k->extent.end;
    return k->memory;
}

bool gs_kernel_is_memory(const GsKernel *k)
{
    return k->memory;
}
