/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Script jobs: see script-jobs.h. */
#include "kalloc-tracer/plugin/script-jobs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/**
 * struct KtScriptJobs - the script of the plugin
 * @out: where commands print; the capture's lock protects it
 * @found: (atomic) the commands outside of blocks have run
 * @waiting: (atomic) jobs that have not ended
 */
struct KtScriptJobs {
    KtScriptHost host;
    McScript *script;
    FILE *out;
    bool found;
    unsigned waiting;
};

/** struct Job - the commands of one moment */
typedef struct Job {
    KtScriptJobs *jobs;
    McScriptRun *run;
    bool paused, ended;
} Job;

static bool print(void *opaque, const char *text)
{
    KtScriptJobs *jobs = opaque;

    return fputs(text, jobs->out) >= 0 && !fflush(jobs->out);
}

/* The capture's lock is held. */
static void run_job(const McContext *ctx, void *data)
{
    Job *job = data;
    McContext own = *ctx;

    own.puts = print;
    own.puts_opaque = job->jobs;
    own.in_script = true;
    job->ended = mc_script_run(job->run, &own, job->paused,
                               job->jobs->host.say);
}

static void end_job(Job *job)
{
    __atomic_fetch_sub(&job->jobs->waiting, 1, __ATOMIC_RELAXED);
    mc_script_end(job->run);
    g_free(job);
}

static void run_paused(void *userdata)
{
    Job *job = userdata;

    job->jobs->host.with_context(job->jobs->host.opaque, false, run_job, job);
}

/* QEMU's main loop calls this, with the BQL. */
static gboolean run_later(gpointer userdata)
{
    Job *job = userdata;

    job->paused = true;
    qemu_plugin_call_paused(run_paused, job);
    end_job(job);
    return G_SOURCE_REMOVE;
}

/* On a vCPU's thread, while no vCPU executes. */
static void run_still(void *userdata)
{
    Job *job = userdata;

    job->jobs->host.with_context(job->jobs->host.opaque, true, run_job, job);
    if (job->ended) {
        end_job(job);
    } else {
        g_idle_add_full(G_PRIORITY_DEFAULT, run_later, job, NULL);
    }
}

static McMoment moment_of(KtMoment moment)
{
    switch (moment) {
    case KT_MOMENT_LOAD:
        return MC_MOMENT_LOAD;
    case KT_MOMENT_UNLOAD:
        return MC_MOMENT_UNLOAD;
    default:
        return MC_MOMENT_FOUND;
    }
}

/* After a reset the kernel is found again: the commands outside of blocks ran
 * already. */
static void on_moment(void *opaque, KtMoment moment, const char *module)
{
    KtScriptJobs *jobs = opaque;
    McScriptRun *run;
    Job *job;

    if (moment == KT_MOMENT_FOUND &&
        __atomic_exchange_n(&jobs->found, true, __ATOMIC_RELAXED)) {
        return;
    }
    run = mc_script_begin(jobs->script, moment_of(moment), module);
    if (run) {
        job = g_new0(Job, 1);
        job->jobs = jobs;
        job->run = run;
        __atomic_fetch_add(&jobs->waiting, 1, __ATOMIC_RELAXED);
        qemu_plugin_request_exclusive(run_still, job);
    }
}

/* ---- start --------------------------------------------------------------- */

static FILE *open_output(const char *path, GError **errp)
{
    FILE *f = path ? fopen(path, "we") : stderr;

    if (!f) {
        g_set_error(errp, G_FILE_ERROR, g_file_error_from_errno(errno),
                    "script-output=%s: %s; name a file that can be written",
                    path, g_strerror(errno));
    }
    return f;
}

bool kt_script_jobs_open(KtScriptJobs **out, const KtOptions *o,
                         GError **errp)
{
    McScript *script;
    FILE *f;

    *out = NULL;
    if (!o->script) {
        return true;
    }
    script = mc_script_open(o->script, o->script_module, errp);
    if (!script) {
        return false;
    }
    f = open_output(o->script_output, errp);
    if (!f) {
        mc_script_free(script);
        return false;
    }
    *out = g_new0(KtScriptJobs, 1);
    (*out)->script = script;
    (*out)->out = f;
    return true;
}

void kt_script_jobs_start(KtScriptJobs *jobs, KtCapture *capture,
                          const KtScriptHost *host)
{
    jobs->host = *host;
    kt_capture_on_moment(capture, on_moment, jobs);
}

unsigned kt_script_jobs_waiting(const KtScriptJobs *jobs)
{
    return jobs ? __atomic_load_n(&jobs->waiting, __ATOMIC_RELAXED) : 0;
}
