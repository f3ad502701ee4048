/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the scheduler's calls say of the current task and of struct task_struct:
 * see witnesses.h.
 *
 * How many witnesses are enough. A kernel pointer of 64 bits, or a name of four
 * characters and more, is at a wrong place by chance once in 2^32 times or
 * less; a second place that always has it would be a copy. Four different names
 * are enough, and eight switches from different tasks. Pids are small numbers.
 * But each new task has another one, so a member that is constant or counts
 * something else fails at the second or third witness; eight are enough.
 *
 * pid and tgid. They have the same value in each task that is no thread, and
 * the first tasks of a boot are no threads. So two offsets are left, and either
 * is right until the first thread exists. If the boot was seen from its first
 * task on, that thread is seen before it runs, in wake_up_new_task(): its two
 * values differ, and tgid is the one that its creator has, too.
 */
#include "kalloc-tracer/kernel/witnesses.h"

#include <string.h>

#define PAGE            4096u
#define COMM_BYTES      16
#define NAME_LEAST      4
#define SWITCHES_LEAST  8
#define NAMES_LEAST     4
#define PIDS_LEAST      8
#define PID_MAX         (1 << 22)       /* PID_MAX_LIMIT */
#define CLONE_FRAME     1024            /* stack of kernel_clone() */
#define THREAD_FRAMES   2048            /* that and kernel_thread()'s */
#define KERNEL_HALF     (1ull << 63)

void kt_task_witnesses_init(KtTaskWitnesses *w, KtView view,
                            uint64_t percpu_start)
{
    memset(w, 0, sizeof(*w));
    w->percpu_start = percpu_start;
    w->view = view;
    w->learned_current = KT_NO_MEMBER;
    w->learned_comm = KT_NO_MEMBER;
    w->learned_pid = KT_NO_MEMBER;
}

/* ---- the current task ---------------------------------------------------- */

/* @page, @host: the page that was read last, and its host address */
typedef struct Switch {
    KtView view;
    uint64_t base, task;
    uint64_t page;
    const uint8_t *host;
} Switch;

static bool has_task(const void *witness, uint32_t at)
{
    Switch *s = (Switch *)witness;
    uint64_t va = s->base + at, word;
    size_t avail;

    if (va / PAGE != s->page) {
        s->page = va / PAGE;
        s->host = s->view(va & -(uint64_t)PAGE, &avail);
        s->host = s->host && avail >= PAGE ? s->host : NULL;
    }
    if (!s->host || va % PAGE > PAGE - sizeof(word)) {
        return false;
    }
    memcpy(&word, s->host + va % PAGE, sizeof(word));
    return GUINT64_FROM_LE(word) == s->task;
}

void kt_task_witnesses_switch(KtTaskWitnesses *w, uint64_t base, uint64_t prev)
{
    Switch s = {
        .view = w->view, .base = base + w->percpu_start, .task = prev
    };

    if (w->learned_current != KT_NO_MEMBER || !prev) {
        return;
    }
    kt_votes_cast(&w->current, has_task, &s, KT_PERCPU_BYTES, 8);
    w->switches += prev != w->last_task;
    w->last_task = prev;
    if (w->switches >= SWITCHES_LEAST) {
        w->learned_current = kt_votes_only(&w->current, SWITCHES_LEAST);
    }
}

/* ---- comm ---------------------------------------------------------------- */

typedef struct Named {
    const uint8_t *bytes;
    const char *name;
} Named;

static bool has_comm(const void *witness, uint32_t at)
{
    const Named *n = witness;

    return !memcmp(&n->bytes[at], n->name, strlen(n->name) + 1);
}

/* Read a name, and cut it as the kernel does. False if it is short. */
static bool read_name(KtView view, char name[COMM_BYTES], uint64_t va)
{
    unsigned len = 0;

    memset(name, 0, COMM_BYTES);
    while (len < COMM_BYTES - 1) {
        if (va < KERNEL_HALF || !kt_view_read(view, va + len, &name[len], 1)) {
            return false;
        }
        if (!name[len]) {
            break;
        }
        len++;
    }
    return len >= NAME_LEAST;
}

static void vote_comm(KtTaskWitnesses *w, const uint8_t *bytes,
                      const char *name)
{
    kt_votes_cast(&w->comm, has_comm, &(Named) { bytes, name },
                  KT_TASK_BYTES - COMM_BYTES, 1);
    w->names += strcmp(w->last_name, name) != 0;
    g_strlcpy(w->last_name, name, COMM_BYTES);
    if (w->names >= NAMES_LEAST) {
        w->learned_comm = kt_votes_only(&w->comm, NAMES_LEAST);
    }
}

void kt_task_witnesses_named(KtTaskWitnesses *w, uint64_t task, uint64_t name)
{
    g_autofree uint8_t *bytes = NULL;
    char text[COMM_BYTES];

    if (w->learned_comm != KT_NO_MEMBER || !read_name(w->view, text, name)) {
        return;
    }
    bytes = g_malloc(KT_TASK_BYTES);
    if (kt_view_read(w->view, task, bytes, KT_TASK_BYTES)) {
        vote_comm(w, bytes, text);
    }
}

void kt_task_witnesses_thread(KtTaskWitnesses *w, uint64_t sp, uint64_t name)
{
    KtNewName *n = &w->new_name[w->n_names % KT_NEW_NAMES];

    if (w->learned_comm == KT_NO_MEMBER) {
        n->sp = read_name(w->view, n->name, name) ? sp : 0;
        w->n_names += n->sp != 0;
    }
}

