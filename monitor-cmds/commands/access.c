/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka access: are accesses checked, and what explained those that are no errors;
 * ka access on, ka access off.
 *
 * Called through mc_run(). Places are copied under the lock of kt-access.h, and
 * printed without it.
 */
#include "monitor-cmds/commands/commands.h"

#include <string.h>

static bool is_live(const McOut *out, GError **errp)
{
    if (out->ctx->journal) {
        g_set_error(errp, MC_ERROR, MC_ERROR_UNKNOWN,
                    "accesses are checked in a running VM; of a journal, ka "
                    "error lists the errors that were found");
    }
    return !out->ctx->journal;
}

/* ---- ka access ----------------------------------------------------------- */

const char *mc_why_unchecked(const McOut *out, const KtAccessInfo *info)
{
    return info->why_not ? info->why_not :
           out->ctx->kernel_found ? "they are about to be" :
                                    "the kernel is not known yet";
}

/* (owned) */
static char *state_text(const McOut *out, const KtAccessInfo *info)
{
    const char *blocks = info->text ? info->text : "all blocks";

    if (!info->wanted) {
        return info->why_not ?
                   g_strdup_printf("not checked: %s", info->why_not) :
                   g_strdup("not checked; ka access on begins");
    }
    if (info->armed && !kt_tracer_enabled(out->ctx->tracer)) {
        return g_strdup_printf("not checked: tracing is off (%s)", blocks);
    }
    if (info->armed) {
        return g_strdup_printf("checked since %" PRIu64 " us: %s",
                               info->since_us, blocks);
    }
    return g_strdup_printf("not checked: %s (%s)", mc_why_unchecked(out, info),
                           blocks);
}

/* Count the names that the kernel should have and has not: what it has instead
 * is taken for plain code. */
static unsigned n_missing(const McOut *out)
{
    const GsKernel *k = mc_symbols(out->ctx);
    g_autoptr(KtCodeClasses) c = k ? kt_access_code(out->ctx->tracer, k) : NULL;

    return c ? kt_code_classes_n_missing(c) : 0;
}

typedef struct StateRow {
    const char *state;
    bool armed;
    const KtAccessInfo *info;
    unsigned missing;
} StateRow;

MC_GETTER(since)
{
    const StateRow *s = row;

    v->u = s->info->since_us;
    return s->armed;
}

MC_GETTER(reason)
{
    v->u = kt_tracer_counter(o->ctx->tracer, KT_CNT_ACCESS_OVERREAD + c->at);
    return true;
}

