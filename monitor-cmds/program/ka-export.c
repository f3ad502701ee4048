/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka export: ask a journal or a running VM for its sums by stack, and write
 * them in the format of another tool. Called by main() of the program `ka`, on
 * its only thread.
 *
 * The sums are the answer of `ka top --by stack -s -j -n 0` or `ka diff`, so
 * what these count, an export has. The file is written here, and not by QEMU:
 * the user of a monitor names no path to QEMU.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "monitor-cmds/export/export.h"
#include "monitor-cmds/parse/parse.h"
#include "monitor-cmds/program/ka.h"

/** struct Job - an export. @query: the line that answers with the sums */
typedef struct Job {
    const KaExport *what;
    KaSource source;
    McExportId format;
    char *query;
    McArgs args;
} Job;

static int fail(const char *text)
{
    fprintf(stderr, "ka: %s\n", text);
    return KA_BAD_LINE;
}

/* ---- the command line ---------------------------------------------------- */

static const McOption *option_of(const char *word)
{
    for (unsigned i = 0; i < MC_OPT__COUNT; i++) {
        if (!strcmp(word, mc_options[i].spelling) && mc_options[i].arg) {
            return &mc_options[i];
        }
    }
    return NULL;
}

static bool is_of_export(const McOption *o)
{
    McOptionId id = o - mc_options;

    return id == MC_OPT_FRAMES || id == MC_OPT_VALUE || id == MC_OPT_BASE;
}

/* Return (owned) the line that asks for the sums: the filters are those of ka
 * top. */
static char *make_query(const Job *job, char **word)
{
    const McArgs *args = &job->args;
    g_autoptr(GPtrArray) line = g_ptr_array_new();
    const char *const fixed[] = {
        "--by", mc_export_by_cache(job->format) ? "cache" : "stack", "-s", "-j",
        "-n", "0",
    };

    g_ptr_array_add(line, (char *)(args->base ? "diff" : "top"));
    if (args->base) {
        g_ptr_array_add(line, args->base);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(fixed); i++) {
        g_ptr_array_add(line, (char *)fixed[i]);
    }
    if (args->frames == MC_FRAMES_LINE) {
        g_ptr_array_add(line, (char *)mc_options[MC_OPT_PC].spelling);
    }
    for (; *word; word++) {
        const McOption *o = option_of(*word);

        if (o && !is_of_export(o)) {
            g_ptr_array_add(line, word[0]);
            g_ptr_array_add(line, word[1]);
        }
        word += o != NULL;
    }
    g_ptr_array_add(line, NULL);
    return ka_join_words((char **)line->pdata);
}

/* Return the options that have no meaning for a format, as bits. */
static uint64_t refused(McExportId id)
{
    const uint64_t frames = 1ull << MC_OPT_FRAMES;
    const uint64_t value = 1ull << MC_OPT_VALUE;

    switch (mc_export_formats[id].needs) {
    case MC_NEEDS_JOURNAL:
        return ~frames;
    case MC_NEEDS_CACHE_JOURNAL:
        return UINT64_MAX;
    case MC_NEEDS_CACHES:
        return frames | value | 1ull << MC_OPT_BASE;
    default:
        return id == MC_EXPORT_FOLDED ? 0 : value;
    }
}

static bool check_needs(const Job *job, GError **errp)
{
    const McArgs *args = &job->args;
    const uint64_t others = args->given & refused(job->format);

    if (others) {
        return mc_fail_syntax(errp, "export %s: has no use for one of the "
                              "options; omit %s", args->name,
                              mc_options[__builtin_ctzll(others)].spelling);
    }
    if (mc_export_needs_journal(job->format) && !job->source.file) {
        return mc_fail_unknown(errp, "export %s: needs a journal (ka -f FILE), "
                               "because it has events", args->name);
    }
    return true;
}

