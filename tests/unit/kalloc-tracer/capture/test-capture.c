/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Capture finds the kernel and turns its calls into events, also after
 * recording was off and after a reset of the VM.
 */
#include "tests/lib/fake-capture.h"
#include "tests/lib/test-main.h"
#include "kalloc-tracer/capture/capture-internal.h"
#include "kalloc-tracer/tracer/tracer.h"

#include <string.h>

CAPTURE_TEST(calls_become_events, "/capture/calls-become-events")
{
    test_qemu_run(START);
    g_assert_true(kt_capture_found(w->capture));
    run_kmalloc(w, BLOCK);
    run_kmalloc(w, BLOCK + 64);
    run_kfree(w, BLOCK);
    g_assert_cmpuint(stats_of(w).live_blocks, ==, 1);
    g_assert_cmpuint(stats_of(w).errors, ==, 0);
    run_kfree(w, BLOCK);
    g_assert_cmpuint(stats_of(w).errors, ==, 1);
}

/* Freeing NULL is right and an error pointer never is; but kmem_cache_free()
 * takes no NULL, and vfree() no ZERO_SIZE_PTR. */
CAPTURE_TEST(what_is_no_memory, "/capture/what-is-no-memory")
{
    test_qemu_run(START);
    run_kfree(w, 0);
    run_kfree(w, KT_ZERO_SIZE_PTR);
    call(w, 2, VFREE, 0);
    g_assert_cmpuint(counter_of(w, KT_CNT_FREE_NULL), ==, 3);
    g_assert_cmpuint(stats_of(w).errors, ==, 0);
    run_kfree(w, (uint64_t)-2);
    call(w, 2, VFREE, KT_ZERO_SIZE_PTR);
    call(w, 2, VFREE, (uint64_t)-4095);
    *test_qemu_reg(GS_REG_ARG1) = 0;
    call(w, 2, CACHE_FREE, BLOCK);
    g_assert_cmpuint(counter_of(w, KT_CNT_FREE_NULL), ==, 3);
    g_assert_cmpuint(stats_of(w).errors, ==, 4);
}

/* A function that reads its block mostly dies at an error pointer. If it does
 * not, the kfree() that it calls or jumps to is the same error. */
CAPTURE_TEST(error_pointers_of_functions_that_read,
             "/capture/error-pointers-of-functions-that-read")
{
    const uint64_t bad = (uint64_t)-12;

    test_qemu_run(START);
    run_kmalloc(w, BLOCK);
    call(w, 2, KFREE_SENSITIVE, BLOCK);
    call(w, 2, KFREE_SENSITIVE, 0);
    g_assert_cmpuint(stats_of(w).live_blocks, ==, 1);
    g_assert_cmpuint(stats_of(w).errors, ==, 0);
    call(w, 2, KFREE_SENSITIVE, bad);
    g_assert_cmpuint(stats_of(w).errors, ==, 1);
    call(w, 2, KFREE, bad);                     /* a jump */
    g_assert_cmpuint(stats_of(w).errors, ==, 1);
    call(w, 3, KFREE, bad);
    g_assert_cmpuint(stats_of(w).errors, ==, 2);
    call(w, 2, KREALLOC, bad);
    g_assert_cmpuint(stats_of(w).errors, ==, 3);
    call(w, IN_KREALLOC, KFREE, bad);
    g_assert_cmpuint(stats_of(w).errors, ==, 3);
    g_assert_cmpuint(counter_of(w, KT_CNT_FREE_NULL), ==, 0);
}

/* A block has one address, whatever tag the pointer to it has: the tag changes
 * with each life, and the kernel itself may free without it. */
CAPTURE_TEST(pointers_with_tags, "/capture/pointers-with-tags")
{
    test_qemu_run(START);
    w->capture->vcpu[0].tag_bits = 0xffull << 56;
    run_kmalloc(w, BLOCK ^ 0xd1ull << 56);
    run_kfree(w, BLOCK);
    g_assert_cmpuint(stats_of(w).errors, ==, 0);
    g_assert_cmpuint(stats_of(w).live_blocks, ==, 0);
    run_kmalloc(w, BLOCK ^ 0x47ull << 56);
    run_kfree(w, BLOCK ^ 0x47ull << 56);
    g_assert_cmpuint(stats_of(w).errors, ==, 0);
    run_kfree(w, BLOCK ^ 0x47ull << 56);
    g_assert_cmpuint(stats_of(w).errors, ==, 1);
    run_kfree(w, (uint64_t)-2);
    g_assert_cmpuint(stats_of(w).errors, ==, 2);
    /* a pointer of the last life, and the owner's */
    run_kmalloc(w, BLOCK ^ 0x33ull << 56);
    run_kfree(w, BLOCK ^ 0x47ull << 56);
    g_assert_cmpuint(stats_of(w).errors, ==, 3);
    g_assert_cmpuint(stats_of(w).live_blocks, ==, 1);
    run_kfree(w, BLOCK ^ 0x33ull << 56);
    g_assert_cmpuint(stats_of(w).errors, ==, 3);
    g_assert_cmpuint(stats_of(w).live_blocks, ==, 0);
    test_qemu_reset();
    g_assert_cmphex(w->capture->vcpu[0].tag_bits, ==, 0);
}

