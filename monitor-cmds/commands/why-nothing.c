/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The end of a line that reports an empty listing: the range, and the reason if
 * no event was recorded at all.
 *
 * Called by the commands, on their thread. Takes the tracer's lock for a copy
 * of the numbers.
 */
#include "monitor-cmds/commands/commands.h"

static const char *why_no_events(const McContext *ctx)
{
    if (!ctx->kernel) {
        return mc_why_no_kernel(ctx);
    }
    if (!ctx->kernel_found) {
        return "the running kernel is not recognised yet";
    }
    return kt_tracer_enabled(ctx->tracer) ? "the guest has not allocated yet" :
                                            "tracing is off";
}

char *mc_why_nothing(McOut *out)
{
    if (mc_stats(out).events) {
        return g_strdup("");
    }
    return g_strconcat("; no events were recorded: ",
                       why_no_events(out->ctx), NULL);
}

char *mc_range_text(const McRange *r)
{
    if (r->lo == r->hi) {
        return g_strdup_printf(" at %016" PRIx64, r->lo);
    }
    return g_strdup_printf(" in %016" PRIx64 "-%016" PRIx64, r->lo, r->hi);
}
