/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernel's ring of printk records, made in memory: each record becomes one
 * line, with the right writer; what is overwritten is counted; a record that
 * changes while it is copied, or whose parts contradict each other, is not
 * shown.
 */
#include "kalloc-tracer/kernel/printk-log.h"

#include <string.h>

#include "tests/lib/printk-world.h"
#include "tests/lib/test-main.h"

/* ---- reading ------------------------------------------------------------- */

TEST(test_fields, "/printk-log/fields")
{
    g_auto(PrintkWorld) x;
    KtLogLine l;

    printk_world_init(&x);
    g_assert_false(printk_world_read(&x, NULL, 5));
    g_assert_cmpstr(printk_world_lines(&x), ==, "");
    pw_store(x.w, &(PwRecord) { .text = "one\0\n\xff", .len = 6,
                                .ns = 123456789, .caller = 42, .level = 3,
                                .facility = 0 });
    pw_store(x.w, &(PwRecord) { .text = "two", .len = 3, .ns = 123456790,
                                .caller = KT_LOG_CALLER_CPU | 3, .level = 7,
                                .facility = 1 });
    pw_store(x.w, &(PwRecord) { .text = "", .len = 0 });
    g_assert_false(printk_world_read(&x, NULL, 77));
    l = printk_world_line(&x, 0);
    g_assert_cmpmem(x.batch.text->data, l.len, "one\0\n\xff", 6);
    g_assert_cmpuint(l.number, ==, 1);
    g_assert_cmpuint(l.seq, ==, 0);
    g_assert_cmpuint(l.ns, ==, 123456789);
    g_assert_cmpuint(l.us, ==, 77);
    g_assert_cmpuint(l.caller, ==, 42);
    g_assert_cmpuint(l.level, ==, 3);
    g_assert_cmpuint(l.flags, ==, KT_LOG_CALLER);
    l = printk_world_line(&x, 1);
    g_assert_cmpuint(l.caller, ==, KT_LOG_CALLER_CPU | 3);
    g_assert_cmpuint(l.facility, ==, 1);
    g_assert_cmpuint(l.level, ==, 7);
    g_assert_cmpuint(printk_world_line(&x, 2).len, ==, 0);
}

/* Both arrays wrap many times; each record is read before it is overwritten. */
TEST(test_wraps, "/printk-log/wraps")
{
    g_autoptr(GString) want = g_string_new(NULL);
    g_auto(PrintkWorld) x;

    printk_world_init(&x);
    for (unsigned i = 0; i < 300; i++) {
        g_autofree char *text = g_strnfill(i * 7 % 120, 'a' + i % 26);

        pw_print(x.w, text);
        g_string_append_printf(want, "%s%u:%s", i ? " " : "", i, text);
        if (i % 3 == 0) {
            printk_world_read(&x, NULL, 1);
        }
    }
    printk_world_read(&x, NULL, 1);
    g_assert_cmpuint(kt_tracer_counter(x.t, KT_CNT_LOG_BAD), ==, 0);
    g_assert_cmpuint(kt_tracer_counter(x.t, KT_CNT_LOG_LOST), ==, 0);
    g_assert_cmpuint(kt_tracer_counter(x.t, KT_CNT_LOG_LINES), ==, 300);
    g_assert_true(!strcmp(printk_world_lines(&x), want->str));
}

/* 16 records have room; those that were overwritten are counted once. */
TEST(test_lost, "/printk-log/lost")
{
    g_auto(PrintkWorld) x;

    printk_world_init(&x);
    for (unsigned i = 0; i < 40; i++) {
        pw_print(x.w, "x");
    }
    printk_world_read(&x, NULL, 1);
    g_assert_cmpuint(printk_world_line(&x, 0).lost + x.batch.line->len, ==, 40);
    g_assert_cmpuint(printk_world_line(&x, 0).seq, ==,
                     printk_world_line(&x, 0).lost);
    for (unsigned i = 0; i < 100; i++) {
        pw_print(x.w, "y");
    }
    printk_world_read(&x, NULL, 1);
    g_assert_cmpuint(kt_tracer_counter(x.t, KT_CNT_LOG_LINES) +
                     kt_tracer_counter(x.t, KT_CNT_LOG_LOST), ==, 140);
    g_assert_cmpuint(kt_tracer_counter(x.t, KT_CNT_LOG_LOST), >, 100);
}

