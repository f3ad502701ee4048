/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka_rules: calls every kind of allocator function once, rightly, and prints
 * what a tracer must have seen, one line an event, in the order of the calls:
 *
 *   ka_rules: CASE alloc  va=A req=N act=N layer=L fn=F    owned from here on
 *   ka_rules: CASE free   va=A fn=F                        released
 *   ka_rules: CASE resize va=A req=N fn=F                  krealloc in place
 *   ka_rules: CASE queue  va=A fn=F                        kfree_rcu
 *   ka_rules: CASE later  va=A                             released by another
 *   ka_rules: CASE defer  va=A fn=F                        free; since 6.3
 *                                                          queue and later
 *   ka_rules: CASE none   what=W fn=F                      no event at all
 *   ka_rules: CASE keep   va=A                             stays allocated
 *
 * F is the function whose call it was: the first frame of the event's stack
 * that lies in this module. act is ksize(), 0 where that is not defined.
 * "ka_rules: done" is the last line. Printing allocates nothing of its own
 * that could be mistaken for a case: it has no frame in a function ka_rule_*.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/interrupt.h>
#include <linux/irq_work.h>
#include <linux/kprobes.h>
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>
#include <linux/string.h>
#include <linux/timer.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>

#include "ka_kmod.h"

/* 6.3 renamed the one-argument form. */
#ifdef kfree_rcu_mightsleep
#define one_arg_kvfree_rcu(p) kvfree_rcu_mightsleep(p)
#else
#define one_arg_kvfree_rcu(p) kvfree_rcu(p)
#endif

static void say_alloc(const char *name, const void *va, size_t req,
                      size_t act, const char *layer, const char *fn)
{
    pr_info("ka_rules: %s alloc va=%px req=%zu act=%zu layer=%s fn=%s\n",
            name, va, req, act, layer, fn);
}

static void say(const char *name, const char *what, const void *va,
                const char *fn)
{
    pr_info("ka_rules: %s %s va=%px fn=%s\n", name, what, va, fn);
}

static void say_none(const char *name, const char *what, const char *fn)
{
    pr_info("ka_rules: %s none what=%s fn=%s\n", name, what, fn);
}

#define SAY_ALLOC(name, va, req, layer) \
    say_alloc(name, va, req, ksize(va), layer, __func__)
#define SAY(name, what, va) say(name, what, va, __func__)

/* ---- kmalloc and its like ---------------------------------------------- */

static KA_SITE void ka_rule_kmalloc_const(void)
{
    void *p = kmalloc(100, GFP_KERNEL);

    SAY_ALLOC("kmalloc-const", p, 100, "kmalloc");
    kfree(p);
    SAY("kmalloc-const", "free", p);
}

static KA_SITE void ka_rule_kmalloc_var(size_t size)
{
    void *p = kmalloc(size, GFP_KERNEL);
    void *q = kmalloc_node(size + 1, GFP_KERNEL, 0);
    void *r = kcalloc(3, size, GFP_KERNEL);

    SAY_ALLOC("kmalloc-var", p, size, "kmalloc");
    SAY_ALLOC("kmalloc-node", q, size + 1, "kmalloc");
    SAY_ALLOC("kcalloc", r, 3 * size, "kmalloc");
    kfree(p);
    kfree(q);
    kfree_sensitive(r);
    SAY("kmalloc-var", "free", p);
    SAY("kmalloc-node", "free", q);
    SAY("kfree-sensitive", "free", r);
}

static KA_SITE void ka_rule_kmalloc_keep(size_t size)
{
    void *p = kmalloc(size, GFP_KERNEL);

    SAY_ALLOC("kmalloc-keep", p, size, "kmalloc");
    SAY("kmalloc-keep", "keep", p);
}

static KA_SITE void ka_rule_large(size_t size)
{
    void *p = kmalloc(3 * PAGE_SIZE, GFP_KERNEL);
    void *q = kmalloc(size, GFP_KERNEL);
    void *r = kmalloc_node(size, GFP_KERNEL, 0);

    SAY_ALLOC("large-const", p, 3 * PAGE_SIZE, "large");
    SAY_ALLOC("large-var", q, size, "large");
    SAY_ALLOC("large-node", r, size, "large");
    kfree(p);
    kfree(q);
    SAY("large-const", "free", p);
    SAY("large-var", "free", q);
    SAY("large-node", "keep", r);
}

