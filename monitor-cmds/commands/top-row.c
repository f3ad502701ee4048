/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rows of ka top, ka diff and ka mark: see commands.h. */
#include "monitor-cmds/commands/commands.h"

#include <string.h>

/** struct Totals - the begin of rows with totals; NULL: they have none */
typedef struct Totals {
    const KtTotals *totals;
} Totals;

/** struct Row - a row of ka top or ka diff, or the sum of all */
typedef struct Row {
    Totals t;
    const McTopTable *table;
    const McTopRow *row;
} Row;

static const Row *row_of(const void *row)
{
    return row;
}

/* Is it the row of blocks whose sizes are not known? */
static bool is_unsized(const Row *r)
{
    return r->table->by == MC_BY_SIZE && r->row != &r->table->all &&
           !r->row->key.hi && !r->row->a.reserved;
}

MC_GETTER(value)
{
    const Row *r = row_of(row);
    int64_t value = 0;
    bool known = mc_top_value(r->table, r->row, c->at, &value);

    v->u = value;
    return known && !(c->unit == MC_SIZE && is_unsized(r));
}

/* The groups of top.def. */
#define OF_CORE
#define OF_TOP
#define OF_V .flags = MC_TEXT_V
#define OF_WIDE .flags = MC_WIDE
static const McColumn value_columns[] = {
#define MC_TOP(key_, group_, unit_, help_) \
    MC_GET(#key_, get_value, NUMBER, "%", help_, .at = MC_TOP_##key_, \
           .head = #key_, .unit = MC_##unit_, OF_##group_),
#include "monitor-cmds/table/top.def"
    MC_VIA("lives", Row, row, ends, NUMBER, NULL,
           "number of lives that life is the median of"),
    MC_END
};

MC_WHEN(never)
{
    return false;
}

#undef OF_TOP
#define OF_TOP .when = never
static const McColumn difference_columns[] = {
#define MC_TOP(key_, group_, unit_, help_) \
    MC_GET(#key_, get_value, DIFFERENCE, "%", help_, .at = MC_TOP_##key_, \
           .head = #key_, .unit = MC_##unit_, OF_##group_),
#include "monitor-cmds/table/top.def"
    MC_END
};

#define T(member_, help_) \
    MC_VIA(#member_, Totals, totals, member_, NUMBER, NULL, help_, \
           MC_IF(Totals, totals))

static const McColumn totals_columns[] = {
    T(us, "time of the answer"),
    T(resizes, "blocks resized in place"),
    T(grown, "bytes more of these"),
    T(shrunk, "bytes less of these"),
    T(splits, "parts of pages that are counted in allocs"),
    T(lost, "blocks that are counted in frees and were freed unseen"),
    T(lost_asked, "requested bytes of these"),
    T(lost_reserved, "reserved bytes of these"),
    T(stray, "frees without a recorded allocation"),
    T(backing_blocks, "live page blocks in which blocks of other layers lie; "
      "they are not in the sum"),
    T(backing, "bytes of these"),
    T(backing_unknown, "backtraces that allocated pages, when it was not known "
      "whether other layers got these; they are in the sum"),
    T(unsized, "live blocks of unknown size; each adds 0 bytes to the sums"),
    MC_END
};

/* ---- by what rows are ---------------------------------------------------- */

#define BY(by_) MC_IF_VIA(Row, table, by, .one_of = 1u << MC_BY_##by_)

static bool is_by(const void *row, McBy by)
{
    return row_of(row)->table->by == by;
}

MC_WHEN(is_of_layer)
{
    return is_by(row, MC_BY_CACHE) && !row_of(row)->row->key.cache.v;
}

MC_WHEN(is_backing)
{
    return row_of(row)->row->key.backing &&
           (is_by(row, MC_BY_CACHE) || is_by(row, MC_BY_STACK));
}

MC_GETTER(yes)
{
    v->u = true;
    return true;
}

MC_GETTER(size)
{
    const KtAccountKey *key = &row_of(row)->row->key;

    v->u = c->at ? key->hi : key->lo;
    return !is_unsized(row);
}

MC_GETTER(caller)
{
    const KtAccountKey *key = &row_of(row)->row->key;

    v->frame = (McFrame) { key->pc, 0, key->era };
    return true;
}

MC_GETTER(layer)
{
    v->s = kt_layer_name(row_of(row)->row->key.layer);
    return v->s && *v->s;
}

#define K(key_, member_, look_, help_, ...) \
    MC_VIA(key_, Row, row, member_, look_, NULL, help_, __VA_ARGS__)

static const McColumn key_columns[] = {
    K("stack", key.stack, STACK, "of --by stack", BY(STACK)),
    K("stop", key.stack, STOP, "why it ends", .flags = MC_OMIT,
      BY(STACK)),
    K("cache", key.cache, CACHE, "of --by cache", BY(CACHE)),
    MC_GET("layer", get_layer, WORD, NULL, "if there is no cache",
           .flags = MC_OMIT, .when = is_of_layer),
    MC_GET("backing", get_yes, YES_NO, NULL, "pages in which blocks of other "
           "layers lie: not in the sum", .when = is_backing),
    K("pid", key.task, PID, "of --by task", BY(TASK)),
    K("comm", key.task, COMM, "name of the task", BY(TASK)),
    K("module", module, WORD, "of --by module", BY(MODULE)),
    MC_GET("size_from", get_size, NUMBER, NULL, "of --by size", .at = 0,
           BY(SIZE)),
    MC_GET("size_to", get_size, NUMBER, NULL, "last size", .at = 1, BY(SIZE)),
    MC_GET("caller", get_caller, CALLER, NULL, "of --by caller",
           BY(CALLER)),
    MC_END
};

static void put_cache(McOut *o, GString *s, const void *row, bool json)
{
    const KtAccountKey *key = &row_of(row)->row->key;
    KtCacheInfo cache;

    if (kt_tracer_cache(o->ctx->tracer, key->cache, &cache)) {
        mc_put_word(s, cache.name);
    } else {
        g_string_append_printf(s, "[%s%s]", key->layer ?
                               kt_layer_name(key->layer) : "-",
                               key->backing ? " of other layers" : "");
    }
}

static void put_task(McOut *o, GString *s, const void *row, bool json)
{
    uint32_t pid;
    char comm[17];

    if (kt_tracer_task(o->ctx->tracer, row_of(row)->row->key.task, &pid,
                       comm)) {
        mc_put_word(s, *comm ? comm : "-");
        g_string_append_printf(s, " %u", pid);
    } else {
        g_string_append_c(s, '-');
    }
}

MC_WHEN(is_backing_stack)
{
    return is_by(row, MC_BY_STACK) && row_of(row)->row->key.backing;
}

/* The long form has the stack on lines of its own. */
MC_WHEN(is_by_long_stack)
{
    return is_by(row, MC_BY_STACK) && o->long_form;
}

MC_WHEN(is_by_short_stack)
{
    return is_by(row, MC_BY_STACK) && !o->long_form;
}

static void put_sizes(McOut *o, GString *s, const void *row, bool json)
{
    const KtAccountKey *key = &row_of(row)->row->key;

    if (is_unsized(row)) {
        g_string_append(s, "not known");
        return;
    }
    g_string_append_printf(s, o->exact ? "%" PRIx64 "-%" PRIx64 :
                           "%" PRIu64 "-%" PRIu64 " B", key->lo, key->hi);
}

static const McColumn key_text_columns[] = {
    MC_ONLY_TEXT("[pages of other layers] ", .when = is_backing_stack),
    MC_ONLY_TEXT("stack", .head = "stack", .when = is_by_long_stack),
    MC_VIA(NULL, Row, row, key.stack, STACK, "%", NULL, .head = "stack",
           .when = is_by_short_stack),
    MC_PUT(NULL, put_cache, "%", NULL, .head = "cache", BY(CACHE)),
    MC_PUT(NULL, put_task, "%", NULL, .head = "task", BY(TASK)),
    MC_VIA(NULL, Row, row, module, WORD, "%", NULL, .head = "module",
           BY(MODULE)),
    MC_PUT(NULL, put_sizes, "%", NULL, .head = "size", BY(SIZE)),
    MC_GET(NULL, get_caller, CALLER, "%", NULL, .head = "caller", BY(CALLER)),
    MC_END
};

#define ALL(head_, by_) MC_ONLY_TEXT("all", .head = head_, BY(by_))

static const McColumn all_columns[] = {
    MC_VIA("dropped", Row, table, dropped, NUMBER, NULL,
           "with a filter: blocks and past lives that were evicted",
           MC_IF_VIA(Row, table, counted)),
    ALL("stack", STACK), ALL("cache", CACHE), ALL("task", TASK),
    ALL("module", MODULE), ALL("size", SIZE), ALL("caller", CALLER),
    MC_END
};

const McObject mc_top_all_object = {
    "top_all", "ka top, the sum of everything",
    { value_columns, totals_columns, all_columns }, .is_table = true,
};
const McObject mc_diff_all_object = {
    "diff_all", "ka diff, the sum of everything: differences",
    { difference_columns, all_columns }, .is_table = true,
};
const McObject mc_top_object = {
    "top", "ka top, a row", { key_columns, value_columns, key_text_columns },
    .is_table = true,
};
const McObject mc_diff_object = {
    "diff", "ka diff, a row",
    { key_columns, difference_columns, key_text_columns }, .is_table = true,
};

/* Print the sum of all rows. */
void mc_print_top_head(McOut *out, const McTopTable *table)
{
    mc_print(out, table->diff ? &mc_diff_all_object : &mc_top_all_object,
             &(Row) {
        .t.totals = table->all.peak_known ? &table->totals : NULL,
        .table = table, .row = &table->all,
    });
}

void mc_print_top_row(McOut *out, const McTopTable *table,
                      const McTopRow *row)
{
    mc_print(out, table->diff ? &mc_diff_object : &mc_top_object, &(Row) {
        .table = table, .row = row });
    if (out->long_form && table->by == MC_BY_STACK) {
        McStack stack = mc_stack(out->ctx->tracer, row->key.stack);

        mc_long_stack(out, &stack);
    }
}

/* ---- frees without an allocation ----------------------------------------- */

#define S(member_, help_) \
    MC_COLUMN(KtStray, member_, NUMBER, NULL, help_)

MC_GETTER(stray_caller)
{
    McStack stack = mc_stack(o->ctx->tracer, ((const KtStray *)row)->stack);

    v->frame = mc_caller(&stack);
    return true;
}

MC_WHEN(is_short)
{
    return !o->long_form;
}

MC_WHEN(is_long)
{
    return o->long_form;
}

static const McColumn stray_text_columns[] = {
    MC_KEY(NULL, KtStray, unknown, NUMBER, "%", NULL, .head = "unknown"),
    MC_KEY(NULL, KtStray, invalid, NUMBER, "%", NULL, .head = "invalid"),
    MC_KEY(NULL, KtStray, pages, NUMBER, "%", NULL, .head = "pages"),
    MC_END
};
static const McColumn stray_stack_columns[] = {
    MC_COLUMN(KtStray, stack, STACK, NULL, "with --by stack"),
    MC_KEY("stop", KtStray, stack, STOP, NULL, "why it ends",
           .flags = MC_OMIT),
    MC_KEY(NULL, KtStray, stack, STACK, "%", NULL, .head = "stack",
           .when = is_short),
    MC_ONLY_TEXT("stack", .head = "stack", .when = is_long),
    MC_END
};
static const McColumn stray_caller_columns[] = {
    MC_GET("caller", get_stray_caller, CALLER, "%", "who frees",
           .head = "caller"),
    MC_END
};
static const McColumn stray_columns[] = {
    S(unknown, "frees of blocks that may have been allocated before tracing "
      "began"),
    S(invalid, "frees that are reported as errors"),
    S(pages, "frees by the page allocator"),
    MC_END
};
const McObject mc_stray_object = {
    "stray", "ka top --stray",
    { stray_text_columns, stray_caller_columns, stray_columns },
    .is_table = true,
};
const McObject mc_stray_stack_object = {
    "stray", "ka top --stray",
    { stray_text_columns, stray_stack_columns, stray_columns },
    .is_table = true,
};

void mc_print_top_stray(McOut *out, const KtStray *s, bool by_stack)
{
    mc_print(out, by_stack ? &mc_stray_stack_object : &mc_stray_object, s);
    if (out->long_form && by_stack) {
        McStack stack = mc_stack(out->ctx->tracer, s->stack);

        mc_long_stack(out, &stack);
    }
}

/* ---- marks --------------------------------------------------------------- */

typedef struct MarkRow {
    Totals t;
    const char *name;
    uint64_t live, blocks, allocs;
} MarkRow;

static const McColumn mark_columns[] = {
    MC_COLUMN(MarkRow, name, TEXT, NULL, "its name"),
    MC_COLUMN(MarkRow, live, NUMBER, NULL, "live bytes at that time"),
    MC_KEY(NULL, MarkRow, name, WORD, "%", NULL, .head = "mark"),
    MC_VIA(NULL, MarkRow, t.totals, us, NUMBER, "%", NULL, .head = "time",
           .unit = MC_DURATION),
    MC_COLUMN(MarkRow, blocks, NUMBER, "%", "live blocks at that time",
              .head = "blocks"),
    MC_KEY(NULL, MarkRow, live, NUMBER, "%", NULL, .head = "live",
           .unit = MC_SIZE),
    MC_COLUMN(MarkRow, allocs, NUMBER, "%", "allocations up to that time",
              .head = "allocs"),
    MC_END
};
const McObject mc_mark_object = {
    "point", "ka mark: a mark", { mark_columns, totals_columns },
    .is_table = true,
};

void mc_print_top_mark(McOut *out, const KtMarkInfo *p)
{
    const KtAccount *a = &p->totals.sum;

    mc_print(out, &mc_mark_object, &(MarkRow) {
        { &p->totals }, p->name, a->reserved - a->freed_reserved,
        a->allocs - a->frees, a->allocs });
}
