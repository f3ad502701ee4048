/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Listings of blocks: by address (ka VA), by allocating code (ka alloc) and by
 * freeing code (ka free).
 *
 * Called through mc_run(). A listing may have millions of lines while the guest
 * runs. So blocks are copied in batches under the tracer's lock and printed
 * without it, and the next batch starts after the last address:
 *
 *   lock, copy blocks up to address A, unlock, print; lock, copy after A ...
 *
 * Memory stays constant, and no vCPU waits longer than for one batch. A listing
 * is therefore no snapshot: each line is correct for the moment of its batch.
 *
 * Code queries copy their first batch from the index by stack. The rest, if
 * any, is found by walking the map in address order and testing each block's
 * stack.
 *
 * As text and without -n, a code query with many blocks prints how many there
 * are and who makes most of them (callers.c), because thousands of lines hide
 * that.
 */
#include "monitor-cmds/commands/commands.h"
#include "monitor-cmds/output/block-row.h"

#include <string.h>

/* Limit of functions of one name for which the index is used. If more functions
 * have the name, the map is walked instead. */
#define INDEX_RANGES_MAX 16
/* Limit of stack ids whose test result is remembered; larger ids are tested
 * each time. */
#define MEMO_MAX (1u << 24)
/* A code query without -n prints at most so many blocks. */
#define LINES_MAX 1000

MC_OBJECTS(mc_block_objects, &mc_block_object);
MC_OBJECTS(mc_blocks_objects, &mc_block_object, &mc_mapping_object);

enum { MEMO_UNKNOWN, MEMO_NO, MEMO_YES };

/**
 * struct Scan - state of a listing
 * @kernel: (nullable) the symbols
 * @query: index query of ka alloc and ka free, NULL for a listing by address
 * @by_free: match the stack, time and task of the free, not of the allocation
 * @rows: KtBlock, the batch
 * @room: limit of rows of the batch
 * @visits: number of blocks visited in this batch
 * @resumed: all blocks up to the address @behind are done
 * @last: address of the block that was visited last
 * @stopped: the batch ended before the last block
 * @memo: MEMO_* for each stack id
 */
typedef struct Scan {
    KtTracer *t;
    const GsKernel *kernel;
    const McArgs *args;
    void (*query)(KtTracer *t, uint64_t lo, uint64_t hi, KtBlockFn fn,
                  void *opaque);
    bool by_free;
    GArray *rows;
    unsigned room;
    unsigned visits;
    bool resumed;
    uint64_t behind;
    uint64_t last;
    bool stopped;
    bool done;
    GByteArray *memo;
} Scan;

static void scan_init(Scan *s, McOut *out, const McArgs *args)
{
    *s = (Scan) {
        .t = out->ctx->tracer,
        .kernel = mc_symbols(out->ctx),
        .args = args,
        .rows = g_array_new(FALSE, FALSE, sizeof(KtBlock)),
        .memo = g_byte_array_new(),
    };
}

