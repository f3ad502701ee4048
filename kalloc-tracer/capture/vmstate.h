/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Our section in QEMU's vmstate: the tracer goes with VM snapshots and
 * migration. */
#ifndef KT_VMSTATE_H
#define KT_VMSTATE_H

#include "kalloc-tracer/capture/capture.h"

/**
 * kt_vmstate_register() - Register the handlers that save and load the section
 * @c, @t: (borrowed, for the life of the process)
 *
 * Call once, from qemu_plugin_install().
 */
void kt_vmstate_register(qemu_plugin_id_t id, KtCapture *c, KtTracer *t);

#endif /* KT_VMSTATE_H */