/* What a bulk allocation takes back was never handed out, and may have had a
 * life before. */
CAPTURE_TEST(bulk_allocation_that_fails, "/capture/bulk-allocation-that-fails")
{
    test_qemu_run(START);
    run_kmalloc(w, BLOCK);
    run_kfree(w, BLOCK);
    *test_qemu_reg(GS_REG_ARG1) = BLOCK;
    call(w, IN_FREE_BULK, CACHE_FREE, 0);
    g_assert_cmpuint(stats_of(w).errors, ==, 0);
    call(w, 1, CACHE_FREE, 0);
    g_assert_cmpuint(stats_of(w).errors, ==, 1);
}

/* Who was inside the allocator all the time is handed what was freed since. */
CAPTURE_TEST(calls_under_way_when_switched_on,
             "/capture/calls-under-way-when-switched-on")
{
    test_qemu_run(START);
    run_kmalloc(w, BLOCK);
    kt_tracer_set_enabled(w->t, false);
    enter_kmalloc(w, 2);
    kt_tracer_set_enabled(w->t, true);
    run_kfree(w, BLOCK);
    g_assert_cmpuint(stats_of(w).live_blocks, ==, 0);
    leave_kmalloc(w, 2, BLOCK);
    g_assert_cmpuint(stats_of(w).live_blocks, ==, 1);
    run_kfree(w, BLOCK);
    g_assert_cmpuint(stats_of(w).live_blocks, ==, 0);
    g_assert_cmpuint(stats_of(w).errors, ==, 0);
}

/* They are no events, leave nothing behind, and none is counted as lost. */
CAPTURE_TEST(calls_while_off, "/capture/calls-while-off")
{
    KtHookId id = kt_hook_table_find(kt_tracer_hooks(w->t), "__kmalloc");

    test_qemu_run(START);
    enter_kmalloc(w, 2);
    kt_tracer_set_enabled(w->t, false);
    leave_kmalloc(w, 2, BLOCK);
    for (unsigned i = 0; i < 10000; i++) {
        run_kmalloc(w, BLOCK);
        run_kfree(w, BLOCK);
    }
    g_assert_cmpuint(stats_of(w).events, ==, 0);
    g_assert_cmpuint(kt_capture_hook_hits(w->capture, id), ==, 1);
    g_assert_cmpuint(kt_pending_calls_pending(w->capture->shared.calls), ==, 0);
    g_assert_cmpuint(counter_of(w, KT_CNT_CALL_DROPPED), ==, 0);
    g_assert_cmpuint(counter_of(w, KT_CNT_CALL_STALE), ==, 0);
    g_assert_cmpuint(counter_of(w, KT_CNT_RETURN_FOREIGN), ==, 0);
}

/* Its stack cannot be read: nobody will see it return. */
static void lose_kmalloc(FakeCapture *w)
{
    *test_qemu_reg(GS_REG_SP) = STACK + (1 << 20);
    *test_qemu_reg(GS_REG_ARG0) = 64;
    test_qemu_run(KMALLOC);
}

/* It is handed what another vCPU frees meanwhile, and frees it. */
CAPTURE_TEST(what_a_lost_call_hands_out, "/capture/what-a-lost-call-hands-out")
{
    test_qemu_run(START);
    run_kmalloc(w, BLOCK);
    lose_kmalloc(w);
    run_kfree(w, BLOCK);
    run_kfree(w, BLOCK);
    g_assert_cmpuint(stats_of(w).errors, ==, 0);
    g_assert_cmpuint(counter_of(w, KT_CNT_CALL_UNREADABLE), ==, 1);
    g_assert_cmpuint(counter_of(w, KT_CNT_GAPS), ==, 1);
    test_qemu_reset();
    test_qemu_run(START);
    run_kmalloc(w, BLOCK);
    run_kfree(w, BLOCK);
    run_kfree(w, BLOCK);
    g_assert_cmpuint(stats_of(w).errors, ==, 1);
}

/* Of those that are lost while nothing is recorded one may matter later. */
CAPTURE_TEST(calls_lost_while_off, "/capture/calls-lost-while-off")
{
    test_qemu_run(START);
    kt_tracer_set_enabled(w->t, false);
    for (unsigned i = 0; i < 1000; i++) {
        lose_kmalloc(w);
    }
    g_assert_cmpuint(counter_of(w, KT_CNT_GAPS), ==, 1);
    g_assert_cmpuint(counter_of(w, KT_CNT_CALL_UNREADABLE), ==, 1);
    kt_tracer_set_enabled(w->t, true);
    run_kmalloc(w, BLOCK);
    run_kfree(w, BLOCK);
    run_kfree(w, BLOCK);
    g_assert_cmpuint(stats_of(w).errors, ==, 0);
    g_assert_cmpuint(counter_of(w, KT_CNT_GAPS), ==, 2);
}

