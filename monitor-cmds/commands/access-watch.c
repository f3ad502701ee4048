/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka access watch: record the accesses to one block, and list them.
 *
 * Called through mc_run(). Records are copied under the lock of
 * kt-block-watch.h, and printed without it.
 */
#include "monitor-cmds/commands/commands.h"
#include "monitor-cmds/output/block-row.h"

#include <string.h>

#include "monitor-cmds/parse/expr.h"

static bool is_live(const McOut *out, GError **errp)
{
    if (out->ctx->journal) {
        g_set_error(errp, MC_ERROR, MC_ERROR_UNKNOWN,
                    "accesses are recorded in a running VM; of a journal, ka "
                    "show has the block");
    }
    return !out->ctx->journal;
}

/* Refuse an option that the form of the command does not have. */
static bool has_no_option(const McArgs *args, McOptionId id, const char *form,
                          GError **errp)
{
    bool given = mc_given(args, id);

    if (given) {
        g_set_error(errp, MC_ERROR, MC_ERROR_SYNTAX,
                    "%s is not an option of ka access watch%s",
                    mc_options[id].spelling, form);
    }
    return !given;
}

/* ---- rows ---------------------------------------------------------------- */

/** struct AccessRow - an access to the block at @block */
typedef struct AccessRow {
    const KtBlockAccess *a;
    uint64_t block;
} AccessRow;

static const KtBlockAccess *access_of(const void *row)
{
    return ((const AccessRow *)row)->a;
}

MC_GETTER(offset)
{
    v->u = access_of(row)->va - ((const AccessRow *)row)->block;
    return true;
}

MC_WHEN(is_repeated)
{
    return access_of(row)->count > 1;
}

#define A(key_, member_, look_, text_, help_, ...) \
    MC_VIA(key_, AccessRow, a, member_, look_, text_, help_, __VA_ARGS__)

const McObject mc_block_access_object = MC_OBJECT("access_watched",
    "ka access watch: accesses to the block, one after the other by one "
    "instruction; ka goto <va> write: the last one to the word",
    A("us", us, NUMBER, "%12us", "the first access"),
    A("last_us", last_us, NUMBER, NULL, "the last one"),
    A("va", va, ADDRESS, NULL, "address that all of them read or write"),
    MC_GET("offset", get_offset, BYTES, " +%-4", "of va in the block"),
    A("access", flags, ACCESS, " access=%", "r or w",
      .mask = KT_BLOCK_ACCESS_WRITE),
    A("size", len, NUMBER, "%", "bytes of each"),
    A("count", count, NUMBER, NULL, "how many"),
    A(NULL, count, NUMBER, " count=%", NULL, .when = is_repeated),
    A(NULL, last_us, NUMBER, "@%us", NULL, .when = is_repeated),
    A("comm", task, COMM, " comm=%", "name of the task", .flags = MC_OMIT),
    A("pid", task, PID, " pid=%", "its pid", .flags = MC_OMIT),
    A("cpu", cpu, NUMBER, " cpu=%", "vCPU"),
    A("range", flags, NUMBER, NULL,
      "1 if a function such as memset() makes them, and stack begins at its "
      "entry", .mask = KT_BLOCK_ACCESS_RANGE),
    A("allocator", flags, NUMBER, " by=allocator",
      "1 if code of the allocator makes them, or what it called",
      .mask = KT_BLOCK_ACCESS_ALLOCATOR, .flags = MC_IF_SET),
    A("stack", stack, STACK, " [%]", "stack, leaf first",
      .flags = MC_EXACT),
    A("stop", stack, STOP, NULL, "why it ends", .flags = MC_OMIT));

void mc_print_block_access(McOut *out, const KtBlockAccess *a, uint64_t block)
{
    mc_print(out, &mc_block_access_object, &(AccessRow) { a, block });
}

/** struct WatchRow - @spec: (nullable) the block that was watched last */
typedef struct WatchRow {
    const KtBlockWatchInfo *info;
    const KtBlockWatchSpec *spec;
} WatchRow;

static const McObject watch_object = MC_LINE_OBJECT("access_watch",
    "ka access watch, after the accesses",
    MC_VIA("on", WatchRow, info, on, NUMBER, NULL,
           "1 if a block is watched"),
    MC_VIA("va", WatchRow, spec, va, HEX, NULL,
           "the last block that was watched"),
    MC_VIA("size", WatchRow, spec, len, NUMBER, NULL, "its bytes"),
    MC_VIA("ring", WatchRow, spec, ring, NUMBER, NULL,
           "records that are kept"),
    MC_VIA("records", WatchRow, info, records, NUMBER, NULL,
           "records in the ring"),
    MC_VIA("accesses", WatchRow, info, accesses, NUMBER, NULL,
           "accesses in all records"),
    MC_VIA("overwritten", WatchRow, info, overwritten, NUMBER, NULL,
           "records that newer ones replaced"));

MC_OBJECTS(mc_access_watch_objects, &mc_block_access_object, &watch_object);

/* ---- the state ----------------------------------------------------------- */