static bool check_args(Job *job, GError **errp)
{
    const McArgs *args = &job->args;

    if (!mc_parse_format(args->name, &job->format, errp)) {
        return false;
    }
    if (args->frames == MC_FRAMES_LINE && !job->what->lines) {
        return mc_fail_unknown(errp, "--frames line: neither a journal nor a "
                               "VM has lines of source; name the kernel's "
                               "debug information: ka --vmlinux FILE ... "
                               "export");
    }
    if (args->frames == MC_FRAMES_LINE &&
        mc_export_needs_journal(job->format)) {
        return mc_fail_unknown(errp, "export %s: has no lines of source; use "
                               "--frames function or offset", args->name);
    }
    if (mc_export_formats[job->format].kind == MC_EXPORT_IS_BINARY &&
        !job->what->path && isatty(STDOUT_FILENO)) {
        return mc_fail_unknown(errp, "export %s: the file is binary; write it "
                               "with -o FILE%s", args->name,
                               mc_export_formats[job->format].suffix);
    }
    return check_needs(job, errp);
}

/* ---- writing ------------------------------------------------------------- */

static int write_to(const Job *job, const McHeapProfile *p)
{
    const McExport e = {
        .profile = p,
        .frames = job->args.frames,
        .value = job->args.export_value,
        .diff = job->args.base != NULL,
        .journal = job->source.file,
        .until_us = job->source.until_us,
        .kernel = ka_source_kernel(&job->source),
    };
    g_autoptr(GError) error = NULL;
    KaOutput out;
    bool written;

    if (!ka_output_begin(&out, job->what->path)) {
        return KA_NO_ANSWER;
    }
    written = mc_export_functions[job->format](&e, out.to, &error);
    if (!ka_output_end(&out, written)) {
        return KA_NO_ANSWER;
    }
    return written ? KA_ANSWERED : fail(error->message);
}

static void set_line(McHeapProfile *p, unsigned id, const GArray *places)
{
    const KaPlace *own = !places ? NULL :
        &g_array_index(places, KaPlace, places->len - 1);

    if (own) {
        mc_heap_profile_set_line(p, id, own->file, own->line);
    }
}

/* Give each frame its line. */
static bool add_lines(const Job *job, McHeapProfile *p)
{
    g_autoptr(KaLines) l = ka_source_lines(&job->source, job->what->lines);

    for (unsigned pass = 0; l && pass < 2; pass++) {
        for (unsigned i = 0; i < p->frame->len; i++) {
            const McProfileFrame *f = &g_array_index(p->frame, McProfileFrame,
                                                     i);

            if (f->symbol && f->at && !pass) {
                ka_lines_learn(l, f->symbol, f->at);
            } else if (f->symbol && f->at) {
                set_line(p, i, ka_lines_find(l, f->symbol, f->at));
            }
        }
    }
    return l;
}

static int run(Job *job)
{
    g_autoptr(McHeapProfile) p = mc_heap_profile_new();
    int rc;

    if (!ka_source_open(&job->source)) {
        return KA_NO_ANSWER;
    }
    rc = ka_source_fill(&job->source, job->query, p);
    if (rc == KA_ANSWERED && job->args.frames == MC_FRAMES_LINE &&
        !add_lines(job, p)) {
        rc = KA_NO_ANSWER;
    }
    if (rc == KA_ANSWERED) {
        rc = write_to(job, p);
    }
    ka_source_close(&job->source);
    return rc;
}

int ka_export(const KaExport *what, char **word)
{
    static const McContext none = { 0 };
    g_autofree char *line = ka_join_words(word);
    g_autoptr(GError) error = NULL;
    Job job = {
        .what = what,
        .source = what->source,
    };
    bool parsed;
    int rc;

    mc_args_init(&job.args, &none);
    parsed = mc_parse(&job.args, line, &error);
    if (parsed && (mc_given(&job.args, MC_OPT_HELP) || !job.args.name)) {
        rc = KA_NOT_HERE;
    } else if (!parsed || !check_args(&job, &error)) {
        rc = fail(error->message);
    } else {
        job.query = make_query(&job, word);
        rc = run(&job);
    }
    mc_args_deinit(&job.args);
    g_free(job.query);
    return rc;
}
