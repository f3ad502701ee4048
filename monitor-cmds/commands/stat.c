/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka stat: print the tracer's state, sizes and counters.
 *
 * Called through mc_run(). Rows of numbers are a table over KtStats; counters
 * and their texts come from counters.def. All numbers are copied under one hold
 * of the tracer's lock.
 */
#include "monitor-cmds/commands/commands.h"

#include <string.h>

typedef struct StatRow {
    const char *key;
    size_t offset;
    const char *help;
} StatRow;

#define ROW(key, member, help) { key, offsetof(KtStats, member), help }

static const StatRow blocks_rows[] = {
    ROW("blocks.live", live_blocks, "blocks allocated"),
    ROW("blocks.live_bytes", live_bytes, "bytes of these, slack included"),
    ROW("blocks.freed", freed_blocks, "blocks freed and not reused"),
    ROW("blocks.previous_boot", previous_live_blocks,
        "live blocks of the boot before the reset"),
    ROW("blocks.host_bytes", map_bytes, "host memory of the map"),
    ROW("errors.recorded", errors, "errors that ka error lists"),
};

static const StatRow history_rows[] = {
    ROW("history.rows", history_rows, "past lives"),
    ROW("history.host_bytes", history_bytes, "host memory of past lives"),
};

static const StatRow depot_rows[] = {
    ROW("depot.stacks", stacks, "different backtraces"),
    ROW("depot.tasks", tasks, "different tasks"),
    ROW("depot.caches", caches, "kmem_caches seen"),
    ROW("depot.host_bytes", depot_bytes, "host memory of the backtraces"),
};

static const StatRow event_rows[] = {
    ROW("events.checked", events, "events applied to the map and checked"),
    ROW("events.last_us", last_us, "guest microsecond of the newest event"),
};

static const StatRow memory_rows[] = {
    ROW("memory.bytes", mem_bytes, "all host memory of the tracer"),
    ROW("memory.limit", mem_bound, "its limit (mem=); 0: no limit"),
};

static void print_rows(McOut *out, const char *group, const KtStats *stats,
                       const StatRow *rows, unsigned n)
{
    out->format->stat_group(out, group);
    for (unsigned i = 0; i < n; i++) {
        const char *at = (const char *)stats + rows[i].offset;

        out->format->stat(out, &(McStat) {
            .key = rows[i].key, .u = *(const uint64_t *)at,
            .help = rows[i].help });
    }
}

static void put_text(McOut *out, const char *key, const char *s)
{
    out->format->stat(out, &(McStat) { .key = key, .s = s });
}

static void put_number(McOut *out, const char *key, uint64_t u, bool hex,
                       const char *help)
{
    out->format->stat(out, &(McStat) {
        .key = key, .u = u, .hex = hex, .help = help });
}

/* Say first what makes the guest behave otherwise than without the plugin. A
 * journal has no more of it than counters. */
static void print_changes(McOut *out, const KtStats *s)
{
    KtQuarantineInfo q;

    kt_quarantine_info(out->ctx->tracer, &q);
    if (!q.limit && !q.blocks && !s->counter[KT_CNT_QUARANTINE_DELAYED]) {
        return;
    }
    out->format->stat_group(out, q.why_not ?
                            "guest unchanged: quarantine= has no effect" :
                            "guest changed: frees are delayed (quarantine=)");
    put_text(out, "guest.changed", q.why_not ? q.why_not : "yes");
    if (q.running) {
        put_number(out, "guest.quarantine", q.limit, false,
                   "bytes that may wait to be freed");
        put_number(out, "guest.waiting", q.blocks, false,
                   "blocks that wait to be freed");
        put_number(out, "guest.waiting_bytes", q.bytes, false,
                   "bytes of these");
    }
}

static void print_tracing(McOut *out)
{
    const McContext *ctx = out->ctx;

    out->format->stat_group(out, "tracing");
    put_text(out, "tracing.state", kt_tracer_enabled(ctx->tracer) ? "on" :
                                                                    "off");
    put_text(out, "tracing.kernel", ctx->kernel_found ? "recognised" :
             "not recognised");
}

static const char *memory_state(const KtStats *s)
{
    if (s->full) {
        return "full: new blocks are not kept";
    }
    return s->counter[KT_CNT_DROP_BLOCK] ?
           "ok again: blocks were not kept (block.dropped)" : "ok";
}

static void print_memory(McOut *out, const KtStats *s)
{
    print_rows(out, "memory", s, memory_rows, G_N_ELEMENTS(memory_rows));
    put_text(out, "memory.state", memory_state(s));
    for (unsigned i = 0; i < KT_MEM__COUNT; i++) {
        g_autofree char *key = g_strconcat("memory.", kt_memory_part_name(i),
                                           NULL);

        put_number(out, key, s->part_bytes[i], false, kt_memory_part_help(i));
    }
}