static KA_SITE void ka_rule_nothing(size_t zero, size_t huge)
{
    kfree(NULL);
    say_none("kfree-null", "null", __func__);
    kfree(kmalloc(zero, GFP_KERNEL));
    say_none("kmalloc-zero", "zero-size", __func__);
    kfree(kmalloc(huge, GFP_KERNEL | __GFP_NOWARN));
    say_none("kmalloc-fails", "failed", __func__);
    vfree(__vmalloc(huge << 24, GFP_KERNEL | __GFP_NOWARN));
    say_none("vmalloc-fails", "failed", __func__);
    kvfree(NULL);
    vfree(NULL);
    say_none("vfree-null", "null", __func__);
}

static KA_SITE void ka_rule_krealloc(size_t size)
{
    void *p = krealloc(NULL, size, GFP_KERNEL);
    void *q;

    SAY_ALLOC("krealloc-new", p, size, "kmalloc");
    q = krealloc(p, size + 20, GFP_KERNEL);
    if (q == p) {
        pr_info("ka_rules: krealloc-inplace resize va=%px req=%zu fn=%s\n",
                q, size + 20, __func__);
    }
    p = q;
    q = krealloc(p, size * 10, GFP_KERNEL);
    SAY_ALLOC("krealloc-moved", q, size * 10, "kmalloc");
    SAY("krealloc-moved", "free", p);
    p = krealloc(q, size * 10 - 1, GFP_KERNEL | __GFP_ZERO);
    if (q == p) {
        pr_info("ka_rules: krealloc-shrunk resize va=%px req=%zu fn=%s\n",
                q, size * 10 - 1, __func__);
    }
    q = krealloc(p, 0, GFP_KERNEL);
    SAY("krealloc-zero", "free", p);
    q = krealloc(q, size, GFP_KERNEL);
    SAY_ALLOC("krealloc-of-zero", q, size, "kmalloc");
    kfree_sensitive(q);
    SAY("krealloc-of-zero", "free", q);
}

static KA_SITE void ka_rule_krealloc_large(size_t pages)
{
    void *p = krealloc(NULL, pages * PAGE_SIZE, GFP_KERNEL);
    void *q;

    SAY_ALLOC("krealloc-large", p, pages * PAGE_SIZE, "large");
    q = krealloc(p, 4 * pages * PAGE_SIZE, GFP_KERNEL);
    SAY_ALLOC("krealloc-larger", q, 4 * pages * PAGE_SIZE, "large");
    SAY("krealloc-larger", "free", p);
    kfree_sensitive(q);
    SAY("kfree-sensitive-large", "free", q);
}

/* Its events are no rules, but if one is missing, others are errors. */
static KA_SITE void krealloc_often(unsigned int times)
{
    void *block[8] = {}, *p;
    unsigned int i;

    for (i = 0; i < times; i++) {
        p = krealloc(block[i % 8], 37 * (i % 23) + i % 5 * PAGE_SIZE,
                     GFP_KERNEL);
        block[i % 8] = ZERO_OR_NULL_PTR(p) ? NULL : p;
    }
    for (i = 0; i < 8; i++) {
        kfree_sensitive(block[i]);
    }
    ka_site_end();
}

static KA_SITE void ka_rule_dup(const char *text)
{
    char *p = kmemdup(text, 40, GFP_KERNEL);
    char *q = kstrdup(text, GFP_KERNEL);
    char *r = kasprintf(GFP_KERNEL, "%s%s", text, text);

    SAY_ALLOC("kmemdup", p, 40, "kmalloc");
    SAY_ALLOC("kstrdup", q, strlen(text) + 1, "kmalloc");
    SAY_ALLOC("kasprintf", r, 2 * strlen(text) + 1, "kmalloc");
    kfree(p);
    kfree(q);
    kfree(r);
    SAY("kmemdup", "free", p);
    SAY("kstrdup", "free", q);
    SAY("kasprintf", "free", r);
}

/* ---- caches ------------------------------------------------------------ */

#define OBJ_SIZE 200
#define BULK 24

static void obj_init(void *p)
{
    memset(p, 0, OBJ_SIZE);     /* a constructor keeps it from merging */
}

static KA_SITE void ka_rule_cache(struct kmem_cache *cache)
{
    void *p = kmem_cache_alloc(cache, GFP_KERNEL);
    void *q = kmem_cache_alloc_node(cache, GFP_KERNEL, 0);

    SAY_ALLOC("cache", p, OBJ_SIZE, "cache");
    SAY_ALLOC("cache-node", q, OBJ_SIZE, "cache");
    kmem_cache_free(cache, p);
    kfree(q);
    SAY("cache", "free", p);
    SAY("cache-kfree", "free", q);
}

