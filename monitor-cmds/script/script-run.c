/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Run a script. A run is the commands of one moment: those of each block for
 * this moment, in the order of the file.
 *
 *     -- boot.ka:3: ka mark begin               one line before each command,
 *     mark begin ...                            then its output
 *
 * If a command fails, the commands of its block that ran before are undone, the
 * newest first, and the rest of the block does not run. Other blocks run.
 */
#include <string.h>

#include "monitor-cmds/script/script.h"

/* A command that ran. */
typedef struct Ran {
    const McScriptCommand *command;
    McUndo undo;
} Ran;

/**
 * struct McScriptRun - see mc.h
 * @block, @command: what runs next
 * @ran: Ran: commands of this block that succeeded
 */
struct McScriptRun {
    const McScript *s;
    McMoment moment;
    char *module;
    unsigned block, command;
    GArray *ran;
};

/* Hands output on, and keeps the last line: the error of a command that
 * failed. */
typedef struct Tee {
    const McContext *to;
    char *last;
} Tee;

static void clear_ran(gpointer p)
{
    mc_undo_clear(&((Ran *)p)->undo);
}

static const McScriptBlock *current(const McScriptRun *run)
{
    return &g_array_index(run->s->blocks, McScriptBlock, run->block);
}

/* Go to the next block of this moment, from @block on. */
static bool go_to(McScriptRun *run, unsigned block)
{
    g_array_set_size(run->ran, 0);
    run->command = 0;
    for (run->block = block; run->block < run->s->blocks->len; run->block++) {
        if (current(run)->commands->len &&
            mc_script_block_is_for(current(run), run->moment, run->module)) {
            return true;
        }
    }
    return false;
}

McScriptRun *mc_script_begin(const McScript *s, McMoment moment,
                             const char *module)
{
    McScriptRun *run = g_new0(McScriptRun, 1);

    run->s = s;
    run->moment = moment;
    run->module = g_strdup(module);
    run->ran = g_array_new(FALSE, FALSE, sizeof(Ran));
    g_array_set_clear_func(run->ran, clear_ran);
    if (!go_to(run, 0)) {
        g_clear_pointer(&run, mc_script_end);
    }
    return run;
}

void mc_script_end(McScriptRun *run)
{
    if (run) {
        g_free(run->module);
        g_array_unref(run->ran);
        g_free(run);
    }
}

/* ---- output -------------------------------------------------------------- */

static bool puts_tee(void *opaque, const char *text)
{
    Tee *tee = opaque;
    g_autofree char *chunk = g_strchomp(g_strdup(text));
    const char *newline = strrchr(chunk, '\n');

    g_free(tee->last);
    tee->last = g_strdup(newline ? newline + 1 : chunk);
    return tee->to->puts(tee->to->puts_opaque, text);
}

/* Return (owned) "FILE:LINE", and the block. */
static char *place_text(const McScriptRun *run, const McScriptCommand *c)
{
    static const char *const moments[] = {
        [MC_MOMENT_FOUND] = "", [MC_MOMENT_LOAD] = ": on load ",
        [MC_MOMENT_UNLOAD] = ": on unload ",
    };
    const McScriptBlock *b = current(run);

    return g_strdup_printf("%s:%u%s%s", run->s->name, c->line,
                           moments[b->moment], b->module ? b->module : "");
}

static void print_header(const McScriptRun *run, const McScriptCommand *c,
                         const McContext *ctx)
{
    g_autofree char *place = place_text(run, c);
    McOut out;

    mc_out_init(&out, ctx);
    out.whole = true;
    mc_out_printf(&out, "-- %s: ka %s", place, c->text);
    mc_out_deinit(&out);
}

/* ---- failure ------------------------------------------------------------- */

static void put_line_number(GString *list, const McScriptCommand *c)
{
    g_string_append_printf(list, "%sline %u", list->len ? ", " : "", c->line);
}

/* Undo what the block did; return (owned) the lines that this concerns, as the
 * end of a message. */
static char *undo_block(McScriptRun *run, const McContext *ctx)
{
    g_autoptr(GString) undone = g_string_new(NULL);
    g_autoptr(GString) stays = g_string_new(NULL);

    for (unsigned i = run->ran->len; i--;) {
        const Ran *r = &g_array_index(run->ran, Ran, i);

        if (mc_undo_changed(&r->undo)) {
            put_line_number(mc_undo(&r->undo, ctx) ? undone : stays,
                            r->command);
        }
    }
    return g_strconcat(undone->len ? "; undone: " : "", undone->str,
                       stays->len ? "; cannot be undone: " : "",
                       stays->str, NULL);
}

static void fail_block(McScriptRun *run, const McScriptCommand *c,
                       const char *why, const McContext *ctx,
                       void (*say)(const char *line))
{
    unsigned rest = current(run)->commands->len - run->command - 1;
    g_autofree char *place = place_text(run, c);
    g_autofree char *undone = undo_block(run, ctx);
    g_autofree char *left = rest ? g_strdup_printf("; %u command%s after it "
                                                   "did not run", rest,
                                                   rest > 1 ? "s" : "") : NULL;
    g_autofree char *line = NULL;

    line = g_strdup_printf("%s: ka %s: %s%s%s", place, c->text, why, undone,
                           left ? left : "");
    kt_tracer_count(ctx->tracer, KT_CNT_SCRIPT_FAILED, 1);
    say(line);
}

/* ---- running ------------------------------------------------------------- */

static bool run_command(McScriptRun *run, const McScriptCommand *c,
                        const McContext *ctx, void (*say)(const char *line))
{
    Tee tee = { .to = ctx };
    McContext own = *ctx;
    Ran ran = { .command = c };
    bool ok;

    own.puts = puts_tee;
    own.puts_opaque = &tee;
    print_header(run, c, ctx);
    kt_tracer_count(ctx->tracer, KT_CNT_SCRIPT_COMMANDS, 1);
    mc_undo_before(&ran.undo, ctx, c->text);
    ok = mc_run(&own, c->text) != 1;
    if (ok) {
        mc_undo_after(&ran.undo, ctx);
        g_array_append_val(run->ran, ran);
    } else {
        const char *why = tee.last ? tee.last : "failed";

        mc_undo_clear(&ran.undo);
        fail_block(run, c, why + 4 * g_str_has_prefix(why, "ka: "), ctx, say);
    }
    g_free(tee.last);
    return ok;
}

bool mc_script_run(McScriptRun *run, const McContext *ctx, bool paused,
                   void (*say)(const char *line))
{
    while (run->block < run->s->blocks->len) {
        const GArray *commands = current(run)->commands;
        const McScriptCommand *c;

        if (run->command == commands->len) {
            go_to(run, run->block + 1);
            continue;
        }
        c = &g_array_index(commands, McScriptCommand, run->command);
        if (c->pauses && !paused) {
            return false;
        }
        if (run_command(run, c, ctx, say)) {
            run->command++;
        } else {
            go_to(run, run->block + 1);
        }
    }
    return true;
}
