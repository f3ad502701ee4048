/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka_watched: one object, and functions that access it in a known way, for
 * test_access_watch.py. When it is loaded it says where the object is; a write
 * to the parameter "run" makes the accesses, and says of each
 *
 *   ka_watched: FUNCTION r|w OFFSET SIZE COUNT
 *
 * SIZE and COUNT are those of all accesses of a line of ka access watch.
 */
#include <linux/atomic.h>
#include <linux/string.h>
#include <linux/timer.h>
#include <linux/delay.h>

#include "ka_kmod.h"

#define SIZE 128
#define SPINS 100

static struct kmem_cache *cache;
static u8 *object, *other;
static u8 copy[SIZE];
/* The compiler does not know it, so that it calls memset() and memcpy(). */
static volatile size_t whole = SIZE;
static struct timer_list timer;

#define SAY(function, rw, offset, size, count) \
    pr_info("ka_watched: " #function " " rw " %d %d %d\n", offset, size, count)

KA_SITE_DOES(watched_read, (u8 *b), READ_ONCE(*(u64 *)(b + 16)))
KA_SITE_DOES(watched_write, (u8 *b), WRITE_ONCE(*(u32 *)(b + 24), 7))
KA_SITE_DOES(watched_atomic, (u8 *b), atomic_inc((atomic_t *)(b + 32)))

static KA_SITE void watched_spin(u8 *b)
{
    u32 i = 0;

    while (READ_ONCE(*(u32 *)(b + 40)) != 1 && ++i < SPINS) {
        cpu_relax();
    }
    ka_site_end();
}

static KA_SITE void watched_scan(u8 *b)
{
    unsigned int i;

    for (i = 0; i < 8; i++) {
        READ_ONCE(b[i]);
        barrier();
    }
}

/* From the middle of the object. */
KA_SITE_DOES(watched_clear, (u8 *b), memset(b + 64, 0, whole / 2))
KA_SITE_DOES(watched_copy, (u8 *b), memcpy(copy, b, whole))
KA_SITE_DOES(watched_timer, (struct timer_list *t),
             WRITE_ONCE(object[SIZE - 1], 1))
KA_SITE_DOES(watched_free, (u8 *b), kmem_cache_free(cache, b))

/* Not where the free pointer is. */
KA_SITE_DOES(watched_stale, (u8 *b), READ_ONCE(*(u64 *)(b + 8)))
KA_SITE_RETURNS(u8 *, watched_again, (void),
                kmem_cache_alloc(cache, GFP_ATOMIC))
KA_SITE_DOES(watched_next_owner, (u8 *b), WRITE_ONCE(*(u16 *)(b + 2), 3))

static void run_timer(void)
{
    timer_setup(&timer, watched_timer, 0);
    mod_timer(&timer, jiffies + 2);
    msleep(200);
}

static void give_away(void)
{
    u8 *b = object;

    preempt_disable();
    watched_free(b);
    watched_stale(b);
    object = watched_again();
    preempt_enable();
    pr_info("ka_watched: reused=%d\n", object == b);
    if (object) {
        watched_next_owner(object);
    }
}

static void say(void)
{
    SAY(watched_read, "r", 16, 8, 1);
    SAY(watched_write, "w", 24, 4, 1);
    SAY(watched_atomic, "w", 32, 4, 1);
    SAY(watched_spin, "r", 40, 4, SPINS);
    SAY(watched_scan, "r", 0, 8, 8);
    SAY(watched_clear, "w", 64, 64, 1);
    SAY(watched_copy, "r", 0, SIZE, 1);
    SAY(watched_timer, "w", SIZE - 1, 1, 1);
    SAY(watched_stale, "r", 8, 8, 1);
    SAY(watched_next_owner, "w", 2, 2, 1);
    pr_info("ka_watched: end\n");
}

static int run(const char *word, const struct kernel_param *unused)
{
    watched_read(object);
    watched_write(object);
    watched_atomic(object);
    watched_spin(object);
    watched_scan(object);
    watched_clear(object);
    watched_copy(object);
    watched_read(other);            /* another object */
    watched_write(other);
    run_timer();
    give_away();
    say();
    return 0;
}

static const struct kernel_param_ops run_ops = { .set = run };
module_param_cb(run, &run_ops, NULL, 0200);
MODULE_PARM_DESC(run, "make the accesses");

/* A cache that kmemleak must not search is never merged with another, and has
 * no arrays of free objects (since 7.0): the object that was freed last is
 * handed out next. */
static int __init ka_watched_init(void)
{
    cache = kmem_cache_create("ka_watched", SIZE, 0, SLAB_NOLEAKTRACE, NULL);
    if (!cache) {
        return -ENOMEM;
    }
    object = kmem_cache_zalloc(cache, GFP_KERNEL);
    other = kmem_cache_zalloc(cache, GFP_KERNEL);
    pr_info("ka_watched: va=%px\n", object);
    return object && other ? 0 : -ENOMEM;
}

static void __exit ka_watched_exit(void)
{
    kmem_cache_free(cache, object);
    kmem_cache_free(cache, other);
    kmem_cache_destroy(cache);
}

KA_MODULE(ka_watched_init, ka_watched_exit, "accesses to one object");
