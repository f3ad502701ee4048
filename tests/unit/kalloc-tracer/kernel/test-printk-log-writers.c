/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernel's ring of printk records, made in memory: each line gets its
 * writer, in whatever order vCPUs store records and return.
 */
#include "kalloc-tracer/kernel/printk-log.h"

#include <string.h>

#include "tests/lib/printk-world.h"
#include "tests/lib/test-main.h"

static KtPrintkWriter writer(PrintkWorld *x, uint32_t pid, unsigned cpu)
{
    const char comm[16] = "writer";

    return (KtPrintkWriter) {
        .us = 1000 + pid, .since = printk_world_end(x), .pid = pid, .cpu = cpu,
        .task = kt_tracer_intern_task(x->t, pid, comm), .known = true,
    };
}

static void check_writer(PrintkWorld *x, unsigned i, const KtPrintkWriter *w)
{
    KtLogLine l = printk_world_line(x, i);

    g_assert_cmpuint(l.flags & KT_LOG_SEEN, ==, w ? KT_LOG_SEEN : 0);
    g_assert_cmpuint(l.task.v, ==, w ? w->task.v : 0);
    if (w) {
        g_assert_cmpuint(l.cpu, ==, w->cpu);
        g_assert_cmpuint(l.us, ==, w->us);
    }
}

/* Two vCPUs store at once; the second returns first. */
TEST(test_two_writers, "/printk-log-writers/two-writers")
{
    KtPrintkWriter a, b;
    PwRecord ra = printk_by(10, "a"), rb = printk_by(20, "b");
    g_auto(PrintkWorld) x;

    printk_world_init(&x);
    a = writer(&x, 10, 0);
    b = writer(&x, 20, 1);
    pw_store(x.w, &ra);
    pw_store(x.w, &rb);
    printk_world_read(&x, &b, b.us);
    check_writer(&x, 0, NULL);
    check_writer(&x, 1, &b);
    printk_world_read(&x, &a, a.us);
    check_writer(&x, 0, &a);
    check_writer(&x, 1, &b);
}

/* A line from before the call is not the caller's, although the pid is. */
TEST(test_older_line, "/printk-log-writers/older-line")
{
    PwRecord r = printk_by(10, "old");
    KtPrintkWriter a;
    g_auto(PrintkWorld) x;

    printk_world_init(&x);
    pw_store(x.w, &r);
    a = writer(&x, 10, 0);
    pw_store(x.w, &r);
    printk_world_read(&x, &a, a.us);
    check_writer(&x, 0, NULL);
    check_writer(&x, 1, &a);
    a = writer(&x, 10, 0);
    printk_world_read(&x, &a, a.us);
    check_writer(&x, 0, NULL);
}

/* An interrupt of the writer's CPU stores a line before the writer returns. */
TEST(test_interrupt, "/printk-log-writers/interrupt")
{
    PwRecord task = printk_by(10, "task");
    PwRecord irq = printk_by(KT_LOG_CALLER_CPU | 2, "irq");
    KtPrintkWriter a, b;
    g_auto(PrintkWorld) x;

    printk_world_init(&x);
    a = writer(&x, 10, 2);
    pw_store(x.w, &task);
    b = writer(&x, 10, 2);
    b.irq = true;
    b.us = 5;
    pw_store(x.w, &irq);
    printk_world_read(&x, &b, b.us);
    check_writer(&x, 0, NULL);
    check_writer(&x, 1, &b);
    printk_world_read(&x, &a, a.us);
    check_writer(&x, 0, &a);
    check_writer(&x, 1, &b);
}

/* A line is continued; it becomes readable when the next line begins. */
TEST(test_continuation, "/printk-log-writers/continuation")
{
    PwRecord first = printk_by(10, "begin"), other = printk_by(20, "other");
    KtPrintkWriter a, b;
    uint64_t id;
    g_auto(PrintkWorld) x;

    printk_world_init(&x);
    a = writer(&x, 10, 0);
    id = pw_reserve(x.w, &first);
    pw_set_state(x.w, id, PW_COMMITTED);
    printk_world_read(&x, &a, a.us);
    g_assert_cmpstr(printk_world_lines(&x), ==, "");
    b = writer(&x, 10, 1);
    b.us = 2000;
    pw_set_state(x.w, id, PW_RESERVED);
    pw_extend(x.w, id, ", the end");
    pw_set_state(x.w, id, PW_COMMITTED);
    printk_world_read(&x, &b, b.us);
    b = writer(&x, 20, 1);
    pw_set_state(x.w, id, PW_FINALIZED);
    pw_store(x.w, &other);
    printk_world_read(&x, &b, b.us);
    g_assert_cmpstr(printk_world_lines(&x), ==, "0:begin, the end 1:other");
    check_writer(&x, 0, &a);
    check_writer(&x, 1, &b);
}

/* A record of vCPU 0 is not finished. Later writers return meanwhile, one of
 * them hundreds of times. */
TEST(test_blocked, "/printk-log-writers/blocked")
{
    PwRecord ra = printk_by(10, "a"), rb = printk_by(20, "b");
    PwRecord rc = printk_by(30, "c");
    KtPrintkWriter a, b, c;
    uint64_t id;
    g_auto(PrintkWorld) x;

    printk_world_init_of(&x, pw_new(9, 16, true), true);
    a = writer(&x, 10, 0);
    id = pw_reserve(x.w, &ra);
    b = writer(&x, 20, 1);
    pw_store(x.w, &rb);
    printk_world_read(&x, &b, b.us);
    for (unsigned i = 2; i < 500; i++) {
        c = writer(&x, 30, 2);
        pw_store(x.w, &rc);
        printk_world_read(&x, &c, c.us);
    }
    g_assert_cmpstr(printk_world_lines(&x), ==, "");
    pw_set_state(x.w, id, PW_FINALIZED);
    while (printk_world_read(&x, &a, a.us)) {
    }
    check_writer(&x, 0, &a);
    check_writer(&x, 1, &b);
    check_writer(&x, 499, &c);
    for (unsigned i = 2; i < 500; i++) {
        g_assert_true(printk_world_line(&x, i).flags & KT_LOG_SEEN);
    }
}

/* vCPU 0 does not finish its record, nor vCPU 3, which has taken an id and not
 * written a number yet. The host stopped vCPU 1 before it stored its record:
 * hundreds of others are before that. */
TEST(test_blocked_far, "/printk-log-writers/blocked-far")
{
    PwRecord ra = printk_by(10, "a"), rb = printk_by(20, "b");
    PwRecord rd = printk_by(40, "d");
    KtPrintkWriter b;
    uint64_t id, last;
    g_auto(PrintkWorld) x;

    printk_world_init_of(&x, pw_new(9, 16, true), true);
    id = pw_reserve(x.w, &ra);
    b = writer(&x, 20, 1);
    for (unsigned i = 1; i < 300; i++) {
        pw_print(x.w, "c");
    }
    pw_store(x.w, &rb);
    last = pw_reserve(x.w, &rd);
    memset(pw_at(x.w, pw_info(x.w, last), 8), 0, 8);
    g_assert_cmpuint(printk_world_end(&x), ==, 302);
    printk_world_read(&x, &b, b.us);
    g_assert_cmpstr(printk_world_lines(&x), ==, "");
    pw_set_state(x.w, id, PW_FINALIZED);
    while (printk_world_read(&x, NULL, 1)) {
    }
    check_writer(&x, 300, &b);
}
