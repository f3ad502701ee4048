/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka_bad_slab: damages the lists of free objects of two caches, one damage at a
 * time, and repairs it. Oracle of `ka slab check`.
 *
 * The caches are one of its own, and the reclaimable kmalloc cache of 2 KiB,
 * which hardly anybody else uses. In each it allocates OBJECTS objects, and
 * frees FREED of each of two slabs. kmem_cache_shrink() moves these from the
 * lists of the CPUs to those of the slabs. From then on nobody touches the
 * slabs but this module.
 *
 * What is written to the parameter "damage" says what to do: the name of a row
 * of damages[]; "in" says in which cache. It prints the object that a check
 * must name, whose free pointer is wrong or which is live; or else the slab:
 *
 *   ka_bad_slab: damage=NAME cache=ADDRESS slab=ADDRESS at=ADDRESS
 *
 * Writing to "repair" puts back each word that was changed. struct slab and
 * struct kmem_cache are private to mm/, so the offsets of members are
 * parameters: the test reads them in the kernel's types.
 */
#include <linux/mm.h>

#include "ka_kmod.h"

#define OBJECTS 192
#define FREED   4
#define WORDS   8
#define POISON  0x4141414141414140ul
#define BYTES   2048

static unsigned int freelist_at, counters_at, slab_cache_at, offset_at;
module_param(freelist_at, uint, 0444);
module_param(counters_at, uint, 0444);
module_param(slab_cache_at, uint, 0444);
module_param(offset_at, uint, 0444);
/* Of kmem_cache.random; 0: free pointers are plain. */
static unsigned int random_at;
module_param(random_at, uint, 0444);
/* Of the pointer to the first node, and of nr_partial in a node. */
static unsigned int node_at, nr_partial_at;
module_param(node_at, uint, 0444);
module_param(nr_partial_at, uint, 0444);
/* 0: the cache of its own; 1: that of kmalloc(). */
static unsigned int in;
module_param(in, uint, 0644);

/* A slab with FREED free objects, and one of its objects in use. */
struct victim {
    char *slab;
    void *live;
};

static struct set {
    const char *name;
    struct kmem_cache *cache;
    void *object[OBJECTS];
    struct victim victim[2];
} sets[] = { { .name = "own" }, { .name = "kmalloc" } };

static struct word {
    unsigned long *at, old;
} words[WORDS];
static unsigned int n_words;

/* ---- the allocator's words ----------------------------------------------- */

static void change(void *at, unsigned long value)
{
    struct word *w = &words[n_words++];

    w->at = at;
    w->old = READ_ONCE(*w->at);
    WRITE_ONCE(*w->at, value);
}

static void repair(void)
{
    while (n_words) {
        struct word *w = &words[--n_words];

        WRITE_ONCE(*w->at, w->old);
    }
}

static unsigned long *slab_word(const void *object, unsigned int at)
{
    return (void *)((char *)virt_to_head_page(object) + at);
}

static unsigned long *next_at(const struct set *s, void *object)
{
    unsigned int offset = *(unsigned int *)((char *)s->cache + offset_at);

    return (void *)((char *)object + offset);
}

/* Without its tag, as KASAN of arm64 is not among the kernels of this test. */
static unsigned long code(const struct set *s, void *object,
                          unsigned long next)
{
    unsigned long random;

    if (!random_at) {
        return next;
    }
    random = *(unsigned long *)((char *)s->cache + random_at);
    return next ^ random ^ swab64((unsigned long)next_at(s, object));
}

static void *next_of(const struct set *s, void *object)
{
    return (void *)code(s, object, READ_ONCE(*next_at(s, object)));
}

static void link_to(const struct set *s, void *object, const void *next)
{
    change(next_at(s, object), code(s, object, (unsigned long)next));
}

static void *first_of(const struct victim *v)
{
    return (void *)READ_ONCE(*slab_word(v->slab, freelist_at));
}

static void *last_of(const struct set *s, const struct victim *v)
{
    void *at = first_of(v), *next;

    while (at && (next = next_of(s, at))) {
        at = next;
    }
    return at;
}

/* ---- damages ------------------------------------------------------------- */

/* Write to a free object, as a use after free does. */
static void *bad_next(struct set *s, struct victim *v)
{
    void *second = next_of(s, first_of(v));

    change(next_at(s, second), POISON);
    return second;
}

static void *bad_cycle(struct set *s, struct victim *v)
{
    void *last = last_of(s, v);

    link_to(s, last, first_of(v));
    return last;
}

static void *bad_live(struct set *s, struct victim *v)
{
    link_to(s, v->live, NULL);
    link_to(s, last_of(s, v), v->live);
    return v->live;
}

/* Free a live object by the list alone: nobody sees a free. */
static void *bad_push(struct set *s, struct victim *v)
{
    link_to(s, v->live, first_of(v));
    change(slab_word(v->slab, freelist_at), (unsigned long)v->live);
    change(slab_word(v->slab, counters_at),
           READ_ONCE(*slab_word(v->slab, counters_at)) - 1);
    return v->live;
}

/* Free the second object again: it becomes the first, too. */
static void *bad_twice(struct set *s, struct victim *v)
{
    void *first = first_of(v), *second = next_of(s, first);

    link_to(s, second, first);
    change(slab_word(v->slab, freelist_at), (unsigned long)second);
    return first;
}

/* The list of one slab continues in the other. */
static void *bad_other(struct set *s, struct victim *v)
{
    void *last = last_of(s, v);

    link_to(s, last, first_of(v + 1));
    return last;
}

