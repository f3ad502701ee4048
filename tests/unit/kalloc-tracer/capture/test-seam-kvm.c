/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Capture of a guest of KVM. This program defines the functions of QEMU that
 * add and remove code hooks. Each function of its kernel has three
 * instructions.
 */
#include "tests/lib/fake-capture.h"
#include "tests/lib/test-main.h"
#include "kalloc-tracer/calls/calls.h"
#include "kalloc-tracer/capture/capture-internal.h"

#include <string.h>

#define ENTRY   0               /* push %rbp */
#define RETURN  2               /* ret, behind pop %rbp */
#define NOT_HOOKED (TEXT + 0x6c0)

/* The code hooks of the fake QEMU. @refused: no hook can be added there;
 * @action, @next: how the last callback ended */
static struct {
    qemu_plugin_vcpu_code_hook_cb_t cb;
    qemu_plugin_vcpu_syscall_entry_cb_t entry_cb;
    void *userdata, *entry_userdata;
    uint64_t va[64];
    bool disabled[64];
    unsigned n;
    uint64_t refused, withdrawn;
    enum qemu_plugin_code_hook_action action;
    uint64_t next;
} hooks;

bool qemu_plugin_register_vcpu_code_hook_cb(qemu_plugin_id_t id,
                                            qemu_plugin_vcpu_code_hook_cb_t cb,
                                            void *userdata)
{
    hooks.cb = cb;
    hooks.userdata = userdata;
    hooks.n = 0;
    hooks.refused = 0;
    return true;
}

bool qemu_plugin_register_vcpu_syscall_entry_cb(
    qemu_plugin_id_t id, qemu_plugin_vcpu_syscall_entry_cb_t cb,
    void *userdata)
{
    hooks.entry_cb = cb;
    hooks.entry_userdata = userdata;
    return true;
}

static unsigned find(uint64_t va)
{
    unsigned i = 0;

    while (i < hooks.n && hooks.va[i] != va) {
        i++;
    }
    return i;
}

bool qemu_plugin_add_code_hook(uint64_t vaddr)
{
    g_assert_cmpuint(hooks.n, <, G_N_ELEMENTS(hooks.va));
    if (vaddr == hooks.refused) {
        return false;
    }
    if (find(vaddr) == hooks.n) {
        hooks.disabled[hooks.n] = false;
        hooks.va[hooks.n++] = vaddr;
    }
    return true;
}

bool qemu_plugin_enable_code_hook(uint64_t vaddr, bool enable)
{
    unsigned i = find(vaddr);

    hooks.disabled[i] = !enable;
    return i < hooks.n;
}

bool qemu_plugin_remove_code_hook(uint64_t vaddr)
{
    unsigned i = find(vaddr);

    if (i == hooks.n) {
        return false;
    }
    hooks.va[i] = hooks.va[--hooks.n];
    hooks.disabled[i] = hooks.disabled[hooks.n];
    return true;
}

uint64_t qemu_plugin_code_hooks_withdrawn(void)
{
    return hooks.withdrawn;
}

static void withdraw(uint64_t va)
{
    g_assert_true(qemu_plugin_remove_code_hook(va));
    hooks.withdrawn++;
}

/* ---- the guest ----------------------------------------------------------- */

static void put_function(FakeCapture *w, uint64_t va)
{
    static const uint8_t code[] = { 0x55, 0x5d, 0xc3 };

    memcpy(w->image + (va - TEXT), code, sizeof(code));
}

/* Start a kernel with three functions that can have breakpoints: it sets the
 * entry of system calls. */
static void boot(FakeCapture *w)
{
    memset(w->image, 0xcc, 0xb00);
    put_function(w, KMALLOC);
    put_function(w, KFREE);
    put_function(w, NOT_HOOKED);
    hooks.entry_cb(0, START, hooks.entry_userdata);
}

/* Start a kernel whose functions all can. */
static void boot_whole(FakeCapture *w)
{
    memset(w->image, 0xcc, 0xb00);
    for (unsigned at = 0x200; at < 0xb00; at += 0x10) {
        put_function(w, TEXT + at);
    }
    hooks.entry_cb(0, START, hooks.entry_userdata);
}