/* Its loading fails, or free_module() has told of it before: once is enough. */
CAPTURE_TEST(modules_go_once, "/capture/modules-go-once")
{
    const GsKernel *k;

    test_qemu_run(START);
    k = kt_capture_kernel(w->capture);
    load_module(w, MODULES, "m", "f");
    g_assert_cmpuint(gs_kernel_n_modules(k), ==, 1);
    for (unsigned i = 0; i < 2; i++) {
        call(w, 1, MODULE_UNDO, MODULES + 0x10000);
        g_assert_cmpuint(gs_kernel_n_modules(k), ==, 0);
        g_assert_cmpuint(counter_of(w, KT_CNT_MODULES_CHECKED), ==, 1);
    }
    call(w, 1, MODULE_UNDO, MODULES);
    g_assert_cmpuint(counter_of(w, KT_CNT_MODULES_CHECKED), ==, 1);
}

static void append_moment(void *opaque, KtMoment moment, const char *module)
{
    g_string_append_printf(opaque, "%u %s\n", moment, module ? module : "-");
}

/* Who wants to know is called once for each boot and each unload. */
CAPTURE_TEST(moments, "/capture/moments")
{
    g_autoptr(GString) seen = g_string_new(NULL);

    kt_capture_on_moment(w->capture, append_moment, seen);
    test_qemu_run(START);
    load_module(w, MODULES, "m", "f");
    call(w, 1, MODULE_UNDO, MODULES + 0x10000);
    call(w, 1, MODULE_UNDO, MODULES + 0x10000);
    test_qemu_reset();
    test_qemu_run(START);
    g_assert_cmpstr(seen->str, ==, "0 -\n2 m\n0 -\n");
}

/* The map was lost with all that was allocated before. What boots then is
 * seen from its first allocation on. */
CAPTURE_TEST(reset_of_what_was_lost, "/capture/reset-of-what-was-lost")
{
    g_autoptr(GByteArray) state = NULL;

    g_assert_null(test_qemu_load(NULL));
    state = test_qemu_save();
    for (unsigned i = 0; i < 2; i++) {
        test_qemu_reset();
        test_qemu_run(START);
        g_assert_true(kt_capture_found(w->capture));
        run_kmalloc(w, BLOCK);
        run_kfree(w, BLOCK + 4096);
        g_assert_cmpuint(stats_of(w).errors, ==, 1);
        g_assert_null(test_qemu_load(state));
    }
}

/* Saved by the firmware, say: all of its boot is seen, although the kernel
 * runs some blocks before its start. */
static void started_after_a_load(gconstpointer file)
{
    g_autoptr(FakeCapture) w = fake_capture_new(NULL, *(const bool *)file);
    g_autoptr(GByteArray) state = test_qemu_save();

    g_assert_null(test_qemu_load(state));
    test_qemu_run(TEXT + 0x600);
    test_qemu_run(START);
    g_assert_true(kt_capture_found(w->capture));
    run_kfree(w, BLOCK);
    g_assert_cmpuint(stats_of(w).errors, ==, 1);
}

static const bool file[] = { false, true };

TEST_WITH(started_after_a_load, "/capture/started-after-a-load", &file[0])
TEST_WITH(started_after_a_load, "/capture/started-after-a-load-with-file",
          &file[1])

/* A function that the guest traces jumped to kmalloc(), which returns to the
 * tracer then. No types say where the true return address is. */
CAPTURE_TEST(returns_to_a_tracer, "/capture/returns-to-a-tracer")
{
    const uint64_t ra = RETURN_TO_HANDLER;

    test_qemu_run(START);
    memcpy(w->stack, &ra, sizeof(ra));
    *test_qemu_reg(GS_REG_SP) = STACK;
    *test_qemu_reg(GS_REG_ARG0) = 64;
    test_qemu_run(KMALLOC);
    *test_qemu_reg(GS_REG_SP) = STACK + 8;
    *test_qemu_reg(GS_REG_RESULT) = BLOCK;
    test_qemu_run(RETURN_TO_HANDLER);
    g_assert_cmpuint(stats_of(w).live_blocks, ==, 1);
    g_assert_cmpuint(counter_of(w, KT_CNT_STACK_REPLACED), ==, 1);
    run_kfree(w, BLOCK);
    g_assert_cmpuint(stats_of(w).live_blocks, ==, 0);
    g_assert_cmpuint(stats_of(w).errors, ==, 0);
}
