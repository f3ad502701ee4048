/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * monitor-cmds: parses a command line, queries the tracer, and prints rows as
 * text or JSON. Knows neither QEMU nor the place to which the text goes.
 *
 * The plugin, the program `ka`, tests and the generator of the man page include
 * this header; it is the only public one of the folder. mc_run() runs on the
 * caller's thread.
 */
#ifndef MC_H
#define MC_H

#include "guest-symbols/gs.h"
#include "kalloc-tracer/kt.h"

/** McHookStatus - one hook, as `ka stat -v` prints it */
typedef KtHookStatus McHookStatus;

/**
 * struct McContext - what a command can use; all borrowed for the call
 * @tracer: NULL: only a page of help is asked for, without a VM or journal
 * @kernel: NULL if none was found, or its file could not be read
 * @why_no_kernel: one line with the reason, if @kernel is NULL
 * @kernel_found: the running kernel is recognised (slide known, hooks set)
 * @kernel_gone: the guest runs another kernel than @kernel: it was replaced
 *               unseen
 * @puts: prints a chunk of whole lines. Returns false if nobody reads the
 *        output any more; the command then stops
 * @puts_opaque: argument of @puts
 * @n_hooks, @hook: (nullable) the hooks for `ka stat -v`
 * @hook_opaque: argument of @hook
 * @learned: (nullable) what was learned of a kernel without types
 * @unseen: (nullable) functions whose calls are not all seen, under KVM
 * @why_no_log: (nullable) why the kernel's log is not read
 * @vm: (nullable) the VM; NULL for a journal
 * @journal: (nullable) path of the journal from which @tracer was made.
 *           Commands that change the tracer are refused
 * @rr: (nullable) "record" or "replay": what QEMU does with this run. Only
 *      commands of a script may change what the guest does then
 * @go: (nullable) how to go to events of a replay
 * @in_script: the command is one of a script
 * @until_us: time up to which the journal was read; UINT64_MAX: all of it
 * @symbols_later: the line is only parsed, before the kernel is known: accept
 *           every symbol, without its address
 */
typedef struct McContext {
    KtTracer *tracer;
    const GsKernel *kernel;
    const char *why_no_kernel;
    bool kernel_found;
    bool kernel_gone;
    bool (*puts)(void *opaque, const char *text);
    void *puts_opaque;
    unsigned n_hooks;
    bool (*hook)(void *opaque, unsigned i, McHookStatus *out);
    void *hook_opaque;
    const char *learned;
    const char *unseen;
    const char *why_no_log;
    const KtVm *vm;
    const char *journal;
    const char *rr;
    KtGoto *go;
    bool in_script;
    uint64_t until_us;
    bool symbols_later;
} McContext;

/**
 * mc_run() - run one command line
 * @line: without the leading "ka"; NULL or "" prints the screen of commands
 *
 * Any thread. Bad input prints one line through @ctx->puts and changes nothing.
 * Returns: 0 done, 1 bad input, 2 @ctx->puts returned false.
 */
int mc_run(const McContext *ctx, const char *line);

/**
 * mc_pauses() - Does the command read memory that must not change meanwhile?
 * @line: as for mc_run()
 *
 * If so, and the VM runs, the caller pauses the VM while it calls mc_run().
 * Any thread.
 */
bool mc_pauses(const char *line);

/**
 * mc_access_arm() - check accesses from the first allocation on
 * @t: (nullable) NULL: only check @filters
 * @filters: the filters of `ka access on`, without their dashes and joined by
 *           "+": "module:NAME+writes"; or "on": none of them
 * @errp: one line: the wrong word, and what would be right
 *
 * Call before the VM runs. A filter that needs symbols is refused.
 */
bool mc_access_arm(KtTracer *t, const char *filters, GError **errp);

/* ---- reports ------------------------------------------------------------- */

/* Most reports in a second, and of one list of errors. */
#define MC_REPORTS_A_SECOND 20
#define MC_REPORTS 200

/** struct McReporter - prints each error once, when it is found, in the words
 *  of KASAN. It belongs to one thread. */