/* Execute the instruction at @va; return true if it is hooked. */
static bool execute(uint64_t va)
{
    unsigned i = find(va);

    if (i == hooks.n || hooks.disabled[i]) {
        return false;
    }
    test_qemu_write(0);
    hooks.action = hooks.cb(0, va, &hooks.next, hooks.userdata);
    return true;
}

static bool enter(FakeCapture *w, unsigned place, uint64_t va, uint64_t arg)
{
    uint64_t ra = CALLER + 0x10 * place;

    memcpy(w->stack + 64 * place, &ra, sizeof(ra));
    *test_qemu_reg(GS_REG_SP) = STACK + 64 * place;
    *test_qemu_reg(GS_REG_ARG0) = arg;
    return execute(va + ENTRY);
}

static bool leave(unsigned place, uint64_t va, uint64_t result)
{
    *test_qemu_reg(GS_REG_SP) = STACK + 64 * place;
    *test_qemu_reg(GS_REG_RESULT) = result;
    return execute(va + RETURN);
}

/* Call kmalloc(): a vCPU comes by a breakpoint. */
static void run_once(FakeCapture *w)
{
    enter(w, 0, KMALLOC, 64);
    leave(0, KMALLOC, BLOCK);
}

CAPTURE_TEST(calls_become_events, "/seam-kvm/calls-become-events")
{
    boot(w);
    g_assert_true(kt_capture_found(w->capture));
    g_assert_true(enter(w, 0, KMALLOC, 64));
    g_assert_true(leave(0, KMALLOC, BLOCK));
    g_assert_cmpuint(stats_of(w).live_blocks, ==, 1);
    g_assert_true(enter(w, 1, KFREE, BLOCK));
    g_assert_false(leave(1, KFREE, 0));         /* nobody needs it */
    g_assert_cmpuint(stats_of(w).live_blocks, ==, 0);
    g_assert_cmpuint(stats_of(w).errors, ==, 0);
    test_qemu_reset();
}

/* Two tasks are in kmalloc() at once, and the first one returns last. */
CAPTURE_TEST(calls_overlap, "/seam-kvm/calls-overlap")
{
    boot(w);
    enter(w, 0, KMALLOC, 64);
    enter(w, 2, KMALLOC, 64);
    leave(2, KMALLOC, BLOCK);
    leave(0, KMALLOC, BLOCK + 64);
    g_assert_cmpuint(stats_of(w).live_blocks, ==, 2);
    g_assert_cmpuint(counter_of(w, KT_CNT_RETURN_FOREIGN), ==, 0);
    test_qemu_reset();
}

/* A call that was entered before its function was hooked. */
CAPTURE_TEST(returns_without_entry, "/seam-kvm/returns-without-entry")
{
    uint64_t ra = CALLER + 0x30;

    boot(w);
    memcpy(w->stack + 64 * 3, &ra, sizeof(ra));
    g_assert_true(leave(3, KMALLOC, BLOCK));
    g_assert_cmpuint(stats_of(w).live_blocks, ==, 0);
    test_qemu_reset();
}

/* After a reset nothing of the old kernel is hooked. */
CAPTURE_TEST(reset, "/seam-kvm/reset")
{
    boot(w);
    g_assert_cmpuint(hooks.n, >, 0);
    test_qemu_reset();
    g_assert_cmpuint(hooks.n, ==, 0);
    boot(w);
    g_assert_true(kt_capture_found(w->capture));
    g_assert_true(enter(w, 0, KMALLOC, 64));
    test_qemu_reset();
}

/* The kernel of a loaded VM is found by the vCPUs, and its breakpoints are
 * planted when one continues. */
CAPTURE_TEST(loaded, "/seam-kvm/loaded")
{
    g_autoptr(GByteArray) section = NULL;
    g_autofree char *why = NULL;

    boot(w);
    enter(w, 0, KMALLOC, 64);
    leave(0, KMALLOC, BLOCK);
    kt_capture_sync_counters(w->capture);
    section = test_qemu_save();
    why = test_qemu_load(section);
    g_assert_null(why);
    g_assert_cmpuint(hooks.n, ==, 0);
    hooks.entry_cb(0, START, hooks.entry_userdata);
    g_assert_true(kt_capture_found(w->capture));
    g_assert_cmpuint(stats_of(w).live_blocks, ==, 1);
    g_assert_true(enter(w, 1, KFREE, BLOCK));
    g_assert_cmpuint(stats_of(w).live_blocks, ==, 0);
    hooks.entry_cb(0, START, hooks.entry_userdata);     /* it has stopped */
    g_assert_true(enter(w, 0, KMALLOC, 64));
    kt_capture_sync_counters(w->capture);
    g_assert_cmpuint(counter_of(w, KT_CNT_KVM_BREAKPOINTS), ==, hooks.n);
    test_qemu_reset();
    kt_capture_sync_counters(w->capture);
    g_assert_cmpuint(counter_of(w, KT_CNT_KVM_BREAKPOINTS), ==, 0);
}

