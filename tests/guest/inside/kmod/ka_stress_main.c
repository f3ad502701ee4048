/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka_stress: allocates and frees on all CPUs at once, until it is told to
 * pause, and counts what is live, exactly.
 *
 * Threads which are moved from CPU to CPU, by themselves and by another one,
 * also while they sleep in an allocator, allocate blocks of each kind and
 * hand them to each other, so that most are freed by another thread on
 * another CPU; interrupts that they send each other, timers and RCU callbacks
 * do the same in between. One thread takes the memory away now and then.
 *
 *   parameters/run    1 or 0: go on; pause, which returns when all rest
 *   parameters/mark   N: pairs of kmalloc(3000 + N) and kfree in a row, with
 *                     interrupts off: a place that every trace can find
 *   parameters/live   what is live: a line "KIND blocks bytes sum" for each
 *                     kind; sum: of the addresses, modulo 2^64
 *   parameters/done   what was done: a line "WHAT number" each
 */
#include <linux/cpu.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/timer.h>
#include <linux/vmalloc.h>
#include <linux/wait.h>

#include "ka_stress.h"

#define SLOTS       48
#define MAILS       256
#define MAX_THREADS 64
#define HOG_BYTES   (1024 * 1024)

static unsigned int per_cpu_threads = 2;
module_param_named(threads, per_cpu_threads, uint, 0444);
MODULE_PARM_DESC(threads, "threads for each CPU");

static unsigned int pace = 0;
module_param(pace, uint, 0644);
MODULE_PARM_DESC(pace, "microseconds that a thread rests after 32 steps");

static unsigned int low_mb = 0;
module_param(low_mb, uint, 0644);
MODULE_PARM_DESC(low_mb, "take memory until so many MiB are left; 0: do not");

/* ---- passing on --------------------------------------------------------- */

static unsigned long mail[MAILS];
static bool running;

/* The next of a row of numbers that look random. */
static u32 roll(u64 *state)
{
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    return *state >> 33;
}

static void pass(unsigned long block, u32 to)
{
    did(PASSED);
    ka_stress_free(xchg(&mail[to % MAILS], block));
}

/* What interrupts, timers and callbacks do. */
static void in_between(u32 number)
{
    size_t size = sizeof(struct head) + number % 500;
    unsigned long block;

    block = number & 1 ?
        tagged(KMALLOC, ka_stress_kmalloc(size, GFP_ATOMIC), size) :
        tagged(CACHE, ka_stress_cache(GFP_ATOMIC), OBJECT);
    pass(block, number >> 8);
}

static void on_callback(struct rcu_head *rcu)
{
    struct head *h = container_of(rcu, struct head, rcu);

    did(CALLBACKS);
    in_between((u32)((unsigned long)h >> 5) * 2654435761u);
    ka_stress_free((unsigned long)h | KMALLOC);
}

struct here {
    struct timer_list timer;
    u64 state;
};
static DEFINE_PER_CPU(struct here, here);

/* Its sender's. */
static void on_interrupt(void *opaque)
{
    did(INTERRUPTS);
    in_between(roll(opaque));
}

static void on_timer(struct timer_list *timer)
{
    struct here *h = container_of(timer, struct here, timer);

    did(TIMERS);
    in_between(roll(&h->state));
    if (READ_ONCE(running)) {
        mod_timer(timer, jiffies + 1);
    }
}

/* ---- threads ------------------------------------------------------------ */

/* @interrupt: of which one is under way at most */
struct worker {
    call_single_data_t interrupt;
    struct task_struct *task;
    u64 state, interrupt_state;
    unsigned long slot[SLOTS];
};
static struct worker *workers;
static struct task_struct *mover, *hog;
static int n_workers, n_threads;
static atomic_t resting;
static DECLARE_WAIT_QUEUE_HEAD(rest);

static bool may_go_on(void)
{
    return READ_ONCE(running) || kthread_should_stop();
}

/* Returns: false when the thread is to end. */
static bool rest_if_told(void)
{
    if (!READ_ONCE(running)) {
        atomic_inc(&resting);
        wake_up_all(&rest);
        wait_event_idle(rest, may_go_on());
        atomic_dec(&resting);
    }
    return !kthread_should_stop();
}

static const struct cpumask *random_cpus(u32 number)
{
    unsigned int cpu = number % nr_cpu_ids;

    return number & 0x10000 || !cpu_online(cpu) ? cpu_online_mask :
                                                   cpumask_of(cpu);
}

