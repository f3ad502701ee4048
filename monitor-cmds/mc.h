/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * monitor-cmds: the user's words. Parses a command line, queries the tracer,
 * formats rows as text or JSON. Knows neither QEMU nor where the text goes.
 *
 * This is the only header of the folder that others (plugin, tests, the
 * generator of the man page) include.
 */
#ifndef MC_H
#define MC_H

#include "guest-symbols/gs.h"
#include "kalloc-tracer/kt.h"

/** McHookStatus - one row of the hook table as `ka stat -v` shows it. */
typedef KtHookStatus McHookStatus;

/**
 * struct McContext - what a command may see; all borrowed for the call
 * @tracer: never NULL
 * @kernel: NULL when none was found, or its file could not be read
 * @why_no_kernel: one line for that case
 * @kernel_found: the running kernel was recognised (slide known, hooks set)
 * @puts: takes a chunk of output (whole lines); false: nobody listens any
 *        more, the command stops
 * @puts_opaque: handed to @puts
 * @n_hooks, @hook: (nullable) rows of the hook table for `ka stat -v`
 * @hook_opaque: handed to @hook
 * @vm: (nullable) the VM, where there is one to look at
 * @journal: (nullable) the file that @tracer was made of: commands that
 *           change it are refused
 * @until_us: and it was read up to this time; UINT64_MAX for all of it
 */
typedef struct McContext {
    KtTracer *tracer;
    const GsKernel *kernel;
    const char *why_no_kernel;
    bool kernel_found;
    bool (*puts)(void *opaque, const char *text);
    void *puts_opaque;
    unsigned n_hooks;
    bool (*hook)(void *opaque, unsigned i, McHookStatus *out);
    void *hook_opaque;
    const KtVm *vm;
    const char *journal;
    uint64_t until_us;
} McContext;

/**
 * mc_run() - one command line, without the leading "ka"
 * @line: NULL or "" prints the run-down
 *
 * Bad input prints one line to the same sink and changes nothing.
 * Returns: 0 done, 1 bad input (one line printed), 2 sink closed early.
 */
int mc_run(const McContext *ctx, const char *line);

/** mc_help_short() - (borrowed) the one-line help of `ka` for QEMU's own
 *  `help`; mc_help_params() its parameter string. */
const char *mc_help_short(void);
const char *mc_help_params(void);

/** mc_render_man() - (owned) the man page, troff, from the command table. */
char *mc_render_man(void);
/** mc_render_markdown() - (owned) the README's table of commands. */
char *mc_render_markdown(void);
/** mc_complete() - (owned, g_strfreev) completions of the last word. */
char **mc_complete(const McContext *ctx, const char *line);

#endif /* MC_H */