static KA_SITE void ka_rule_bulk(struct kmem_cache *cache)
{
    void *v[BULK], *was[BULK];
    int i;

    /* All or nothing; how many, or since 7.1 whether. */
    if (!kmem_cache_alloc_bulk(cache, GFP_KERNEL, BULK, v)) {
        say_none("bulk", "failed", __func__);
        return;
    }
    for (i = 0; i < BULK; i++) {
        SAY_ALLOC("bulk", v[i], OBJ_SIZE, "cache");
    }
    memcpy(was, v, sizeof(was));    /* older kernels clear what they free */
    kmem_cache_free_bulk(cache, BULK, v);
    for (i = BULK - 1; i >= 0; i--) {
        SAY("bulk", "free", was[i]);
    }
}

static KA_SITE void ka_rule_kfree_bulk(size_t size)
{
    void *v[BULK], *was[BULK];
    int i;

    for (i = 0; i < BULK; i++) {
        v[i] = kmalloc(size, GFP_KERNEL);
        SAY_ALLOC("kfree-bulk", v[i], size, "kmalloc");
    }
    memcpy(was, v, sizeof(was));
    kfree_bulk(BULK, v);
    for (i = 0; i < BULK; i++) {
        SAY("kfree-bulk", "free", was[i]);
    }
}

/* Not a rule: without tracepoints it ends with a jump to kfree(). */
KA_SITE_DOES(destroy_cache, (struct kmem_cache *cache),
             kmem_cache_destroy(cache))

/* A cache that is destroyed, and one by the same name after it. */
static KA_SITE void ka_rule_cache_again(void)
{
    struct kmem_cache *cache;
    void *p;
    int i;

    for (i = 0; i < 2; i++) {
        cache = kmem_cache_create("ka_rules_again", OBJ_SIZE + 64 * i, 0, 0,
                                  obj_init);
        p = kmem_cache_alloc(cache, GFP_KERNEL);
        SAY_ALLOC("cache-again", p, OBJ_SIZE + 64 * i, "cache");
        kmem_cache_free(cache, p);
        SAY("cache-again", "free", p);
        destroy_cache(cache);
    }
}

/* ---- kvmalloc, vmalloc, per-cpu ---------------------------------------- */

static KA_SITE void ka_rule_kvmalloc(size_t small, size_t big)
{
    void *p = kvmalloc(small, GFP_KERNEL);
    void *q = kvmalloc(big, GFP_KERNEL);

    SAY_ALLOC("kvmalloc-small", p, small, "kmalloc");
    say_alloc("kvmalloc-big", q, big, PAGE_ALIGN(big), "vmalloc", __func__);
    kvfree(p);
    kvfree(q);
    SAY("kvmalloc-small", "free", p);
    SAY("kvmalloc-big", "free", q);
}

static KA_SITE void ka_rule_vmalloc(size_t size)
{
    void *p = vmalloc(size);
    void *q = vzalloc(size);
    void *r = vmalloc_user(size);
    void *s = __vmalloc(size, GFP_KERNEL);

    say_alloc("vmalloc", p, size, PAGE_ALIGN(size), "vmalloc", __func__);
    say_alloc("vzalloc", q, size, PAGE_ALIGN(size), "vmalloc", __func__);
    say_alloc("vmalloc-user", r, size, PAGE_ALIGN(size), "vmalloc", __func__);
    say_alloc("__vmalloc", s, size, PAGE_ALIGN(size), "vmalloc", __func__);
    vfree(p);
    vfree(q);
    vfree(r);
    SAY("vmalloc", "free", p);
    SAY("vzalloc", "free", q);
    SAY("vmalloc-user", "free", r);
    SAY("__vmalloc", "keep", s);
}

/* A macro since 6.10, when allocation profiling came. */
static KA_SITE void ka_rule_vcalloc(size_t n, size_t size)
{
#ifdef vcalloc
    void *p = vcalloc(n, size);

    say_alloc("vcalloc", p, n * size, PAGE_ALIGN(n * size), "vmalloc",
              __func__);
    vfree(p);
    SAY("vcalloc", "free", p);
#endif
}

static void set_killed(bool killed)
{
    spin_lock_irq(&current->sighand->siglock);
    if (killed) {
        sigaddset(&current->pending.signal, SIGKILL);
        set_thread_flag(TIF_SIGPENDING);
    } else {
        sigdelset(&current->pending.signal, SIGKILL);
        recalc_sigpending();
    }
    spin_unlock_irq(&current->sighand->siglock);
}