/* (owned) */
static char *state_text(const McOut *out, const KtBlockWatchInfo *info)
{
    g_autoptr(GString) s = g_string_new(NULL);

    if (!info->any) {
        return g_strdup("no block is watched; ka access watch <va> begins");
    }
    g_string_append_printf(s, "%" PRIu64 " access%s to %" PRIu64 " bytes at "
                           "%" PRIx64 " in %" PRIu64 " record%s",
                           info->accesses, info->accesses == 1 ? "" : "es",
                           info->spec.len, info->spec.va, info->records,
                           info->records == 1 ? "" : "s");
    if (info->overwritten) {
        g_string_append_printf(s, ", %" PRIu64 " overwritten",
                               info->overwritten);
    }
    if (!info->on) {
        g_string_append_printf(s, "; the watch has ended%s%s",
                               info->why_ended ? ": " : "",
                               info->why_ended ? info->why_ended : "");
    } else if (!kt_tracer_enabled(out->ctx->tracer)) {
        g_string_append(s, "; nothing is recorded before ka on");
    }
    return g_string_free(g_steal_pointer(&s), FALSE);
}

static void print_state(McOut *out, const KtBlockWatchInfo *info)
{
    g_autofree char *text = state_text(out, info);

    mc_print_line(out, &watch_object, &(WatchRow) {
        info, info->any ? &info->spec : NULL }, text);
}

/* ---- the list ------------------------------------------------------------ */

static bool list(McOut *out, const McArgs *args, GError **errp)
{
    g_autoptr(GArray) records = NULL;
    KtBlockWatchInfo info;

    if (!has_no_option(args, MC_OPT_RING, " without an address", errp)) {
        return false;
    }
    kt_block_watch_info(out->ctx->tracer, &info);
    records = kt_block_watch_read(out->ctx->tracer, args->limit);
    if (info.other_boot) {
        out->symbols = NULL;
    }
    for (unsigned i = 0; i < records->len && !out->closed; i++) {
        mc_print_block_access(out, &g_array_index(records, KtBlockAccess, i),
                              info.spec.va);
    }
    if (info.records > records->len) {
        mc_more(out, info.records - records->len);
    }
    print_state(out, &info);
    return true;
}

/* ---- begin and end ------------------------------------------------------- */

/* All pages are marked while no vCPU executes, and the guest chose how many. */
static bool is_small(const KtBlock *b, GError **errp)
{
    bool ok = kt_block_len(b) <= KT_BLOCK_WATCH_LEN_MAX;

    if (!ok) {
        g_set_error(errp, MC_ERROR, MC_ERROR_UNKNOWN,
                    "%" PRIx64 ": a block of %" PRIu64 " bytes is too large to "
                    "be watched; the limit is %" PRIu64, b->va,
                    kt_block_len(b), KT_BLOCK_WATCH_LEN_MAX);
    }
    return ok;
}

static bool find_block(const McOut *out, uint64_t va, KtBlock *b, GError **errp)
{
    KtTracer *t = out->ctx->tracer;
    bool found;

    kt_query_begin(t);
    found = kt_query_find(t, va, b);
    kt_query_end(t);
    if (!found || !kt_block_len(b)) {
        g_set_error(errp, MC_ERROR, MC_ERROR_UNKNOWN,
                    "no block contains %" PRIx64 "; ka show %" PRIx64
                    " prints its neighbours", va, va);
        return false;
    }
    if (b->layer == KT_LAYER_PERCPU) {
        g_set_error(errp, MC_ERROR, MC_ERROR_UNKNOWN,
                    "%" PRIx64 ": a block of per-CPU memory is at other "
                    "addresses for each CPU, and is not watched", va);
        return false;
    }
    return true;
}

static bool watch(McOut *out, const McArgs *args, GError **errp)
{
    KtBlockWatchInfo info;
    uint64_t va;
    KtBlock b;

    if (!has_no_option(args, MC_OPT_LIMIT, " with an address", errp) ||
        !mc_parse_address(out->ctx, args->name, &va, errp) ||
        !find_block(out, va, &b, errp) || !is_small(&b, errp)) {
        return false;
    }
    const KtBlockWatchSpec spec = {
        .va = b.va, .len = kt_block_len(&b),
        .ring = mc_given(args, MC_OPT_RING) ? args->ring : KT_BLOCK_WATCH_RING,
    };
    if (spec.ring > KT_BLOCK_WATCH_RING_MAX) {
        g_set_error(errp, MC_ERROR, MC_ERROR_SYNTAX,
                    "--ring %" PRIu64 ": a ring of accesses has at most %u "
                    "records", spec.ring, KT_BLOCK_WATCH_RING_MAX);
        return false;
    }
    if (!kt_block_watch_start(out->ctx->tracer, &spec, errp)) {
        return false;
    }
    mc_print_block(out, &b);
    kt_block_watch_info(out->ctx->tracer, &info);
    print_state(out, &info);
    return true;
}

static bool stop(McOut *out, const McArgs *args, GError **errp)
{
    KtBlockWatchInfo info;

    if (!has_no_option(args, MC_OPT_LIMIT, " off", errp) ||
        !has_no_option(args, MC_OPT_RING, " off", errp)) {
        return false;
    }
    kt_block_watch_stop(out->ctx->tracer);
    kt_block_watch_info(out->ctx->tracer, &info);
    print_state(out, &info);
    return true;
}

bool mc_cmd_access_watch(McOut *out, const McArgs *args, GError **errp)
{
    if (!is_live(out, errp)) {
        return false;
    }
    if (!args->name) {
        return list(out, args, errp);
    }
    return strcmp(args->name, "off") ? watch(out, args, errp) :
                                       stop(out, args, errp);
}
