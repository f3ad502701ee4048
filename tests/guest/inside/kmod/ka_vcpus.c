/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka_vcpus: threads on all CPUs access freed objects, or share blocks in order.
 *
 *   parameters/stale   N: a thread on each of the first CPUs reads a freed
 *                      object N times, by a function of its own. Two more
 *                      threads, one after the other, move from CPU to CPU and
 *                      modify one N times. The first one allocates on each CPU
 *                      before it does so.
 *   parameters/share   N: two threads, on two CPUs, drop the two references of
 *                      a block at the same time; N blocks for each pair of
 *                      CPUs. Who drops the last one frees the block.
 *
 * A write returns when the threads have ended. What "stale" does is wrong, what
 * "share" does is right.
 */
#include <linux/completion.h>
#include <linux/cpu.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/sched.h>
#include <linux/spinlock.h>

#include "ka_kmod.h"

#define READERS 4
#define PAIRS   8
#define OBJECT  192
/* In the freed object the kernel's own link is elsewhere. */
#define SAFE    40

static struct kmem_cache *cache;
static DECLARE_COMPLETION(ended);
static unsigned int rounds;

/* ---- threads ------------------------------------------------------------- */

/* @fn: is called once, on @cpu */
struct job {
    void (*fn)(struct job *job);
    struct task_struct *task;
    void *p;
    int cpu;
};

static int run_job(void *opaque)
{
    struct job *job = opaque;

    job->fn(job);
    complete(&ended);
    set_current_state(TASK_INTERRUPTIBLE);
    while (!kthread_should_stop()) {
        schedule();
        set_current_state(TASK_INTERRUPTIBLE);
    }
    __set_current_state(TASK_RUNNING);
    return 0;
}

/* Run all jobs at once; return when they have ended. */
static int run_jobs(struct job *jobs, int n)
{
    int i, made = 0;

    reinit_completion(&ended);
    while (made < n) {
        struct job *job = &jobs[made];

        job->task = kthread_create(run_job, job, "ka_vcpus");
        if (IS_ERR(job->task)) {
            break;
        }
        kthread_bind(job->task, job->cpu);
        made++;
    }
    for (i = 0; i < made && made == n; i++) {
        wake_up_process(jobs[i].task);
    }
    for (i = 0; i < made && made == n; i++) {
        wait_for_completion(&ended);
    }
    for (i = 0; i < made; i++) {
        kthread_stop(jobs[i].task);
    }
    return made == n ? 0 : -ENOMEM;
}

/* ---- accesses to freed objects ------------------------------------------- */

/* Interrupts come between the accesses. */
static void rest(unsigned int i)
{
    if (i % 16 == 0) {
        udelay(50);
        cond_resched();
    }
}

#define READER(number)                                                      \
static KA_SITE void ka_vcpus_read_##number(struct job *job)                 \
{                                                                           \
    const u8 *p = job->p;                                                   \
    unsigned int i;                                                         \
                                                                            \
    for (i = 0; i < rounds; i++) {                                          \
        READ_ONCE(*p);                                                      \
        rest(i);                                                            \
    }                                                                       \
    ka_site_end();                                                          \
}

READER(0)
READER(1)
READER(2)
READER(3)

static void (*const readers[READERS])(struct job *job) = {
    ka_vcpus_read_0, ka_vcpus_read_1, ka_vcpus_read_2, ka_vcpus_read_3,
};

KA_SITE_DOES(ka_vcpus_modify, (atomic_t *p), atomic_inc(p))
KA_SITE_DOES(ka_vcpus_modify_late, (atomic_t *p), atomic_inc(p))

/* Return the next CPU, after the thread has moved there. */
static int move_on(int cpu)
{
    cpu = cpumask_next(cpu, cpu_online_mask);
    cpu = cpu < nr_cpu_ids ? cpu : cpumask_first(cpu_online_mask);
    set_cpus_allowed_ptr(current, cpumask_of(cpu));
    return cpu;
}

static void move(struct job *job)
{
    unsigned int i;
    int cpu = 0;

    for (i = 0; i < rounds; i++) {
        if (i % 16 == 0) {
            cpu = move_on(cpu);
        }
        ka_vcpus_modify(job->p);
        rest(i);
    }
}

/* A tracer has seen an event of this CPU before each of these accesses. */
static void move_and_allocate(struct job *job)
{
    unsigned int i;
    int cpu = 0;

    for (i = 0; i < rounds; i++) {
        if (i % 16 == 0) {
            cpu = move_on(cpu);
            kfree(kmalloc(OBJECT, GFP_KERNEL));
        }
        ka_vcpus_modify_late(job->p);
        rest(i);
    }
}

KA_SITE_RETURNS(void *, ka_vcpus_alloc, (void),
                kmem_cache_alloc(cache, GFP_KERNEL))
