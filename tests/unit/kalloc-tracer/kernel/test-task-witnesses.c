/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * KtTaskWitnesses, with tasks made by hand: the members are found wherever they
 * are, and pid is never taken for tgid.
 */
#include "tests/lib/test-main.h"
#include "kalloc-tracer/kernel/witnesses.h"

#include <stdio.h>
#include <string.h>

#define BASE    0xffff888000000000ull
#define PERCPU  0x200000
#define TEXT    0x310000
#define STACK   0xffffc90000000000ull
#define N       12

typedef struct Layout {
    uint32_t pid, tgid, comm;
} Layout;

static const Layout layouts[] = {
    { 2432, 2436, 2976 },
    { 9000, 12, 16001 },        /* RANDSTRUCT: tgid comes first */
};

static uint8_t memory[0x320000];

static const void *view(uint64_t va, size_t *avail)
{
    *avail = 4096 - (va & 4095);
    return va >= BASE && va - BASE < sizeof(memory) ? &memory[va - BASE] : NULL;
}

static KtTaskWitnesses *begin(void)
{
    KtTaskWitnesses *w = g_new(KtTaskWitnesses, 1);

    memset(memory, 0, sizeof(memory));
    kt_task_witnesses_init(w, view, 0);
    return w;
}

static uint64_t task(unsigned i)
{
    return BASE + i * KT_TASK_BYTES;
}

static void put32(uint64_t va, uint32_t value)
{
    memcpy(&memory[va - BASE], &value, sizeof(value));
}

static void put64(uint64_t va, uint64_t value)
{
    memcpy(&memory[va - BASE], &value, sizeof(value));
}

/* Make task @i; @name: (nullable) its comm */
static void fill_task(const Layout *at, unsigned i, uint32_t pid, uint32_t tgid,
                      const char *name)
{
    put32(task(i) + at->pid, pid);
    put32(task(i) + at->tgid, tgid);
    put32(task(i) + 100, i & 1 ? pid : 0);
    if (name) {
        g_strlcpy((char *)&memory[task(i) - BASE + at->comm], name, 16);
    }
}

/* kernel_clone() makes task @i. */
static void fork_task(KtTaskWitnesses *w, const Layout *at, unsigned i)
{
    fill_task(at, i, i, i, NULL);
    kt_task_witnesses_new_task(w, STACK, task(i), task(0));
    kt_task_witnesses_cloned(w, STACK + 200, i);
}

TEST(pid_is_found_anywhere, "/task-witnesses/pid")
{
    for (unsigned l = 0; l < G_N_ELEMENTS(layouts); l++) {
        g_autofree KtTaskWitnesses *w = begin();

        for (unsigned i = 1; i < N; i++) {
            fork_task(w, &layouts[l], i);
        }
        g_assert_true(w->pid_open);
        g_assert_cmpuint(w->learned_pid, ==, MIN(layouts[l].pid,
                                                 layouts[l].tgid));
        fill_task(&layouts[l], N, 99, 3, NULL);
        kt_task_witnesses_new_task(w, STACK, task(N), task(3));
        g_assert_false(w->pid_open);
        g_assert_cmpuint(w->learned_pid, ==, layouts[l].pid);
    }
}

TEST(thread_of_an_unknown_task_makes_pid_unknown, "/task-witnesses/thread")
{
    g_autofree KtTaskWitnesses *w = begin();

    for (unsigned i = 1; i < N; i++) {
        fork_task(w, &layouts[0], i);
    }
    fill_task(&layouts[0], N, 99, 3, NULL);
    kt_task_witnesses_new_task(w, STACK, task(N), 0);
    g_assert_cmpuint(w->learned_pid, ==, KT_NO_MEMBER);
    g_assert_true(w->pid.contradicted);
}

/* Threads may be older than the first task that was seen. */
TEST(late_start_does_not_guess, "/task-witnesses/late-start")
{
    g_autofree KtTaskWitnesses *w = begin();

    for (unsigned i = 2; i < N; i++) {
        fork_task(w, &layouts[0], i);
    }
    g_assert_cmpuint(w->pid.n, ==, 2);
    g_assert_cmpuint(w->learned_pid, ==, KT_NO_MEMBER);
    fill_task(&layouts[0], N, 99, 3, NULL);
    kt_task_witnesses_new_task(w, STACK, task(N), task(3));
    kt_task_witnesses_cloned(w, STACK + 200, 99);
    g_assert_cmpuint(w->learned_pid, ==, layouts[0].pid);
}

/* No vote follows from a clone() that failed, a clone() on another stack, or a
 * clone() whose new task was not seen. */
