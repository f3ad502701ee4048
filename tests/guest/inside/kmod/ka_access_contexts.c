/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka_access: accesses in an interrupt, in a softirq, by a callback of RCU, by a
 * worker, by a BPF program and a function that it calls; and an access to what
 * a module that is gone has freed.
 */
#include <linux/completion.h>
#include <linux/filter.h>
#include <linux/interrupt.h>
#include <linux/irq_work.h>
#include <linux/skbuff.h>
#include <linux/version.h>
#include <linux/workqueue.h>

#include "ka_access.h"
#include "ka_access_lend.h"

/* What the functions of this file access. */
static u8 *stale;
static DECLARE_COMPLETION(accessed);

/* Free an object that the function @site will read. */
static bool free_for(const char *site)
{
    u8 *p = ka_access_take(ka_own);

    if (p) {
        ka_truth(site, KA_UAF, "r1", p + KA_SAFE, p, KA_OBJECT);
        reinit_completion(&accessed);
        stale = p + KA_SAFE;
        ka_access_give(ka_own, p);
    }
    return p;
}

static KA_SITE void ka_site_irq(struct irq_work *unused)
{
    READ_ONCE(*stale);
    complete(&accessed);
}

KA_CASE(in_irq)
{
    struct irq_work work;

    if (!free_for("ka_site_irq")) {
        return -ENOMEM;
    }
    init_irq_work(&work, ka_site_irq);
    irq_work_queue(&work);
    irq_work_sync(&work);
    return 0;
}

static KA_SITE void ka_site_softirq(struct tasklet_struct *unused)
{
    READ_ONCE(*stale);
    complete(&accessed);
}

KA_CASE(in_softirq)
{
    static struct tasklet_struct tasklet;

    if (!free_for("ka_site_softirq")) {
        return -ENOMEM;
    }
    tasklet_setup(&tasklet, ka_site_softirq);
    tasklet_schedule(&tasklet);
    wait_for_completion(&accessed);
    tasklet_kill(&tasklet);
    return 0;
}

static struct rcu_head head;

static KA_SITE void ka_site_rcu(struct rcu_head *unused)
{
    READ_ONCE(*stale);
    complete(&accessed);
}

KA_CASE(in_rcu)
{
    if (!free_for("ka_site_rcu")) {
        return -ENOMEM;
    }
    call_rcu(&head, ka_site_rcu);
    wait_for_completion(&accessed);
    rcu_barrier();
    return 0;
}

static KA_SITE void ka_site_work(struct work_struct *unused)
{
    READ_ONCE(*stale);
    complete(&accessed);
}

KA_CASE(in_work)
{
    static DECLARE_WORK(work, ka_site_work);

    if (!free_for("ka_site_work")) {
        return -ENOMEM;
    }
    schedule_work(&work);
    flush_work(&work);
    return 0;
}

/* ---- BPF ----------------------------------------------------------------- */

#if defined(CONFIG_NET) && LINUX_VERSION_CODE >= KERNEL_VERSION(5, 15, 0)
static KA_SITE void ka_site_bpf(struct bpf_prog *program, struct sk_buff *skb)
{
    rcu_read_lock();
    bpf_prog_run(program, skb);
    rcu_read_unlock();
}

/* Run a program on a packet whose data are freed. */
static int run_on_stale(struct bpf_prog *program)
{
    struct sk_buff *skb = alloc_skb(128, GFP_KERNEL);
    unsigned char *data;

    if (!skb) {
        return -ENOMEM;
    }
    skb_put(skb, 64);
    data = skb->data;
    if (free_for("ka_site_bpf")) {
        skb->data = stale;
        ka_site_bpf(program, skb);
        skb->data = data;
    }
    kfree_skb(skb);
    return 0;
}

static int run_filter(struct sock_filter *filter, u16 len)
{
    struct sock_fprog_kern code = { .len = len, .filter = filter };
    struct bpf_prog *program;
    int error = bpf_prog_create(&program, &code);

    if (!error) {
        error = run_on_stale(program);
        bpf_prog_destroy(program);
    }
    return error;
}

/* An offset in a register: a function of the kernel reads the packet. */
KA_CASE(in_bpf_helper)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LDX | BPF_IMM, 0),
        BPF_STMT(BPF_LD | BPF_B | BPF_IND, 0),
        BPF_STMT(BPF_RET | BPF_A, 0),
    };
    int error = run_filter(filter, ARRAY_SIZE(filter));

    ka_site_end();
    return error;
}

/* A constant offset: the program itself reads it. */
KA_CASE(in_bpf_program)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0),
        BPF_STMT(BPF_RET | BPF_A, 0),
    };
    int error = run_filter(filter, ARRAY_SIZE(filter));

    ka_site_end();
    return error;
}
#endif

/* ---- a module that is gone ----------------------------------------------- */

/* A block of ka_access_gone, which has freed it and is unloaded. */
static u8 *lent;

struct kmem_cache *ka_access_cache(void)
{
    return ka_own;
}
EXPORT_SYMBOL_GPL(ka_access_cache);

void ka_access_lend(void *p)
{
    ka_truth("ka_case_of_gone", KA_UAF, "r1", p + KA_SAFE, p, KA_OBJECT);
    lent = p + KA_SAFE;
}
EXPORT_SYMBOL_GPL(ka_access_lend);

KA_CASE(of_gone)
{
    if (!lent) {
        return -ENODATA;
    }
    READ_ONCE(*lent);
    lent = NULL;
    return 0;
}

const struct ka_case ka_context_cases[] = {
    KA_ROW(of_gone), KA_ROW(in_irq), KA_ROW(in_softirq), KA_ROW(in_rcu),
    KA_ROW(in_work),
#if defined(CONFIG_NET) && LINUX_VERSION_CODE >= KERNEL_VERSION(5, 15, 0)
    KA_ROW(in_bpf_helper), KA_ROW(in_bpf_program),
#endif
    {}
};
