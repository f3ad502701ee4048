/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernel's ring of printk records, made in memory: each record becomes one
 * line, with the right writer; what is overwritten is counted; a record that
 * changes while it is copied, or whose parts contradict each other, is not
 * shown.
 */
#include "kalloc-tracer/kernel/printk-log.h"

#include <string.h>

#include "tests/lib/printk-writer.h"
#include "tests/lib/test-main.h"

typedef struct World {
    PrintkWriter *w;
    GsKernel k;
    KtTracer *t;
    KtPrintkLog *log;
    KtLogBatch batch;
} World;

static void world_init_of(World *x, PrintkWriter *w, bool types)
{
    const KtConfig config = KT_CONFIG_DEFAULT;

    x->w = w;
    pw_kernel_init(&x->k, w, types, NULL);
    x->t = kt_tracer_new(&config, NULL);
    x->log = kt_printk_log_new(&x->k, x->t);
    kt_log_batch_init(&x->batch);
}

static void world_init(World *x)
{
    world_init_of(x, pw_new(4, 10, true), true);
}

static void world_deinit(World *x)
{
    kt_log_batch_deinit(&x->batch);
    kt_printk_log_free(x->log);
    kt_tracer_free(x->t);
    pw_kernel_deinit(&x->k);
    g_free(x->w);
}

static bool read_by(World *x, const KtPrintkWriter *by, uint64_t us)
{
    const GsMem mem = pw_memory(x->w);

    return kt_printk_log_read(x->log, &mem, by, &(KtPrintkNow) { .us = us });
}

static uint64_t log_end(World *x)
{
    const GsMem mem = pw_memory(x->w);

    return kt_printk_log_end(x->log, &mem);
}

/* Return all lines as "seq:text seq:text ...". */
static const char *lines(World *x)
{
    static GString *s;
    size_t at = 0;

    s = s ? g_string_truncate(s, 0) : g_string_new(NULL);
    kt_log_read(x->t, 0, 10000, &x->batch);
    for (unsigned i = 0; i < x->batch.line->len; i++) {
        const KtLogLine *line = &g_array_index(x->batch.line, KtLogLine, i);

        g_string_append_printf(s, "%s%u:%.*s", i ? " " : "",
                               (unsigned)line->seq, line->len,
                               (const char *)x->batch.text->data + at);
        at += line->len;
    }
    return s->str;
}

static KtLogLine line(World *x, unsigned i)
{
    kt_log_read(x->t, 0, 10000, &x->batch);
    g_assert_cmpuint(i, <, x->batch.line->len);
    return g_array_index(x->batch.line, KtLogLine, i);
}

/* ---- reading ------------------------------------------------------------- */

static void test_fields(void)
{
    World x;
    KtLogLine l;

    world_init(&x);
    g_assert_false(read_by(&x, NULL, 5));
    g_assert_cmpstr(lines(&x), ==, "");
    pw_store(x.w, &(PwRecord) { .text = "one\0\n\xff", .len = 6,
                                .ns = 123456789, .caller = 42, .level = 3,
                                .facility = 0 });
    pw_store(x.w, &(PwRecord) { .text = "two", .len = 3, .ns = 123456790,
                                .caller = KT_LOG_CALLER_CPU | 3, .level = 7,
                                .facility = 1 });
    pw_store(x.w, &(PwRecord) { .text = "", .len = 0 });
    g_assert_false(read_by(&x, NULL, 77));
    l = line(&x, 0);
    g_assert_cmpmem(x.batch.text->data, l.len, "one\0\n\xff", 6);
    g_assert_cmpuint(l.number, ==, 1);
    g_assert_cmpuint(l.seq, ==, 0);
    g_assert_cmpuint(l.ns, ==, 123456789);
    g_assert_cmpuint(l.us, ==, 77);
    g_assert_cmpuint(l.caller, ==, 42);
    g_assert_cmpuint(l.level, ==, 3);
    g_assert_cmpuint(l.flags, ==, KT_LOG_CALLER);
    l = line(&x, 1);
    g_assert_cmpuint(l.caller, ==, KT_LOG_CALLER_CPU | 3);
    g_assert_cmpuint(l.facility, ==, 1);
    g_assert_cmpuint(l.level, ==, 7);
    g_assert_cmpuint(line(&x, 2).len, ==, 0);
    world_deinit(&x);
}

