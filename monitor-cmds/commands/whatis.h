/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A question of ka whatis, and its sources of facts. Called by whatis.c, on the
 * thread of the command.
 */
#ifndef MC_WHATIS_H
#define MC_WHATIS_H

#include "monitor-cmds/parse/expr.h"

/**
 * struct McWhatis - one question
 * @va: the address
 * @kernel: (nullable) the running kernel
 * @vm: (nullable) the VM; NULL for a journal
 * @has_block: @block contains the address
 */
typedef struct McWhatis {
    uint64_t va;
    KtTracer *tracer;
    const GsKernel *kernel;
    const KtVm *vm;
    bool has_block;
    KtBlock block;
} McWhatis;

/** mc_whatis_read() - read the guest's memory, as any of the vCPUs maps it */
bool mc_whatis_read(const McWhatis *w, uint64_t va, void *buf, size_t len);

/* Sources append their fact to @out, or return false. No source guesses. */
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
