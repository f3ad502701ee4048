/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The plugin: reads its options and connects capture, tracer and commands.
 *
 *     options -> tracer (events, map, journal)
 *             -> kernel, profile -> finder
 *             -> capture --events--> tracer
 *     monitor command "ka" -> McContext -> mc_run() --queries--> tracer
 *
 * QEMU's main thread, with the BQL, calls everything here, with two exceptions:
 * on_second() and on_violation() run on the tracer's thread or on a vCPU's
 * thread, and a vCPU's thread calls with_context() while no vCPU executes.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kalloc-tracer/capture/capture.h"
#include "monitor-cmds/mc.h"
#include "kalloc-tracer/plugin/given-kernel.h"
#include "kalloc-tracer/plugin/options.h"
#include "kalloc-tracer/plugin/qemu-check.h"
#include "kalloc-tracer/plugin/record-replay.h"
#include "kalloc-tracer/plugin/script-jobs.h"
#include "kalloc-tracer/tracer/tracer.h"

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

typedef struct Plugin {
    KtTracer *tracer;
    KtGivenKernel given;
    char *why_no_kernel;        /* why kernel= or profile= cannot be used */
    KtFinder *finder;
    KtCapture *capture;
    KtScriptJobs *script;       /* NULL: there is none */
    McReporter *reporter;       /* NULL: errors are not reported */
    const char *rr;             /* "record", "replay"; NULL: neither */
    KtGoto go;                  /* .journal NULL: to no events */
} Plugin;

/* Most bytes of call records: a copy of them all has a length of 32 bits. */
#define CALLS_MAX (2ull << 30)

static Plugin *plugin;

static const char loaded_twice[] =
    "the plugin is loaded twice: use one -plugin option with libka.so";

static void say(const char *fmt, ...) G_GNUC_PRINTF(1, 2);

/* Print a line on stderr. It may quote the guest or a file, so characters other
 * than printable ASCII become "?". */
static void say(const char *fmt, ...)
{
    g_autofree char *text = NULL;
    va_list ap;

    va_start(ap, fmt);
    text = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    for (char *p = text; *p; p++) {
        *p = *p >= ' ' && *p < 0x7f ? *p : '?';
    }
    fprintf(stderr, "ka: %s\n", text);
}

/* ---- commands ----------------------------------------------------------- */

static bool print(void *opaque, const char *text)
{
    return qemu_plugin_monitor_puts(opaque, text) >= 0;
}

static bool hook_row(void *opaque, unsigned i, McHookStatus *out)
{
    const Plugin *p = opaque;

    return kt_capture_hook_status(p->capture, i, out);
}

static char *why_no_kernel(const Plugin *p)
{
    const char *why_not = p->finder ? kt_finder_why_not(p->finder) : NULL;

    if (p->why_no_kernel) {
        return g_strdup(p->why_no_kernel);
    }
    if (p->finder && !kt_finder_has_tried(p->finder)) {
        return g_strdup("no kernel was recognised: no code has run where a "
                        "64-bit kernel is. The guest is in its firmware or "
                        "boot loader, or its kernel has 32 bits, which ka "
                        "does not trace");
    }
    return g_strdup_printf("no kernel was recognised in the guest's memory: "
                           "add kernel=FILE to the plugin's options%s%s%s",
                           why_not ? " (" : "", why_not ? why_not : "",
                           why_not ? ")" : "");
}

/* Write the status to the journal. The capture's lock is held. */
static void save_status_locked(Plugin *p, const McContext *ctx)
{
    kt_tracer_save_status(p->tracer, &(KtStatus) {
        .kernel_found = ctx->kernel_found,
        .why_no_kernel = ctx->why_no_kernel,
        .n_hooks = ctx->n_hooks,
        .hook = ctx->hook,
        .opaque = ctx->hook_opaque,
    });
}

/* Return what a command may use. The capture's lock is held. @why: (out, owned)
 * the context borrows it */
static McContext context_locked(Plugin *p, char **why)
{
    McContext ctx = {
        .tracer = p->tracer,
        .puts = print,
        .n_hooks = kt_hook_table_count(kt_tracer_hooks(p->tracer)),
        .hook = hook_row,
        .hook_opaque = p,
        .rr = p->rr,
        .go = p->go.journal ? &p->go : NULL,
    };

    kt_capture_sync_counters(p->capture);
    ctx.kernel = kt_capture_kernel(p->capture);
    ctx.kernel = ctx.kernel ? ctx.kernel : p->given.kernel;
    ctx.why_no_kernel = *why = ctx.kernel ? NULL : why_no_kernel(p);
    ctx.kernel_found = kt_capture_found(p->capture);
    ctx.why_no_log = kt_capture_why_no_log(p->capture);
    return ctx;
}

