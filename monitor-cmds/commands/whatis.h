/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is known of an address: shared by the sources of ka whatis.
 */
#ifndef MC_WHATIS_H
#define MC_WHATIS_H

#include "monitor-cmds/parse/expr.h"

/**
 * struct McWhatis - one question
 * @va: the address
 * @kernel: (nullable) that runs
 * @vm: (nullable) the VM, where there is one to look at
 * @has_block: @block is what it lies in
 */
typedef struct McWhatis {
    uint64_t va;
    KtTracer *tracer;
    const GsKernel *kernel;
    const KtVm *vm;
    bool has_block;
    KtBlock block;
} McWhatis;

/** mc_whatis_read() - guest memory, as any of the vCPUs maps it. */
bool mc_whatis_read(const McWhatis *w, uint64_t va, void *buf, size_t len);

/* Sources: append to @out what they know; false: nothing. None guesses. */
typedef bool McWhatisFn(const McWhatis *w, GString *out);
McWhatisFn mc_whatis_task_stack;
McWhatisFn mc_whatis_percpu;
McWhatisFn mc_whatis_slab;
McWhatisFn mc_whatis_direct_map;
McWhatisFn mc_whatis_struct_page;
McWhatisFn mc_whatis_area;
McWhatisFn mc_whatis_vmalloc;
McWhatisFn mc_whatis_not_mapped;

#endif /* MC_WHATIS_H */