/* Both arrays wrap many times; each record is read before it is overwritten. */
static void test_wraps(void)
{
    g_autoptr(GString) want = g_string_new(NULL);
    World x;

    world_init(&x);
    for (unsigned i = 0; i < 300; i++) {
        g_autofree char *text = g_strnfill(i * 7 % 120, 'a' + i % 26);

        pw_print(x.w, text);
        g_string_append_printf(want, "%s%u:%s", i ? " " : "", i, text);
        if (i % 3 == 0) {
            read_by(&x, NULL, 1);
        }
    }
    read_by(&x, NULL, 1);
    g_assert_cmpuint(kt_tracer_counter(x.t, KT_CNT_LOG_BAD), ==, 0);
    g_assert_cmpuint(kt_tracer_counter(x.t, KT_CNT_LOG_LOST), ==, 0);
    g_assert_cmpuint(kt_tracer_counter(x.t, KT_CNT_LOG_LINES), ==, 300);
    g_assert_true(!strcmp(lines(&x), want->str));
    world_deinit(&x);
}

/* 16 records have room; those that were overwritten are counted once. */
static void test_lost(void)
{
    World x;

    world_init(&x);
    for (unsigned i = 0; i < 40; i++) {
        pw_print(x.w, "x");
    }
    read_by(&x, NULL, 1);
    g_assert_cmpuint(line(&x, 0).lost + x.batch.line->len, ==, 40);
    g_assert_cmpuint(line(&x, 0).seq, ==, line(&x, 0).lost);
    for (unsigned i = 0; i < 100; i++) {
        pw_print(x.w, "y");
    }
    read_by(&x, NULL, 1);
    g_assert_cmpuint(kt_tracer_counter(x.t, KT_CNT_LOG_LINES) +
                     kt_tracer_counter(x.t, KT_CNT_LOG_LOST), ==, 140);
    g_assert_cmpuint(kt_tracer_counter(x.t, KT_CNT_LOG_LOST), >, 100);
    world_deinit(&x);
}

/* The text ring is smaller than the records need: some have lost theirs. */
static void test_lost_text(void)
{
    g_autofree char *text = g_strnfill(200, 't');
    World x;

    world_init(&x);
    for (unsigned i = 0; i < 10; i++) {
        pw_print(x.w, text);
    }
    read_by(&x, NULL, 1);
    g_assert_cmpuint(kt_tracer_counter(x.t, KT_CNT_LOG_LINES), <=, 4);
    g_assert_cmpuint(kt_tracer_counter(x.t, KT_CNT_LOG_LINES) +
                     kt_tracer_counter(x.t, KT_CNT_LOG_LOST), ==, 10);
    g_assert_cmpuint(kt_tracer_counter(x.t, KT_CNT_LOG_BAD), ==, 0);
    world_deinit(&x);
}

static void test_batches(void)
{
    World x;

    world_init_of(&x, pw_new(9, 16, true), true);
    for (unsigned i = 0; i < 400; i++) {
        pw_print(x.w, "z");
    }
    g_assert_true(read_by(&x, NULL, 1));
    g_assert_cmpuint(kt_tracer_counter(x.t, KT_CNT_LOG_LINES), <=,
                     KT_PRINTK_BATCH);
    while (read_by(&x, NULL, 1)) {
    }
    g_assert_cmpuint(kt_tracer_counter(x.t, KT_CNT_LOG_LINES), ==, 400);
    world_deinit(&x);
}

/* ---- writers ------------------------------------------------------------- */

static KtPrintkWriter writer(World *x, uint32_t pid, unsigned cpu)
{
    const char comm[16] = "writer";

    return (KtPrintkWriter) {
        .us = 1000 + pid, .since = log_end(x), .pid = pid, .cpu = cpu,
        .task = kt_tracer_intern_task(x->t, pid, comm), .known = true,
    };
}

static PwRecord by(uint32_t caller, const char *text)
{
    return (PwRecord) { .text = text, .len = strlen(text), .caller = caller,
                        .level = 6 };
}

static void check_writer(World *x, unsigned i, const KtPrintkWriter *w)
{
    KtLogLine l = line(x, i);

    g_assert_cmpuint(l.flags & KT_LOG_SEEN, ==, w ? KT_LOG_SEEN : 0);
    g_assert_cmpuint(l.task.v, ==, w ? w->task.v : 0);
    if (w) {
        g_assert_cmpuint(l.cpu, ==, w->cpu);
        g_assert_cmpuint(l.us, ==, w->us);
    }
}

