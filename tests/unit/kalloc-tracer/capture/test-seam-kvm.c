/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Capture of a guest of KVM: the functions of this program make the fake QEMU
 * one that has code hooks, and a kernel whose functions are three instructions.
 */
#include "tests/lib/fake-capture.h"
#include "tests/lib/test-main.h"
#include "kalloc-tracer/capture/capture-internal.h"

#include <string.h>

#define ENTRY   0               /* push %rbp */
#define RETURN  2               /* ret, behind pop %rbp */

/* The code hooks of the fake QEMU. @refused: no hook can be added there */
static struct {
    qemu_plugin_vcpu_code_hook_cb_t cb;
    qemu_plugin_vcpu_syscall_entry_cb_t entry_cb;
    void *userdata, *entry_userdata;
    uint64_t va[64];
    unsigned n;
    uint64_t refused;
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
        hooks.va[hooks.n++] = vaddr;
    }
    return true;
}

bool qemu_plugin_remove_code_hook(uint64_t vaddr)
{
    unsigned i = find(vaddr);

    if (i == hooks.n) {
        return false;
    }
    hooks.va[i] = hooks.va[--hooks.n];
    return true;
}

uint64_t qemu_plugin_code_hooks_withdrawn(void)
{
    return 0;
}

/* ---- the guest ----------------------------------------------------------- */

static void put_function(FakeCapture *w, uint64_t va)
{
    static const uint8_t code[] = { 0x55, 0x5d, 0xc3 };

    memcpy(w->image + (va - TEXT), code, sizeof(code));
}

/* Start the kernel: it sets the entry of system calls. */
static void boot(FakeCapture *w)
{
    memset(w->image, 0xcc, 0xb00);
    put_function(w, KMALLOC);
    put_function(w, KFREE);
    hooks.entry_cb(0, START, hooks.entry_userdata);
}

/* Execute the instruction at @va; return true if it is hooked. */
static bool execute(uint64_t va)
{
    uint64_t next = va;

    if (find(va) == hooks.n) {
        return false;
    }
    g_assert_cmpint(hooks.cb(0, va, &next, hooks.userdata), ==,
                    QEMU_PLUGIN_CODE_HOOK_EXECUTE);
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
