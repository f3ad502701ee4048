/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka error: list suspected errors, the oldest first.
 *
 * Called through mc_run(). Errors are copied in batches, in the order of their
 * numbers, under the tracer's lock, and printed without it.
 */
#include "monitor-cmds/commands/commands.h"

#include "monitor-cmds/output/block-row.h"

/* ---- instructions -------------------------------------------------------- */

/* Return true if the code of the frame is still there: it is in the kernel's
 * image, or in a module that has not been unloaded since. */
static bool is_there(const GsKernel *k, const McFrame *frame)
{
    GsModule module;
    GsSymbol sym;

    if (!gs_kernel_module_at(k, frame->pc, &module)) {
        return gs_kernel_symbolize(k, frame->pc, &sym);
    }
    return module.live && gs_kernel_load_at(k, frame->pc, frame->era) ==
           gs_kernel_load_at(k, frame->pc, GS_ERA_NOW);
}

/* Read up to @len bytes; an instruction may be the last one that is mapped.
 * Return how many. */
static size_t read_code(const McOut *out, uint64_t va, uint8_t *to, size_t len)
{
    while (len && !mc_read_guest(out, va, to, len)) {
        len--;
    }
    return len;
}

/*
 * Read and disassemble the instruction of a frame.
 * @frame: exact: its address is an instruction
 * @write: as for gs_arch_disassemble()
 *
 * Returns: false if it is unknown: there is no VM, the memory is not mapped, or
 * the code that was there at the time of the frame is gone.
 */
static bool disassemble(const McOut *out, const McFrame *frame, bool write,
                        GsInstruction *insn)
{
    const GsKernel *k = out->ctx->kernel_found ? mc_symbols(out->ctx) : NULL;
    uint8_t bytes[GS_INSTRUCTION_MAX];
    size_t len = 0;

    if (k && out->ctx->vm && frame->pc && is_there(k, frame)) {
        len = read_code(out, frame->pc, bytes, sizeof(bytes));
    }
    return len && gs_arch_disassemble(gs_kernel_arch(k), frame->pc, bytes, len,
                                      write, insn);
}

/**
 * struct Errors - state of a listing
 * @last: number of the error that was visited last
 * @filtered: number of errors that the options excluded
 */
typedef struct Errors {
    KtTracer *t;
    const McFilter *filter;
    GArray *rows;
    uint64_t last;
    uint64_t filtered;
    bool stopped;
} Errors;

static bool collect(const KtError *e, void *opaque)
{
    Errors *s = opaque;

    if (e->id <= s->last) {
        return true;
    }
    if (s->rows->len >= MC_BATCH_ROWS) {
        s->stopped = true;
        return false;
    }
    s->last = e->id;
    if (mc_filter_error(s->filter, e)) {
        g_array_append_vals(s->rows, e, 1);
    } else {
        s->filtered++;
    }
    return true;
}

static void next_batch(Errors *s, const McRange *r)
{
    g_array_set_size(s->rows, 0);
    s->stopped = false;
    kt_query_begin(s->t);
    kt_query_errors(s->t, r->lo, r->hi, collect, s);
    kt_query_end(s->t);
}

/* ---- rows ---------------------------------------------------------------- */

MC_GETTER(double_frees)
{
    v->s = ((const KtStats *)row)->unseen ? "unknown" : "known";
    return true;
}

MC_GETTER(tracing)
{
    v->s = kt_tracer_enabled(o->ctx->tracer) ? "on" : "off";
    return true;
}

static const McColumn clean_columns[] = {
    MC_COLUMN(KtStats, events, NUMBER, NULL,
              "number of events that were checked"),
    MC_END
};
static const McObject clean_object = {
    "clean", "ka error: there is no error, and nothing is missing",
    { clean_columns }, .line = true,
};

static const McColumn incomplete_columns[] = {
    MC_COLUMN(KtStats, errors_dropped, NUMBER, NULL,
              "errors found and not kept"),
    MC_COLUMN(KtStats, complete, YES_NO, NULL, "no if tracing began late"),
    MC_COLUMN(KtStats, gap, YES_NO, NULL, "yes if events were not recorded"),
    MC_GET("double_frees", get_double_frees, WORD, NULL,
           "known, or unknown if calls that hand out memory were not "
           "recorded"),
    MC_GET("tracing", get_tracing, WORD, NULL, "on or off"),
    MC_END
};
static const McObject incomplete_object = {
    "incomplete", "ka error, before the errors or instead of clean: there may "
    "be more errors", { clean_columns, incomplete_columns }, .line = true,
};

