/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka leak scan, list, clear and dump: live blocks to which nothing refers.
 *
 * Called through mc_run(). The VM is stopped or paused during a scan. The
 * tracer's lock is held only while the findings are copied. A long scan prints
 * its progress, and stops if nobody reads the output any more.
 */
#include "monitor-cmds/commands/commands.h"
#include "monitor-cmds/output/block-row.h"

/* Limit of the blocks that are read whole, for their checksum. */
#define CRC_BYTES   (1u << 20)

/* ---- groups -------------------------------------------------------------- */

/* Leaked blocks of one line: the newest block, sums over all, and the number of
 * blocks that only they hold. */
typedef struct Group {
    const KtLeak *newest;
    uint64_t n, bytes, held;
} Group;

/**
 * struct Groups - the lines of a report
 * @by_stack: id of a stack -> the index of its line in @row plus one
 * @row: Group
 * @of: address of a block -> its index in @row plus one
 * @stacks: number of stacks of all leaks
 * @bytes: requested bytes of all leaks
 */
typedef struct Groups {
    GHashTable *by_stack;
    GArray *row;
    GHashTable *of;
    unsigned stacks;
    uint64_t bytes;
} Groups;

static void groups_deinit(Groups *g)
{
    g_clear_pointer(&g->by_stack, g_hash_table_unref);
    g_clear_pointer(&g->row, g_array_unref);
    g_clear_pointer(&g->of, g_hash_table_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Groups, groups_deinit)

/* Add a block to the line of its stack, or as a line of its own. */
static void add_line(Groups *g, const KtLeak *leak, bool alone)
{
    gpointer key = GUINT_TO_POINTER(leak->block.alloc_stack.v);
    unsigned at = GPOINTER_TO_UINT(g_hash_table_lookup(g->by_stack, key));
    Group *row;

    if (!at || !key || alone) {
        g_array_append_val(g->row, ((Group) { leak, 0, 0, 0 }));
        at = g->row->len;
        g_hash_table_insert(g->by_stack, key, GUINT_TO_POINTER(at));
    }
    row = &g_array_index(g->row, Group, at - 1);
    row->n++;
    row->bytes += leak->block.requested;
    if (leak->block.alloc_us > row->newest->block.alloc_us) {
        row->newest = leak;
    }
    g_hash_table_insert(g->of, (gpointer)&leak->block.va,
                        GUINT_TO_POINTER(at));
}

static void count_stacks(Groups *g, const GArray *leaks)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);

    for (unsigned i = 0; i < leaks->len; i++) {
        const KtBlock *b = &g_array_index(leaks, KtLeak, i).block;
        gpointer key = GUINT_TO_POINTER(b->alloc_stack.v);

        g->stacks += !key || g_hash_table_add(seen, key);
        g->bytes += b->requested;
    }
}

/* Return the line of the block's owner, or NULL if it is itself a line. */
static Group *owner_row(const Groups *g, const KtLeak *leak)
{
    guint at = leak->owner == leak->block.va ? 0 :
               GPOINTER_TO_UINT(g_hash_table_lookup(g->of, &leak->owner));

    return at ? &g_array_index(g->row, Group, at - 1) : NULL;
}

/* Make the lines. @all: each block is a line. Otherwise blocks that another
 * leaked block owns are only counted, at the line of their owner. */
static Groups make_groups(const GArray *leaks, bool all)
{
    Groups g = {
        .by_stack = g_hash_table_new(NULL, NULL),
        .row = g_array_new(FALSE, FALSE, sizeof(Group)),
        .of = g_hash_table_new(gs_number_hash, g_int64_equal),
    };

    count_stacks(&g, leaks);
    for (unsigned pass = 0; pass < 2; pass++) {
        for (unsigned i = 0; i < leaks->len; i++) {
            const KtLeak *leak = &g_array_index(leaks, KtLeak, i);
            bool owned = !all && leak->owner != leak->block.va;
            Group *row = owned && pass ? owner_row(&g, leak) : NULL;

            if (row) {
                row->held++;
            } else if (owned == (pass == 1)) {
                add_line(&g, leak, all);
            }
        }
    }
    return g;
}

static int by_time(const void *a, const void *b)
{
    const KtBlock *x = &((const Group *)a)->newest->block;
    const KtBlock *y = &((const Group *)b)->newest->block;

    return x->alloc_us != y->alloc_us ? (x->alloc_us > y->alloc_us) -
                                        (x->alloc_us < y->alloc_us) :
                                        (x->va > y->va) - (x->va < y->va);
}

static void print_group(McOut *out, const Group *g)
{
    mc_print_leak(out, &(McLeakRow) {
        .b.block = &g->newest->block,
        .leak = kt_leak_hold_name(g->newest->hold), .same_stack = g->n - 1,
        .same_bytes = g->bytes, .held = g->held });
}

static void print_groups(McOut *out, const McArgs *args, GArray *groups)
{
    g_array_sort(groups, by_time);
    for (unsigned i = 0; mc_goes_on(out, i, groups->len, args->limit); i++) {
        print_group(out, &g_array_index(groups, Group, i));
    }
}