/* Write the records that are no allocator events to the journal. */
static void save_records(const Plugin *p)
{
    kt_log_save(p->tracer);
    kt_calls_save(p->tracer);
    kt_faults_save(p->tracer);
}

/* Read the kernel's log, unless no vCPU executes, and save all records. */
static void update_records(const Plugin *p, bool still)
{
    if (!still) {
        kt_capture_read_log(p->capture);
    }
    save_records(p);
}

/* Call @fn with what commands may use. The status is saved before and after, so
 * that `ka -f` on the journal answers as the VM did at both times. If QEMU
 * records or replays the run, a command changes nothing in the journal. */
static void with_context(void *opaque, bool still,
                         void (*fn)(const McContext *ctx, void *data),
                         void *data)
{
    Plugin *p = opaque;
    g_autofree char *why = NULL;
    g_autofree char *learned = NULL, *unseen = NULL;
    KtVm vm;
    McContext ctx;

    kt_capture_lock(p->capture);
    kt_capture_set_still(p->capture, still);
    kt_capture_settle(p->capture);
    if (!p->rr) {
        update_records(p, still);
    }
    ctx = context_locked(p, &why);
    ctx.kernel_gone = kt_capture_lacks_kernel(p->capture);
    ctx.learned = learned = kt_capture_learned(p->capture);
    ctx.unseen = unseen = kt_capture_unseen(p->capture);
    vm = kt_capture_vm(p->capture);
    ctx.vm = &vm;
    if (!p->rr) {
        save_status_locked(p, &ctx);
    }
    fn(&ctx, data);
    if (!p->rr) {
        save_status_locked(p, &ctx);
    }
    kt_capture_set_still(p->capture, false);
    kt_capture_unlock(p->capture);
}

/** struct Command - a command line, and the monitor that it came from */
typedef struct Command {
    Plugin *p;
    struct qemu_plugin_monitor *mon;
    const char *line;
} Command;

static void run_line(const McContext *ctx, void *data)
{
    const Command *c = data;
    McContext own = *ctx;

    own.puts_opaque = c->mon;
    mc_run(&own, c->line);
}

static void run_now(void *opaque)
{
    Command *c = opaque;

    with_context(c->p, false, run_line, c);
}

/* Commands that search the guest's memory pause a running VM. So does each, if
 * it is not known whether the kernel is still there. */
static void run_command(struct qemu_plugin_monitor *mon, const char *args,
                        void *userdata)
{
    Command c = { userdata, mon, args };

    if (mc_pauses(args) || kt_capture_pauses(c.p->capture) ||
        kt_capture_hides_kernel(c.p->capture)) {
        qemu_plugin_call_paused(run_now, &c);
    } else {
        run_now(&c);
    }
}

/* If another thread has the lock, it saves the status itself, or looks for the
 * kernel. */
static void save_status(Plugin *p)
{
    g_autofree char *why = NULL;
    McContext ctx;

    if (kt_tracer_has_journal(p->tracer) && kt_capture_trylock(p->capture)) {
        ctx = context_locked(p, &why);
        save_status_locked(p, &ctx);
        kt_capture_unlock(p->capture);
    }
}

/* Once a second; on the tracer's thread. If QEMU records or replays the run: on
 * a vCPU's thread, and the status is saved when QEMU ends. */
static void on_second(void *userdata)
{
    Plugin *p = userdata;

    save_records(p);
    if (!p->rr) {
        save_status(p);
    }
}

/* ---- leak-scan= ---------------------------------------------------------- */

static void scan_paused(void *userdata)
{
    Plugin *p = userdata;
    g_autofree char *line = NULL;
    KtLeakPlan plan = { .seconds = KT_LEAK_WATCH_SECONDS };
    KtVm vm;

    kt_capture_lock(p->capture);
    vm = kt_capture_vm(p->capture);
    plan.vm = &vm;
    plan.kernel = kt_capture_found(p->capture) ?
                  kt_capture_kernel(p->capture) : NULL;
    line = kt_leak_periodic(p->tracer, &plan);
    kt_capture_unlock(p->capture);
    if (line) {
        say("%s", line);
    }
}

/* QEMU's main loop calls this, with the BQL. */
static gboolean each_second(gpointer userdata)
{
    Plugin *p = userdata;

    if (!qemu_plugin_vm_is_running()) {
        return G_SOURCE_CONTINUE;
    }
    kt_capture_resume_looks(p->capture);
    if (kt_leak_periodic_due(p->tracer)) {
        qemu_plugin_call_paused(scan_paused, p);
    }
    return G_SOURCE_CONTINUE;
}

