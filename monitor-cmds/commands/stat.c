/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka stat: print the tracer's state, sizes and counters.
 *
 * Called through mc_run(). All numbers are copied under one hold of the
 * tracer's lock. Counters and their texts come from counters.def.
 */
#include "monitor-cmds/commands/commands.h"

#include <string.h>

/** struct Row - what is printed; texts are NULL if there is no such line.
 *  @banner: (owned) */
typedef struct Row {
    KtStats s;
    KtQuarantineInfo q;
    const char *changed, *state, *recognised, *memory;
    const char *no_kernel;
    char *banner;
    const char *from, *symbols_from, *btf, *types, *unwind, *learned;
    const char *unseen;
    uint64_t slide, symbols, symbol_bytes, modules;
    uint64_t hooks_found, hooks_missing;
} Row;

#define S(key_, member_, help_) \
    MC_KEY(key_, Row, s.member_, NUMBER, NULL, help_)
#define N(key_, member_, help_) MC_KEY(key_, Row, member_, NUMBER, NULL, help_)
/* Bytes. */
#define B(key_, member_, help_) \
    MC_KEY(key_, Row, member_, NUMBER, NULL, help_, .unit = MC_SIZE)
#define T(key_, member_) \
    MC_KEY(key_, Row, member_, TEXT, NULL, NULL, .flags = MC_OMIT)

#define Q(key_, member_, help_, ...) \
    MC_KEY(key_, Row, q.member_, NUMBER, NULL, help_, MC_IF(Row, q.running), \
           __VA_ARGS__)

static const McColumn changes_columns[] = {
    T("guest.changed", changed),
    Q("guest.quarantine", limit, "bytes that may wait to be freed",
      .unit = MC_SIZE),
    Q("guest.waiting", blocks, "blocks that wait to be freed"),
    Q("guest.waiting_bytes", bytes, "bytes of these", .unit = MC_SIZE),
    MC_END
};

static const McColumn tracing_columns[] = {
    T("tracing.state", state), T("tracing.kernel", recognised),
    T("tracing.unseen", unseen), MC_END
};

MC_WHEN(is_known)
{
    return o->ctx->kernel;
}

MC_WHEN(has_slide)
{
    return o->ctx->kernel && o->ctx->kernel_found &&
           !gs_kernel_is_memory(o->ctx->kernel);
}

MC_WHEN(has_no_slide)
{
    return o->ctx->kernel && o->ctx->kernel_found && !has_slide(o, row);
}

MC_GETTER(unknown)
{
    return false;
}

#define K(key_, member_, help_, ...) \
    MC_KEY(key_, Row, member_, NUMBER, NULL, help_, .when = is_known, \
           __VA_ARGS__)

static const McColumn kernel_columns[] = {
    T("kernel.none", no_kernel),
    T("kernel.banner", banner),
    T("kernel.from", from),
    MC_KEY("kernel.slide", Row, slide, HEX, NULL,
           "hex; run time minus link time", .when = has_slide),
    MC_GET("kernel.slide", get_unknown, HEX, NULL,
           "unknown: symbols were read at their run-time addresses",
           .when = has_no_slide),
    K("kernel.symbols", symbols, "modules included"),
    T("kernel.symbols_from", symbols_from),
    K("kernel.symbol_bytes", symbol_bytes,
      "host memory of the symbols, without those of modules",
      .unit = MC_SIZE),
    K("kernel.modules", modules, "modules whose symbols are known"),
    T("kernel.btf", btf),
    T("kernel.types", types),
    T("kernel.unwind", unwind),
    T("types.learned", learned),
    MC_END
};

static const McColumn blocks_columns[] = {
    S("blocks.live", live_blocks, "blocks allocated"),
    B("blocks.live_bytes", s.live_bytes, "bytes of these, slack included"),
    S("blocks.freed", freed_blocks, "blocks freed and not reused"),
    S("blocks.previous_boot", previous_live_blocks,
      "live blocks of the boot before the reset"),
    B("blocks.host_bytes", s.map_bytes, "host memory of the map"),
    S("errors.recorded", errors, "errors that ka error lists"),
    MC_END
};

static const McColumn history_columns[] = {
    S("history.rows", history_rows, "past lives"),
    B("history.host_bytes", s.history_bytes, "host memory of past lives"),
    MC_END
};

static const McColumn depot_columns[] = {
    S("depot.stacks", stacks, "different backtraces"),
    S("depot.tasks", tasks, "different tasks"),
    S("depot.caches", caches, "kmem_caches seen"),
    B("depot.host_bytes", s.depot_bytes, "host memory of the backtraces"),
    MC_END
};

static const McColumn memory_columns[] = {
    B("memory.bytes", s.mem_bytes, "all host memory of the tracer"),
    B("memory.limit", s.mem_bound, "its limit (mem=); 0: no limit"),
    T("memory.state", memory),
    MC_END
};

static const McColumn events_columns[] = {
    S("events.checked", events, "events applied to the map and checked"),
    S("events.last_us", last_us, "guest microsecond of the newest event"),
    MC_END
};