KA_SITE_DOES(ka_vcpus_free, (void *p), kmem_cache_free(cache, p))

static int make_stale(struct job *jobs, int n)
{
    int i;

    for (i = 0; i < n; i++) {
        jobs[i].p = ka_vcpus_alloc();
        if (!jobs[i].p) {
            return -ENOMEM;
        }
    }
    for (i = 0; i < n; i++) {
        ka_vcpus_free(jobs[i].p);
        jobs[i].p += SAFE;
    }
    return 0;
}

/* The thread is bound to no CPU. */
static int run_mover(struct job *job)
{
    reinit_completion(&ended);
    job->task = kthread_run(run_job, job, "ka_mover");
    if (IS_ERR(job->task)) {
        return PTR_ERR(job->task);
    }
    wait_for_completion(&ended);
    return kthread_stop(job->task);
}

static int run_stale(void)
{
    struct job jobs[READERS + 1] = {}, last = { .fn = move };
    int n = min_t(int, READERS, num_online_cpus()), i, err;

    for (i = 0; i < n; i++) {
        jobs[i] = (struct job) { .fn = readers[i], .cpu = i };
    }
    jobs[n].fn = move_and_allocate;
    err = make_stale(jobs, n + 1);
    err = err ? err : run_jobs(jobs, n);
    err = err ? err : run_mover(&jobs[n]);
    err = err ? err : make_stale(&last, 1);
    return err ? err : run_mover(&last);
}

/* ---- blocks with two references ------------------------------------------ */

struct shared {
    atomic_t refs;
    spinlock_t lock;
    int left;
};

struct pair {
    struct shared *block;
} ____cacheline_aligned;

static struct pair pairs[PAIRS];

static KA_SITE struct shared *ka_vcpus_share(void)
{
    struct shared *s = kmalloc(sizeof(*s), GFP_KERNEL | __GFP_NOFAIL);

    atomic_set(&s->refs, 2);
    spin_lock_init(&s->lock);
    s->left = 2;
    return s;
}

/* The reference is an atomic number, or is protected by a lock. */
static KA_SITE void ka_vcpus_drop(struct shared *s, bool locked)
{
    bool last;

    if (locked) {
        spin_lock(&s->lock);
        last = !--s->left;
        spin_unlock(&s->lock);
    } else {
        last = atomic_dec_and_test(&s->refs);
    }
    if (last) {
        kfree(s);
    }
    ka_site_end();
}

static void give(struct job *job)
{
    struct pair *pair = job->p;
    unsigned int i;

    for (i = 0; i < rounds; i++) {
        struct shared *s = ka_vcpus_share();

        smp_store_release(&pair->block, s);
        while (smp_load_acquire(&pair->block)) {
            cond_resched();
        }
        ka_vcpus_drop(s, i % 2);
    }
}

static void take(struct job *job)
{
    struct pair *pair = job->p;
    struct shared *s;
    unsigned int i;

    for (i = 0; i < rounds; i++) {
        while (!(s = smp_load_acquire(&pair->block))) {
            cond_resched();
        }
        smp_store_release(&pair->block, NULL);
        ka_vcpus_drop(s, i % 2);
    }
}

static int run_share(void)
{
    struct job jobs[2 * PAIRS] = {};
    int n = min_t(int, 2 * PAIRS, num_online_cpus() & ~1), i;

    for (i = 0; i < n; i++) {
        jobs[i] = (struct job) {
            .fn = i % 2 ? take : give, .p = &pairs[i / 2], .cpu = i,
        };
    }
    return n ? run_jobs(jobs, n) : -EINVAL;
}

/* ---- parameters ---------------------------------------------------------- */

static int set_rounds(const char *val, int (*run)(void))
{
    int err = kstrtouint(val, 0, &rounds);

    return err ? err : run();
}

static int set_stale(const char *val, const struct kernel_param *unused)
{
    return set_rounds(val, run_stale);
}

static int set_share(const char *val, const struct kernel_param *unused)
{
    return set_rounds(val, run_share);
}

static const struct kernel_param_ops stale_ops = { .set = set_stale };
static const struct kernel_param_ops share_ops = { .set = set_share };
module_param_cb(stale, &stale_ops, NULL, 0200);
module_param_cb(share, &share_ops, NULL, 0200);

/* A cache that kmemleak must not search is never merged with another. */
static int __init ka_vcpus_init(void)
{
    cache = kmem_cache_create("ka_vcpus", OBJECT, 0, SLAB_NOLEAKTRACE, NULL);
    return cache ? 0 : -ENOMEM;
}

static void __exit ka_vcpus_exit(void)
{
    kmem_cache_destroy(cache);
}

KA_MODULE(ka_vcpus_init, ka_vcpus_exit,
          "accesses objects on all CPUs, after their free or before");