static unsigned long allocate(u32 number)
{
    gfp_t gfp = number & 0x100 ? GFP_KERNEL : GFP_NOWAIT;
    size_t size = sizeof(struct head) + (number >> 9) % 2000;

    switch (number % 16) {
    case 0:
        size = 16384 + (number >> 9) % 20000;
        return tagged(LARGE, ka_stress_large(size, gfp), size);
    case 1:
        return tagged(VMALLOC, ka_stress_vmalloc(size * 8), size * 8);
    case 2:
        return tagged(PERCPU_BLOCK, ka_stress_percpu(), PERCPU);
    case 3 ... 8:
        return tagged(CACHE, ka_stress_cache(gfp), OBJECT);
    default:
        return tagged(KMALLOC, ka_stress_kmalloc(size, gfp), size);
    }
}

static void reallocate(unsigned long *slot, u32 number)
{
    size_t size = sizeof(struct head) + number % 3000;
    struct head *h = head_of(*slot);
    size_t before = h->size;
    void *p;

    did(REALLOCS);
    p = ka_stress_krealloc(h, size);
    if (p) {
        count(KMALLOC, h, before, -1);
        *slot = tagged(KMALLOC, p, size);
    }
}

static void free_later(unsigned long *slot, u32 number)
{
    struct head *h = head_of(*slot);

    if (number & 1) {
        call_rcu(&h->rcu, on_callback);
    } else {
        did(RCU_FREES);
        count(KMALLOC, h, h->size, -1);
        kfree_rcu(h, rcu);
    }
    *slot = 0;
}

static void bulk(struct worker *w)
{
    void *list[BULK];
    int n = ka_stress_bulk(list);
    int i;

    did(BULKS);
    for (i = 0; i < n; i++) {
        unsigned long block = tagged(CACHE, list[i], OBJECT);

        if (i % 2) {
            pass(block, roll(&w->state));
        } else {
            count(CACHE, list[i], OBJECT, -1);
            list[i / 2] = list[i];
        }
    }
    free_objects(list, (n + 1) / 2);
}

static void step(struct worker *w)
{
    u32 number = roll(&w->state);
    unsigned long *slot = &w->slot[(number >> 4) % SLOTS];
    u32 more = roll(&w->state);
    unsigned int cpu = more % nr_cpu_ids;

    did(STEPS);
    if (number % 64 == 0) {
        did(MOVES);
        set_cpus_allowed_ptr(current, random_cpus(more));
    } else if (number % 64 == 1 && cpu_online(cpu)) {
        smp_call_function_single_async(cpu, &w->interrupt);
    } else if (number % 64 == 2) {
        bulk(w);
    } else if (*slot && kind_of(*slot) == KMALLOC && number % 16 == 3) {
        free_later(slot, more);
    } else if (*slot && kind_of(*slot) == KMALLOC && number % 16 == 4) {
        reallocate(slot, more);
    } else if (number % 4 == 1) {
        pass(*slot, more);
        *slot = 0;
    } else {
        ka_stress_free(*slot);
        *slot = allocate(more);
    }
}

static int work(void *opaque)
{
    struct worker *w = opaque;
    unsigned int n = 0;
    int i;

    while (rest_if_told()) {
        step(w);
        if (++n % 32) {
            continue;
        }
        cond_resched();
        if (pace) {
            usleep_range(pace, pace + pace / 2);
        }
    }
    for (i = 0; i < SLOTS; i++) {
        ka_stress_free(w->slot[i]);
    }
    return 0;
}

/* Moves the others, wherever they are. */
static int move(void *opaque)
{
    u64 state = 7;

    while (rest_if_told()) {
        u32 number = roll(&state);

        did(MOVES);
        set_cpus_allowed_ptr(workers[number % n_workers].task,
                             random_cpus(roll(&state)));
        usleep_range(500, 3000);
    }
    return 0;
}

static bool is_plenty(void)
{
    return low_mb && READ_ONCE(running) &&
           (si_mem_available() >> (20 - PAGE_SHIFT)) > low_mb;
}

/* Memory as a list: each piece begins with the address of the next. Who rests
 * has none. */
static int take_memory(void *opaque)
{
    void *taken, *piece;

    while (rest_if_told()) {
        taken = NULL;
        while (is_plenty()) {
            piece = __vmalloc(HOG_BYTES, GFP_KERNEL | __GFP_NORETRY |
                              __GFP_NOWARN);
            if (!piece) {
                break;
            }
            *(void **)piece = taken;
            taken = piece;
        }
        while ((piece = taken)) {
            taken = *(void **)piece;
            vfree(piece);
        }
        did(HOGS);
        msleep(500);
    }
    return 0;
}