MC_OBJECTS(mc_error_objects,
           &mc_error_object, &clean_object, &incomplete_object);

/* ---- what is not in the list --------------------------------------------- */

static void add_reason(GString *s, const char *reason)
{
    g_string_append_printf(s, "%s%s", s->len ? "; " : "", reason);
}

/* Say which kinds of errors are not judged, because the kernel lacks what
 * decides: see docs/design.md. */
static void add_unjudged(GString *text, const KtStats *stats)
{
    if (stats->counter[KT_CNT_FREE_UNJUDGED]) {
        add_reason(text, "some double-free by vfree() are not judged "
                   "(free.unjudged), because the kernel's symbols lack the "
                   "worker of deferred frees");
    }
    if (stats->counter[KT_CNT_FREE_UNHOOKED]) {
        add_reason(text, "double-free, invalid-free, interior-free, "
                   "wrong-family, wrong-cache and overlap are not judged for "
                   "memory that no hooked function allocated (free.unhooked), "
                   "because the kernel's symbols lack functions that allocate");
    }
    if (stats->counter[KT_CNT_ALLOC_UNJUDGED]) {
        add_reason(text, "some overlap are not judged (alloc.unjudged), and "
                   "double-free, invalid-free, interior-free, wrong-family and "
                   "wrong-cache only of hooked functions, because the kernel's "
                   "symbols lack functions that free");
    }
    if (!stats->caches && stats->counter[KT_CNT_CACHE_UNKNOWN]) {
        add_reason(text, "wrong-cache is not judged, because no kmem_cache can "
                   "be read (cache.unknown)");
    }
}

/* Say which accesses are not judged, although the user asked for checks. */
static void add_unchecked(GString *text, const McOut *out, const KtStats *stats)
{
    KtAccessInfo info = { 0 };
    g_autofree char *filters = NULL, *disarmed = NULL, *why = NULL;

    kt_access_info(out->ctx->tracer, &info);
    filters = info.text;
    disarmed = info.disarmed;
    if (info.wanted && !info.armed) {
        why = g_strconcat("accesses are not checked: ", mc_why_unchecked(out,
                          &info), NULL);
        add_reason(text, why);
    }
    if (disarmed) {
        g_string_append_printf(text, "%saccesses to objects of these caches "
                               "are not checked any more, as allocations are "
                               "not seen: %s", text->len ? "; " : "", disarmed);
    }
    if (stats->counter[KT_CNT_ACCESS_NO_MEMORY] ||
        stats->counter[KT_CNT_ACCESS_DROPPED]) {
        add_reason(text, "some accesses were not checked (access.no_memory, "
                   "access.dropped)");
    }
}

/* Return (owned) why errors may be missing in the list, NULL if none can be. */
static char *why_incomplete(const McOut *out, const KtStats *stats)
{
    uint64_t dropped = stats->errors_dropped;
    g_autoptr(GString) text = g_string_new(NULL);

    if (dropped) {
        g_string_append_printf(text, "%" PRIu64 " more were found but not "
                               "kept (error.dropped)", dropped);
    }
    if (stats->blind && stats->counter[KT_CNT_KERNEL_REPLACED]) {
        add_reason(text, "no error is certain, because the guest's memory was "
                   "replaced, and ka did not see how (kernel.replaced)");
    } else if (stats->blind) {
        add_reason(text, "no error is certain, because the kernel's symbols "
                   "are only those that it exports (no CONFIG_KALLSYMS; give "
                   "kernel=FILE, its vmlinux or System.map), or its pointers "
                   "have tags (KASAN_SW_TAGS, KASAN_HW_TAGS)");
    } else if (!stats->complete) {
        add_reason(text, out->ctx->kernel_found ?
                   "tracing began late, so frees of unknown addresses are not "
                   "checked" : "the running kernel is not recognised");
    }
    if (stats->gap && !stats->blind) {
        add_reason(text, "events were not recorded (gaps, block.dropped), so "
                   "frees of unknown addresses and of older blocks are not "
                   "checked");
    }
    if (stats->unseen && !stats->blind) {
        add_reason(text, "calls that hand out memory were not recorded "
                   "(call.dropped, call.unreadable), so double frees are not "
                   "reported");
    }
    add_unjudged(text, stats);
    add_unchecked(text, out, stats);
    if (!kt_tracer_enabled(out->ctx->tracer)) {
        add_reason(text, "tracing is off");
    }
    return text->len ? g_string_free(g_steal_pointer(&text), FALSE) : NULL;
}

