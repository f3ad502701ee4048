/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The tracer's section of the VM's state: snapshots, migration.
 */
#ifndef KT_VM_STATE_H
#define KT_VM_STATE_H

#include "kalloc-tracer/capture/capture.h"

/**
 * kt_vm_state_register() - from qemu_plugin_install()
 * @c, @t: (borrowed to the end)
 */
void kt_vm_state_register(qemu_plugin_id_t id, KtCapture *c, KtTracer *t);

#endif /* KT_VM_STATE_H */