/* The text ring is smaller than the records need: some have lost theirs. */
TEST(test_lost_text, "/printk-log/lost-text")
{
    g_autofree char *text = g_strnfill(200, 't');
    g_auto(PrintkWorld) x;

    printk_world_init(&x);
    for (unsigned i = 0; i < 10; i++) {
        pw_print(x.w, text);
    }
    printk_world_read(&x, NULL, 1);
    g_assert_cmpuint(kt_tracer_counter(x.t, KT_CNT_LOG_LINES), <=, 4);
    g_assert_cmpuint(kt_tracer_counter(x.t, KT_CNT_LOG_LINES) +
                     kt_tracer_counter(x.t, KT_CNT_LOG_LOST), ==, 10);
    g_assert_cmpuint(kt_tracer_counter(x.t, KT_CNT_LOG_BAD), ==, 0);
}

TEST(test_batches, "/printk-log/batches")
{
    g_auto(PrintkWorld) x;

    printk_world_init_of(&x, pw_new(9, 16, true), true);
    for (unsigned i = 0; i < 400; i++) {
        pw_print(x.w, "z");
    }
    g_assert_true(printk_world_read(&x, NULL, 1));
    g_assert_cmpuint(kt_tracer_counter(x.t, KT_CNT_LOG_LINES), <=,
                     KT_PRINTK_BATCH);
    while (printk_world_read(&x, NULL, 1)) {
    }
    g_assert_cmpuint(kt_tracer_counter(x.t, KT_CNT_LOG_LINES), ==, 400);
}

/* ---- records that a CPU has not finished --------------------------------- */

/* The CPU that stores record 1 stands still, for a second and more. */
TEST(test_stuck, "/printk-log/stuck")
{
    PwRecord r = printk_by(1, "late");
    g_auto(PrintkWorld) x;
    uint64_t id;

    printk_world_init(&x);
    pw_print(x.w, "a");
    id = pw_reserve(x.w, &r);
    pw_print(x.w, "c");
    printk_world_read(&x, NULL, 1000);
    printk_world_read(&x, NULL, 500000);
    g_assert_cmpstr(printk_world_lines(&x), ==, "0:a");
    printk_world_read(&x, NULL, 1200000);
    g_assert_cmpstr(printk_world_lines(&x), ==, "0:a 2:c");
    pw_print(x.w, "d");
    printk_world_read(&x, NULL, 1200001);
    g_assert_cmpstr(printk_world_lines(&x), ==, "0:a 2:c 3:d");
    pw_set_state(x.w, id, PW_FINALIZED);
    printk_world_read(&x, NULL, 1300000);
    g_assert_cmpstr(printk_world_lines(&x), ==, "0:a 2:c 3:d 1:late");
    g_assert_cmpuint(kt_tracer_counter(x.t, KT_CNT_LOG_LOST), ==, 0);
}

/* The VM is stopped, as after a panic: nothing is waited for. A record that is
 * never finished is lost when the kernel overwrites it. */