/* The list of a slab begins in the other. */
static void *bad_head(struct set *s, struct victim *v)
{
    change(slab_word(v->slab, freelist_at), (unsigned long)first_of(v + 1));
    return v->slab;
}

/* The low 16 bits of the counters are those in use. */
static void *bad_count(struct set *s, struct victim *v)
{
    change(slab_word(v->slab, counters_at),
           READ_ONCE(*slab_word(v->slab, counters_at)) - 1);
    return v->slab;
}

static void *bad_cache(struct set *s, struct victim *v)
{
    change(slab_word(v->slab, slab_cache_at),
           (unsigned long)sets[s == sets].cache);
    return v->slab;
}

static void *bad_partial(struct set *s, struct victim *v)
{
    char *node = *(char **)((char *)s->cache + node_at);

    change(node + nr_partial_at,
           READ_ONCE(*(unsigned long *)(node + nr_partial_at)) + 1);
    return v->slab;
}

static const struct damage {
    const char *name;
    void *(*make)(struct set *s, struct victim *v);
} damages[] = {
    { "next", bad_next }, { "cycle", bad_cycle }, { "live", bad_live },
    { "push", bad_push }, { "twice", bad_twice }, { "other", bad_other },
    { "head", bad_head }, { "count", bad_count }, { "cache", bad_cache },
    { "partial", bad_partial },
};

static void make(const struct damage *d, struct set *s)
{
    void *at = d->make(s, s->victim);

    pr_info("ka_bad_slab: damage=%s cache=%px slab=%px at=%px\n", d->name,
            s->cache, s->victim[0].slab, at);
}

static int set_damage(const char *text, const struct kernel_param *kp)
{
    unsigned int i;

    if (n_words || in >= ARRAY_SIZE(sets)) {
        return -EBUSY;
    }
    for (i = 0; i < ARRAY_SIZE(damages); i++) {
        if (sysfs_streq(damages[i].name, text)) {
            make(&damages[i], &sets[in]);
            return 0;
        }
    }
    return -EINVAL;
}

static int set_repair(const char *text, const struct kernel_param *kp)
{
    repair();
    return 0;
}

static const struct kernel_param_ops damage_ops = { .set = set_damage };
module_param_cb(damage, &damage_ops, NULL, 0200);
static const struct kernel_param_ops repair_ops = { .set = set_repair };
module_param_cb(repair, &repair_ops, NULL, 0200);

/* ---- objects ------------------------------------------------------------- */

static char *slab_of(const void *object)
{
    return page_address(virt_to_head_page(object));
}

/* Objects of other caches may be among those of the kmalloc cache. */
static unsigned int count(const struct set *s, const char *slab)
{
    unsigned int n = 0, i;

    for (i = 0; i < OBJECTS; i++) {
        n += s->object[i] && slab_of(s->object[i]) == slab;
    }
    return n;
}

/* Free FREED objects of a slab, and keep the last. */
static void empty(struct set *s, struct victim *v, char *slab)
{
    unsigned int n = 0, i;

    v->slab = slab;
    for (i = 0; i < OBJECTS; i++) {
        if (!s->object[i] || slab_of(s->object[i]) != slab) {
            continue;
        }
        if (n++ < FREED) {
            kfree(s->object[i]);
            s->object[i] = NULL;
        } else {
            v->live = s->object[i];
        }
    }
}

/* Choose two slabs, not the first, which others may use. */
static int choose(struct set *s)
{
    unsigned int found = 0, i;

    for (i = OBJECTS / 4; i < OBJECTS && found < 2; i++) {
        char *slab = s->object[i] ? slab_of(s->object[i]) : NULL;

        if (slab && count(s, slab) > FREED + 2 &&
            (!found || slab != s->victim[0].slab)) {
            empty(s, &s->victim[found++], slab);
        }
    }
    return found == 2 ? 0 : -ENOENT;
}

static int fill(struct set *s)
{
    unsigned int i;

    for (i = 0; i < OBJECTS; i++) {
        s->object[i] = s->cache ? kmem_cache_alloc(s->cache, GFP_KERNEL) :
                       kmalloc(BYTES, GFP_KERNEL | __GFP_RECLAIMABLE);
        if (!s->object[i]) {
            return -ENOMEM;
        }
    }
    s->cache = (void *)*slab_word(s->object[0], slab_cache_at);
    if (choose(s)) {
        return -ENOENT;
    }
    kmem_cache_shrink(s->cache);
    return first_of(&s->victim[0]) && first_of(&s->victim[1]) ? 0 : -EBUSY;
}

/* The objects have a constructor, so the cache is merged with none. */
static void init_object(void *at)
{
    memset(at, 0, 8);
}

static int __init ka_bad_slab_init(void)
{
    unsigned int i;
    int err = 0;

    sets[0].cache = kmem_cache_create("ka_bad_slab", 200, 0, 0, init_object);
    if (!sets[0].cache) {
        return -ENOMEM;
    }
    for (i = 0; i < ARRAY_SIZE(sets) && !err; i++) {
        err = fill(&sets[i]);
        pr_info("ka_bad_slab: set=%s cache=%px slab=%px error=%d\n",
                sets[i].name, sets[i].cache, sets[i].victim[0].slab, err);
    }
    return err;
}

KA_MODULE_STAYS(ka_bad_slab_init, "damages the lists of free objects");
