/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka_leaks: very many objects that something refers to, each in one of the
 * ways that kernels do it, and twenty (riscv64: 21) that nothing refers to any
 * more. These are printed:
 *
 *   ka_leaks: KIND=ADDRESS
 *
 * Unloading frees what is not lost.
 */
#include <linux/completion.h>
#include <linux/hashtable.h>
#include <linux/init.h>
#include <linux/kthread.h>
#include <linux/list.h>
#include <linux/percpu.h>
#include <linux/rbtree.h>
#include <linux/rcupdate.h>
#include <linux/rculist.h>
#include <linux/sched.h>
#include <linux/vmalloc.h>
#include <linux/xarray.h>

#ifdef CONFIG_RISCV
#include <asm/asm-extable.h>
#endif

#include "ka_kmod.h"

#define USED_BYTES (2 << 20)    /* of each size, before there is fresh memory */

static int objects = 100000;
module_param(objects, int, 0444);

struct object {
    unsigned long key;
    struct list_head link;
    struct rb_node node;
    struct hlist_node hash;
    struct rcu_head rcu;
    void *other;
};

static LIST_HEAD(the_list);
static LIST_HEAD(the_rcu_list);
static LIST_HEAD(the_used);
static struct rb_root the_tree = RB_ROOT;
static DEFINE_HASHTABLE(the_hash, 10);
static DEFINE_XARRAY(the_xarray);
static DEFINE_PER_CPU(struct list_head, the_lists);
static DEFINE_PER_CPU(void *, the_pointer);
static void **tagged;           /* pointers with bits set */
static unsigned long n_tagged;
static struct kmem_cache *the_cache;
static struct task_struct *holder, *sleeper;
static DECLARE_COMPLETION(held);

/* ---- ways to be held ---------------------------------------------------- */

static KA_SITE struct object *make(unsigned long key)
{
    struct object *o = kzalloc(sizeof(*o), GFP_KERNEL);

    if (o) {
        o->key = key;
        INIT_LIST_HEAD(&o->link);
    }
    ka_site_end();
    return o;
}

static void insert(struct object *o)
{
    struct rb_node **at = &the_tree.rb_node, *parent = NULL;

    while (*at) {
        parent = *at;
        at = o->key < rb_entry(parent, struct object, node)->key ?
             &parent->rb_left : &parent->rb_right;
    }
    rb_link_node(&o->node, parent, at);
    rb_insert_color(&o->node, &the_tree);
}

/*
 * Nothing but their interiors is referred to, or tagged pointers are. Keys are
 * odd: every tenth number there would be one, and addresses of per-CPU memory
 * are such numbers.
 */
static int hold(unsigned long i)
{
    struct object *o = make(i * 2654435761u % 1000003 * 2 + 1);

    if (!o) {
        return -ENOMEM;
    }
    switch (i % 6) {
    case 0:
        list_add_tail(&o->link, &the_list);
        break;
    case 1:
        insert(o);
        break;
    case 2:
        hash_add(the_hash, &o->hash, o->key);
        break;
    case 3:
        return xa_err(xa_store(&the_xarray, i, o, GFP_KERNEL));
    case 4:
        list_add(&o->link, per_cpu_ptr(&the_lists, i / 6 %
                                                   nr_cpu_ids));
        break;
    case 5:
        tagged[n_tagged++] = (void *)((unsigned long)o | (i / 6 & 7));
        break;
    }
    return 0;
}

/* A thread whose stack has the only pointer. */
static int hold_by_stack(void *unused)
{
    struct object *mine = make(1);
    struct object *volatile only = mine;

    if (mine) {
        mine->other = make(2);
    }
    mine = NULL;
    complete(&held);
    while (!kthread_should_stop()) {
        schedule_timeout_interruptible(HZ);
    }
    mine = only;
    if (mine) {
        kfree(mine->other);
    }
    kfree(mine);
    return 0;
}

/* ---- ways to be lost ---------------------------------------------------- */

