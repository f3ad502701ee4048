/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka on, ka off, ka clear: the commands that change the tracer.
 *
 * Called through mc_run(); refused for a journal. The tracer takes its lock.
 */
#include "monitor-cmds/commands/commands.h"

/* Refuse the command for a journal, which cannot be changed. */
static bool is_live(const McOut *out, const char *word, GError **errp)
{
    if (out->ctx->journal) {
        mc_fail_unknown(errp, "\"%s\" is for a running VM; a journal is only "
                        "read", word);
    }
    return !out->ctx->journal;
}

static bool switch_to(McOut *out, bool on, GError **errp)
{
    KtTracer *t = out->ctx->tracer;
    const char *word = on ? "on" : "off";

    if (!is_live(out, word, errp)) {
        return false;
    }
    if (kt_tracer_enabled(t) == on) {
        mc_out_printf(out, "tracing was %s already", word);
        return true;
    }
    kt_tracer_set_enabled(t, on);
    mc_out_printf(out, "tracing is %s%s", word,
                  on ? "" : "; events are not recorded from now on");
    return true;
}

bool mc_cmd_on(McOut *out, const McArgs *args, GError **errp)
{
    return switch_to(out, true, errp);
}

bool mc_cmd_off(McOut *out, const McArgs *args, GError **errp)
{
    return switch_to(out, false, errp);
}

bool mc_cmd_clear(McOut *out, const McArgs *args, GError **errp)
{
    KtTracer *t = out->ctx->tracer;
    KtStats s;

    if (!is_live(out, "clear", errp)) {
        return false;
    }
    s = mc_stats(out);
    kt_tracer_clear(t);
    mc_out_printf(out, "removed %" PRIu64 " live and %" PRIu64 " freed blocks, "
                  "%" PRIu64 " past lives, %" PRIu64 " errors",
                  s.live_blocks, s.freed_blocks, s.history_rows, s.errors);
    return true;
}