/* ---- parameters --------------------------------------------------------- */

static void go_on(void)
{
    int cpu;

    WRITE_ONCE(running, true);
    wake_up_all(&rest);
    for_each_online_cpu(cpu) {
        struct here *h = &per_cpu(here, cpu);

        if (!timer_pending(&h->timer)) {
            h->timer.expires = jiffies + 1;
            add_timer_on(&h->timer, cpu);
        }
    }
}

/* No timer is armed anew; one that runs is waited for by RCU. Interrupts
 * that were sent come before those that are waited for. */
static void pause(void)
{
    int cpu;

    WRITE_ONCE(running, false);
    wait_event_idle(rest, atomic_read(&resting) == n_threads);
    for_each_possible_cpu(cpu) {
        while (timer_pending(&per_cpu(here, cpu).timer)) {
            msleep(1);
        }
    }
    kick_all_cpus_sync();
    synchronize_rcu();
    rcu_barrier();
}

static int set_run(const char *val, const struct kernel_param *kp)
{
    bool on;
    int err = kstrtobool(val, &on);

    if (err) {
        return err;
    }
    if (on && !READ_ONCE(running)) {
        go_on();
    } else if (!on && READ_ONCE(running)) {
        pause();
    }
    return 0;
}

static int set_mark(const char *val, const struct kernel_param *kp)
{
    unsigned int n;
    int err = kstrtouint(val, 0, &n);

    if (!err && n < 1000) {
        ka_stress_mark(MARK_BYTES + n);
    }
    return err;
}

static int get_live(char *buffer, const struct kernel_param *kp)
{
    return print_live(buffer);
}

static int get_done(char *buffer, const struct kernel_param *kp)
{
    return print_done(buffer);
}

static const struct kernel_param_ops run_ops = { .set = set_run };
static const struct kernel_param_ops mark_ops = { .set = set_mark };
static const struct kernel_param_ops live_ops = { .get = get_live };
static const struct kernel_param_ops done_ops = { .get = get_done };
module_param_cb(run, &run_ops, NULL, 0200);
module_param_cb(mark, &mark_ops, NULL, 0200);
module_param_cb(live, &live_ops, NULL, 0444);
module_param_cb(done, &done_ops, NULL, 0444);

/* ---- life --------------------------------------------------------------- */

static void stop(struct task_struct *task)
{
    if (!IS_ERR_OR_NULL(task)) {
        kthread_stop(task);
    }
}

static void ka_stress_exit(void)
{
    int i;

    if (READ_ONCE(running)) {
        pause();
    }
    for (i = 0; i < n_workers; i++) {
        stop(workers[i].task);
    }
    stop(mover);
    stop(hog);
    for (i = 0; i < MAILS; i++) {
        ka_stress_free(mail[i]);
    }
    rcu_barrier();
    destroy_objects();
    vfree(workers);
}

static int start(struct task_struct **task, int (*fn)(void *), void *opaque,
                 const char *name)
{
    *task = kthread_run(fn, opaque, "ka_%s", name);
    n_threads += !IS_ERR(*task);
    return PTR_ERR_OR_ZERO(*task);
}

static int start_all(void)
{
    int i, err = 0;

    for (i = 0; i < n_workers && !err; i++) {
        workers[i].state = get_random_u64();
        workers[i].interrupt.func = on_interrupt;
        workers[i].interrupt.info = &workers[i].interrupt_state;
        err = start(&workers[i].task, work, &workers[i], "work");
    }
    err = err ? err : start(&mover, move, NULL, "move");
    return err ? err : start(&hog, take_memory, NULL, "hog");
}

static int __init ka_stress_init(void)
{
    int cpu, err;

    n_workers = min_t(int, per_cpu_threads * num_online_cpus(), MAX_THREADS);
    workers = vzalloc(sizeof(*workers) * max(n_workers, 1));
    if (!workers || !make_objects() || !n_workers) {
        n_workers = 0;
        ka_stress_exit();
        return -ENOMEM;
    }
    for_each_possible_cpu(cpu) {
        timer_setup(&per_cpu(here, cpu).timer, on_timer, TIMER_PINNED);
        per_cpu(here, cpu).state = get_random_u64();
    }
    err = start_all();
    if (err) {
        ka_stress_exit();
    }
    return err;
}

KA_MODULE(ka_stress_init, ka_stress_exit,
          "allocates and frees on all CPUs at once");