#define REASON(key_, id_, text_) \
    MC_GET(key_, get_reason, NUMBER, text_, "accesses that this explains", \
           .at = KT_ACCESS_##id_)

static const McObject state_object = MC_LINE_OBJECT("access", "ka access",
    MC_KEY(NULL, StateRow, state, TEXT, "%", NULL),
    MC_COLUMN(StateRow, armed, NUMBER, NULL, "1 if accesses are checked"),
    MC_GET("since_us", get_since, NUMBER, NULL, "since when"),
    MC_VIA("what", StateRow, info, text, TEXT, NULL,
           "the filters in words, null without one"),
    MC_VIA("shadow_bytes", StateRow, info, bytes, NUMBER, NULL,
           "host memory of the shadow"),
    MC_COLUMN(StateRow, missing, NUMBER, NULL,
              "functions of ka access rules that the kernel does not have"),
    MC_VIA("disarmed", StateRow, info, disarmed, TEXT, NULL,
           "caches that are not checked any more, null if there are none"),
    REASON("overread", OVERREAD, "; explained: % overread"),
    REASON("loads_ok", LOADS_OK, ", % loads_ok"),
    REASON("by_allocator", BY_ALLOCATOR, ", % by_allocator"),
    REASON("page_gone", PAGE_GONE, ", % page_gone"),
    REASON("unseen_alloc", UNSEEN_ALLOC, ", % unseen_alloc"),
    MC_VIA(NULL, StateRow, info, disarmed, TEXT,
           "; not checked any more, as allocations are not seen: %", NULL,
           .flags = MC_OMIT),
    MC_KEY(NULL, StateRow, missing, NUMBER,
           "; missing: %, see ka access rules", NULL, .flags = MC_IF_SET));

static void print_state(McOut *out, const KtAccessInfo *info)
{
    g_autofree char *state = state_text(out, info);

    mc_print(out, &state_object, &(StateRow) {
        state, info->wanted && info->armed, info, n_missing(out) });
}

static bool copy_place(const KtAccessPlace *place, void *opaque)
{
    g_array_append_vals(opaque, place, 1);
    return true;
}

static bool symbolize(const GsKernel *k, const KtAccessPlace *p, GsSymbol *sym)
{
    return k && gs_kernel_symbolize_at(k, p->pc, p->era, sym);
}

/* Replace the address of each place by the start of its function: accesses are
 * counted by function. */
static void find_functions(const McOut *out, GArray *places)
{
    const GsKernel *k = mc_symbols(out->ctx);
    GsSymbol sym;

    for (unsigned i = 0; i < places->len; i++) {
        KtAccessPlace *p = &g_array_index(places, KtAccessPlace, i);

        p->pc = symbolize(k, p, &sym) ? sym.va : p->pc;
    }
}

static gint by_function(gconstpointer a, gconstpointer b)
{
    const KtAccessPlace *x = a, *y = b;

    if (x->why != y->why) {
        return x->why < y->why ? -1 : 1;
    }
    if (x->pc != y->pc) {
        return x->pc < y->pc ? -1 : 1;
    }
    return (x->era > y->era) - (x->era < y->era);
}

static gint by_number(gconstpointer a, gconstpointer b)
{
    const KtAccessPlace *x = a, *y = b;

    if (x->why != y->why) {
        return x->why < y->why ? -1 : 1;
    }
    return (x->n < y->n) - (x->n > y->n);
}

/* Add up the places of each function. */
static void join_places(GArray *places)
{
    unsigned n = 0;

    g_array_sort(places, by_function);
    for (unsigned i = 0; i < places->len; i++) {
        const KtAccessPlace *p = &g_array_index(places, KtAccessPlace, i);
        KtAccessPlace *last =
            n ? &g_array_index(places, KtAccessPlace, n - 1) : NULL;

        if (last && !by_function(last, p)) {
            last->n += p->n;
        } else {
            g_array_index(places, KtAccessPlace, n) = *p;
            n++;
        }
    }
    g_array_set_size(places, n);
    g_array_sort(places, by_number);
}

typedef struct PlaceRow {
    const char *reason, *function;
    uint64_t count;
} PlaceRow;

static const McObject place_object = MC_LINE_OBJECT("access_place",
    "ka access -v",
    MC_COLUMN(PlaceRow, reason, WORD, "%-12 ", "what explains the accesses"),
    MC_KEY(NULL, PlaceRow, count, NUMBER, "%10  ", NULL),
    MC_COLUMN(PlaceRow, function, TEXT, "%", "that made them"),
    MC_COLUMN(PlaceRow, count, NUMBER, NULL, "their number"));

MC_OBJECTS(mc_access_objects, &state_object, &place_object);

static void print_place(McOut *out, const KtAccessPlace *p)
{
    g_autofree char *hex = g_strdup_printf("%" PRIx64, p->pc);
    GsSymbol sym;

    mc_print(out, &place_object, &(PlaceRow) {
        kt_access_reason_name(p->why),
        symbolize(mc_symbols(out->ctx), p, &sym) ? sym.name : hex, p->n });
}

bool mc_cmd_access(McOut *out, const McArgs *args, GError **errp)
{
    g_autoptr(GArray) places = g_array_new(false, false, sizeof(KtAccessPlace));
    g_autofree char *words = NULL, *disarmed = NULL;
    KtAccessInfo info = { 0 };

    if (!is_live(out, errp)) {
        return false;
    }
    kt_access_info(out->ctx->tracer, &info);
    words = info.text;
    disarmed = info.disarmed;
    print_state(out, &info);
    if (out->verbose) {
        kt_access_places(out->ctx->tracer, copy_place, places);
        find_functions(out, places);
        join_places(places);
    }
    for (unsigned i = 0; i < places->len && !out->closed; i++) {
        print_place(out, &g_array_index(places, KtAccessPlace, i));
    }
    return true;
}

/* ---- ka access on, ka access off ----------------------------------------- */

/* Refuse to arm for a kernel whose accesses cannot be judged. */
static bool can_check(const McOut *out, GError **errp)
{
    const GsKernel *k = out->ctx->kernel;
    const char *why = NULL;
    uint32_t size;

    if (k && gs_kernel_is_plain(k)) {
        why = "accesses are checked in Linux kernels only";
    } else if (k && !gs_kernel_has_all_symbols(k)) {
        why = "this kernel has no symbol table (CONFIG_KALLSYMS), so code of "
              "its allocator cannot be told from other code; give kernel=FILE "
              "(its vmlinux or System.map)";
    } else if (k && !gs_kernel_type_size(k, "page", &size)) {
        why = "this kernel has no types (BTF), so nobody knows which pages are "
              "free; give types=FILE, see docs/types.md";
    } else if (k && gs_kernel_type_size(k, "slob_block", &size)) {
        why = "the allocator of this kernel is SLOB, so nobody knows which "
              "pages have objects";
    }
    if (why) {
        g_set_error_literal(errp, MC_ERROR, MC_ERROR_UNKNOWN, why);
    }
    return !why;
}

static bool is_checked_layer(KtLayer layer, GError **errp)
{
    bool ok = layer == KT_LAYER_NONE || layer == KT_LAYER_KMALLOC ||
              layer == KT_LAYER_LARGE || layer == KT_LAYER_CACHE ||
              layer == KT_LAYER_VMALLOC || layer == KT_LAYER_PAGES;

    if (!ok) {
        g_set_error(errp, MC_ERROR, MC_ERROR_UNKNOWN,
                    "--layer %s: accesses to these blocks are not checked; the "
                    "layers are kmalloc, large, cache, vmalloc, pages",
                    kt_layer_name(layer));
    }
    return ok;
}

/* Return true if a module is loaded whose name @pattern matches; @pattern:
 * (nullable) */
static bool is_loaded(const McOut *out, const char *pattern)
{
    const GsKernel *k = out->ctx->kernel;
    GsModule module;

    for (unsigned i = 0;
         pattern && k && gs_kernel_nth_module(k, i, &module); i++) {
        if (module.live && kt_name_matches(pattern, module.name)) {
            return true;
        }
    }
    return !pattern;
}

/* Refuse if the accelerator does not show accesses: that is known at once. */
static bool has_begun(const McOut *out, GError **errp)
{
    KtTracer *t = out->ctx->tracer;
    KtAccessInfo info = { 0 };

    kt_access_info(t, &info);
    g_free(info.text);
    g_free(info.disarmed);
    if (info.why_not) {
        kt_access_disarm(t);
        g_set_error_literal(errp, MC_ERROR, MC_ERROR_UNKNOWN, info.why_not);
    }
    return !info.why_not;
}

/* Say what does not exist yet: what the filters name may come later, a cache
 * with a module, so it is no error. */
static void print_armed(McOut *out, const McArgs *args)
{
    KtTracer *t = out->ctx->tracer;
    KtAccessInfo info = { 0 };
    g_autofree char *words = NULL, *disarmed = NULL;

    kt_access_info(t, &info);
    words = info.text;
    disarmed = info.disarmed;
    mc_out_printf(out, "accesses are checked%s: %s%s%s%s%s",
                  out->ctx->kernel_found ? "" : " when the kernel is known",
                  words ? words : "all blocks",
                  kt_block_spec_knows_cache(&args->filter.spec, t) ? "" :
                  "; no cache of this name is known yet",
                  kt_block_spec_knows_task(&args->filter.spec, t) ? "" :
                  "; no such task is known yet",
                  is_loaded(out, args->module) ? "" :
                  "; no such module is loaded yet",
                  kt_tracer_enabled(t) ? "" :
                  "; nothing is checked before ka on");
}

/* The filters of ka access on, but --alloc. */
static KtAccessSpec spec_of(const McArgs *args)
{
    return (KtAccessSpec) {
        .block = args->filter.spec, .module = args->module,
        .writes = mc_given(args, MC_OPT_WRITES), .kinds = args->kinds,
        .verify = mc_given(args, MC_OPT_VERIFY),
    };
}

bool mc_cmd_access_on(McOut *out, const McArgs *args, GError **errp)
{
    g_autofree KtCodeRange *code = g_new(KtCodeRange, args->pcs->len);
    KtAccessSpec spec = spec_of(args);

    if (!is_live(out, errp) || !is_checked_layer(spec.block.layer, errp) ||
        !can_check(out, errp)) {
        return false;
    }
    for (unsigned i = 0; i < args->pcs->len; i++) {
        const McCode *c = &g_array_index(args->pcs, McCode, i);

        code[i] = (KtCodeRange) { c->lo, c->hi };
    }
    spec.block.code = code;
    spec.block.n_code = args->pcs->len;
    kt_access_arm(out->ctx->tracer, &spec);
    if (!has_begun(out, errp)) {
        return false;
    }
    print_armed(out, args);
    return true;
}

/* Return (owned) the command for the value of access=: "module:NAME+writes" is
 * "access on --module 'NAME' --writes". NULL: a value is empty. */
static char *access_line(const char *filters, GError **errp)
{
    g_autoptr(GString) line = g_string_new(mc_commands[MC_CMD_ACCESS_ON].word);
    g_auto(GStrv) words = g_strsplit(filters, "+", -1);

    for (unsigned i = !g_strcmp0(words[0], "on"); words[i]; i++) {
        g_auto(GStrv) pair = g_strsplit(words[i], ":", 2);

        if (!pair[0] || (pair[1] && !*pair[1])) {
            g_autofree char *quoted = mc_quote(filters);

            mc_fail_syntax(errp, "%s: a word is empty", quoted);
            return NULL;
        }
        g_string_append_printf(line, pair[1] ? " --%s '%s'" : " --%s", pair[0],
                               pair[1]);
    }
    return g_string_free(g_steal_pointer(&line), FALSE);
}

static bool check_early(const McArgs *args, GError **errp)
{
    if (mc_given(args, MC_OPT_HELP)) {
        return mc_fail_syntax(errp, "ka access on -h explains the filters");
    }
    if (mc_given(args, MC_OPT_ALLOC)) {
        return mc_fail_syntax(errp, "\"alloc\": the kernel is not known before "
                              "the VM runs; use ka access on in a script");
    }
    return is_checked_layer(args->filter.spec.layer, errp);
}

bool mc_access_arm(KtTracer *t, const char *filters, GError **errp)
{
    const McContext ctx = { .symbols_later = true };
    g_autofree char *line = access_line(filters, errp);
    g_auto(McArgs) args;
    KtAccessSpec spec;
    bool ok;

    mc_args_init(&args, &ctx);
    ok = line && mc_parse(&args, line, errp) && check_early(&args, errp);
    spec = spec_of(&args);
    if (ok && t) {
        kt_access_arm(t, &spec);
    }
    return ok;
}

bool mc_cmd_access_off(McOut *out, const McArgs *args, GError **errp)
{
    if (!is_live(out, errp)) {
        return false;
    }
    mc_out_printf(out, "%s", kt_access_disarm(out->ctx->tracer) ?
                  "accesses are not checked any more" :
                  "accesses were not checked");
    return true;
}