/* ---- kmemleak's shape ---------------------------------------------------- */

/* Print a block in kmemleak's format, with its bytes if they can be read. */
static void print_kmemleak(McOut *out, const KtBlock *b, uint64_t now_us)
{
    g_autofree uint8_t *data = g_malloc(CRC_BYTES);
    size_t len = b->requested <= CRC_BYTES ? b->requested : MC_KMEMLEAK_DUMP;
    bool readable = b->layer != KT_LAYER_PERCPU &&
                    mc_read_guest(out, b->va, data, len);

    mc_print_kmemleak(out, b, now_us, readable ? data : NULL, len);
}

static void print_as_kmemleak(McOut *out, const McArgs *args,
                              const GArray *leaks)
{
    uint64_t now = mc_stats(out).last_us;

    for (unsigned i = 0; mc_goes_on(out, i, leaks->len, args->limit); i++) {
        print_kmemleak(out, &g_array_index(leaks, KtLeak, i).block, now);
    }
}

/* ---- ka leak scan -------------------------------------------------------- */

static char *describe(const McOut *o, const KtLeakReport *r, unsigned stacks,
                      uint64_t bytes)
{
    GString *s = g_string_new(NULL);

    g_string_append_printf(s, "%u leaked blocks of %u stacks, ",
                           r->leaks->len, stacks);
    mc_put_bytes(o, s, bytes);
    g_string_append_printf(s, "; %" PRIu64 " blocks, %" PRIu64
                           " stacks of tasks, %" PRIu64 " MiB searched in "
                           "%" PRIu64 " ms", r->blocks, r->tasks,
                           r->bytes >> 20, r->us / 1000);
    if (r->excused) {
        g_string_append_printf(s, "; %" PRIu64 " excluded by rules",
                               r->excused);
    }
    if (r->dismissed) {
        g_string_append_printf(s, "; %" PRIu64 " were dismissed", r->dismissed);
    }
    return g_string_free(s, FALSE);
}

/* Print what was not searched. A scan that could report used blocks as leaks
 * for this reason is refused earlier. */
static void print_missing(McOut *out, const KtLeakReport *r)
{
    for (unsigned i = 0; i < r->missing->len; i++) {
        mc_remarkf(out, "not searched: %s",
                   (const char *)g_ptr_array_index(r->missing, i));
    }
    mc_remark_missing(out);
}

typedef struct ScanRow {
    const KtLeakReport *r;
    unsigned leaks, stacks, missing;
    uint64_t leaked_bytes;
    const char *blocks_missing;
} ScanRow;

#define R(key_, member_, help_) \
    MC_VIA(key_, ScanRow, r, member_, NUMBER, NULL, help_)

static const McObject scan_object = MC_LINE_OBJECT("scan",
    "ka leak scan, at the end",
    MC_COLUMN(ScanRow, leaks, NUMBER, NULL, "number of leaked blocks"),
    MC_COLUMN(ScanRow, stacks, NUMBER, NULL, "number of their stacks"),
    MC_COLUMN(ScanRow, leaked_bytes, NUMBER, NULL, "their sum"),
    R("blocks", blocks, "number of blocks that were examined"),
    R("interior_only", interior,
      "those that only pointers into their interior reach"),
    R("excused", excused, "excluded by rules"),
    R("cleared", dismissed, "excluded by ka leak dismiss"),
    R("unplaced", unplaced, "excluded because they overlap other blocks"),
    R("tasks", tasks, "number of tasks whose stacks were searched"),
    R("fresh", fresh, "leaks that the previous scan did not report"),
    MC_COLUMN(ScanRow, missing, NUMBER, NULL,
              "number of things that were not searched"),
    MC_COLUMN(ScanRow, blocks_missing, TEXT, NULL,
              "why ka may not know all blocks, null if it does"),
    R("read_bytes", bytes, "bytes that were searched"),
    R("guest_bytes", guest_bytes, "of so many"),
    R("unreadable_pages", unreadable, "pages that could not be read"),
    R("host_us", us, "duration"));

MC_OBJECTS(mc_leak_objects, &mc_leak_object, &scan_object);

static void print_sum(McOut *out, const KtLeakReport *r, const Groups *groups)
{
    g_autofree char *text = describe(out, r, groups->stacks, groups->bytes);
    g_autofree char *why = mc_why_missing(out);

    mc_print_line(out, &scan_object, &(ScanRow) {
        r, r->leaks->len, groups->stacks, r->missing->len, groups->bytes, why },
        text);
}

/* Start or stop periodic scans. --every accepts no options for a scan or for
 * its output. */
static bool set_every(McOut *out, const McArgs *args, GError **errp)
{
    unsigned seconds = args->every;

    if (!mc_has_only(args, 1ull << MC_OPT_EVERY, "--every: only sets the time "
                     "between scans", errp)) {
        return false;
    }
    kt_leak_set_every(out->ctx->tracer, seconds);
    if (seconds) {
        mc_out_printf(out, "a scan after every %u s of running", seconds);
    } else {
        mc_out_printf(out, "no more periodic scans");
    }
    return true;
}

