/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka_lost: objects that are all lost once the module is unloaded. Their
 * addresses stay in memory that was given back: per-CPU blocks that were freed,
 * of the first chunk and of later ones, and the module's variables. Lost
 * per-CPU blocks hold some of them. Pages are lost, too, and a block that the
 * kernel refused to free. Each is printed:
 *
 *   ka_lost: KIND=ADDRESS
 */
#include <linux/init.h>
#include <linux/list.h>
#include <linux/percpu.h>
#include <linux/vmalloc.h>

#include "ka_kmod.h"

#define FILLS 400

struct element {
    struct list_head link;
    char text[200];
};

static LIST_HEAD(the_list);
static DEFINE_PER_CPU(void *, the_pointer);
static void __percpu *fill[FILLS];
static void __percpu *holder, *large_holder;
static void *the_array[13];
static unsigned int size = 0x500;

static void *lost(const char *kind, void *p)
{
    if (kind) {
        pr_info("ka_lost: %s=%px\n", kind, p);
    }
    return p;
}

/* Each object has its own size, so that none takes the place of another. */
static KA_SITE void *make(const char *kind)
{
    void *p = lost(kind, kzalloc(size += 8, GFP_KERNEL));

    ka_site_end();
    return p;
}

static void __percpu *make_percpu(const char *kind, size_t bytes)
{
    void __percpu *p = __alloc_percpu(bytes, 8);

    lost(kind, (void __force *)p);
    return p;
}

/* Store a pointer in the memory of the last CPU. */
static void put(void __percpu *to, size_t word, void *p)
{
    void **at = (void **)per_cpu_ptr(to, nr_cpu_ids - 1);

    at[word] = p;
}

static void leave_in_freed(const char *kind, size_t bytes)
{
    void __percpu *p = make_percpu(NULL, bytes);

    put(p, bytes >= 64 ? 3 : 0, make(kind));
    free_percpu(p);
}

static void lose_by_percpu(void)
{
    int i;

    leave_in_freed("freed-first-chunk", 8);
    for (i = 0; i < FILLS; i++) {
        fill[i] = make_percpu(NULL, 2048);
    }
    holder = make_percpu("percpu", 512);
    put(holder, 3, make("held-later-chunk"));
    leave_in_freed("freed-later-chunk", 512);
    large_holder = make_percpu("percpu-large", 16384);
    put(large_holder, 3, make("held-large"));
    leave_in_freed("freed-large", 16384);
}

/* The kinds of objects of the kernel's samples/kmemleak. */
static void lose_by_variables(void)
{
    static const size_t sizes[] = { 32, 1024, 2048, 4096 };
    struct element *e;
    int i, cpu;

    for (i = 0; i < 8; i++) {
        the_array[i] = lost("kmalloc", kzalloc(sizes[i / 2], GFP_KERNEL));
    }
    for (; i < ARRAY_SIZE(the_array); i++) {
        the_array[i] = lost("vmalloc", vzalloc(64));
    }
    for (i = 0; i < 10; i++) {
        e = lost("list", kzalloc(sizeof(*e), GFP_KERNEL));
        INIT_LIST_HEAD(&e->link);
        list_add_tail(&e->link, &the_list);
    }
    for_each_possible_cpu(cpu) {
        per_cpu(the_pointer, cpu) = make("cpu-variable");
    }
}

/* vfree() refuses both blocks; then one is freed as it should be. */
static void lose_refused(void)
{
    void *freed = make(NULL), *kept = make("refused");

    vfree(freed);
    kfree(freed);
    vfree(kept);
}

static void lose_pages(void)
{
    int i;

    lost("pages", (void *)__get_free_pages(GFP_KERNEL, 2));
    for (i = 0; i < 6; i++) {
        lost("page", (void *)__get_free_page(GFP_KERNEL));
    }
}

static int __init ka_lost_init(void)
{
    lose_pages();
    lose_by_percpu();
    lose_by_variables();
    lose_refused();
    return 0;
}

static void __exit ka_lost_exit(void)
{
    int i;

    for (i = 0; i < FILLS; i++) {
        free_percpu(fill[i]);
    }
}

KA_MODULE(ka_lost_init, ka_lost_exit,
          "objects that are lost when the module is unloaded");