/* Two vCPUs store at once; the second returns first. */
static void test_two_writers(void)
{
    KtPrintkWriter a, b;
    PwRecord ra = by(10, "a"), rb = by(20, "b");
    World x;

    world_init(&x);
    a = writer(&x, 10, 0);
    b = writer(&x, 20, 1);
    pw_store(x.w, &ra);
    pw_store(x.w, &rb);
    read_by(&x, &b, b.us);
    check_writer(&x, 0, NULL);
    check_writer(&x, 1, &b);
    read_by(&x, &a, a.us);
    check_writer(&x, 0, &a);
    check_writer(&x, 1, &b);
    world_deinit(&x);
}

/* A line from before the call is not the caller's, although the pid is. */
static void test_older_line(void)
{
    PwRecord r = by(10, "old");
    KtPrintkWriter a;
    World x;

    world_init(&x);
    pw_store(x.w, &r);
    a = writer(&x, 10, 0);
    pw_store(x.w, &r);
    read_by(&x, &a, a.us);
    check_writer(&x, 0, NULL);
    check_writer(&x, 1, &a);
    a = writer(&x, 10, 0);
    read_by(&x, &a, a.us);
    check_writer(&x, 0, NULL);
    world_deinit(&x);
}

/* An interrupt of the writer's CPU stores a line before the writer returns. */
static void test_interrupt(void)
{
    PwRecord task = by(10, "task"), irq = by(KT_LOG_CALLER_CPU | 2, "irq");
    KtPrintkWriter a, b;
    World x;

    world_init(&x);
    a = writer(&x, 10, 2);
    pw_store(x.w, &task);
    b = writer(&x, 10, 2);
    b.irq = true;
    b.us = 5;
    pw_store(x.w, &irq);
    read_by(&x, &b, b.us);
    check_writer(&x, 0, NULL);
    check_writer(&x, 1, &b);
    read_by(&x, &a, a.us);
    check_writer(&x, 0, &a);
    check_writer(&x, 1, &b);
    world_deinit(&x);
}

/* A line is continued; it becomes readable when the next line begins. */
static void test_continuation(void)
{
    PwRecord first = by(10, "begin"), other = by(20, "other");
    KtPrintkWriter a, b;
    uint64_t id;
    World x;

    world_init(&x);
    a = writer(&x, 10, 0);
    id = pw_reserve(x.w, &first);
    pw_set_state(x.w, id, PW_COMMITTED);
    read_by(&x, &a, a.us);
    g_assert_cmpstr(lines(&x), ==, "");
    b = writer(&x, 10, 1);
    b.us = 2000;
    pw_set_state(x.w, id, PW_RESERVED);
    pw_extend(x.w, id, ", the end");
    pw_set_state(x.w, id, PW_COMMITTED);
    read_by(&x, &b, b.us);
    b = writer(&x, 20, 1);
    pw_set_state(x.w, id, PW_FINALIZED);
    pw_store(x.w, &other);
    read_by(&x, &b, b.us);
    g_assert_cmpstr(lines(&x), ==, "0:begin, the end 1:other");
    check_writer(&x, 0, &a);
    check_writer(&x, 1, &b);
    world_deinit(&x);
}

/* A record of vCPU 0 is not finished. Later writers return meanwhile, one of
 * them hundreds of times. */
static void test_blocked(void)
{
    PwRecord ra = by(10, "a"), rb = by(20, "b"), rc = by(30, "c");
    KtPrintkWriter a, b, c;
    uint64_t id;
    World x;

    world_init_of(&x, pw_new(9, 16, true), true);
    a = writer(&x, 10, 0);
    id = pw_reserve(x.w, &ra);
    b = writer(&x, 20, 1);
    pw_store(x.w, &rb);
    read_by(&x, &b, b.us);
    for (unsigned i = 2; i < 500; i++) {
        c = writer(&x, 30, 2);
        pw_store(x.w, &rc);
        read_by(&x, &c, c.us);
    }
    g_assert_cmpstr(lines(&x), ==, "");
    pw_set_state(x.w, id, PW_FINALIZED);
    while (read_by(&x, &a, a.us)) {
    }
    check_writer(&x, 0, &a);
    check_writer(&x, 1, &b);
    check_writer(&x, 499, &c);
    for (unsigned i = 2; i < 500; i++) {
        g_assert_true(line(&x, i).flags & KT_LOG_SEEN);
    }
    world_deinit(&x);
}

/* ---- records that a CPU has not finished --------------------------------- */

