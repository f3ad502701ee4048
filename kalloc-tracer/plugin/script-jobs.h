/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Script jobs: run the commands of script=FILE at the moments of a boot.
 *
 *     vCPU's callback   a module is loaded: a job is queued
 *     vCPU's thread     no vCPU executes: the job's commands run
 *     main loop         the VM is paused: the rest of the job, from the first
 *                       command on that needs that
 *
 * So the first commands have taken effect before the vCPU executes the next
 * instruction, thus before the module's init.
 */
#ifndef KT_SCRIPT_JOBS_H
#define KT_SCRIPT_JOBS_H

#include "kalloc-tracer/capture/capture.h"
#include "kalloc-tracer/plugin/options.h"
#include "monitor-cmds/mc.h"

typedef struct KtScriptJobs KtScriptJobs;

/**
 * struct KtScriptHost - what the plugin does for jobs
 * @with_context: call @fn with a context of commands and @data, with the
 *                capture's lock held. @still: no vCPU executes, although QEMU
 *                says that the VM runs
 * @say: print a line on stderr
 * @opaque: first argument of @with_context
 */
typedef struct KtScriptHost {
    void (*with_context)(void *opaque, bool still,
                         void (*fn)(const McContext *ctx, void *data),
                         void *data);
    void (*say)(const char *line);
    void *opaque;
} KtScriptHost;

/**
 * kt_script_jobs_open() - Parse the script, and open the file of its output
 * @out: (out, owned) NULL if there is no script. Never freed: callbacks use it
 * @errp: one line
 *
 * QEMU's main thread, at install. Returns: false if a line of the script is
 * wrong, or a file cannot be opened.
 */
bool kt_script_jobs_open(KtScriptJobs **out, const KtOptions *o,
                         GError **errp);
/** kt_script_jobs_start() - Run commands from now on. At install. */
void kt_script_jobs_start(KtScriptJobs *jobs, KtCapture *capture,
                          const KtScriptHost *host);
/** kt_script_jobs_waiting() - Return the number of jobs that have not ended.
 *  @jobs: (nullable). Any thread. */
unsigned kt_script_jobs_waiting(const KtScriptJobs *jobs);

#endif /* KT_SCRIPT_JOBS_H */
