/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of functions: what compilers, kernels and architectures add is removed;
 * helpers and entries are known.
 */
#include "monitor-cmds/output/helper-functions.h"
#include "tests/lib/test-main.h"

static const char *const same[][2] = {
    /* gcc */
    { "foo.isra.0", "foo" },
    { "foo.constprop.0.isra.12", "foo" },
    { "foo.part.3", "foo" },
    { "foo.cold", "foo" },
    { "foo.part.0.cold.7", "foo" },
    { "foo.localalias", "foo" },
    /* clang */
    { "foo.llvm.12345678901234567890", "foo" },
    { "foo.cfi_jt", "foo" },
    { "foo.__uniq.2345", "foo" },
    /* x86-64 */
    { "__x64_sys_ioctl", "sys_ioctl" },
    { "__ia32_sys_ioctl", "sys_ioctl" },
    { "__ia32_compat_sys_ioctl", "sys_ioctl" },
    { "__x64_compat_sys_ioctl", "sys_ioctl" },
    { "__do_sys_ioctl.isra.0", "sys_ioctl" },
    { "__se_sys_ioctl", "sys_ioctl" },
    { "ksys_write", "sys_write" },
    /* arm64, riscv64 */
    { "__arm64_sys_ioctl", "sys_ioctl" },
    { "__arm64_compat_sys_ioctl", "sys_ioctl" },
    { "__riscv_sys_ioctl", "sys_ioctl" },
    { "__riscv_compat_sys_ioctl", "sys_ioctl" },
    { "compat_sys_ioctl", "sys_ioctl" },
    /* 6.10 */
    { "__kmalloc_noprof", "__kmalloc" },
    { "krealloc_noprof.part.0", "krealloc" },
    /* what is no addition stays */
    { "foo", "foo" },
    { "do_sys_open", "do_sys_open" },
    { "__x64_sys_", "__x64_sys_" },
    { "_noprof_foo", "_noprof_foo" },
    { ".text", ".text" },
    { "...", "..." },
    { "", "" },
    { "_RNvNtCs1_6kernel3foo.llvm.1", "_RNvNtCs1_6kernel3foo" },
};

TEST(test_source_function, "/helper-functions/source")
{
    for (unsigned i = 0; i < G_N_ELEMENTS(same); i++) {
        g_autofree char *got = mc_source_function(same[i][0]);

        g_assert_cmpstr(got, ==, same[i][1]);
    }
}

TEST(test_helpers, "/helper-functions/helpers")
{
    static const char *const helper[] = {
        "kfree", "kvfree_call_rcu", "__kmalloc_node", "kmem_cache_alloc_lru",
        "kmemdup_nul", "memdup_user_nul", "kasprintf", "kvasprintf_const",
        "idr_alloc_cyclic", "list_lru_add", "memset_erms", "strncpy",
        "_raw_spin_lock_irqsave", "vunmap", "vfree_atomic",
        "devm_kcalloc", "__list_del_entry_valid_or_report",
    };
    static const char *const other[] = {
        "foo", "sys_ioctl", "kthread", "free_irq", "vm_area_free", "slabinfo",
        "alloc_skb", "string_get_size", "memory_failure", "process_one_work",
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(helper); i++) {
        g_test_message("%s", helper[i]);
        g_assert_true(mc_is_helper(helper[i]));
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(other); i++) {
        g_test_message("%s", other[i]);
        g_assert_false(mc_is_helper(other[i]));
    }
}

TEST(test_entries, "/helper-functions/entries")
{
    static const char *const entry[] = {
        "entry_SYSCALL_64_after_hwframe", "do_syscall_64", "x64_sys_call",
        "asm_sysvec_apic_timer_interrupt", "ret_from_fork_asm", "el0_svc",
        "el0t_64_sync_handler", "invoke_syscall", "el1h_64_irq",
        "do_trap_ecall_u", "handle_exception",
    };
    static const char *const other[] = {
        "sys_ioctl", "kthread", "foo", "irq_exit_rcu", "do_exit",
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(entry); i++) {
        g_assert_true(mc_is_entry(entry[i]));
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(other); i++) {
        g_assert_false(mc_is_entry(other[i]));
    }
}