/* The CPU that stores record 1 stands still, for a second and more. */
static void test_stuck(void)
{
    PwRecord r = by(1, "late");
    World x;
    uint64_t id;

    world_init(&x);
    pw_print(x.w, "a");
    id = pw_reserve(x.w, &r);
    pw_print(x.w, "c");
    read_by(&x, NULL, 1000);
    read_by(&x, NULL, 500000);
    g_assert_cmpstr(lines(&x), ==, "0:a");
    read_by(&x, NULL, 1200000);
    g_assert_cmpstr(lines(&x), ==, "0:a 2:c");
    pw_print(x.w, "d");
    read_by(&x, NULL, 1200001);
    g_assert_cmpstr(lines(&x), ==, "0:a 2:c 3:d");
    pw_set_state(x.w, id, PW_FINALIZED);
    read_by(&x, NULL, 1300000);
    g_assert_cmpstr(lines(&x), ==, "0:a 2:c 3:d 1:late");
    g_assert_cmpuint(kt_tracer_counter(x.t, KT_CNT_LOG_LOST), ==, 0);
    world_deinit(&x);
}

/* The VM is stopped, as after a panic: nothing is waited for. A record that is
 * never finished is lost when the kernel overwrites it. */
static void test_never_finished(void)
{
    PwRecord r = by(1, "never");
    World x;
    GsMem mem;

    world_init(&x);
    mem = pw_memory(x.w);
    pw_reserve(x.w, &r);
    pw_print(x.w, "b");
    kt_printk_log_read(x.log, &mem, NULL, &(KtPrintkNow) { 5, true });
    g_assert_cmpstr(lines(&x), ==, "1:b");
    for (unsigned i = 0; i < 20; i++) {
        pw_print(x.w, "x");
        read_by(&x, NULL, 6);
    }
    g_assert_cmpuint(kt_tracer_counter(x.t, KT_CNT_LOG_LINES), ==, 21);
    g_assert_cmpuint(kt_tracer_counter(x.t, KT_CNT_LOG_LOST), ==, 1);
    world_deinit(&x);
}

/* The writer takes the record back while its text is copied. */
static void take_back(PrintkWriter *w, uint64_t va, size_t len)
{
    if (len == 5) {
        pw_set_state(w, w->head_id - 1, PW_REUSABLE);
        memset(pw_at(w, va, len), '#', len);
        w->on_read = NULL;
    }
}

static void test_torn(void)
{
    World x;

    world_init(&x);
    pw_print(x.w, "0000");
    pw_print(x.w, "11111");
    pw_print(x.w, "222");
    x.w->on_read = take_back;
    read_by(&x, NULL, 1);
    g_assert_null(x.w->on_read);
    g_assert_null(strchr(lines(&x), '#'));
    world_deinit(&x);
}

/* ---- hostile rings ------------------------------------------------------- */

/* Spoil record 1 of 4; the others must be read, and one counts as bad. */
static void check_spoiled(uint64_t va_of(const PrintkWriter *w, uint64_t id),
                          unsigned at, uint64_t value, size_t len)
{
    World x;
    uint64_t id;

    world_init(&x);
    pw_print(x.w, "a");
    id = pw_store(x.w, &(PwRecord) { .text = "b", .len = 1 });
    pw_print(x.w, "c");
    pw_print(x.w, "d");
    memcpy(pw_at(x.w, va_of(x.w, id) + at, len), &value, len);
    read_by(&x, NULL, 1);
    g_assert_cmpstr(lines(&x), ==, "0:a 2:c 3:d");
    g_assert_cmpuint(kt_tracer_counter(x.t, KT_CNT_LOG_BAD), ==, 1);
    g_assert_cmpuint(kt_tracer_counter(x.t, KT_CNT_LOG_LOST), ==, 1);
    world_deinit(&x);
}

static void test_spoiled_record(void)
{
    static const struct {
        uint64_t (*of)(const PrintkWriter *w, uint64_t id);
        unsigned at, len;
        uint64_t value;
    } row[] = {
        { pw_info, PW_TEXT_LEN, 2, 9 },         /* longer than its block */
        { pw_info, PW_TEXT_LEN, 2, 0xffff },
        { pw_desc, 8, 8, 0 },                   /* begin */
        { pw_desc, 8, 8, 0xfffffffffffffff8 },
        { pw_desc, 8, 8, 12 },                  /* not aligned */
        { pw_desc, 16, 8, 16 },                 /* next: another's block */
        { pw_desc, 16, 8, 1ull << 40 },
        { pw_desc, 16, 8, 0xffffffffffffffff },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(row); i++) {
        check_spoiled(row[i].of, row[i].at, row[i].value, row[i].len);
    }
}