static void lost(const char *kind, const void *p)
{
    pr_info("ka_leaks: %s=%px\n", kind, p);
}

/*
 * From memory that nobody has had: where a task was, say, its address may still
 * be in a stack or be a semaphore's last owner, which hides what lies there
 * from every scan. Free memory that was used is handed out first, and so is
 * held.
 */
static void *fresh(size_t size)
{
    for (size_t i = 0; i < USED_BYTES / size; i++) {
        struct list_head *used = kmalloc(size, GFP_KERNEL);

        if (!used) {
            return NULL;
        }
        list_add_tail(used, &the_used);
    }
    return kzalloc(size, GFP_KERNEL);
}

static KA_SITE void lose_plain(void)
{
    lost("kmalloc-24", fresh(24));
    lost("kmalloc-200", fresh(200));
    lost("kmalloc-4000", fresh(4000));
    lost("kmalloc-large", fresh(20000));
    lost("cache", kmem_cache_alloc(the_cache, GFP_KERNEL));
    lost("vmalloc", vzalloc(30000));
    ka_site_end();
}

KA_SITE_DOES(lose_percpu, (void),
             lost("percpu", (void __force *)__alloc_percpu(104, 8)))

static KA_SITE void lose_cycle(void)
{
    struct object *a = make(10), *b = make(11), *ring = make(12);

    a->other = b;
    b->other = a;
    lost("cycle-a", a);
    lost("cycle-b", b);
    lost("ring", ring);         /* its list is itself */
    ka_site_end();
}

static KA_SITE void lose_chain(void)
{
    struct object *a = make(20), *b = make(21), *c = make(22);

    list_add(&b->link, &a->link);
    list_add(&c->link, &b->link);
    lost("chain-head", a);
    lost("chain-middle", b);
    lost("chain-end", c);
    ka_site_end();
}

/* Each was held for a time, and is taken out. */
static KA_SITE void lose_held(void)
{
    struct object *o = make(2000000);

    insert(o);
    rb_erase(&o->node, &the_tree);
    lost("rbtree", o);
    o = make(2000001);
    list_add(&o->link, &the_list);
    list_del(&o->link);
    lost("list", o);
    o = make(2000002);
    hash_add(the_hash, &o->hash, o->key);
    hash_del(&o->hash);
    lost("hash", o);
    o = make(2000003);
    xa_store(&the_xarray, 2000003, o, GFP_KERNEL);
    xa_erase(&the_xarray, 2000003);
    lost("xarray", o);
    ka_site_end();
}

static KA_SITE void lose_rcu(void)
{
    struct object *o = make(2000004);

    list_add_rcu(&o->link, &the_rcu_list);
    list_del_rcu(&o->link);
    synchronize_rcu();
    lost("rcu", o);             /* and now it should be freed */
    ka_site_end();
}

static KA_SITE void lose_by_cpu(void)
{
    per_cpu(the_pointer, 0) = make(2000005);
    lost("cpu-variable", per_cpu(the_pointer, 0));
    per_cpu(the_pointer, 0) = NULL;
    ka_site_end();
}

static int lose_by_task(void *unused)
{
    lost("task", make(2000006));
    complete(&held);
    while (!kthread_should_stop()) {
        schedule_timeout_interruptible(HZ);
    }
    return 0;
}

#ifdef CONFIG_RISCV
/*
 * Fault with the address in registers, and go on. At the entry of an exception
 * of the kernel, riscv64 saves a0 to a2 in thread_info, and does not clear them
 * there (new_vmalloc_check in arch/riscv/kernel/entry.S, since 6.12).
 */
static KA_SITE void fault_with(const void *p)
{
    asm volatile("mv a0, %0\n"
                 "mv a1, %0\n"
                 "mv a2, %0\n"
                 "1: ld t0, -8(zero)\n"
                 "2:\n"
                 _ASM_EXTABLE(1b, 2b)
                 : : "r" (p) : "a0", "a1", "a2", "t0", "memory");
    ka_site_end();
}

