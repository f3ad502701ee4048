/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QEMU's plugin API. The functions that qemu-patches/ adds are declared weak:
 * the plugin then loads into an unpatched QEMU, too, and can say which function
 * is missing (plugin/plugin.c).
 */
#ifndef KT_PLUGIN_API_H
#define KT_PLUGIN_API_H

#include <qemu-plugin.h>

#define KT_PATCHED_API(X) \
    X(qemu_plugin_register_monitor_cmd) \
    X(qemu_plugin_monitor_puts) \
    X(qemu_plugin_register_vcpu_tb_filter) \
    X(qemu_plugin_vaddr_to_host) \
    X(qemu_plugin_read_vaddr_ram) \
    X(qemu_plugin_vcpu_translate_vaddr) \
    X(qemu_plugin_register_ptr) \
    X(qemu_plugin_invalidate_vaddr) \
    X(qemu_plugin_request_flush) \
    X(qemu_plugin_request_exclusive) \
    X(qemu_plugin_get_virtual_ns) \
    X(qemu_plugin_vm_is_running) \
    X(qemu_plugin_call_paused) \
    X(qemu_plugin_register_vm_reset_cb) \
    X(qemu_plugin_register_vm_state) \
    X(qemu_plugin_vm_state_put) \
    X(qemu_plugin_vm_state_get) \
    X(qemu_plugin_vm_state_fail) \
    X(qemu_plugin_write_register) \
    X(qemu_plugin_set_pc) \
    X(qemu_plugin_request_vm_stop) \
    X(qemu_plugin_register_vcpu_page_trap) \
    X(qemu_plugin_update_page_trap) \
    X(qemu_plugin_page_access_insn)

/* Functions that KVM needs. A QEMU without them runs TCG only. */
#define KT_KVM_API(X) \
    X(qemu_plugin_register_vcpu_code_hook_cb) \
    X(qemu_plugin_register_vcpu_syscall_entry_cb) \
    X(qemu_plugin_add_code_hook) \
    X(qemu_plugin_remove_code_hook) \
    X(qemu_plugin_enable_code_hook) \
    X(qemu_plugin_code_hooks_withdrawn)

#define KT_DECLARE_WEAK(fn) extern __typeof__(fn) fn __attribute__((weak));
KT_PATCHED_API(KT_DECLARE_WEAK)
KT_KVM_API(KT_DECLARE_WEAK)
#undef KT_DECLARE_WEAK

#endif /* KT_PLUGIN_API_H */
