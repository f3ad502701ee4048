/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Record: say that a module is loaded or unloaded, see moments.h. On the vCPU's
 * thread. */
#include "kalloc-tracer/capture/record-internal.h"

void kt_record_moment(KtHookCall *m, KtMoment moment, uint64_t module_va)
{
    GsModule module;

    if (m->c->moments.fn &&
        gs_kernel_module(m->c->kernel, module_va, &module)) {
        kt_moment(&m->c->moments, moment, module.name);
    }
}
