/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Call points on the fake QEMU: entries are seen with and without a hook at the
 * same address, hooks go on working, and without points no more code is
 * instrumented. Values of --deref in user space are read although the kernel
 * must not access them.
 */
#include "tests/lib/fake-capture.h"
#include "tests/lib/test-main.h"
#include "tests/lib/types-writer.h"
#include "kalloc-tracer/api/kt-derefs.h"
#include "kalloc-tracer/calls/calls.h"
#include "kalloc-tracer/capture/capture-internal.h"

#define NOT_HOOKED (TEXT + 0x6c0)

static uint64_t entered(FakeCapture *w)
{
    return counter_of(w, KT_CNT_CALLS_ENTERED);
}

CAPTURE_TEST(a_function_without_hook, "/record-calls/a-function-without-hook")
{
    uint32_t id;

    test_qemu_run(START);
    call(w, 2, NOT_HOOKED, 1);
    g_assert_cmpuint(entered(w), ==, 0);
    id = watch_functions(w, "not_hooked");
    call(w, 2, NOT_HOOKED, 1);
    call(w, 2, NOT_HOOKED, 2);
    g_assert_cmpuint(entered(w), ==, 2);
    g_assert_cmpuint(kt_calls_remove(w->t, id), ==, 1);
    call(w, 2, NOT_HOOKED, 3);
    g_assert_cmpuint(entered(w), ==, 2);
}

CAPTURE_TEST(a_function_with_hook, "/record-calls/a-function-with-hook")
{
    watch_functions(w, "kfree");
    test_qemu_run(START);
    run_kmalloc(w, BLOCK);
    run_kfree(w, BLOCK);
    g_assert_cmpuint(entered(w), ==, 1);
    g_assert_cmpuint(stats_of(w).live_blocks, ==, 0);
    g_assert_cmpuint(stats_of(w).events, ==, 2);
}

/* A breakpoint at the entry: the function is entered once, although its first
 * instruction runs twice. A kprobe stays there: each entry counts. */
CAPTURE_TEST(trapped_entries, "/record-calls/trapped-entries")
{
    watch_functions(w, "not_hooked");
    test_qemu_run(START);
    test_qemu_trap(true);
    call(w, 2, NOT_HOOKED, 1);
    test_qemu_trap(false);
    call(w, 2, NOT_HOOKED, 1);
    g_assert_cmpuint(entered(w), ==, 1);
    call(w, 2, NOT_HOOKED, 1);
    g_assert_cmpuint(entered(w), ==, 2);
    test_qemu_trap(true);
    call(w, 2, NOT_HOOKED, 1);
    call(w, 2, NOT_HOOKED, 1);
    g_assert_cmpuint(entered(w), ==, 4);
}

/* The callbacks of code that is translated now: entries with and without a
 * hook, and the places where their calls return. */
static uint64_t callbacks(FakeCapture *w)
{
    uint64_t before = counter_of(w, KT_CNT_COST_CALLBACKS);

    call(w, 2, NOT_HOOKED, 1);
    leave_kmalloc(w, 2, 0);
    run_kmalloc(w, BLOCK);
    call(w, 1, KFREE, BLOCK);
    leave_kmalloc(w, 1, 0);
    return counter_of(w, KT_CNT_COST_CALLBACKS) - before;
}

/* Before anything is watched, and after it is not watched any more, the same
 * code has callbacks: also where calls returned that were recorded. */
CAPTURE_TEST(nothing_is_left, "/record-calls/nothing-is-left")
{
    uint64_t before;
    uint32_t id;

    test_qemu_run(START);
    callbacks(w);
    before = callbacks(w);
    id = watch_functions(w, "not_hooked,kfree,__kmalloc");
    g_assert_cmpuint(callbacks(w), >, before);
    g_assert_cmpuint(kt_calls_remove(w->t, id), ==, 1);
    g_assert_cmpuint(callbacks(w), ==, before);
    g_assert_cmpuint(stats_of(w).errors, ==, 0);
    watch_functions(w, "not_hooked");
    callbacks(w);
    g_assert_cmpuint(counter_of(w, KT_CNT_CALLS_RECORDED), ==, 4);
}