static void print_incomplete(McOut *out, const KtStats *stats,
                             const char *text)
{
    mc_print_line(out, &incomplete_object, stats, text);
}

/* Print the warning that precedes the first row, if errors may be missing. */
static void print_head(McOut *out)
{
    g_autofree char *why = NULL;
    g_autofree char *text = NULL;
    KtStats stats;

    stats = mc_stats(out);
    why = why_incomplete(out, &stats);
    if (why) {
        text = g_strconcat("not all errors are known: ", why, NULL);
        print_incomplete(out, &stats, text);
    }
}

/* Print the line of an empty list. It says how many events were checked, so
 * that "no errors" is not read as "nothing was recorded". */
static void print_clean(McOut *out, const Errors *s, const McArgs *args)
{
    g_autoptr(GString) text = g_string_new("no errors");
    g_autofree char *nothing = mc_why_nothing(out);
    g_autofree char *why = NULL;
    KtStats stats;

    stats = mc_stats(out);
    why = why_incomplete(out, &stats);
    if (args->has_va) {
        g_autofree char *range = mc_range_text(&args->va);

        g_string_append(text, range);
    }
    if (s->filtered) {
        g_string_append_printf(text, " that match the options, %" PRIu64
                               " others", s->filtered);
    }
    g_string_append_printf(text, "; %" PRIu64 " events checked%s",
                           stats.events, nothing);
    if (!why) {
        mc_print_line(out, &clean_object, &stats, text->str);
        return;
    }
    if (!*nothing) {
        g_string_append_printf(text, "; not all are known: %s", why);
    }
    print_incomplete(out, &stats, text->str);
}

/* ---- the listing --------------------------------------------------------- */

/* The first frame of an access is the instruction, unless a whole function was
 * checked at its entry. */
static bool read_instruction(const McOut *out, const KtError *e,
                             GsInstruction *insn)
{
    McStack stack = mc_stack(out->ctx->tracer, e->stack);
    McFrame frame;

    if (!kt_error_is_access(e->kind) || !stack.n ||
        (e->access.flags & KT_EVF_RANGE)) {
        return false;
    }
    frame = mc_frame(&stack, 0);
    return disassemble(out, &frame, e->access.flags & KT_EVF_WRITE, insn);
}

static void print_error(McOut *out, const KtError *e, const McArgs *args)
{
    GsInstruction insn;

    if (args->form == MC_FORM_KASAN) {
        mc_print_kasan(out, e);
    } else {
        mc_print_error(out, e, read_instruction(out, e, &insn) ? &insn : NULL);
    }
}

static uint64_t print_errors(McOut *out, Errors *s, const McArgs *args,
                             uint64_t *more)
{
    uint64_t shown = 0;

    do {
        next_batch(s, &args->va);
        for (unsigned i = 0; i < s->rows->len && !out->closed; i++) {
            const KtError *e = &g_array_index(s->rows, KtError, i);

            if (shown == args->limit) {
                *more += s->rows->len - i;
                break;
            }
            if (!shown) {
                print_head(out);
            }
            print_error(out, e, args);
            shown++;
        }
    } while (s->stopped && !out->closed);
    return shown;
}

bool mc_cmd_error(McOut *out, const McArgs *args, GError **errp)
{
    g_autoptr(GArray) rows = g_array_new(FALSE, FALSE, sizeof(KtError));
    Errors s = {
        .t = out->ctx->tracer, .filter = &args->filter, .rows = rows,
    };
    uint64_t more = 0;
    uint64_t shown;

    if (args->form == MC_FORM_KASAN && mc_given(args, MC_OPT_JSON)) {
        return mc_fail_syntax(errp, "\"--format kasan\" has no JSON form; omit "
                              "-j");
    }
    shown = print_errors(out, &s, args, &more);
    if (!shown && !out->closed) {
        print_clean(out, &s, args);
    } else if (more) {
        mc_more(out, more);
    }
    return true;
}