static const void *no_kernel(uint64_t va, size_t *avail)
{
    return NULL;
}

/* A vCPU in user space has no kernel in its page tables, and executes before
 * another one plants the breakpoints of the loaded VM. */
CAPTURE_TEST(planted_late, "/seam-kvm/planted-late")
{
    g_autoptr(GByteArray) section = NULL;
    g_autofree char *why = NULL;

    boot_whole(w);
    run_once(w);
    section = test_qemu_save();
    why = test_qemu_load(section);
    g_assert_null(why);
    test_qemu_view(no_kernel);
    hooks.entry_cb(0, START, hooks.entry_userdata);
    test_qemu_view(NULL);
    g_assert_cmpuint(hooks.n, ==, 0);
    hooks.entry_cb(0, START, hooks.entry_userdata);
    g_assert_true(stats_of(w).gap);
    run_once(w);                        /* it was freed meanwhile */
    g_assert_cmpuint(stats_of(w).live_blocks, ==, 1);
    g_assert_cmpuint(stats_of(w).errors, ==, 0);
    test_qemu_reset();
    boot_whole(w);
    g_assert_false(stats_of(w).gap);
    test_qemu_reset();
}

/* ---- call points --------------------------------------------------------- */

static void fail(FakeCapture *w, const KtFaultSpec *spec)
{
    g_autoptr(GError) err = NULL;

    kt_faults_add(w->t, kt_capture_kernel(w->capture), spec, &err);
    g_assert_no_error(err);
}

/* Points are planted at the next breakpoint, and removed likewise. */
CAPTURE_TEST(points, "/seam-kvm/points")
{
    uint32_t id;

    boot(w);
    g_assert_false(enter(w, 2, NOT_HOOKED, 1));
    id = watch_functions(w, "not_hooked");
    run_once(w);
    g_assert_true(enter(w, 2, NOT_HOOKED, 1));
    g_assert_cmpint(hooks.action, ==, QEMU_PLUGIN_CODE_HOOK_EXECUTE);
    g_assert_true(leave(2, NOT_HOOKED, 7));
    g_assert_cmpuint(counter_of(w, KT_CNT_CALLS_ENTERED), ==, 1);
    g_assert_cmpuint(counter_of(w, KT_CNT_CALLS_RECORDED), ==, 1);
    g_assert_cmpuint(counter_of(w, KT_CNT_CALLS_STALE), ==, 0);
    g_assert_cmpuint(kt_calls_remove(w->t, id), ==, 1);
    run_once(w);
    g_assert_false(enter(w, 2, NOT_HOOKED, 1));
    g_assert_false(leave(2, NOT_HOOKED, 7));
    test_qemu_reset();
}

/* A hook at the same breakpoint works as before. */
CAPTURE_TEST(point_and_hook, "/seam-kvm/point-and-hook")
{
    uint32_t id = watch_functions(w, "kfree");

    boot(w);
    run_once(w);
    g_assert_true(enter(w, 1, KFREE, BLOCK));
    g_assert_cmpuint(counter_of(w, KT_CNT_CALLS_ENTERED), ==, 1);
    g_assert_cmpuint(stats_of(w).live_blocks, ==, 0);
    g_assert_true(leave(1, KFREE, 0));
    g_assert_cmpuint(counter_of(w, KT_CNT_CALLS_RECORDED), ==, 1);
    kt_calls_remove(w->t, id);
    run_once(w);
    g_assert_true(enter(w, 1, KFREE, BLOCK));
    g_assert_false(leave(1, KFREE, 0));
    g_assert_cmpuint(counter_of(w, KT_CNT_CALLS_ENTERED), ==, 1);
    test_qemu_reset();
}