/* Find the name of a new task: the frames of kernel_thread() and kernel_clone()
 * are right above. */
static KtNewName *find_new_name(KtTaskWitnesses *w, uint64_t sp)
{
    for (unsigned i = 1; i <= MIN(w->n_names, KT_NEW_NAMES); i++) {
        KtNewName *n = &w->new_name[(w->n_names - i) % KT_NEW_NAMES];

        if (n->sp && n->sp - sp < THREAD_FRAMES) {
            return n;
        }
    }
    return NULL;
}

/* ---- pid ----------------------------------------------------------------- */

typedef struct Cloned {
    const uint8_t *bytes;
    uint32_t pid;
} Cloned;

static uint32_t number_at(const uint8_t *bytes, uint32_t at)
{
    uint32_t number;

    memcpy(&number, bytes + at, sizeof(number));
    return GUINT32_FROM_LE(number);
}

static bool has_pid(const void *witness, uint32_t at)
{
    const Cloned *c = witness;

    return number_at(c->bytes, at) == c->pid;
}

static bool has_other_pid(const void *witness, uint32_t at)
{
    return !has_pid(witness, at);
}

/* Read the number that all offsets of @pid have in @task. */
static bool read_pid(const KtTaskWitnesses *w, uint64_t task, uint32_t *pid)
{
    for (unsigned i = 0; i < w->pid.n; i++) {
        uint8_t bytes[4];

        if (!kt_view_read(w->view, task + w->pid.at[i], bytes, 4) ||
            (i && number_at(bytes, 0) != *pid)) {
            return false;
        }
        *pid = number_at(bytes, 0);
    }
    return w->pid.n;
}

/* Choose from the offsets that are left: pid alone, or pid and tgid. */
static void choose_pid(KtTaskWitnesses *w)
{
    bool known = w->pids >= PIDS_LEAST &&
                 (w->pid.n == 1 || (w->pid.n == 2 && w->from_start));

    w->learned_pid = known ? w->pid.at[0] : KT_NO_MEMBER;
    w->pid_open = known && w->pid.n == 2;
}

void kt_task_witnesses_resume_pid(KtTaskWitnesses *w)
{
    w->pids = PIDS_LEAST;
    w->from_start = true;
    choose_pid(w);
}

static bool is_thread(const KtTaskWitnesses *w, const uint8_t *bytes)
{
    return number_at(bytes, w->pid.at[0]) != number_at(bytes, w->pid.at[1]);
}

/* Remove tgid: in a new thread, the number that its creator has. If that is not
 * known, pid is not known any more. */
static void remove_tgid(KtTaskWitnesses *w, const uint8_t *thread,
                        uint64_t creator)
{
    Cloned c = { thread, 0 };

    if (!creator || !read_pid(w, creator, &c.pid)) {
        w->pid.n = 0;
        w->pid.contradicted = true;
    }
    kt_votes_cast(&w->pid, has_other_pid, &c, 0, 1);
    choose_pid(w);
}

/* A new task shows its comm, if kernel_thread() makes it, and whether it is a
 * thread. */
static void examine_new_task(KtTaskWitnesses *w, const KtNewTask *n,
                             uint64_t current)
{
    KtNewName *name = find_new_name(w, n->sp);

    if (name) {
        name->sp = 0;
        if (w->learned_comm == KT_NO_MEMBER) {
            vote_comm(w, n->bytes, name->name);
        }
    }
    if (w->pid_open && is_thread(w, n->bytes)) {
        remove_tgid(w, n->bytes, current);
    }
}

void kt_task_witnesses_new_task(KtTaskWitnesses *w, uint64_t sp, uint64_t task,
                                uint64_t current)
{
    KtNewTask *n = &w->new_task[w->n_new % KT_NEW_TASKS];

    if (!kt_task_witnesses_want_new(w)) {
        return;
    }
    n->sp = 0;
    if (kt_view_read(w->view, task, n->bytes, sizeof(n->bytes))) {
        n->sp = sp;
        w->n_new++;
        examine_new_task(w, n, current);
    }
}

/* Find the new task that a call of kernel_clone() woke: its caller's frame is
 * right above. */
static KtNewTask *find_new_task(KtTaskWitnesses *w, uint64_t sp)
{
    for (unsigned i = 1; i <= MIN(w->n_new, KT_NEW_TASKS); i++) {
        KtNewTask *n = &w->new_task[(w->n_new - i) % KT_NEW_TASKS];

        if (n->sp && sp - n->sp < CLONE_FRAME) {
            return n;
        }
    }
    return NULL;
}

void kt_task_witnesses_cloned(KtTaskWitnesses *w, uint64_t sp, int64_t result)
{
    KtNewTask *n = result > 0 && result <= PID_MAX ? find_new_task(w, sp) :
                                                     NULL;
    Cloned c;

    if (!n) {
        return;
    }
    c = (Cloned) { n->bytes, result };
    n->sp = 0;
    w->from_start |= result == 1;
    if (w->learned_pid == KT_NO_MEMBER) {
        kt_votes_cast(&w->pid, has_pid, &c, KT_TASK_BYTES, 4);
        w->pids += c.pid != w->last_pid;
        w->last_pid = c.pid;
        choose_pid(w);
    }
}
