/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pages that are mapped a second time: the kernel allocates pages in its direct
 * map, and may map them elsewhere, too, such as for a DMA buffer that the CPU
 * uses without its caches (kernel/dma/remap.c).
 */
#ifndef KT_API_MAPPING_H
#define KT_API_MAPPING_H

#include "kalloc-tracer/api/kt-objects.h"

/**
 * struct KtMapping - what is mapped at an address
 * @phys: the physical address, of memory or of a device
 * @va: its address in the direct map; 0: it has none, or the direct map is
 *      unknown
 */
typedef struct KtMapping {
    uint64_t phys, va;
} KtMapping;

/**
 * kt_address_mapping() - find what is mapped at an address of the kernel
 *
 * False if the address is in the direct map itself, in the kernel's image or in
 * a module; if nothing is mapped there, or there is no VM that can say it.
 */
bool kt_address_mapping(const KtAddress *a, KtMapping *out);

#endif /* KT_API_MAPPING_H */