/* A call that fails goes on at its return address, as if it had returned. */
CAPTURE_TEST(fails, "/seam-kvm/fails")
{
    boot(w);
    fail(w, &(KtFaultSpec) { .what = "kmalloc", .times = 1 });
    enter(w, 3, KFREE, 0);
    g_assert_true(enter(w, 0, KMALLOC, 64));
    g_assert_cmpint(hooks.action, ==, QEMU_PLUGIN_CODE_HOOK_GOTO);
    g_assert_cmphex(hooks.next, ==, CALLER);
    g_assert_cmphex(*test_qemu_reg(GS_REG_RESULT), ==, 0);
    g_assert_cmphex(*test_qemu_reg(GS_REG_SP), ==, STACK + 8);
    g_assert_cmpuint(kt_pending_calls_pending(w->capture->shared.calls), ==, 0);
    enter(w, 0, KMALLOC, 64);
    g_assert_cmpint(hooks.action, ==, QEMU_PLUGIN_CODE_HOOK_EXECUTE);
    leave(0, KMALLOC, BLOCK);
    g_assert_cmpuint(stats_of(w).live_blocks, ==, 1);
    g_assert_cmpuint(counter_of(w, KT_CNT_FAULTS_MADE), ==, 1);
    test_qemu_reset();
}

/* kmalloc() ends in a function that fails by a jump: both have returned. */
CAPTURE_TEST(fails_in_a_tail, "/seam-kvm/fails-in-a-tail")
{
    boot(w);
    fail(w, &(KtFaultSpec) { .what = "not_hooked", .value = "0" });
    enter(w, 3, KFREE, 0);
    enter(w, 0, KMALLOC, 64);
    g_assert_cmpuint(kt_pending_calls_pending(w->capture->shared.calls), ==, 1);
    g_assert_true(execute(NOT_HOOKED));
    g_assert_cmpint(hooks.action, ==, QEMU_PLUGIN_CODE_HOOK_GOTO);
    g_assert_cmpuint(kt_pending_calls_pending(w->capture->shared.calls), ==, 0);
    g_assert_cmpuint(counter_of(w, KT_CNT_ALLOC_FAILED), ==, 1);
    test_qemu_reset();
}

/* The stack of a damaged kernel has no address of code: the call goes on. */
CAPTURE_TEST(fails_to_nowhere, "/seam-kvm/fails-to-nowhere")
{
    const uint64_t nowhere = 0x8000000000000000;

    boot(w);
    fail(w, &(KtFaultSpec) { .what = "kmalloc" });
    run_once(w);
    memcpy(w->stack, &nowhere, sizeof(nowhere));
    *test_qemu_reg(GS_REG_SP) = STACK;
    g_assert_true(execute(KMALLOC + ENTRY));
    g_assert_cmpint(hooks.action, ==, QEMU_PLUGIN_CODE_HOOK_EXECUTE);
    g_assert_cmphex(*test_qemu_reg(GS_REG_SP), ==, STACK);
    enter(w, 0, KMALLOC, 64);
    g_assert_cmpint(hooks.action, ==, QEMU_PLUGIN_CODE_HOOK_GOTO);
    test_qemu_reset();
}

CAPTURE_TEST(stops, "/seam-kvm/stops")
{
    boot(w);
    fail(w, &(KtFaultSpec) { .what = "not_hooked", .times = 1,
                             .action = KT_FAULT_DO_STOP });
    run_once(w);
    enter(w, 2, NOT_HOOKED, 1);
    g_assert_cmpint(hooks.action, ==, QEMU_PLUGIN_CODE_HOOK_STOP);
    execute(NOT_HOOKED);                /* the VM goes on */
    g_assert_cmpint(hooks.action, ==, QEMU_PLUGIN_CODE_HOOK_EXECUTE);
    g_assert_cmpuint(counter_of(w, KT_CNT_CALLS_ENTERED), ==, 1);
    test_qemu_reset();
}

/* ---- recording is off ---------------------------------------------------- */

static unsigned n_enabled(void)
{
    unsigned n = 0;

    for (unsigned i = 0; i < hooks.n; i++) {
        n += !hooks.disabled[i];
    }
    return n;
}