TEST(calls_that_do_not_match_are_ignored, "/task-witnesses/no-match")
{
    g_autofree KtTaskWitnesses *w = begin();

    fill_task(&layouts[0], 1, 1, 1, NULL);
    kt_task_witnesses_new_task(w, STACK, task(1), 0);
    kt_task_witnesses_cloned(w, STACK + 200, -11);
    kt_task_witnesses_cloned(w, STACK + 0x4000, 7);
    kt_task_witnesses_cloned(w, STACK - 200, 7);
    g_assert_cmpuint(w->pid.seen, ==, 0);
    kt_task_witnesses_cloned(w, STACK + 200, 1);
    kt_task_witnesses_cloned(w, STACK + 200, 2);
    g_assert_cmpuint(w->pid.seen, ==, 1);
}

TEST(comm_is_found_by_its_setter, "/task-witnesses/comm")
{
    for (unsigned l = 0; l < G_N_ELEMENTS(layouts); l++) {
        g_autofree KtTaskWitnesses *w = begin();

        for (unsigned i = 0; i < 4; i++) {
            char *name = (char *)&memory[TEXT];

            g_assert_cmpuint(w->learned_comm, ==, KT_NO_MEMBER);
            snprintf(name, 64, "a-very-long-%u-name", i);
            fill_task(&layouts[l], i, i, i, NULL);
            memcpy(&memory[task(i) - BASE + layouts[l].comm], name, 15);
            kt_task_witnesses_named(w, task(i), BASE + TEXT);
        }
        g_assert_cmpuint(w->learned_comm, ==, layouts[l].comm);
    }
}

TEST(comm_is_found_by_kernel_thread, "/task-witnesses/kernel-thread")
{
    g_autofree KtTaskWitnesses *w = begin();

    for (unsigned i = 1; i < 6; i++) {
        char *name = (char *)&memory[TEXT];

        snprintf(name, 64, "kworker/%u:0", i);
        kt_task_witnesses_thread(w, STACK + 400, BASE + TEXT);
        fill_task(&layouts[0], i, i, i, name);
        kt_task_witnesses_new_task(w, STACK, task(i), task(0));
        kt_task_witnesses_cloned(w, STACK + 200, i);
    }
    g_assert_cmpuint(w->learned_comm, ==, layouts[0].comm);
}

/* Before 6.4 the third argument of kernel_thread() has flags. */
TEST(flags_are_no_name, "/task-witnesses/flags")
{
    g_autofree KtTaskWitnesses *w = begin();

    kt_task_witnesses_thread(w, STACK + 400, 0x600);
    fill_task(&layouts[0], 1, 1, 1, NULL);
    kt_task_witnesses_new_task(w, STACK, task(1), task(0));
    g_assert_cmpuint(w->comm.seen, ==, 0);
    g_assert_false(w->comm.contradicted);
}

TEST(short_names_and_one_name_are_not_enough, "/task-witnesses/names")
{
    g_autofree KtTaskWitnesses *w = begin();

    g_strlcpy((char *)&memory[TEXT], "sh", 64);
    kt_task_witnesses_named(w, task(0), BASE + TEXT);
    g_assert_cmpuint(w->comm.seen, ==, 0);
    g_strlcpy((char *)&memory[TEXT], "init-of-all", 64);
    for (unsigned i = 0; i < 8; i++) {
        fill_task(&layouts[0], i, i, i, "init-of-all");
        kt_task_witnesses_named(w, task(i), BASE + TEXT);
    }
    g_assert_cmpuint(w->comm.n, ==, 1);
    g_assert_cmpuint(w->learned_comm, ==, KT_NO_MEMBER);
}

TEST(current_is_found_by_switches, "/task-witnesses/current")
{
    g_autofree KtTaskWitnesses *w = begin();

    put64(BASE + PERCPU + 0x800, task(1));      /* always this one */
    for (unsigned i = 1; i < N; i++) {
        put64(BASE + PERCPU + 0x35000, task(i));
        put64(BASE + PERCPU + 0x9000 + i * 8, task(i));
        kt_task_witnesses_switch(w, BASE + PERCPU, task(i));
    }
    g_assert_cmpuint(w->learned_current, ==, 0x35000);
}

TEST(hostile_bytes_are_bounded, "/task-witnesses/hostile-bytes")
{
    static const uint64_t places[] = {
        0, 1, BASE - 1, BASE + sizeof(memory) - 8, UINT64_MAX, UINT64_MAX - 7,
        BASE, BASE + 4090, BASE + PERCPU,
    };
    g_autofree KtTaskWitnesses *w = begin();

    memset(memory, 'a', sizeof(memory));
    for (unsigned i = 0; i < G_N_ELEMENTS(places); i++) {
        for (unsigned j = 0; j < G_N_ELEMENTS(places); j++) {
            kt_task_witnesses_switch(w, places[i], places[j]);
            kt_task_witnesses_named(w, places[i], places[j]);
            kt_task_witnesses_thread(w, places[i], places[j]);
            kt_task_witnesses_new_task(w, places[i], places[j], places[i]);
            kt_task_witnesses_cloned(w, places[i] + 8, places[j] & 0xff);
        }
    }
    g_assert_cmpuint(w->learned_pid, ==, KT_NO_MEMBER);
}
