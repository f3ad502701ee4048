/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ka_stress: the blocks, and what is counted of them; see ka_stress_main.c. */
#ifndef KA_STRESS_H
#define KA_STRESS_H

#include <linux/rcupdate.h>

#include "ka_kmod.h"

#define OBJECT      200     /* bytes of an object of the cache */
#define PERCPU      64      /* and of a percpu block */
#define BULK        12
#define MARK_BYTES  3000

/* In the low bits of a block's pointer. */
enum kind { KMALLOC, LARGE, CACHE, VMALLOC, PERCPU_BLOCK, KINDS };
#define KIND_BITS 7ul

/* What is counted besides. */
enum what { STEPS, FAILED, PASSED, REALLOCS, RCU_FREES, CALLBACKS, BULKS,
            MOVES, INTERRUPTS, TIMERS, HOGS, WHATS };
void did(enum what what);

/* A block's first bytes, but for percpu ones. */
struct head {
    struct rcu_head rcu;
    size_t size;
};

static inline struct head *head_of(unsigned long block)
{
    return (struct head *)(block & ~KIND_BITS);
}

static inline enum kind kind_of(unsigned long block)
{
    return block & KIND_BITS;
}

/* The cache; false without memory. */
bool make_objects(void);
void destroy_objects(void);
void free_objects(void **list, int n);

/* What is at @p is live; the block. 0 for NULL. */
unsigned long tagged(enum kind kind, void *p, size_t size);
/* It is not live any more (@sign -1). */
void count(enum kind kind, const void *p, size_t size, int sign);

/* The sites: each allocates, or frees, one way. */
void *ka_stress_kmalloc(size_t size, gfp_t gfp);
void *ka_stress_krealloc(void *old, size_t size);
void *ka_stress_large(size_t size, gfp_t gfp);
void *ka_stress_cache(gfp_t gfp);
int ka_stress_bulk(void **list);
void *ka_stress_vmalloc(size_t size);
void *ka_stress_percpu(void);
void ka_stress_mark(size_t size);
void ka_stress_free(unsigned long block);

/* Lines of the parameters "live" and "done". */
int print_live(char *buffer);
int print_done(char *buffer);

#endif /* KA_STRESS_H */
