/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka_device: page tables that say that they go on where the local APIC's
 * registers are. An address below them is passed to an allocator as the place
 * of an array, which the tracer looks at; then the kernel does, too, and ends
 * this module's task by an oops:
 *
 *   ka_device: ADDRESS
 */
#include <linux/pgtable.h>

#include "ka_kmod.h"

#define APIC 0xfee00000ul

#ifdef CONFIG_X86_64
#include <asm/special_insns.h>

static int __init ka_device_init(void)
{
    pgd_t *table = __va(__read_cr3() & PAGE_MASK);
    unsigned int i = PTRS_PER_PGD / 2;

    while (i < PTRS_PER_PGD && table[i].pgd) {
        i++;
    }
    if (i == PTRS_PER_PGD) {
        return -ENOSPC;
    }
    table[i].pgd = APIC | _PAGE_PRESENT | _PAGE_RW | _PAGE_ACCESSED;
    pr_info("ka_device: %lx\n", ~0ul << 48 | (unsigned long)i << PGDIR_SHIFT);
    kmem_cache_free_bulk(NULL, 1, (void **)(~0ul << 48 | (unsigned long)i <<
                                            PGDIR_SHIFT));
    return 0;
}
#else
static int __init ka_device_init(void)
{
    return -ENODEV;
}
#endif

module_init(ka_device_init);
MODULE_LICENSE("GPL");
