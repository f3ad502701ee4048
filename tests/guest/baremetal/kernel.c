/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A kernel that does nothing but call its allocators, as a script says: after
 * XNU's (LIKE_XNU) or xv6's. Each call is made at a time of its own, from a
 * return address of its own (callers.h), so every line of a listing is known
 * beforehand. It commits the errors that it can survive.
 */
#include <stdbool.h>

#include "machine.h"

#define KERNEL_FUNCTION __attribute__((noipa, used))

#define CALLER(section, name, offset) \
    uint64_t name##_first(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t); \
    uint64_t name(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
#include "callers.h"

uint8_t stack[8192] __attribute__((aligned(16)));
__asm__(".globl stack_top\n.set stack_top, stack + 8192");

/* Sleeps: with -icount the time passes at once. What follows has most of a
 * microsecond to be in that one. */
static void wait_until(uint64_t us)
{
    uint64_t hz = timer_hz();
    uint64_t at = (us * hz + 999999) / 1000000;
    uint64_t wake = at - hz / 50000;

    timer_set(wake);
    while (timer_now() < wake) {
        wait_for_interrupt();
    }
    timer_off();
    while (timer_now() < at) {
    }
}

/* From one function, the first on its stack, and from one that it calls. */
#define AT(us, caller, fn, a, b, c) \
    (wait_until(us), \
     caller##_first((uint64_t)(fn), (uint64_t)(a), b, c, 0))
#define AT_BY(us, first, caller, fn, a, b, c) \
    (wait_until(us), first##_first((uint64_t)(caller), (uint64_t)(fn), \
                                   (uint64_t)(a), b, c))

#ifdef LIKE_XNU

/* ---- zones, and kalloc over them ---------------------------------------- */

struct zone {
    const char *name;
    uint16_t elem_size;
    uint16_t n;
    uint64_t base;
    bool used[8];
};

#define ZONE_MAP (HEAP + 0x69c9480)

static struct zone kalloc_zones[] = {
    { "kalloc.16", 0x10, 8, ZONE_MAP + 0x10000 },
    { "kalloc.384", 0x180, 8, ZONE_MAP },
    { "kalloc.1024", 0x400, 8, ZONE_MAP + 0x20000 },
};
static struct zone vm_objects = { "vm objects", 0x100, 8, ZONE_MAP + 0x30000 };
static struct zone proc = { "proc", 0x2c0, 8, ZONE_MAP + 0x40000 };

KERNEL_FUNCTION uint64_t zalloc(struct zone *zone)
{
    for (unsigned i = 0; i < zone->n; i++) {
        if (!zone->used[i]) {
            zone->used[i] = true;
            return zone->base + i * zone->elem_size;
        }
    }
    return 0;
}

/* XNU panics where the element is none of the zone's. */
KERNEL_FUNCTION void zfree(struct zone *zone, uint64_t elem)
{
    for (unsigned i = 0; i < zone->n; i++) {
        if (elem == zone->base + i * zone->elem_size) {
            zone->used[i] = false;
        }
    }
}

static struct zone *zone_of(uint64_t size)
{
    struct zone *zone = kalloc_zones;

    while (zone->elem_size < size) {
        zone++;
    }
    return zone;
}

KERNEL_FUNCTION uint64_t kalloc_ext(void *heap, uint64_t size, unsigned flags)
{
    return zalloc(zone_of(size));
}

KERNEL_FUNCTION void kfree_ext(void *heap, uint64_t data, uint64_t size)
{
    zfree(zone_of(size), data);
}

#define Z_WAITOK 0
#define Z_ZERO   4

static void script(void)
{
    uint64_t first, b, p, empty, z;

    /* the reference's listing */
    first = AT(1000000, driver_start, kalloc_ext, 0, 0x100, Z_WAITOK);
    AT_BY(1551499, driver_start, driver_alloc, kalloc_ext, 0, 0x120, Z_ZERO);
    AT_BY(2000000, driver_start, port_free, kfree_ext, 0, first, 0x100);
    AT_BY(3341444, space_create, port_alloc, kalloc_ext, 0, 0x140, Z_WAITOK);
    b = AT(3341915, port_alloc, kalloc_ext, 0, 0x140, Z_WAITOK);
    AT(3399120, port_free, kfree_ext, 0, b, 0x140);

    /* blocks of no bytes */
    empty = AT(3500000, driver_alloc, kalloc_ext, 0, 0, Z_WAITOK);
    AT(3500100, driver_alloc, kalloc_ext, 0, 0, Z_WAITOK);
    AT(3500200, port_free, kfree_ext, 0, empty, 0);
    AT(3500300, port_free, kfree_ext, 0, 0, 0);

    /* errors of kfree */
    b = AT(3600000, driver_alloc, kalloc_ext, 0, 0x200, Z_WAITOK);
    AT(3600100, port_free, kfree_ext, 0, b, 0x200);
    AT_BY(3600200, driver_start, port_free, kfree_ext, 0, b, 0x200);
    b = AT(3700000, driver_alloc, kalloc_ext, 0, 0x300, Z_WAITOK);
    AT(3700100, port_free, kfree_ext, 0, b, 0x280);
    b = AT(3800000, driver_alloc, kalloc_ext, 0, 0x3f1, Z_WAITOK);
    AT(3800100, port_free, kfree_ext, 0, b + 0x10, 0x3e1);
    AT(3900000, port_free, kfree_ext, 0, ZONE_MAP + 0x20c00, 0x400);

    /* zones, and their errors */
    z = AT(4000000, space_create, zalloc, &vm_objects, 0, 0);
    AT_BY(4000100, space_create, port_alloc, zalloc, &vm_objects, 0, 0);
    AT(4000200, port_free, zfree, &vm_objects, z, 0);
    p = AT(4100000, space_create, zalloc, &proc, 0, 0);
    AT(4100100, port_free, zfree, &vm_objects, p, 0);
    p = AT(4200000, space_create, zalloc, &proc, 0, 0);
    AT(4200100, port_free, kfree_ext, 0, p, 0x2c0);
}

static void prepare(void)
{
}

#else

/* ---- pages -------------------------------------------------------------- */

#define PAGE    4096ul
#define PAGES   (HEAP + 0x200000)
#define N_PAGES 8

struct run {
    struct run *next;
};

static struct run *freelist;

/* xv6 panics where it is no page of the allocator's. */
KERNEL_FUNCTION void kfree(void *pa)
{
    uint64_t at = (uint64_t)pa;
    struct run *r = pa;

    if (at % PAGE || at < PAGES || at >= PAGES + N_PAGES * PAGE) {
        return;
    }
    r->next = freelist;
    freelist = r;
}

KERNEL_FUNCTION void *kalloc(void)
{
    struct run *r = freelist;

    if (r) {
        freelist = r->next;
    }
    return r;
}

KERNEL_FUNCTION void freerange(void *start, void *end)
{
    for (char *p = start; p + PAGE <= (char *)end; p += PAGE) {
        kfree(p);
    }
}

KERNEL_FUNCTION void kinit(void)
{
    freerange((void *)PAGES, (void *)(PAGES + N_PAGES * PAGE));
}

static void prepare(void)
{
    kinit();
}

static void script(void)
{
    uint64_t a, b, d, e;

    a = AT_BY(100000, sys_sbrk, uvmalloc, kalloc, 0, 0, 0);
    b = AT_BY(100100, sys_sbrk, uvmalloc, kalloc, 0, 0, 0);
    AT_BY(200000, sys_sbrk, uvmdealloc, kfree, a, 0, 0);
    AT_BY(300000, sys_pipe, pipealloc, kalloc, 0, 0, 0);
    d = AT(400000, uvmalloc, kalloc, 0, 0, 0);
    e = AT(400100, uvmalloc, kalloc, 0, 0, 0);

    /* errors, and a page that is not handed out again */
    AT(500000, uvmdealloc, kfree, b + 8, 0, 0);
    AT(500100, uvmdealloc, kfree, PAGES + N_PAGES * PAGE, 0, 0);
    AT(500200, uvmdealloc, kfree, 0, 0, 0);
    AT(600000, uvmdealloc, kfree, d, 0, 0);
    AT(600100, uvmdealloc, kfree, e, 0, 0);
    AT_BY(600200, sys_sbrk, uvmdealloc, kfree, e, 0, 0);

    /* now that page is on the list for ever, and has two owners */
    AT(700000, pipealloc, kalloc, 0, 0, 0);
    AT_BY(700100, sys_pipe, pipealloc, kalloc, 0, 0, 0);
}

#endif

void KERNEL_MAIN(void);

void KERNEL_MAIN(void)
{
    prepare();
    timer_init();
    script();
    print("KA-END\n");
    for (;;) {
        wait_for_interrupt();
    }
}