static void scan_deinit(Scan *s)
{
    g_clear_pointer(&s->rows, g_array_unref);
    g_clear_pointer(&s->memo, g_byte_array_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Scan, scan_deinit)

/* ---- which blocks -------------------------------------------------------- */

/* If the code is a module's, that module must have been there when the stack
 * was taken. */
static bool is_in(const Scan *s, const McFrame *f, const McCode *code)
{
    return f->pc >= code->lo && f->pc <= code->hi &&
           (!code->load || !s->kernel ||
            gs_kernel_load_at(s->kernel, f->pc - (f->pc > code->lo),
                              f->era) == code->load);
}

static bool stack_hits(const Scan *s, KtStackId id)
{
    const McCode *code = (const McCode *)s->args->pcs->data;
    McStack stack = mc_stack(s->t, id);

    for (unsigned i = 0; i < stack.n; i++) {
        McFrame frame = mc_frame(&stack, i);

        for (unsigned j = 0; j < s->args->pcs->len; j++) {
            if (is_in(s, &frame, &code[j])) {
                return true;
            }
        }
    }
    return false;
}

static bool stack_wanted(Scan *s, KtStackId id)
{
    guint len = s->memo->len;

    if (!id.v || id.v >= MEMO_MAX) {
        return id.v && stack_hits(s, id);
    }
    if (id.v >= len) {
        g_byte_array_set_size(s->memo, MAX(id.v + 1, len * 2));
        memset(s->memo->data + len, MEMO_UNKNOWN, s->memo->len - len);
    }
    if (s->memo->data[id.v] == MEMO_UNKNOWN) {
        s->memo->data[id.v] = stack_hits(s, id) ? MEMO_YES : MEMO_NO;
    }
    return s->memo->data[id.v] == MEMO_YES;
}

/* The index has the addresses, but not whose they were. */
static bool code_wanted(Scan *s, const KtBlock *b)
{
    if (!s->query) {
        return true;
    }
    if (!s->by_free) {
        return stack_wanted(s, b->alloc_stack);
    }
    return b->state == KT_BLOCK_FREED &&
           (stack_wanted(s, b->free_stack) || stack_wanted(s, b->rcu_stack));
}

static bool collect(const KtBlock *b, void *opaque)
{
    Scan *s = opaque;

    if (s->resumed && b->va <= s->behind) {
        return true;
    }
    /* the next batch starts after this address, so all blocks of one address
     * must be in the same batch */
    if ((s->visits >= MC_BATCH_VISITS || s->rows->len >= s->room) &&
        b->va != s->last) {
        s->stopped = true;
        return false;
    }
    s->visits++;
    s->last = b->va;
    if (code_wanted(s, b) &&
        mc_filter_block(&s->args->filter, b, s->by_free)) {
        g_array_append_vals(s->rows, b, 1);
    }
    return true;
}

/* ---- batches ------------------------------------------------------------- */

static void begin_batch(Scan *s)
{
    s->stopped = false;
    s->visits = 0;
    s->room = s->rows->len + MC_BATCH_ROWS;
}

static void walk_batch(Scan *s)
{
    McRange r = s->query ? (McRange) { 0, UINT64_MAX } : s->args->va;

    begin_batch(s);
    kt_query_range(s->t, s->resumed ? s->behind + 1 : r.lo, r.hi, collect, s);
    s->resumed = true;
    s->behind = s->last;
    s->done = !s->stopped || s->last >= r.hi;
}

static int compare_blocks(const void *a, const void *b)
{
    const KtBlock *x = a;
    const KtBlock *y = b;

    if (x->va != y->va) {
        return x->va < y->va ? -1 : 1;
    }
    /* a page block and an object can start at the same address */
    return (x->layer < y->layer) - (x->layer > y->layer);
}

/* Sort the rows and remove duplicates and blocks after @bound. */
static void merge_rows(GArray *rows, uint64_t bound)
{
    KtBlock *b = (KtBlock *)rows->data;
    unsigned n = 0;

    g_array_sort(rows, compare_blocks);
    for (unsigned i = 0; i < rows->len && b[i].va <= bound; i++) {
        if (!n || compare_blocks(&b[n - 1], &b[i])) {
            b[n++] = b[i];
        }
    }
    g_array_set_size(rows, n);
}

/*
 * Copy the first batch of a code query from the index: up to one batch for each
 * range of code. If a range has more, blocks above the lowest address at which
 * a range stopped are found by the walk.
 */
static void index_batch(Scan *s)
{
    const McCode *r = (const McCode *)s->args->pcs->data;
    uint64_t bound = UINT64_MAX;
    bool stopped = false;

    for (unsigned i = 0; i < s->args->pcs->len; i++) {
        begin_batch(s);
        s->query(s->t, r[i].lo, r[i].hi, collect, s);
        if (s->stopped) {
            stopped = true;
            bound = MIN(bound, s->last);
        }
    }
    merge_rows(s->rows, bound);
    s->resumed = true;
    s->behind = bound;
    s->done = !stopped;
}

static void next_batch(Scan *s)
{
    g_array_set_size(s->rows, 0);
    kt_query_begin(s->t);
    if (s->query && !s->resumed && s->args->pcs->len <= INDEX_RANGES_MAX) {
        index_batch(s);
    } else {
        walk_batch(s);
    }
    kt_query_end(s->t);
}

static void print_block(McOut *out, GArray *rows, unsigned i)
{
    mc_print_block(out, &g_array_index(rows, KtBlock, i));
}

static uint64_t print_scan(McOut *out, Scan *s, uint64_t limit,
                           uint64_t *more)
{
    uint64_t shown = 0;

    while (!s->done && !out->closed) {
        next_batch(s);
        for (unsigned i = 0; i < s->rows->len && !out->closed; i++) {
            if (shown == limit) {
                *more += s->rows->len - i;
                break;
            }
            print_block(out, s->rows, i);
            shown++;
        }
    }
    return shown;
}

/* Count the blocks of the next batch for their callers; append them to @kept as
 * long as it is short enough to be printed. */
static void count_batch(Scan *s, McCallers *callers, GArray *kept)
{
    next_batch(s);
    for (unsigned i = 0; i < s->rows->len; i++) {
        const KtBlock *b = &g_array_index(s->rows, KtBlock, i);

        mc_callers_add(callers, s->t, !s->by_free ? b->alloc_stack :
                       b->rcu_stack.v ? b->rcu_stack : b->free_stack, b);
        if (kept->len < LINES_MAX) {
            g_array_append_vals(kept, b, 1);
        }
    }
}

/* Print the blocks, or, if they are too many, who makes most of them. Return
 * how many there are. */
static uint64_t print_or_count(McOut *out, Scan *s, const char *what)
{
    g_autoptr(McCallers) callers = mc_callers_new();
    g_autoptr(GArray) kept = g_array_new(FALSE, FALSE, sizeof(KtBlock));
    uint64_t n;

    while (!s->done) {
        count_batch(s, callers, kept);
    }
    n = mc_callers_blocks(callers);
    if (n <= LINES_MAX) {
        for (unsigned i = 0; i < kept->len && !out->closed; i++) {
            print_block(out, kept, i);
        }
        return n;
    }
    mc_out_printf(out, "%" PRIu64 " blocks%s; most are by these callers:", n,
                  what);
    mc_callers_print(out, callers);
    mc_out_printf(out, "-n 0 lists all blocks, -n N the first N; --state, "
                  "--cache, --task, --since ... select");
    return n;
}

/* ---- past lives ---------------------------------------------------------- */

/**
 * struct History - state of a listing of past lives
 * @seen: number of past lives that were visited
 * @prior: the past life that was visited last. New ones can be added before
 *         it between batches, so the next batch searches for it from its old
 *         position on. If it was evicted, the first older one is next
 * @index: position in this batch
 * @searching: @prior was not reached yet in this batch
 */
typedef struct History {
    KtTracer *t;
    const McFilter *filter;
    GArray *rows;
    uint64_t seen;
    uint64_t index;
    KtBlock prior;
    bool searching;
    bool stopped;
    unsigned visits;
} History;

static bool same_life(const KtBlock *a, const KtBlock *b)
{
    return a->va == b->va && a->requested == b->requested &&
           a->alloc_us == b->alloc_us && a->free_us == b->free_us &&
           a->alloc_stack.v == b->alloc_stack.v &&
           a->free_stack.v == b->free_stack.v;
}

static bool collect_past(const KtBlock *b, void *opaque)
{
    History *h = opaque;

    h->index++;
    if (h->searching && b->alloc_us >= h->prior.alloc_us) {
        h->searching = h->index < h->seen || !same_life(b, &h->prior);
        return true;
    }
    h->searching = false;
    if (!h->visits || h->rows->len >= MC_BATCH_ROWS) {
        h->stopped = true;
        return false;
    }
    h->visits--;
    h->seen = h->index;
    h->prior = *b;
    if (!h->filter || mc_filter_block(h->filter, b, false)) {
        g_array_append_vals(h->rows, b, 1);
    }
    return true;
}

static void next_history(History *h, uint64_t va)
{
    g_array_set_size(h->rows, 0);
    h->index = 0;
    h->searching = h->seen > 0;
    h->stopped = false;
    h->visits = MC_BATCH_VISITS;
    kt_query_begin(h->t);
    kt_query_history(h->t, va, collect_past, h);
    kt_query_end(h->t);
}

/* A listing of an address, the newest life first. */
typedef struct Lives {
    McOut *out;
    uint64_t va;
    uint64_t limit;
    uint64_t shown;
    uint64_t more;
} Lives;

static void print_life(Lives *l, const KtBlock *b)
{
    if (l->shown == l->limit) {
        l->more++;
        return;
    }
    l->shown++;
    mc_print(l->out, &mc_block_object, &(McBlockRow) {
        .block = b, .hit = b->past, .offset = b->past ? l->va - b->va : 0 });
}

static int newest_first(const void *a, const void *b)
{
    const KtBlock *x = a;
    const KtBlock *y = b;

    if (x->alloc_us != y->alloc_us) {
        return x->alloc_us > y->alloc_us ? -1 : 1;
    }
    /* an object is allocated after the pages in which it lies */
    return (x->layer == KT_LAYER_PAGES) - (y->layer == KT_LAYER_PAGES);
}

/* Print the blocks that are in the map, @now, among the past lives: pages may
 * be older than lives of the objects in them. */
static void print_lives(Lives *l, GArray *now, const McFilter *filter)
{
    g_autoptr(GArray) rows = g_array_new(FALSE, FALSE, sizeof(KtBlock));
    History h = { .t = l->out->ctx->tracer, .filter = filter, .rows = rows };
    const KtBlock *next = (const KtBlock *)now->data;
    const KtBlock *end = next + now->len;

    g_array_sort(now, newest_first);
    do {
        next_history(&h, l->va);
        for (unsigned i = 0; i < rows->len && !l->out->closed; i++) {
            const KtBlock *b = &g_array_index(rows, KtBlock, i);

            for (; next < end && next->alloc_us >= b->alloc_us; next++) {
                print_life(l, next);
            }
            print_life(l, b);
        }
    } while (h.stopped && !l->out->closed);
    for (; next < end; next++) {
        print_life(l, next);
    }
}

static bool append_block(const KtBlock *b, void *opaque)
{
    g_array_append_vals(opaque, b, 1);
    return true;
}

void mc_print_history(McOut *out, uint64_t va, const KtBlock *shown)
{
    g_autoptr(GArray) now = g_array_new(FALSE, FALSE, sizeof(KtBlock));
    Lives l = { .out = out, .va = va, .limit = UINT64_MAX };

    kt_query_begin(out->ctx->tracer);
    kt_query_range(out->ctx->tracer, va, va, append_block, now);
    kt_query_end(out->ctx->tracer);
    for (unsigned i = now->len; shown && i-- > 0;) {
        if (!compare_blocks(&g_array_index(now, KtBlock, i), shown)) {
            g_array_remove_index(now, i);
        }
    }
    print_lives(&l, now, NULL);
}

/* ---- commands ------------------------------------------------------------ */

static void print_none(McOut *out, const McArgs *args, const char *what)
{
    g_autofree char *why = mc_why_nothing(out);

    mc_remarkf(out, "no blocks%s%s%s", what, mc_filter_is_set(&args->filter) ?
               " that match the options" : "", why);
}

static void finish(McOut *out, const McArgs *args, uint64_t shown,
                   uint64_t more, const char *what)
{
    if (!shown && !out->closed) {
        print_none(out, args, what);
    } else if (more) {
        mc_more(out, more);
    }
}

bool mc_cmd_blocks(McOut *out, const McArgs *args, GError **errp)
{
    g_autofree char *what = mc_range_text(&args->va);
    Lives l = { .out = out, .va = args->va.lo, .limit = args->limit };
    g_auto(Scan) s;

    scan_init(&s, out, args);
    if (mc_given(args, MC_OPT_HISTORY)) {
        next_batch(&s);
        print_lives(&l, s.rows, &args->filter);
    } else {
        l.shown = print_scan(out, &s, args->limit, &l.more);
    }
    finish(out, args, l.shown, l.more, what);
    if (args->va.lo == args->va.hi) {
        mc_print_mapping(out, args->va.lo, mc_given(args, MC_OPT_HISTORY));
    }
    return true;
}

static bool list_by_code(McOut *out, const McArgs *args, bool by_free)
{
    g_autofree char *quoted = mc_quote(g_ptr_array_index(args->words, 1));
    g_autofree char *what = g_strconcat(by_free ? " freed by " :
                                        " allocated by ", quoted, NULL);
    g_auto(Scan) s;
    uint64_t more = 0;
    uint64_t shown;

    scan_init(&s, out, args);
    s.query = by_free ? kt_query_free_pc : kt_query_alloc_pc;
    s.by_free = by_free;
    if (mc_given(args, MC_OPT_LIMIT) || mc_given(args, MC_OPT_JSON)) {
        shown = print_scan(out, &s, args->limit, &more);
    } else {
        shown = print_or_count(out, &s, what);
    }
    finish(out, args, shown, more, what);
    return true;
}

bool mc_cmd_alloc(McOut *out, const McArgs *args, GError **errp)
{
    return list_by_code(out, args, false);
}

bool mc_cmd_free(McOut *out, const McArgs *args, GError **errp)
{
    return list_by_code(out, args, true);
}