static const McColumn hooks_columns[] = {
    N("hooks.found", hooks_found,
      "hooked allocator functions of this kernel"),
    N("hooks.missing", hooks_missing,
      "known functions that are not in this kernel or not needed; -v lists "
      "them"),
    MC_END
};

static const McObject stat_object = {
    "stat", "ka stat: one key for each of its lines", { NULL },
};

/* ---- hooks --------------------------------------------------------------- */

MC_WHEN(is_found)
{
    return ((const McHookStatus *)row)->va;
}

MC_WHEN(is_missing)
{
    return !is_found(o, row);
}

MC_WHEN(is_renamed)
{
    const McHookStatus *h = row;

    return h->va && h->symbol && strcmp(h->symbol, h->name);
}

#define H(member_, look_, text_, help_, ...) \
    MC_COLUMN(McHookStatus, member_, look_, text_, help_, __VA_ARGS__)

static const McObject hook_object = MC_OBJECT("hook", "ka stat -v",
    H(name, TEXT, "  %-32 ", "the function"),
    H(va, ADDRESS, NULL, "null if the kernel has no such function",
      .flags = MC_ZERO),
    MC_KEY(NULL, McHookStatus, va, ADDRESS, "%", NULL, .when = is_found),
    H(hits, NUMBER, " %12", "its calls", .when = is_found),
    MC_ONLY_TEXT("         missing            -", .when = is_missing),
    H(note, TEXT, "  %", "what the missing hook means", .flags = MC_OMIT,
      .when = is_missing),
    H(symbol, TEXT, NULL, "its name in this kernel", .flags = MC_OMIT),
    H(from, TEXT, NULL, "where va comes from", .flags = MC_OMIT),
    MC_KEY(NULL, McHookStatus, from, TEXT, "  %", NULL, .flags = MC_OMIT,
           .when = is_found),
    MC_KEY(NULL, McHookStatus, symbol, TEXT, " %", NULL,
           .when = is_renamed),
    H(args_from, TEXT, NULL, "what describes the arguments",
      .flags = MC_OMIT),
    MC_KEY(NULL, McHookStatus, args_from, TEXT, ", arguments by %", NULL,
           .flags = MC_OMIT, .when = is_found),
    H(calls, TEXT, NULL, "does it call hooks, as ka assumes",
      .flags = MC_OMIT),
    MC_KEY(NULL, McHookStatus, calls, TEXT, ", calls hooks: %", NULL,
           .flags = MC_OMIT, .when = is_found));

MC_OBJECTS(mc_stat_objects, &stat_object, &hook_object);

static void print_hooks(McOut *out)
{
    const McContext *ctx = out->ctx;
    McHookStatus h;

    for (unsigned i = 0; ctx->hook && i < ctx->n_hooks && !out->closed; i++) {
        h = (McHookStatus) { 0 };
        if (ctx->hook(ctx->hook_opaque, i, &h) && h.name) {
            mc_print(out, &hook_object, &h);
        }
    }
}

/* ---- ka stat ------------------------------------------------------------- */

static const char *memory_state(const KtStats *s)
{
    if (s->full) {
        return "full: new blocks are not kept";
    }
    return s->counter[KT_CNT_DROP_BLOCK] ?
           "ok again: blocks were not kept (block.dropped)" : "ok";
}

static const char *types_from(const McContext *ctx)
{
    const char *from = gs_kernel_types_from(ctx->kernel);

    return strcmp(from, "none") || !ctx->learned ? from : "learned";
}

/* (owned, nullable) */
static char *banner_of(const GsKernel *k)
{
    char *banner = g_strdup(gs_kernel_banner(k));

    for (char *p = banner; p && *p; p++) {
        *p = *p >= 0x20 && *p < 0x7f ? *p : '?';
    }
    return banner;
}

static void set_kernel(Row *row, const McContext *ctx)
{
    const GsKernel *k = ctx->kernel;

    if (!k) {
        row->no_kernel = mc_why_no_kernel(ctx);
        return;
    }
    row->banner = banner_of(k);
    row->from = gs_kernel_is_memory(k) ? "memory" : "file";
    row->slide = gs_kernel_slide(k);
    row->symbols = gs_kernel_n_symbols(k);
    row->symbols_from = gs_kernel_symbols_from(k);
    row->symbol_bytes = gs_kernel_symbol_bytes(k);
    row->modules = gs_kernel_n_modules(k);
    row->btf = gs_kernel_has_btf(k) ? "yes" : gs_kernel_btf_left_out(k) ?
               "not found: too many candidates in the guest's memory" : "no";
    row->types = types_from(ctx);
    row->unwind = gs_kernel_unwinder(k);
    row->learned = ctx->learned;
}

static void count_hooks(Row *row, const McContext *ctx)
{
    for (unsigned i = 0; ctx->hook && i < ctx->n_hooks; i++) {
        McHookStatus h = { 0 };

        row->hooks_found += ctx->hook(ctx->hook_opaque, i, &h) && h.va;
    }
    row->hooks_missing = ctx->n_hooks - row->hooks_found;
}

/* Say first what makes the guest behave otherwise than without the plugin. A
 * journal has no more of it than counters. */