/* Refuse -j with --format kmemleak, which has no JSON form. */
static bool has_json(const McArgs *args, GError **errp)
{
    if (args->kmemleak && mc_given(args, MC_OPT_JSON)) {
        return mc_fail_syntax(errp, "\"--format kmemleak\" has no JSON form; "
                              "omit -j");
    }
    return true;
}

bool mc_cmd_leak_scan(McOut *out, const McArgs *args, GError **errp)
{
    McProgress progress;
    g_auto(KtLeakReport) report = { 0 };
    g_auto(Groups) groups = { 0 };
    KtLeakPlan plan = mc_leak_plan(
        out, mc_vm(out, "leak scan", errp), mc_given(args, MC_OPT_JSON) ||
        args->kmemleak, &progress);

    plan.no_stacks = mc_given(args, MC_OPT_NO_STACKS);
    if (!plan.vm) {
        return false;
    }
    if (mc_given(args, MC_OPT_EVERY)) {
        return set_every(out, args, errp);
    }
    if (!has_json(args, errp)) {
        return false;
    }
    if (!kt_leak_scan(out->ctx->tracer, &plan, &report, errp)) {
        return false;
    }
    print_missing(out, &report);
    if (args->kmemleak) {
        print_as_kmemleak(out, args, report.leaks);
        return true;
    }
    groups = make_groups(report.leaks, mc_given(args, MC_OPT_ALL));
    print_groups(out, args, groups.row);
    print_sum(out, &report, &groups);
    return true;
}

/* ---- ka leak list, clear and dump ---------------------------------------- */

static bool was_scanned(McOut *out, uint64_t *us, GError **errp)
{
    if (kt_leak_scanned(out->ctx->tracer, us)) {
        return true;
    }
    return mc_fail_unknown(errp, "no scan was made yet; ka leak scan makes "
                           "one");
}

typedef struct ListRow {
    unsigned leaks, stacks;
    uint64_t leaked_bytes, scan_us;
} ListRow;

static const McObject list_object = MC_LINE_OBJECT("list",
    "ka leak list, at the end",
    MC_COLUMN(ListRow, leaks, NUMBER, "% leaked blocks", "as in scan"),
    MC_COLUMN(ListRow, stacks, NUMBER, " of % stacks", "as in scan"),
    MC_COLUMN(ListRow, leaked_bytes, NUMBER, ", % bytes", "as in scan"),
    MC_COLUMN(ListRow, scan_us, NUMBER, ", by the scan at %us",
              "guest time of the scan"));

MC_OBJECTS(mc_leak_list_objects, &list_object);

bool mc_cmd_leak_list(McOut *out, const McArgs *args, GError **errp)
{
    g_autoptr(GArray) leaks = NULL;
    g_auto(Groups) groups = { 0 };
    uint64_t us;

    if (!has_json(args, errp) || !was_scanned(out, &us, errp)) {
        return false;
    }
    kt_leak_list(out->ctx->tracer, &leaks, &us);
    if (args->kmemleak) {
        print_as_kmemleak(out, args, leaks);
        return true;
    }
    groups = make_groups(leaks, mc_given(args, MC_OPT_ALL));
    print_groups(out, args, groups.row);
    mc_print(out, &list_object, &(ListRow) {
        leaks->len, groups.stacks, groups.bytes, us });
    return true;
}

bool mc_cmd_leak_dismiss(McOut *out, const McArgs *args, GError **errp)
{
    uint64_t us;

    if (!was_scanned(out, &us, errp)) {
        return false;
    }
    mc_out_printf(out, "%" PRIu64 " blocks are not reported again",
                  kt_leak_dismiss(out->ctx->tracer));
    return true;
}

bool mc_cmd_leak_dump(McOut *out, const McArgs *args, GError **errp)
{
    KtTracer *t = out->ctx->tracer;
    uint64_t va = args->va.lo, us;
    KtLeakHold hold;
    KtBlock b;

    if (!was_scanned(out, &us, errp)) {
        return false;
    }
    if (!mc_find_block(out, va, &b) || b.state != KT_BLOCK_ALLOCATED) {
        return mc_fail_unknown(errp, "%016" PRIx64 " is in no live block; ka "
                               "show %" PRIx64 " says what was there", va, va);
    }
    print_kmemleak(out, &b, mc_stats(out).last_us);
    if (kt_leak_known(t, b.va, b.alloc_us, &hold)) {
        mc_out_printf(out, "the scan at %" PRIu64 "us reported it: leak[%s]",
                      us, kt_leak_hold_name(hold));
    } else if (kt_leak_dismissed(t, b.va, b.alloc_us, &hold)) {
        mc_out_printf(out, "it was reported, and then dismissed: leak[%s]",
                      kt_leak_hold_name(hold));
    } else {
        mc_out_printf(out, "the scan at %" PRIu64 "us did not report it%s", us,
                      b.alloc_us > us ? ": it is younger" : "");
    }
    return true;
}
