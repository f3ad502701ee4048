/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Load the symbols of code that appears while the kernel runs: modules, and
 * code that BPF generates. The memory is part KT_MEM_KERNEL of the budget, and
 * stays within the memory limit.
 *
 * Called by capture/ in a vCPU thread, after a hooked function has loaded code.
 */
#ifndef KT_LOAD_CODE_H
#define KT_LOAD_CODE_H

#include "kalloc-tracer/kernel/guest.h"

/** KtLoadFn - gs_kernel_add_bpf(). */
typedef bool (*KtLoadFn)(GsKernel *k, const GsMem *mem, uint64_t va,
                         GError **errp);

/**
 * kt_load_code() - load the symbols of one BPF program
 * @t: its memory limit applies, and its counter of kernel memory is updated
 * @g: reads guest memory
 * @add: how to load
 * @va: address of the guest's struct, as @add expects
 *
 * Any vCPU thread, also several at once.
 *
 * Returns: true if the symbols of the code are known now.
 */
bool kt_load_code(KtTracer *t, GsKernel *k, KtGuest *g, KtLoadFn add,
                  uint64_t va);

/** kt_load_module() - the same for a module. @va: address of its struct module;
 *  @file: see gs_kernel_add_module() */
bool kt_load_module(KtTracer *t, GsKernel *k, KtGuest *g, uint64_t va,
                    const GsModuleFile *file);

/** kt_load_modules() - unpack the modules of a VM snapshot with
 *  gs_kernel_unpack_modules(). Modules that exceed the memory limit are counted
 *  in KT_CNT_MODULES_FAILED. */
void kt_load_modules(KtTracer *t, GsKernel *k, GsBytes *u, bool loads);

#endif /* KT_LOAD_CODE_H */