static void print_changes(McOut *out, const Row *row)
{
    const KtQuarantineInfo *q = &row->q;

    if (q->limit || q->blocks || row->s.counter[KT_CNT_QUARANTINE_DELAYED]) {
        mc_figures(out, q->why_not ?
                   "guest unchanged: quarantine= has no effect" :
                   "guest changed: frees are delayed (quarantine=)",
                   changes_columns, row);
    }
}

static void add_number(GArray *columns, const char *key, size_t at,
                       const char *help, unsigned flags, McUnit unit)
{
    const McColumn c = {
        .key = key, .look = MC_LOOK_NUMBER, .help = help,
        .at = (uint16_t)at, .size = sizeof(uint64_t), .flags = flags,
        .unit = unit,
    };

    g_array_append_val(columns, c);
}

/* Print counters. Those that are 0 are only printed with -v. */
static void print_counters(McOut *out, const Row *row)
{
    g_autoptr(GArray) columns = g_array_new(TRUE, FALSE, sizeof(McColumn));

    for (unsigned i = 0; i < KT_CNT__COUNT; i++) {
        add_number(columns, kt_counter_name(i),
                   offsetof(Row, s.counter) + i * sizeof(uint64_t),
                   kt_counter_help(i), out->verbose ? 0 : MC_ZERO | MC_OMIT,
                   MC_PLAIN);
    }
    mc_figures(out, NULL, (const McColumn *)columns->data, row);
}

static void print_parts(McOut *out, const Row *row)
{
    g_autoptr(GArray) columns = g_array_new(TRUE, FALSE, sizeof(McColumn));

    for (unsigned i = 0; i < KT_MEM__COUNT; i++) {
        g_autofree char *key = g_strconcat("memory.", kt_memory_part_name(i),
                                           NULL);

        add_number(columns, g_intern_string(key),
                   offsetof(Row, s.part_bytes) + i * sizeof(uint64_t),
                   kt_memory_part_help(i), 0, MC_SIZE);
    }
    mc_figures(out, NULL, (const McColumn *)columns->data, row);
}

/* Print the members of kernel structs that are read. Without types,
 * types.learned says which are known. */
static void print_members(McOut *out)
{
    g_autoptr(GArray) columns = g_array_new(TRUE, FALSE, sizeof(McColumn));
    g_autoptr(GArray) at = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    g_autoptr(GStringChunk) texts = g_string_chunk_new(4096);
    const GsKernel *k = out->ctx->kernel;
    KtMemberRow row;

    for (unsigned i = 0; kt_member_row(k, i, &row); i++) {
        g_autofree char *name = g_strndup(row.names, strcspn(row.names, "|"));
        g_autofree char *key = g_strconcat("member.", name, NULL);
        g_autofree char *lacks = g_strdup_printf("%s; not here: %s",
                                                 row.purpose, row.without);
        const uint64_t offset = row.at;

        add_number(columns, g_string_chunk_insert(texts, key),
                   i * sizeof(uint64_t), row.found ? row.purpose :
                   g_string_chunk_insert(texts, lacks), 0, MC_PLAIN);
        if (!row.found) {
            g_array_index(columns, McColumn, i).get = get_unknown;
        }
        g_array_append_val(at, offset);
    }
    mc_figures(out, "members of the kernel's structs, in bytes",
               (const McColumn *)columns->data, at->data);
}

bool mc_cmd_stat(McOut *out, const McArgs *args, GError **errp)
{
    KtTracer *t = out->ctx->tracer;
    g_autofree char *banner = NULL;
    Row row = {
        .state = kt_tracer_enabled(t) ? "on" : "off",
        .recognised = out->ctx->kernel_found ? "recognised" :
                                               "not recognised",
        .unseen = out->verbose ? out->ctx->unseen : NULL,
    };

    kt_query_begin(t);
    kt_query_stats(t, &row.s);
    kt_query_end(t);
    kt_quarantine_info(t, &row.q);
    row.changed = row.q.why_not ? row.q.why_not : "yes";
    row.memory = memory_state(&row.s);
    set_kernel(&row, out->ctx);
    banner = row.banner;
    count_hooks(&row, out->ctx);
    mc_figures_begin(out, &stat_object);
    print_changes(out, &row);
    mc_figures(out, "tracing", tracing_columns, &row);
    mc_figures(out, "kernel", kernel_columns, &row);
    mc_figures(out, "blocks", blocks_columns, &row);
    mc_figures(out, "history", history_columns, &row);
    mc_figures(out, "depot", depot_columns, &row);
    mc_figures(out, "memory", memory_columns, &row);
    print_parts(out, &row);
    mc_figures(out, "events", events_columns, &row);
    print_counters(out, &row);
    if (out->ctx->hook) {
        mc_figures(out, "hooks", hooks_columns, &row);
    }
    if (out->verbose && out->ctx->kernel &&
        gs_kernel_has_types(out->ctx->kernel)) {
        print_members(out);
    }
    mc_figures_end(out);
    if (out->verbose) {
        print_hooks(out);
    }
    return true;
}