/* A call that returned meanwhile is not taken for one that was entered
 * before. */
CAPTURE_TEST(off, "/seam-kvm/off")
{
    unsigned before;

    boot(w);
    before = n_enabled();
    enter(w, 0, KMALLOC, 64);
    kt_tracer_set_enabled(w->t, false);
    g_assert_cmpuint(n_enabled(), ==, 0);
    g_assert_false(leave(0, KMALLOC, BLOCK));
    g_assert_false(enter(w, 0, KMALLOC, 8));
    kt_tracer_set_enabled(w->t, true);
    g_assert_cmpuint(n_enabled(), ==, before);
    g_assert_true(leave(0, KMALLOC, BLOCK));
    g_assert_cmpuint(stats_of(w).live_blocks, ==, 0);
    run_once(w);
    g_assert_cmpuint(stats_of(w).live_blocks, ==, 1);
    test_qemu_reset();
}

/* Calls that were entered while recording was off return when it is on: nothing
 * is known of them, and nothing of them is judged. */
CAPTURE_TEST(in_flight, "/seam-kvm/in-flight")
{
    boot_whole(w);
    run_once(w);
    kt_tracer_set_enabled(w->t, false);
    g_assert_false(enter(w, 1, KFREE, BLOCK));
    g_assert_false(enter(w, 0, KMALLOC, 64));
    kt_tracer_set_enabled(w->t, true);
    g_assert_true(leave(0, KMALLOC, BLOCK + 64));
    g_assert_cmpuint(stats_of(w).live_blocks, ==, 1);
    enter(w, 1, KFREE, BLOCK + 64);
    run_once(w);                        /* the block that was freed */
    enter(w, 1, KFREE, BLOCK);
    enter(w, 1, KFREE, BLOCK);          /* handed out unseen meanwhile */
    g_assert_cmpuint(stats_of(w).errors, ==, 0);
    g_assert_cmpuint(counter_of(w, KT_CNT_CALL_STALE), ==, 0);
    g_assert_cmpuint(kt_pending_calls_pending(w->capture->shared.calls), ==, 0);
    test_qemu_reset();
}

/* A call point is added while a call of it runs. */
CAPTURE_TEST(point_in_flight, "/seam-kvm/point-in-flight")
{
    boot(w);
    g_assert_false(enter(w, 2, NOT_HOOKED, 1));
    watch_functions(w, "not_hooked");
    run_once(w);
    g_assert_true(leave(2, NOT_HOOKED, 7));
    g_assert_cmpuint(counter_of(w, KT_CNT_CALLS_ENTERED), ==, 0);
    g_assert_cmpuint(counter_of(w, KT_CNT_CALLS_RECORDED), ==, 0);
    enter(w, 2, NOT_HOOKED, 1);
    leave(2, NOT_HOOKED, 7);
    g_assert_cmpuint(counter_of(w, KT_CNT_CALLS_RECORDED), ==, 1);
    g_assert_cmpuint(counter_of(w, KT_CNT_CALLS_STALE), ==, 0);
    test_qemu_reset();
}

/* Points that change while recording is off are planted by the first vCPU that
 * comes by any breakpoint, whose calls are not recorded. */
CAPTURE_TEST(points_while_off, "/seam-kvm/points-while-off")
{
    boot(w);
    kt_tracer_set_enabled(w->t, false);
    watch_functions(w, "not_hooked");
    g_assert_cmpuint(n_enabled(), >, 0);
    g_assert_true(enter(w, 0, KMALLOC, 64));
    g_assert_cmpuint(n_enabled(), ==, 2);
    g_assert_true(enter(w, 2, NOT_HOOKED, 1));
    g_assert_true(leave(2, NOT_HOOKED, 7));
    g_assert_cmpuint(counter_of(w, KT_CNT_CALLS_RECORDED), ==, 1);
    g_assert_cmpuint(kt_pending_calls_pending(w->capture->shared.calls), ==, 0);
    test_qemu_reset();
}

/* ---- what is not seen ---------------------------------------------------- */