/* A ring whose sizes or addresses cannot be is not read. */
static void test_spoiled_ring(void)
{
    static const struct {
        unsigned at, len;
        uint64_t value;
    } row[] = {
        { 0, 4, 0 }, { 0, 4, 32 }, { 0, 4, UINT32_MAX },    /* count_bits */
        { 48, 4, 3 }, { 48, 4, 40 },                        /* size_bits */
        { 8, 8, 0 }, { 8, 8, 0x1000 }, { 8, 8, PW_BASE + 1 },
        { 16, 8, 0 }, { 56, 8, 0x1000 },
        { 16, 8, PW_BASE + PW_BYTES },                      /* no RAM there */
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(row); i++) {
        World x;

        world_init(&x);
        pw_print(x.w, "a");
        memcpy(pw_at(x.w, pw_struct(x.w) + row[i].at, row[i].len),
               &row[i].value, row[i].len);
        read_by(&x, NULL, 1);
        g_assert_cmpstr(lines(&x), ==, "");
        world_deinit(&x);
    }
}

/* ---- another ring -------------------------------------------------------- */

static void test_moved(void)
{
    World x;

    world_init(&x);
    pw_store(x.w, &(PwRecord) { .text = "a", .len = 1, .ns = 1 });
    pw_store(x.w, &(PwRecord) { .text = "b", .len = 1, .ns = 2 });
    read_by(&x, NULL, 1);
    pw_move(x.w);
    pw_store(x.w, &(PwRecord) { .text = "a", .len = 1, .ns = 1 });
    pw_store(x.w, &(PwRecord) { .text = "b", .len = 1, .ns = 2 });
    pw_store(x.w, &(PwRecord) { .text = "c", .len = 1, .ns = 3 });
    pw_publish(x.w);
    read_by(&x, NULL, 1);
    g_assert_cmpstr(lines(&x), ==, "0:a 1:b 2:c");
    world_deinit(&x);
}

/* The first records were overwritten before the move: numbers change. */
static void test_moved_with_others(void)
{
    World x;

    world_init(&x);
    for (unsigned i = 0; i < 20; i++) {
        pw_store(x.w, &(PwRecord) { .text = "a", .len = 1, .ns = i });
        read_by(&x, NULL, 1);
    }
    pw_move(x.w);
    for (unsigned i = 8; i < 20; i++) {
        pw_store(x.w, &(PwRecord) { .text = "a", .len = 1, .ns = i });
    }
    pw_store(x.w, &(PwRecord) { .text = "new", .len = 3, .ns = 20 });
    pw_publish(x.w);
    read_by(&x, NULL, 1);
    g_assert_cmpuint(kt_tracer_counter(x.t, KT_CNT_LOG_LINES), ==, 21);
    g_assert_cmpuint(line(&x, 20).ns, ==, 20);
    world_deinit(&x);
}

/* ---- without types ------------------------------------------------------- */

static void check_without_types(bool late)
{
    World x;

    world_init_of(&x, pw_new(5, 12, late), false);
    g_assert_nonnull(kt_printk_log_why_not(x.log));
    for (unsigned i = 0; i < 3; i++) {
        pw_print(x.w, "early");
        read_by(&x, NULL, 1);
    }
    g_assert_cmpstr(lines(&x), ==, "");
    pw_print(x.w, "sure");
    read_by(&x, NULL, 1);
    g_assert_null(kt_printk_log_why_not(x.log));
    g_assert_cmpstr(lines(&x), ==, "0:early 1:early 2:early 3:sure");
    world_deinit(&x);
}

static void test_without_types(void)
{
    check_without_types(false);
    check_without_types(true);
}

static const TestCase cases[] = {
    { "/printk-log/fields", test_fields },
    { "/printk-log/wraps", test_wraps },
    { "/printk-log/lost", test_lost },
    { "/printk-log/lost-text", test_lost_text },
    { "/printk-log/batches", test_batches },
    { "/printk-log/two-writers", test_two_writers },
    { "/printk-log/older-line", test_older_line },
    { "/printk-log/interrupt", test_interrupt },
    { "/printk-log/continuation", test_continuation },
    { "/printk-log/blocked", test_blocked },
    { "/printk-log/stuck", test_stuck },
    { "/printk-log/never-finished", test_never_finished },
    { "/printk-log/torn", test_torn },
    { "/printk-log/spoiled-record", test_spoiled_record },
    { "/printk-log/spoiled-ring", test_spoiled_ring },
    { "/printk-log/moved", test_moved },
    { "/printk-log/moved-with-others", test_moved_with_others },
    { "/printk-log/without-types", test_without_types },
};

int main(int argc, char **argv)
{
    return test_main(argc, argv, cases, G_N_ELEMENTS(cases));
}
