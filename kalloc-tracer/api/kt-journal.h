/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the side that captures events stores in the journal besides events:
 * the kernel's symbols, modules, and the status that `ka stat` shows.
 *
 * A tracer of kt_replay_open() gets all this from the file.
 */
#ifndef KT_API_JOURNAL_H
#define KT_API_JOURNAL_H

#include "kalloc-tracer/api/kt-tracer.h"

/**
 * struct KtHookStatus - a hook, as `ka stat -v` shows it
 * @name: the hooked function
 * @va: its address in the running kernel; 0: this kernel does not have it
 * @symbol: (nullable) the symbol that has the address
 * @from: (nullable) the table that has the symbol
 * @args_from: (nullable) the source that said in which registers the arguments
 *             are, if that is not hooks.def
 * @calls: (nullable) does the function call hooks, as the table assumes? NULL:
 *         the table assumes nothing
 * @note: (nullable) what it means if the function is missing
 * @hits: recorded events
 */
typedef struct KtHookStatus {
    const char *name;
    uint64_t va;
    const char *symbol, *from, *args_from;
    const char *note, *calls;
    uint64_t hits;
} KtHookStatus;

/**
 * struct KtStatus - what only the capturing side knows
 * @kernel_found: the running kernel was recognised
 * @why_no_kernel: (nullable) one line
 * @n_hooks: rows of the hook table
 * @hook: read row @i; return false if it has no hook. Called with @opaque
 */
typedef struct KtStatus {
    bool kernel_found;
    const char *why_no_kernel;
    unsigned n_hooks;
    bool (*hook)(void *opaque, unsigned i, KtHookStatus *out);
    void *opaque;
} KtStatus;

/** kt_tracer_has_journal() - return true if events go to a file. Without it,
 *  the functions below do nothing, unless they say otherwise. */
bool kt_tracer_has_journal(const KtTracer *t);
/** kt_tracer_save_status() - apply all pushed events, and write them, @s
 *  (borrowed for the call) and the counters to the file. Takes the tracer's
 *  lock, as a query does. */
void kt_tracer_save_status(KtTracer *t, const KtStatus *s);
/** kt_tracer_on_second() - call @fn about once a second while events come, on
 *  the consumer thread without locks; it may save the status. If
 *  KtConfig.repeatable is set, call @fn each 2048 events instead, on the thread
 *  that pushes, which may have locks of its own; @fn may not save the status.
 *  Set it before kt_tracer_start(). */
void kt_tracer_on_second(KtTracer *t, void (*fn)(void *opaque), void *opaque);
/** kt_tracer_save_kernel() - store the symbols of @k (borrowed for the call).
 *  @found: it was recognised in memory; else it was given as a file. Any
 *  thread without locks of this library. */
void kt_tracer_save_kernel(KtTracer *t, const GsKernel *k, bool found);
/** kt_tracer_save_module() - record that a module or BPF program was loaded,
 *  which @k has at @module_va. Also without a journal: when it is unloaded,
 *  the blocks that it did not free are reported. Any thread; locks are held
 *  only briefly. */
void kt_tracer_save_module(KtTracer *t, const GsKernel *k,
                           uint64_t module_va);
/** kt_tracer_inherit_modules() - record all modules of @k after a VM state was
 *  loaded. As kt_tracer_save_module(). */
void kt_tracer_inherit_modules(KtTracer *t, const GsKernel *k);
/** kt_tracer_drop_module() - record that a module was unloaded, and remove it
 *  from @k. As kt_tracer_save_module(). Does nothing if @k does not have it as
 *  loaded. */
void kt_tracer_drop_module(KtTracer *t, GsKernel *k, uint64_t module_va);
/** kt_tracer_end_journal() - write the index: the VM ends. Later events are
 *  not written. */
void kt_tracer_end_journal(KtTracer *t);

#endif /* KT_API_JOURNAL_H */