static void print_slide(McOut *out, const GsKernel *k)
{
    bool known = !gs_kernel_is_memory(k);

    out->format->stat(out, &(McStat) {
        .key = "kernel.slide", .u = gs_kernel_slide(k), .hex = true,
        .unknown = !known,
        .help = known ? "hex; run time minus link time" :
                "unknown: symbols were read at their run-time addresses" });
}

static const char *types_from(const McContext *ctx)
{
    const char *from = gs_kernel_types_from(ctx->kernel);

    return strcmp(from, "none") || !ctx->learned ? from : "learned";
}

static void print_kernel(McOut *out)
{
    const GsKernel *k = out->ctx->kernel;
    g_autoptr(GString) banner = g_string_new(NULL);

    out->format->stat_group(out, "kernel");
    if (!k) {
        put_text(out, "kernel.none", out->ctx->why_no_kernel ?
                 out->ctx->why_no_kernel : "no kernel file was given");
        return;
    }
    if (gs_kernel_banner(k)) {
        for (const char *p = gs_kernel_banner(k); *p; p++) {
            g_string_append_c(banner, *p >= 0x20 && *p < 0x7f ? *p : '?');
        }
        put_text(out, "kernel.banner", banner->str);
    }
    put_text(out, "kernel.from", gs_kernel_is_memory(k) ? "memory" : "file");
    if (out->ctx->kernel_found) {
        print_slide(out, k);
    }
    put_number(out, "kernel.symbols", gs_kernel_n_symbols(k), false,
               "modules included");
    put_text(out, "kernel.symbols_from", gs_kernel_symbols_from(k));
    put_number(out, "kernel.symbol_bytes", gs_kernel_symbol_bytes(k), false,
               "host memory of the symbols, without those of modules");
    put_number(out, "kernel.modules", gs_kernel_n_modules(k), false,
               "modules whose symbols are known");
    put_text(out, "kernel.btf", gs_kernel_has_btf(k) ? "yes" :
             gs_kernel_btf_left_out(k) ?
             "not found: too many candidates in the guest's memory" : "no");
    put_text(out, "kernel.types", types_from(out->ctx));
    put_text(out, "kernel.unwind", gs_kernel_unwinder(k));
    if (out->ctx->learned) {
        put_text(out, "types.learned", out->ctx->learned);
    }
}

static void print_counters(McOut *out, const KtStats *s)
{
    for (unsigned i = 0; i < KT_CNT__COUNT; i++) {
        if (s->counter[i] || out->verbose) {
            put_number(out, kt_counter_name(i), s->counter[i], false,
                       kt_counter_help(i));
        }
    }
}

static unsigned count_hooks(const McContext *ctx)
{
    unsigned found = 0;

    for (unsigned i = 0; i < ctx->n_hooks; i++) {
        McHookStatus h = { 0 };

        found += ctx->hook(ctx->hook_opaque, i, &h) && h.va;
    }
    return found;
}

static void print_coverage(McOut *out)
{
    const McContext *ctx = out->ctx;
    unsigned found;

    if (!ctx->hook) {
        return;
    }
    found = count_hooks(ctx);
    out->format->stat_group(out, "hooks");
    put_number(out, "hooks.found", found, false,
               "hooked allocator functions of this kernel");
    put_number(out, "hooks.missing", ctx->n_hooks - found, false,
               "known functions that are not in this kernel or not "
               "needed; -v lists them");
}

static void print_hooks(McOut *out)
{
    const McContext *ctx = out->ctx;
    McHookStatus h;

    for (unsigned i = 0; ctx->hook && i < ctx->n_hooks && !out->closed; i++) {
        h = (McHookStatus) { 0 };
        if (ctx->hook(ctx->hook_opaque, i, &h) && h.name) {
            out->format->hook(out, &h);
        }
    }
}

bool mc_cmd_stat(McOut *out, const McArgs *args, GError **errp)
{
    KtTracer *t = out->ctx->tracer;
    KtStats s;

    kt_query_begin(t);
    kt_query_stats(t, &s);
    kt_query_end(t);
    print_changes(out, &s);
    print_tracing(out);
    print_kernel(out);
    print_rows(out, "blocks", &s, blocks_rows, G_N_ELEMENTS(blocks_rows));
    print_rows(out, "history", &s, history_rows, G_N_ELEMENTS(history_rows));
    print_rows(out, "depot", &s, depot_rows, G_N_ELEMENTS(depot_rows));
    print_memory(out, &s);
    print_rows(out, "events", &s, event_rows, G_N_ELEMENTS(event_rows));
    print_counters(out, &s);
    print_coverage(out);
    out->format->stat_end(out);
    if (out->verbose) {
        print_hooks(out);
    }
    return true;
}