/* ---- report= ------------------------------------------------------------- */

#define REPORT_MS 200

/* Print a whole report by one write(), unless stderr cannot take it. */
static bool print_on_stderr(void *opaque, const char *text)
{
    size_t len = strlen(text);

    while (len) {
        ssize_t n = write(STDERR_FILENO, text, len);

        if (n < 0 && errno != EINTR) {
            return false;
        }
        text += MAX(n, 0);
        len -= MAX(n, 0);
    }
    return true;
}

/* With the capture's lock. */
static void report_locked(Plugin *p)
{
    g_autofree char *why = NULL;
    McContext ctx = context_locked(p, &why);

    ctx.puts = print_on_stderr;
    mc_report(p->reporter, &ctx, g_get_monotonic_time());
}

/* QEMU's main loop calls this, with the BQL. */
static gboolean report_errors(gpointer userdata)
{
    Plugin *p = userdata;

    if (mc_report_due(p->reporter, p->tracer)) {
        kt_capture_lock(p->capture);
        report_locked(p);
        kt_capture_unlock(p->capture);
    }
    return G_SOURCE_CONTINUE;
}

static void start_reports(Plugin *p, const KtOptions *o)
{
    if (o->report) {
        p->reporter = mc_reporter_new();
        g_timeout_add(REPORT_MS, report_errors, p);
    }
}

/* Print what the last events brought. */
static void end_reports(Plugin *p)
{
    if (p->reporter && kt_capture_trylock(p->capture)) {
        report_locked(p);
        kt_capture_unlock(p->capture);
    }
}

/* ---- check=on ----------------------------------------------------------- */

static void on_violation(KtCheckRule rule, const char *where, void *userdata)
{
    say("check: %s: %s: %s", kt_check_name(rule), kt_check_text(rule), where);
}

/* ---- life cycle --------------------------------------------------------- */

static void on_vm_reset(void *userdata)
{
    Plugin *p = userdata;

    save_records(p);
    kt_capture_lock(p->capture);
    kt_capture_reset(p->capture);
    kt_capture_unlock(p->capture);
}

/* vCPUs may still run, so nothing is freed. Queued events are written to the
 * journal. */
static void on_exit_cb(qemu_plugin_id_t id, void *userdata)
{
    Plugin *p = userdata;
    unsigned waiting = kt_script_jobs_waiting(p->script);

    if (waiting) {
        say("QEMU ended before %u blocks of the script did", waiting);
    }
    if (kt_capture_trylock(p->capture)) {
        kt_capture_settle(p->capture);
        kt_capture_unlock(p->capture);
    }
    kt_tracer_stop(p->tracer);
    end_reports(p);
    save_records(p);
    save_status(p);
    kt_tracer_end_journal(p->tracer);
}

/* If the kernel cannot be read, the VM boots without being traced. */
static void open_kernel(Plugin *p, const GsArch *arch, const KtOptions *o)
{
    g_autoptr(GError) err = NULL;

    if (kt_given_kernel_open(&p->given, kt_tracer_hooks(p->tracer), arch, o,
                             &err)) {
        p->finder = kt_finder_new(arch, p->given.kernel,
                                  qemu_plugin_vaddr_to_host);
        kt_finder_set_room(p->finder, o->mem);
        kt_finder_set_without(p->finder, o->without);
    } else {
        p->why_no_kernel = g_strdup(err->message);
        say("%s; the VM runs, but nothing is traced", p->why_no_kernel);
    }
    if (p->given.kernel) {
        kt_tracer_save_kernel(p->tracer, p->given.kernel, false);
    }
}

static void warn(const char *line)
{
    say("%s", line);
}

static bool load_rules(KtTracer *t, const KtOptions *o, GError **errp)
{
    return (!o->leak_rules || kt_leak_rules_load(t, o->leak_rules, errp)) &&
           (!o->access_rules ||
            kt_access_rules_load(t, o->access_rules, errp));
}

static KtTracer *make_tracer(const Plugin *p, const KtOptions *o,
                             unsigned n_cpus)
{
    KtConfig config = KT_CONFIG_DEFAULT;
    g_autoptr(GError) err = NULL;
    KtTracer *t;

    config.n_cpus = n_cpus;
    config.history_bytes = o->history;
    config.mem_bytes = o->mem;
    config.warn = warn;
    config.journal = o->journal;
    config.repeatable = p->rr;
    t = kt_tracer_new(&config, &err);
    if (t && !load_rules(t, o, &err)) {
        g_clear_pointer(&t, kt_tracer_free);
    }
    if (!t) {
        say("%s", err->message);
    }
    return t;
}