typedef struct McReporter McReporter;
McReporter *mc_reporter_new(void);
void mc_reporter_free(McReporter *r);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(McReporter, mc_reporter_free)
/** mc_report_due() - return true if mc_report() may have something to print.
 *  Cheap. Takes the tracer's lock for a moment. */
bool mc_report_due(const McReporter *r, KtTracer *t);
/**
 * mc_report() - print the errors that were not printed yet
 * @ctx: as for mc_run(); @ctx->puts gets a whole report by each call
 * @now_us: time of the host, for the limits
 *
 * What MC_REPORTS_A_SECOND does not allow is printed by a later call. What
 * MC_REPORTS does not allow is not printed, and one line says so. A reset of
 * the VM, a loaded snapshot and ka clear begin another list.
 */
void mc_report(McReporter *r, const McContext *ctx, int64_t now_us);

/* ---- scripts ------------------------------------------------------------- */

/**
 * struct McScript - commands that run by themselves, from a file
 *
 * docs/scripts.md has the language. A script is immutable.
 */
typedef struct McScript McScript;

/** When commands of a script run. MC_MOMENT_LOAD: before the init function of
 *  the module. */
typedef enum McMoment {
    MC_MOMENT_FOUND,        /* the kernel is found */
    MC_MOMENT_LOAD,         /* a module is loaded */
    MC_MOMENT_UNLOAD,       /* a module is unloaded */
} McMoment;

/**
 * mc_script_new() - parse a script, and check each of its commands
 * @text: (borrowed for the call) @len bytes
 * @name: the file's name, for errors and output
 * @module: (nullable) what $MODULE stands for
 * @errp: one line: FILE:LINE, what is wrong, what would be right
 *
 * Any thread. Returns: (owned) NULL if a line is wrong.
 */
McScript *mc_script_new(const char *text, size_t len, const char *name,
                        const char *module, GError **errp);
/** mc_script_open() - the same of the file @path; it is at most 1 MiB */
McScript *mc_script_open(const char *path, const char *module, GError **errp);
void mc_script_free(McScript *s);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(McScript, mc_script_free)

/** struct McScriptRun - the run of the commands of one moment */
typedef struct McScriptRun McScriptRun;

/**
 * mc_script_begin() - begin a run
 * @s: (borrowed) as long as the run exists
 * @module: (copied, nullable) the module, for the moments of modules
 *
 * Any thread. Returns: (owned) NULL if the script has no command for it.
 */
McScriptRun *mc_script_begin(const McScript *s, McMoment moment,
                             const char *module);
/**
 * mc_script_run() - run commands up to the end, or to one that needs a pause
 * @ctx: as for mc_run(); @ctx->puts gets the output, and a line "-- FILE:LINE"
 *       before that of each command
 * @paused: the VM is paused: all commands can run
 * @say: prints a line for the user: a command failed, and what was undone
 *
 * The thread of mc_run(), one at a time for each run. Returns: false if the
 * next command needs a paused VM.
 */
bool mc_script_run(McScriptRun *run, const McContext *ctx, bool paused,
                   void (*say)(const char *line));
void mc_script_end(McScriptRun *run);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(McScriptRun, mc_script_end)

/* ---- manual -------------------------------------------------------------- */

/** mc_help_short() - (borrowed) the one-line help of `ka` for QEMU's own
 *  `help`; mc_help_params() returns its parameters. Any thread. */
const char *mc_help_short(void);
const char *mc_help_params(void);

/** mc_render_man() - render the man page (owned, troff) from the tables */
char *mc_render_man(void);
/** mc_render_markdown() - render docs/commands.md (owned) from the tables */
char *mc_render_markdown(void);
/** mc_render_completion() - render the tables (owned) as functions of a shell:
 *  "bash", "zsh" or "fish"; NULL: no such shell. commands/completion.c says
 *  what the functions do. */
char *mc_render_completion(const char *shell);
/** mc_complete() - return (owned, g_strfreev) completions of the last word */
char **mc_complete(const McContext *ctx, const char *line);

#endif /* MC_H */