/* Of a killed process: huge pages are given up at once, the area is given
 * back, and small pages are tried (since 6.3 by vfree(), which is no event:
 * nobody was handed that area). */
static KA_SITE void ka_rule_killed(size_t size)
{
    void *p;

    set_killed(true);
    p = kvmalloc(size, GFP_KERNEL | __GFP_NOWARN);
    set_killed(false);
    if (!p) {
        say_none("kvmalloc-killed", "failed", __func__);
        return;
    }
    say_alloc("kvmalloc-killed", p, size, PAGE_ALIGN(size), "vmalloc",
              __func__);
    kvfree(p);
    SAY("kvmalloc-killed", "free", p);
}

static KA_SITE void ka_rule_percpu(void)
{
    u64 __percpu *p = alloc_percpu(u64);
    void __percpu *q = __alloc_percpu(100, 32);

    say_alloc("percpu", (__force void *)p, 8, 0, "percpu", __func__);
    say_alloc("percpu-100", (__force void *)q, 100, 0, "percpu", __func__);
    free_percpu(p);
    SAY("percpu", "free", (__force void *)p);
    SAY("percpu-100", "keep", (__force void *)q);
}

/* ---- RCU --------------------------------------------------------------- */

struct rcu_obj {
    char fill[300];
    struct rcu_head rcu;
};

static KA_SITE void ka_rule_kfree_rcu(void)
{
    struct rcu_obj *p = kmalloc(sizeof(*p), GFP_KERNEL);
    struct rcu_obj *q = kmalloc(sizeof(*q), GFP_KERNEL);

    SAY_ALLOC("kfree-rcu", p, sizeof(*p), "kmalloc");
    SAY_ALLOC("kvfree-rcu-1", q, sizeof(*q), "kmalloc");
    kfree_rcu(p, rcu);
    SAY("kfree-rcu", "queue", p);
    one_arg_kvfree_rcu(q);
    SAY("kvfree-rcu-1", "queue", q);
    SAY("kfree-rcu", "later", p);
    SAY("kvfree-rcu-1", "later", q);
}

/* For any context, since 6.18: from there, all it may do is to try. */
#ifdef kmalloc_nolock
static KA_SITE void ka_rule_nolock(size_t size)
{
    void *p = kmalloc_nolock(size, 0, NUMA_NO_NODE);
    void *q = kmalloc_nolock(size, 0, NUMA_NO_NODE);

    if (!p || !q) {
        say_none("nolock", "failed", __func__);
        return;
    }
    SAY_ALLOC("nolock", p, size, "kmalloc");
    SAY_ALLOC("nolock-kfree", q, size, "kmalloc");
    kfree_nolock(p);
    SAY("nolock", "free", p);
    kfree(q);
    SAY("nolock-kfree", "free", q);
}
#else
static void ka_rule_nolock(size_t size)
{
}
#endif

/* Since 7.3. One of a slab's, and a large one, which is always deferred. */
#ifdef kfree_rcu_nolock
struct nolock_obj {
    char fill[200];
    struct kvfree_rcu_head rcu;
};

static KA_SITE void ka_rule_kfree_rcu_nolock(size_t large)
{
    struct nolock_obj *p = kmalloc(sizeof(*p), GFP_KERNEL);
    struct nolock_obj *q = kmalloc(large, GFP_KERNEL);

    SAY_ALLOC("rcu-nolock", p, sizeof(*p), "kmalloc");
    SAY_ALLOC("rcu-nolock-large", q, large, "large");
    kfree_rcu_nolock(p, rcu);
    SAY("rcu-nolock", "queue", p);
    kfree_rcu_nolock(q, rcu);
    SAY("rcu-nolock-large", "queue", q);
    SAY("rcu-nolock", "later", p);
    SAY("rcu-nolock-large", "later", q);
}
#else
static void ka_rule_kfree_rcu_nolock(size_t large)
{
}
#endif

static KA_SITE void ka_rule_kvfree_rcu_vmalloc(size_t size)
{
    struct rcu_obj *p = vmalloc(size);

    say_alloc("kvfree-rcu-vm", p, size, PAGE_ALIGN(size), "vmalloc",
              __func__);
    kvfree_rcu(p, rcu);
    SAY("kvfree-rcu-vm", "queue", p);
    SAY("kvfree-rcu-vm", "later", p);
}

/* ---- other contexts ---------------------------------------------------- */