/* Open types=FILE, if given. Returns: false if it cannot be used. */
static bool open_types(GsTypesFile **out, const GsArch *arch,
                       const KtOptions *o)
{
    g_autoptr(GError) err = NULL;
    const GsArch *of_file;

    *out = o->types ? gs_types_file_open(o->types, &err) : NULL;
    if (err) {
        say("types=%s", err->message);
        return false;
    }
    of_file = *out ? gs_types_file_arch(*out) : NULL;
    if (of_file && of_file != arch) {
        say("types=%s: this file is for %s, but the guest is %s", o->types,
            of_file->name, arch->name);
        g_clear_pointer(out, gs_types_file_free);
        return false;
    }
    return true;
}

static bool open_script(KtScriptJobs **out, const KtOptions *o)
{
    g_autoptr(GError) err = NULL;
    bool ok = kt_script_jobs_open(out, o, &err);

    if (!ok) {
        say("%s", err->message);
    }
    return ok;
}

static void start_script(Plugin *p, KtScriptJobs *script)
{
    const KtScriptHost host = {
        .with_context = with_context, .say = warn, .opaque = p,
    };

    p->script = script;
    if (script) {
        kt_script_jobs_start(script, p->capture, &host);
    }
}

/* Check the filters of access= if there is no tracer yet (@t is NULL), else
 * begin. */
static bool start_access(KtTracer *t, const KtOptions *o)
{
    g_autoptr(GError) err = NULL;
    g_autofree char *filters = g_strconcat(o->access ? o->access : "",
                                           o->access_verify ? "+verify" : "",
                                           NULL);
    bool ok = !o->access || mc_access_arm(t, filters, &err);

    if (!ok) {
        say("option 'access': %s", err->message);
    }
    return ok;
}

static bool install(qemu_plugin_id_t id, const qemu_info_t *info,
                    const KtOptions *o)
{
    const GsArch *arch = gs_arch_find(info->target_name);
    unsigned n_cpus = MAX(info->system.max_vcpus, 1);
    KtScriptJobs *script;
    GsTypesFile *types;
    Plugin *p;

    if (!start_access(NULL, o) || !open_types(&types, arch, o) ||
        !open_script(&script, o)) {
        return false;
    }
    p = g_new0(Plugin, 1);
    if (!qemu_plugin_register_monitor_cmd(id, "ka", mc_help_params(),
                                          mc_help_short(), run_command, p)) {
        say("%s", loaded_twice);
        g_free(p);
        return false;
    }
    p->rr = kt_record_replay();
    p->tracer = make_tracer(p, o, n_cpus);
    if (!p->tracer) {
        qemu_plugin_register_monitor_cmd(id, "ka", NULL, NULL, NULL, NULL);
        g_free(p);
        return false;
    }
    if (o->check) {
        kt_tracer_set_check(p->tracer, on_violation, NULL);
    }
    open_kernel(p, arch, o);
    kt_tracer_on_second(p->tracer, on_second, p);
    p->capture = kt_capture_start(id, arch, p->tracer, p->finder,
                                  p->given.profile, n_cpus, o->pages);
    if (o->recording && !g_strcmp0(p->rr, "replay")) {
        p->go = kt_capture_stop_replay(p->capture, o->recording);
    }
    kt_calls_configure(p->tracer, MIN(o->calls, CALLS_MAX), n_cpus);
    kt_capture_set_types(p->capture, types, warn);
    kt_capture_set_log(p->capture, o->log);
    kt_faults_set_warn(p->tracer, warn);
    if (!o->faults) {
        kt_faults_set_off(p->tracer);
    }
    start_access(p->tracer, o);
    kt_quarantine_set(p->tracer, o->quarantine);
    start_script(p, script);
    qemu_plugin_register_vm_reset_cb(id, on_vm_reset, p);
    kt_leak_set_every(p->tracer, o->leak_scan);
    g_timeout_add_seconds(1, each_second, p);
    start_reports(p, o);
    kt_vmstate_register(id, p->capture, p->tracer);
    qemu_plugin_register_atexit_cb(id, on_exit_cb, p);
    plugin = p;
    return true;
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id,
                                           const qemu_info_t *info, int argc,
                                           char **argv)
{
    g_autofree char *why = NULL;
    KtOptions options;

    if (plugin) {
        say("%s", loaded_twice);
        return -1;
    }
    why = kt_qemu_check(info);
    if (why || !kt_options_parse(&options, argc, argv, &why)) {
        say("%s", why);
        return -1;
    }
    return install(id, info, &options) ? 0 : -1;
}