CAPTURE_TEST(counters, "/seam-kvm/counters")
{
    g_autofree char *unseen = NULL;

    hooks.refused = KFREE + ENTRY;
    boot(w);
    run_once(w);
    kt_capture_sync_counters(w->capture);
    g_assert_cmpuint(counter_of(w, KT_CNT_KVM_HITS), ==, 2);
    g_assert_cmpuint(counter_of(w, KT_CNT_KVM_BREAKPOINTS), ==, hooks.n);
    g_assert_cmpuint(counter_of(w, KT_CNT_KVM_UNSEEN), >=, 1);
    unseen = kt_capture_unseen(w->capture);
    g_assert_nonnull(strstr(unseen, "kfree"));
    kt_tracer_set_enabled(w->t, false);
    kt_capture_sync_counters(w->capture);
    g_assert_cmpuint(counter_of(w, KT_CNT_KVM_BREAKPOINTS), ==, 0);
    test_qemu_reset();
}

static void free_twice(FakeCapture *w)
{
    run_once(w);
    enter(w, 1, KFREE, BLOCK);
    enter(w, 1, KFREE, BLOCK);
}

/* Functions that cannot have breakpoints may allocate and free, too: then no
 * error of that memory is certain. */
CAPTURE_TEST(unseen_memory, "/seam-kvm/unseen-memory")
{
    boot(w);
    free_twice(w);
    g_assert_cmpuint(stats_of(w).errors, ==, 0);
    test_qemu_reset();
    boot_whole(w);
    free_twice(w);
    g_assert_cmpuint(stats_of(w).errors, ==, 1);
    kt_capture_sync_counters(w->capture);
    g_assert_cmpuint(counter_of(w, KT_CNT_KVM_UNSEEN), ==, 0);
    test_qemu_reset();
}

/* What was freed while a breakpoint was withdrawn is not known. */
CAPTURE_TEST(withdrawn_gaps, "/seam-kvm/withdrawn-gaps")
{
    boot_whole(w);
    g_assert_false(stats_of(w).gap);
    withdraw(KFREE + ENTRY);
    enter(w, 0, KMALLOC, 64);
    g_assert_true(stats_of(w).gap);
    g_assert_true(stats_of(w).unseen);
    leave(0, KMALLOC, BLOCK);
    g_assert_false(enter(w, 1, KFREE, BLOCK));
    g_usleep(20000);
    run_once(w);                        /* at the same address */
    g_assert_true(enter(w, 1, KFREE, BLOCK));
    g_assert_cmpuint(stats_of(w).errors, ==, 0);
    withdraw(KFREE + ENTRY);
    test_qemu_reset();
    boot_whole(w);                      /* all are there again */
    run_once(w);
    g_assert_false(stats_of(w).gap);
    test_qemu_reset();
}

/* A vCPU executes an instruction itself. The breakpoint is back later. */
CAPTURE_TEST(withdrawn, "/seam-kvm/withdrawn")
{
    unsigned before;

    boot(w);
    before = n_enabled();
    enter(w, 0, KMALLOC, 64);
    withdraw(KMALLOC + RETURN);
    enter(w, 1, KFREE, 0);
    g_assert_false(leave(0, KMALLOC, BLOCK));
    g_usleep(20000);
    enter(w, 1, KFREE, 0);
    g_assert_cmpuint(n_enabled(), ==, before);
    run_once(w);
    g_assert_cmpuint(stats_of(w).live_blocks, ==, 1);
    kt_tracer_set_enabled(w->t, false);
    g_assert_cmpuint(n_enabled(), ==, 0);
    test_qemu_reset();
}

/* Accesses cannot be checked, and the command says why. */
CAPTURE_TEST(accesses, "/seam-kvm/accesses")
{
    const KtBlockWatchSpec watched = { .va = BLOCK, .len = 64 };
    KtAccessInfo info = { 0 };
    KtBlockWatchInfo blocks;
    g_autoptr(GError) err = NULL;

    boot(w);
    kt_access_arm(w->t, &(KtAccessSpec) { 0 });
    kt_access_info(w->t, &info);
    g_assert_nonnull(strstr(info.why_not, "use -accel tcg"));
    g_assert_false(kt_block_watch_start(w->t, &watched, &err));
    g_assert_nonnull(strstr(err->message, "use -accel tcg"));
    kt_block_watch_info(w->t, &blocks);
    g_assert_false(blocks.any);
    test_qemu_reset();
}