static DECLARE_COMPLETION(ran);
static void *from_context, *to_context;

static KA_SITE void ka_rule_in_timer(struct timer_list *t)
{
    from_context = kmalloc(72, GFP_ATOMIC);
    complete(&ran);
}

static KA_SITE void ka_rule_in_irq_work(struct irq_work *w)
{
    from_context = kmalloc(73, GFP_ATOMIC);
    vfree(to_context);
    complete(&ran);
}

static KA_SITE void ka_rule_in_work(struct work_struct *w)
{
    from_context = kmalloc(74, GFP_KERNEL);
    complete(&ran);
}

static KA_SITE int ka_rule_in_kprobe(struct kprobe *kp, struct pt_regs *regs)
{
    from_context = kmalloc(75, GFP_ATOMIC);
    return 0;
}

static KA_SITE void ka_rule_probed(void)
{
    barrier();
}

static KA_SITE void ka_rule_free_it(const char *name, void *p)
{
    kfree(p);
    SAY(name, "free", p);
}

static void finish_context(const char *name, size_t size, const char *fn)
{
    say_alloc(name, from_context, size, ksize(from_context), "kmalloc", fn);
    ka_rule_free_it(name, from_context);
    reinit_completion(&ran);
}

static struct timer_list timer;
static struct irq_work irq_work;
static DECLARE_WORK(work, ka_rule_in_work);

static KA_SITE void ka_rule_vfree_in_irq(size_t size)
{
    to_context = vmalloc(size);
    say_alloc("vfree-in-irq", to_context, size, PAGE_ALIGN(size), "vmalloc",
              __func__);
    init_irq_work(&irq_work, ka_rule_in_irq_work);
    irq_work_queue(&irq_work);
    wait_for_completion(&ran);
    say("vfree-in-irq", "defer", to_context, "ka_rule_in_irq_work");
}

static void run_contexts(void)
{
    struct kprobe kp = {
        .symbol_name = "ka_rule_probed",
        .pre_handler = ka_rule_in_kprobe,
    };

    timer_setup(&timer, ka_rule_in_timer, 0);
    mod_timer(&timer, jiffies + 1);
    wait_for_completion(&ran);
    finish_context("in-timer", 72, "ka_rule_in_timer");

    ka_rule_vfree_in_irq(2 * PAGE_SIZE);
    finish_context("in-irq", 73, "ka_rule_in_irq_work");

    schedule_work(&work);
    wait_for_completion(&ran);
    finish_context("in-work", 74, "ka_rule_in_work");

    if (!register_kprobe(&kp)) {
        ka_rule_probed();
        unregister_kprobe(&kp);
        finish_context("in-kprobe", 75, "ka_rule_in_kprobe");
    }
}

static int __init ka_rules_init(void)
{
    struct kmem_cache *cache;

    cache = kmem_cache_create("ka_rules", OBJ_SIZE, 0, 0, obj_init);
    if (!cache) {
        return -ENOMEM;
    }
    ka_rule_kmalloc_const();
    ka_rule_kmalloc_var(150);
    ka_rule_kmalloc_keep(500);
    ka_rule_large(5 * PAGE_SIZE);
    ka_rule_nothing(0, KMALLOC_MAX_SIZE * 2UL);
    ka_rule_krealloc(100);
    ka_rule_krealloc_large(3);
    krealloc_often(3000);
    ka_rule_dup("twenty-four characters, ..., and a tail to spare");
    ka_rule_cache(cache);
    ka_rule_bulk(cache);
    ka_rule_kfree_bulk(60);
    ka_rule_cache_again();
    ka_rule_kvmalloc(700, KMALLOC_MAX_SIZE + PAGE_SIZE + 1);
    ka_rule_vmalloc(3 * PAGE_SIZE + 17);
    ka_rule_vcalloc(3, PAGE_SIZE + 5);
    ka_rule_killed(2 * KMALLOC_MAX_SIZE);
    ka_rule_percpu();
    ka_rule_kfree_rcu();
    ka_rule_kvfree_rcu_vmalloc(2 * PAGE_SIZE);
    ka_rule_nolock(300);
    ka_rule_kfree_rcu_nolock(5 * PAGE_SIZE);
    run_contexts();
    /* What was queued is released by a grace period and a worker. */
    rcu_barrier();
    msleep(200);
    rcu_barrier();
    pr_info("ka_rules: done\n");
    return 0;
}

KA_MODULE_STAYS(ka_rules_init, "every rule of an allocation tracer, once");
