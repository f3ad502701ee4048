/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka_coherent: a driver that loses some of its coherent DMA buffers. It has a
 * device without a bus, which does not see what is in the caches of an arm64
 * CPU: there the kernel maps a buffer a second time, without caches, and the
 * driver gets that address. Each buffer is printed, with the address that the
 * device would use, and that of the struct page:
 *
 *   ka_coherent: lost=ADDRESS dma=ADDRESS page=ADDRESS size=HEX
 *
 * "lost" is "held" for buffers that are freed when the module is unloaded.
 */
#include <linux/dma-mapping.h>
#include <linux/mm.h>
#include <linux/platform_device.h>
#include <linux/vmalloc.h>

#include "ka_kmod.h"

#define SIZES 5

struct buffer {
    void *cpu;
    dma_addr_t dma;
};

static const size_t sizes[SIZES] = { PAGE_SIZE, 3 * PAGE_SIZE, 100, 0x20000,
                                     0x100000 };
static struct platform_device *device;
static struct buffer held[SIZES];

KA_SITE_RETURNS(void *, ka_coherent_take, (size_t size, dma_addr_t *dma),
                dma_alloc_coherent(&device->dev, size, dma, GFP_KERNEL))

static struct page *page_of(void *cpu)
{
    return is_vmalloc_addr(cpu) ? vmalloc_to_page(cpu) : virt_to_page(cpu);
}

static int take(const char *kind, size_t size, struct buffer *b)
{
    b->cpu = ka_coherent_take(size, &b->dma);
    if (!b->cpu) {
        return -ENOMEM;
    }
    pr_info("ka_coherent: %s=%px dma=%llx page=%px size=%zx\n", kind, b->cpu,
            (unsigned long long)b->dma, page_of(b->cpu), size);
    return 0;
}

static void give_back(void)
{
    unsigned int i;

    for (i = 0; i < SIZES; i++) {
        if (held[i].cpu) {
            dma_free_coherent(&device->dev, sizes[i], held[i].cpu, held[i].dma);
        }
    }
    platform_device_unregister(device);
}

static int take_all(void)
{
    struct buffer lost;
    unsigned int i;
    int status = dma_coerce_mask_and_coherent(&device->dev, DMA_BIT_MASK(64));

    for (i = 0; i < SIZES && !status; i++) {
        status = take("lost", sizes[i], &lost) ?:
            take("held", sizes[i], &held[i]);
    }
    return status;
}

static int __init ka_coherent_init(void)
{
    int status;

    device = platform_device_register_simple("ka_coherent", -1, NULL, 0);
    if (IS_ERR(device)) {
        return PTR_ERR(device);
    }
    status = take_all();
    if (status) {
        give_back();
    }
    return status;
}

KA_MODULE(ka_coherent_init, give_back,
          "a driver that loses coherent DMA buffers");
