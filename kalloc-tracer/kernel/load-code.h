/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Learn: what is known of code that comes while the kernel runs or with a
 * VM's state, modules and what BPF generates, within the bound on memory.
 */
#ifndef KT_LOAD_CODE_H
#define KT_LOAD_CODE_H

#include "kalloc-tracer/kernel/guest.h"

/** KtLoadFn - gs_kernel_add_module() or gs_kernel_add_bpf() */
typedef bool (*KtLoadFn)(GsKernel *k, const GsMem *mem, uint64_t va,
                         GError **errp);

/**
 * kt_load_code() - any thread
 * @t: whose bound it is, and who is told what the kernel takes now
 * @g: where it is read
 * @va: what tells of the code, as @add wants it
 * Returns: is it known now?
 */
bool kt_load_code(KtTracer *t, GsKernel *k, KtGuest *g, KtLoadFn add,
                  uint64_t va);

/** kt_load_modules() - as gs_kernel_unpack_modules(), whose bytes are those
 *  of @t's KT_MEM_KERNEL; which found no room is counted. */
void kt_load_modules(KtTracer *t, GsKernel *k, GsBytes *u);

#endif /* KT_LOAD_CODE_H */