CAPTURE_TEST(a_new_boot, "/record-calls/a-new-boot")
{
    test_qemu_run(START);
    watch_functions(w, "not_hooked");
    test_qemu_reset();
    call(w, 2, NOT_HOOKED, 1);
    g_assert_cmpuint(entered(w), ==, 0);
    test_qemu_run(START);
    call(w, 2, NOT_HOOKED, 1);
    g_assert_cmpuint(entered(w), ==, 1);
}

static KtCallsStats calls_of(FakeCapture *w)
{
    KtCallsStats stats;

    kt_calls_stats(w->t, &stats);
    return stats;
}

/* After the last request is deleted, a return searches no calls, and none are
 * kept for it. */
CAPTURE_TEST(nothing_is_watched_any_more,
             "/record-calls/nothing-is-watched-any-more")
{
    const KtCalls *calls = kt_tracer_calls(w->t);
    uint32_t first = watch_functions(w, "not_hooked");
    uint32_t second = watch_functions(w, "kfree");

    test_qemu_run(START);
    call(w, 2, NOT_HOOKED, 1);
    g_assert_nonnull(kt_calls_open(calls));
    g_assert_cmpuint(calls_of(w).unfinished, ==, 1);
    kt_calls_remove(w->t, second);
    g_assert_nonnull(kt_calls_open(calls));
    kt_calls_remove(w->t, first);
    g_assert_null(kt_calls_open(calls));
    g_assert_cmpuint(calls_of(w).unfinished, ==, 0);
    leave_kmalloc(w, 2, 0);
    g_assert_cmpuint(calls_of(w).kept, ==, 0);
    watch_functions(w, "not_hooked");
    call(w, 2, NOT_HOOKED, 1);
    leave_kmalloc(w, 2, 0);
    g_assert_cmpuint(calls_of(w).kept, ==, 1);
}

/* ---- --deref ------------------------------------------------------------- */

#define USER        0x7f0000400000ull
#define TYPES_AT    0x8000

/* void not_hooked(const char *name) */
static void write_types(FakeCapture *w)
{
    struct btf *b = btf__new_empty();
    int text = btf__add_int(b, "char", 1, BTF_INT_SIGNED), proto;
    g_autoptr(GBytes) bytes = NULL;

    text = btf__add_ptr(b, btf__add_const(b, text));
    proto = btf__add_func_proto(b, 0);
    btf__add_func_param(b, "name", text);
    btf__add_func(b, "not_hooked", BTF_FUNC_STATIC, proto);
    bytes = types_bytes(b);
    memcpy(w->image + (KS_RODATA - KS_TEXT) + TYPES_AT,
           g_bytes_get_data(bytes, NULL), g_bytes_get_size(bytes));
}

static void add_value(void *opaque, const KtCallDeref *value)
{
    bool known = value->state == KT_DEREF_KNOWN;

    g_string_append_printf(opaque, "%.*s;", known ? (int)value->len : 1,
                           known ? (const char *)value->bytes : "?");
}

/* (owned) The texts of all calls. */
static char *texts(FakeCapture *w)
{
    GString *s = g_string_new(NULL);
    g_auto(KtCallList) list;

    kt_query_calls(w->t, &list);
    for (unsigned i = 0; i < list.calls->len; i++) {
        kt_call_foreach_deref(w->t, &g_array_index(list.calls, KtCallView, i),
                              add_value, s);
    }
    return g_string_free(s, FALSE);
}

CAPTURE_TEST(memory_of_user_space, "/record-calls/memory-of-user-space")
{
    const KtWatchSpec spec = { .functions = "not_hooked", .derefs = "name" };
    g_autoptr(GError) err = NULL;
    g_autofree char *got = NULL;

    write_types(w);
    test_qemu_run(START);
    kt_calls_configure(w->t, 1 << 20, 1);
    kt_calls_add(w->t, kt_capture_kernel(w->capture), &spec, &err);
    g_assert_no_error(err);
    memcpy(test_qemu_map(USER, 4096), "in memory", 10);
    test_qemu_smap(true);
    call(w, 2, NOT_HOOKED, USER);
    call(w, 2, NOT_HOOKED, USER + 4096);
    call(w, 2, NOT_HOOKED, STACK - 4096);
    test_qemu_smap(false);
    call(w, 2, NOT_HOOKED, USER + 3);
    got = texts(w);
    g_assert_cmpstr(got, ==, "in memory;?;?;memory;");
    g_assert_cmpuint(counter_of(w, KT_CNT_CALLS_DEREF_UNREADABLE), ==, 2);
}