/* Later frames have holes, in which old addresses would stay. */
static KA_SITE void clear_stack(void)
{
    char below[1024];

    memset(below, 0, sizeof(below));
    barrier_data(below);
    ka_site_end();
}

static KA_SITE void lose_in_registers(void)
{
    struct object *o = make(2000007);

    lost("registers", o);
    fault_with(o);
    ka_site_end();
}

/* The thread sleeps then, so no other exception replaces what is saved. */
static int lose_by_fault(void *unused)
{
    lose_in_registers();
    clear_stack();
    complete(&held);
    while (!kthread_should_stop()) {
        schedule_timeout_interruptible(HZ);
    }
    return 0;
}
#endif

/* Not lost: it waits for the end of a grace period. */
static void queue(void)
{
    for (int i = 0; i < 100; i++) {
        struct object *o = make(i);

        if (o) {
            kfree_rcu(o, rcu);
        }
    }
}

/* ---- the module --------------------------------------------------------- */

static int run_task(int (*fn)(void *), struct task_struct **task)
{
    reinit_completion(&held);
    *task = kthread_run(fn, NULL, "ka_leaks");
    if (IS_ERR(*task)) {
        return PTR_ERR(*task);
    }
    wait_for_completion(&held);
    return 0;
}

static int hold_all(void)
{
    int err = 0, cpu;

    for_each_possible_cpu(cpu) {
        INIT_LIST_HEAD(per_cpu_ptr(&the_lists, cpu));
    }
    tagged = vzalloc((objects / 6 + 1) * sizeof(*tagged));
    the_cache = kmem_cache_create("ka_leaks", 600, 0, SLAB_HWCACHE_ALIGN,
                                  NULL);
    if (!tagged || !the_cache) {
        return -ENOMEM;
    }
    for (unsigned long i = 0; !err && i < objects; i++) {
        err = hold(i);
    }
    return err ? err : run_task(hold_by_stack, &holder);
}

static int __init ka_leaks_init(void)
{
    struct task_struct *loser;
    int err = hold_all();

    err = err ? err : run_task(lose_by_task, &loser);
    if (err) {
        return err;
    }
    kthread_stop(loser);
#ifdef CONFIG_RISCV
    err = run_task(lose_by_fault, &sleeper);
    if (err) {
        return err;
    }
#endif
    lose_plain();
    lose_percpu();
    lose_cycle();
    lose_chain();
    lose_held();
    lose_rcu();
    lose_by_cpu();
    queue();
    pr_info("ka_leaks: done\n");
    return 0;
}

static void __exit ka_leaks_exit(void)
{
    struct list_head *used, *after;
    struct object *o, *next;
    struct hlist_node *tmp;
    struct rb_node *node;
    unsigned long i;
    int cpu;

    kthread_stop(holder);
    if (sleeper) {
        kthread_stop(sleeper);
    }
    list_for_each_safe(used, after, &the_used) {
        kfree(used);
    }
    list_for_each_entry_safe(o, next, &the_list, link) {
        kfree(o);
    }
    while ((node = rb_first(&the_tree))) {
        rb_erase(node, &the_tree);
        kfree(rb_entry(node, struct object, node));
    }
    hash_for_each_safe(the_hash, cpu, tmp, o, hash) {
        kfree(o);
    }
    xa_for_each(&the_xarray, i, o) {
        kfree(o);
    }
    xa_destroy(&the_xarray);
    for_each_possible_cpu(cpu) {
        list_for_each_entry_safe(o, next, per_cpu_ptr(&the_lists, cpu),
                                 link) {
            kfree(o);
        }
    }
    while (n_tagged) {
        kfree((void *)((unsigned long)tagged[--n_tagged] & ~7ul));
    }
    vfree(tagged);
}

KA_MODULE(ka_leaks_init, ka_leaks_exit,
          "objects that are held in every way, and twenty leaks");