TEST(test_never_finished, "/printk-log/never-finished")
{
    PwRecord r = printk_by(1, "never");
    g_auto(PrintkWorld) x;
    GsMem mem;

    printk_world_init(&x);
    mem = pw_memory(x.w);
    pw_reserve(x.w, &r);
    pw_print(x.w, "b");
    kt_printk_log_read(x.log, &mem, NULL, &(KtPrintkNow) { 5, true });
    g_assert_cmpstr(printk_world_lines(&x), ==, "1:b");
    for (unsigned i = 0; i < 20; i++) {
        pw_print(x.w, "x");
        printk_world_read(&x, NULL, 6);
    }
    g_assert_cmpuint(kt_tracer_counter(x.t, KT_CNT_LOG_LINES), ==, 21);
    g_assert_cmpuint(kt_tracer_counter(x.t, KT_CNT_LOG_LOST), ==, 1);
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

TEST(test_torn, "/printk-log/torn")
{
    g_auto(PrintkWorld) x;

    printk_world_init(&x);
    pw_print(x.w, "0000");
    pw_print(x.w, "11111");
    pw_print(x.w, "222");
    x.w->on_read = take_back;
    printk_world_read(&x, NULL, 1);
    g_assert_null(x.w->on_read);
    g_assert_null(strchr(printk_world_lines(&x), '#'));
}

/* ---- hostile rings ------------------------------------------------------- */

/* Spoil record 1 of 4; the others must be read, and one counts as bad. */
static void check_spoiled(uint64_t va_of(const PrintkWriter *w, uint64_t id),
                          unsigned at, uint64_t value, size_t len)
{
    g_auto(PrintkWorld) x;
    uint64_t id;

    printk_world_init(&x);
    pw_print(x.w, "a");
    id = pw_store(x.w, &(PwRecord) { .text = "b", .len = 1 });
    pw_print(x.w, "c");
    pw_print(x.w, "d");
    memcpy(pw_at(x.w, va_of(x.w, id) + at, len), &value, len);
    printk_world_read(&x, NULL, 1);
    g_assert_cmpstr(printk_world_lines(&x), ==, "0:a 2:c 3:d");
    g_assert_cmpuint(kt_tracer_counter(x.t, KT_CNT_LOG_BAD), ==, 1);
    g_assert_cmpuint(kt_tracer_counter(x.t, KT_CNT_LOG_LOST), ==, 1);
}

TEST(test_spoiled_record, "/printk-log/spoiled-record")
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
TEST(test_spoiled_ring, "/printk-log/spoiled-ring")
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
        PrintkWorld x;

        printk_world_init(&x);
        pw_print(x.w, "a");
        memcpy(pw_at(x.w, pw_struct(x.w) + row[i].at, row[i].len),
               &row[i].value, row[i].len);
        printk_world_read(&x, NULL, 1);
        g_assert_cmpstr(printk_world_lines(&x), ==, "");
        printk_world_deinit(&x);
    }
}

/* ---- another ring -------------------------------------------------------- */

TEST(test_moved, "/printk-log/moved")
{
    g_auto(PrintkWorld) x;

    printk_world_init(&x);
    pw_store(x.w, &(PwRecord) { .text = "a", .len = 1, .ns = 1 });
    pw_store(x.w, &(PwRecord) { .text = "b", .len = 1, .ns = 2 });
    printk_world_read(&x, NULL, 1);
    pw_move(x.w);
    pw_store(x.w, &(PwRecord) { .text = "a", .len = 1, .ns = 1 });
    pw_store(x.w, &(PwRecord) { .text = "b", .len = 1, .ns = 2 });
    pw_store(x.w, &(PwRecord) { .text = "c", .len = 1, .ns = 3 });
    pw_publish(x.w);
    printk_world_read(&x, NULL, 1);
    g_assert_cmpstr(printk_world_lines(&x), ==, "0:a 1:b 2:c");
}

/* The first records were overwritten before the move: numbers change. */
TEST(test_moved_with_others, "/printk-log/moved-with-others")
{
    g_auto(PrintkWorld) x;

    printk_world_init(&x);
    for (unsigned i = 0; i < 20; i++) {
        pw_store(x.w, &(PwRecord) { .text = "a", .len = 1, .ns = i });
        printk_world_read(&x, NULL, 1);
    }
    pw_move(x.w);
    for (unsigned i = 8; i < 20; i++) {
        pw_store(x.w, &(PwRecord) { .text = "a", .len = 1, .ns = i });
    }
    pw_store(x.w, &(PwRecord) { .text = "new", .len = 3, .ns = 20 });
    pw_publish(x.w);
    printk_world_read(&x, NULL, 1);
    g_assert_cmpuint(kt_tracer_counter(x.t, KT_CNT_LOG_LINES), ==, 21);
    g_assert_cmpuint(printk_world_line(&x, 20).ns, ==, 20);
}

/* ---- without types ------------------------------------------------------- */

static void check_without_types(bool late)
{
    g_auto(PrintkWorld) x;

    printk_world_init_of(&x, pw_new(5, 12, late), false);
    g_assert_nonnull(kt_printk_log_why_not(x.log));
    for (unsigned i = 0; i < 3; i++) {
        pw_print(x.w, "early");
        printk_world_read(&x, NULL, 1);
    }
    g_assert_cmpstr(printk_world_lines(&x), ==, "");
    pw_print(x.w, "sure");
    printk_world_read(&x, NULL, 1);
    g_assert_null(kt_printk_log_why_not(x.log));
    g_assert_cmpstr(printk_world_lines(&x), ==,
                    "0:early 1:early 2:early 3:sure");
}

TEST(test_without_types, "/printk-log/without-types")
{
    check_without_types(false);
    check_without_types(true);
}
