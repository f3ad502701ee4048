/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where breakpoints see the calls of a function: at one instruction near its
 * entry, and at each instruction that returns. QEMU-free.
 *
 *     __kmalloc:
 *       endbr64
 *       nop, or call __fentry__    never here: ftrace writes these bytes
 *       push %rbp               <- entry: arguments and stack are as at entry
 *       ...
 *       ret                     <- return
 *       ...
 *       jmp __x86_return_thunk  <- return, before the kernel patches it
 *       jmp other               <- tail: other() returns for it
 *
 * Only instructions that QEMU emulates are used: GsArch.breakpoint().
 */
#ifndef KT_BREAKPOINTS_H
#define KT_BREAKPOINTS_H

#include "kalloc-tracer/hooks/hooks.h"

#define KT_BREAKPOINT_RETURNS   48
#define KT_BREAKPOINT_TAILS     16

/**
 * struct KtBreakpoints - the breakpoints of one function
 * @entry: 0: no instruction near the entry can be used
 * @returns: @n_returns addresses of instructions that return
 * @tails: @n_tails functions that it ends in, by a jump
 * @incomplete: there are more ways to return, or some code is not known
 */
typedef struct KtBreakpoints {
    uint64_t entry;
    uint64_t returns[KT_BREAKPOINT_RETURNS];
    uint64_t tails[KT_BREAKPOINT_TAILS];
    unsigned n_returns, n_tails;
    bool incomplete;
} KtBreakpoints;

/**
 * kt_breakpoints_find() - Find the breakpoints of the function at @va
 * @k: has its symbols
 * @reader: reads the guest's code; the bytes are not trusted
 *
 * Returns: false if @va is no function whose code can be read. Then @out has
 * nothing.
 */
bool kt_breakpoints_find(const GsKernel *k, const KtCodeReader *reader,
                         uint64_t va, KtBreakpoints *out);

#endif /* KT_BREAKPOINTS_H */
