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
#include "kalloc-tracer/objects/objects-internal.h"

#include <string.h>

#include "kalloc-tracer/layout/layout.h"

/* Limit of nodes that are read to find the head. */
#define NODES_MAX 4096

/* Is there the address of a function? */
static bool is_function(const KtAddress *a, uint64_t at)
{
    uint64_t va;
    GsSymbol sym;

    return kt_objects_pointer(&a->o, at, &va) && va &&
           gs_kernel_symbolize(a->o.kernel, va, &sym) && sym.va == va &&
           gs_kernel_is_code(a->o.kernel, &sym);
}

static bool find_head(const KtAddress *a, const KtLayout *at, uint64_t *head)
{
    uint32_t entry_at = at->at[KT_M_DEVRES_ENTRY];
    uint64_t entry = a->block.va + entry_at;

    for (unsigned i = 0; i < NODES_MAX; i++) {
        if (!kt_objects_pointer(&a->o, entry, &entry) || !entry) {
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
    const uint32_t *where = at->at;
    uint64_t va;

    return ((kt_objects_pointer(&a->o, device + where[KT_M_DEVICE_NAME], &va) &&
             va) ||
            (kt_objects_pointer(&a->o, device + where[KT_M_DEVICE_INIT_NAME],
                                &va) && va)) &&
           kt_objects_text(&a->o, va, name, KT_DEVICE_NAME_MAX + 1) && *name;
}

bool kt_address_devres(const KtAddress *a, KtDevres *out)
{
    static const char *const makers[] = {
        "devm_kmalloc", "__devres_alloc_node", "devres_alloc_node",
    };
    uint64_t head, ktype;
    GsSymbol device_ktype;
    KtLayout at;

    *out = (KtDevres) { 0 };
    if (!a->o.vm || !a->o.kernel || a->block.state != KT_BLOCK_ALLOCATED ||
        !a->has_block ||
        !kt_objects_made_by(&a->o, a->block.alloc_stack, makers,
                            G_N_ELEMENTS(makers)) ||
        !kt_layout_find(&at, a->o.kernel, KT_M_DEVRES_ENTRY,
                        KT_M_DEVICE_INIT_NAME) ||
        !gs_kernel_lookup(a->o.kernel, "device_ktype", &device_ktype) ||
        !find_head(a, &at, &head)) {
        return false;
    }
    out->device = head - at.at[KT_M_DEVICE_HEAD];
    out->data = a->block.va + at.at[KT_M_DEVRES_DATA];
    return kt_objects_pointer(&a->o, out->device + at.at[KT_M_DEVICE_KTYPE],
                              &ktype) &&
           ktype == device_ktype.va &&
           read_name(a, &at, out->device, out->name);
}
