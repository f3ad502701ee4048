/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Blocks that a device owns (devm_kmalloc() and its relatives): which device.
 * Owns no state; the public header is api/kt-objects.h. Called by ka whatis, on
 * any thread. The guest may run meanwhile.
 *
 * Such a block begins with a struct devres_node (drivers/base/devres.c). The
 * nodes of a device are a list whose head is in its struct device:
 *
 *     device.devres_head <--> node of a block <--> node of a block <--> ...
 *
 * A node has the function that releases it; the head has no function there. So
 * the first place of the list without one is the head. The device is believed
 * if its kobj.ktype is the kernel's device_ktype. All values are untrusted.
 */
#include "kalloc-tracer/api/kt-objects.h"

#include <string.h>

#include "kalloc-tracer/layout/layout.h"

/* Limit of nodes that are read to find the head. */
#define NODES_MAX 4096

static bool read_pointer(const KtAddress *a, uint64_t va, uint64_t *out)
{
    bool ok = kt_address_read(a, va, out, sizeof(*out));

    *out = ok ? gs_untag(gs_kernel_tag_bits(a->kernel),
                         GUINT64_FROM_LE(*out)) : 0;
    return ok;
}

/* Was the block allocated by a function that puts a node in front? */
static bool is_devres(const KtAddress *a)
{
    static const char *const makers[] = {
        "devm_kmalloc", "__devres_alloc_node", "devres_alloc_node",
    };
    unsigned n = 0;
    GsStop stop;
    GsSymbol sym;
    const uint64_t *pc = a->has_block && a->block.alloc_stack.v ?
        kt_tracer_stack(a->tracer, a->block.alloc_stack, &n, &stop) : NULL;

    for (size_t i = 0; pc && n && i < G_N_ELEMENTS(makers); i++) {
        if (gs_kernel_lookup(a->kernel, makers[i], &sym) &&
            pc[0] > sym.va && pc[0] <= sym.va + sym.size) {
            return true;
        }
    }
    return false;
}

/* Is there the address of a function? */
static bool is_function(const KtAddress *a, uint64_t at)
{
    uint64_t va;
    GsSymbol sym;

    return read_pointer(a, at, &va) && va &&
           gs_kernel_symbolize(a->kernel, va, &sym) && sym.va == va &&
           gs_kernel_is_code(a->kernel, &sym);
}

static bool find_head(const KtAddress *a, const KtLayout *at, uint64_t *head)
{
    uint32_t entry_at = at->at[KT_M_DEVRES_ENTRY];
    uint64_t entry = a->block.va + entry_at;

    for (unsigned i = 0; i < NODES_MAX; i++) {
        if (!read_pointer(a, entry, &entry) || !entry) {
            return false;
        }
        if (!is_function(a, entry - entry_at +
                            at->at[KT_M_DEVRES_RELEASE])) {
            *head = entry;
            return true;
        }
    }
    return false;
}

static bool read_name(const KtAddress *a, const KtLayout *at, uint64_t device,
                      char name[KT_DEVICE_NAME_MAX + 1])
{
    uint64_t va;

    if ((!read_pointer(a, device + at->at[KT_M_DEVICE_NAME], &va) || !va) &&
        (!read_pointer(a, device + at->at[KT_M_DEVICE_INIT_NAME], &va) ||
         !va)) {
        return false;
    }
    for (unsigned i = 0; i < KT_DEVICE_NAME_MAX; i++) {
        if (!kt_address_read(a, va + i, &name[i], 1)) {
            return false;
        }
        if (!name[i]) {
            return i > 0;
        }
    }
    name[KT_DEVICE_NAME_MAX] = 0;
    return true;
}

bool kt_address_devres(const KtAddress *a, KtDevres *out)
{
    uint64_t head, ktype;
    GsSymbol device_ktype;
    KtLayout at;

    *out = (KtDevres) { 0 };
    if (!a->vm || !a->kernel || a->block.state != KT_BLOCK_ALLOCATED ||
        !is_devres(a) ||
        !kt_layout_find(&at, a->kernel, KT_M_DEVRES_ENTRY,
                        KT_M_DEVICE_INIT_NAME) ||
        !gs_kernel_lookup(a->kernel, "device_ktype", &device_ktype) ||
        !find_head(a, &at, &head)) {
        return false;
    }
    out->device = head - at.at[KT_M_DEVICE_HEAD];
    out->data = a->block.va + at.at[KT_M_DEVRES_DATA];
    return read_pointer(a, out->device + at.at[KT_M_DEVICE_KTYPE], &ktype) &&
           ktype == device_ktype.va &&
           read_name(a, &at, out->device, out->name);
}
