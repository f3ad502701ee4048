/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * heaptrack: every allocation and free of a journal, in order, as lines of
 * text, version 3 of the format. All numbers are hex.
 *
 *     v VERSION FORMAT         s LENGTH STRING        X COMMAND
 *     i IP MODULE FUNCTION     t IP PARENT            a SIZE TRACE
 *     + A                      - A                    c MILLISECONDS
 *
 * Strings, ips and traces are numbered from 1, 0 is none; a-lines from 0. A
 * trace is a node of a tree whose root is the outermost frame.
 *
 * The journal is read once more for this. The writer follows which blocks are
 * live by events alone. ka's own map does more: it knows, for example, which
 * blocks were freed unseen. So at the end the writer compares with the map, and
 * writes what differs as frees and allocations; a comment has their number.
 */
#include "monitor-cmds/export/export.h"

#include <string.h>

#define VERSION "10400"     /* the first one with this format is 1.4.0 */
#define FORMAT  "3"

/** struct Live - a live block. @a: its a-line */
typedef struct Live {
    uint64_t va, len;
    unsigned a;
} Live;

/** struct Pair - a key of two numbers */
typedef struct Pair {
    uint64_t x, y;
} Pair;

/**
 * struct Writer - @names: names of frames
 * @strings: text -> number; @ips: frame -> number; @traces, @allocs: Pair ->
 * number; @stacks: id of a stack -> trace
 * @live: address -> Live, by address
 * @starts: times that a boot or ka clear begins, which are still to come
 * @mended: differences to ka's map at the end
 */
typedef struct Writer {
    const McExport *e;
    FILE *to;
    KtTracer *tracer;
    McHeapProfile *names;
    GHashTable *strings, *ips, *traces, *allocs, *stacks;
    GTree *live;
    unsigned starts;
    uint64_t ms, mended;
    bool loaded;
} Writer;

static guint hash_pair(gconstpointer p)
{
    const Pair *k = p;

    return (guint)(((k->x * 0x9e3779b97f4a7c15ull) ^ k->y) *
                   0xff51afd7ed558ccdull >> 32);
}

static gboolean equal_pairs(gconstpointer a, gconstpointer b)
{
    return !memcmp(a, b, sizeof(Pair));
}

static int compare_addresses(gconstpointer a, gconstpointer b, gpointer opaque)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* ---- strings, frames, traces --------------------------------------------- */

/* Return the number of a pair. @is_new: it has none yet, and gets one. */
static unsigned pair_id(GHashTable *table, uint64_t x, uint64_t y, bool *is_new)
{
    const Pair key = { x, y };
    gpointer id = g_hash_table_lookup(table, &key);

    *is_new = !id;
    if (!id) {
        id = GUINT_TO_POINTER(g_hash_table_size(table) + 1);
        g_hash_table_insert(table, g_memdup2(&key, sizeof(key)), id);
    }
    return GPOINTER_TO_UINT(id);
}

static unsigned string_id(Writer *w, const char *text)
{
    gpointer id = g_hash_table_lookup(w->strings, text);

    if (!id) {
        id = GUINT_TO_POINTER(g_hash_table_size(w->strings) + 1);
        g_hash_table_insert(w->strings, g_strdup(text), id);
        fprintf(w->to, "s %zx %s\n", strlen(text), text);
    }
    return GPOINTER_TO_UINT(id);
}

static unsigned ip_id(Writer *w, unsigned frame)
{
    gpointer id = g_hash_table_lookup(w->ips, GUINT_TO_POINTER(frame + 1));
    const McProfileFrame *f = &g_array_index(w->names->frame, McProfileFrame,
                                             frame);
    g_autoptr(GString) name = g_string_new(NULL);
    unsigned module, function;

    if (id) {
        return GPOINTER_TO_UINT(id);
    }
    mc_put_frame(name, f, w->e->frames);
    module = string_id(w, f->module ? f->module : MC_PROFILE_KERNEL);
    function = string_id(w, name->str);
    id = GUINT_TO_POINTER(g_hash_table_size(w->ips) + 1);
    g_hash_table_insert(w->ips, GUINT_TO_POINTER(frame + 1), id);
    fprintf(w->to, "i %" PRIx64 " %x %x\n", f->pc, module, function);
    return GPOINTER_TO_UINT(id);
}

static unsigned add_frame(Writer *w, unsigned frame, unsigned parent)
{
    unsigned ip = ip_id(w, frame);
    bool is_new;
    unsigned id = pair_id(w->traces, ip, parent, &is_new);

    if (is_new) {
        fprintf(w->to, "t %x %x\n", ip, parent);
    }
    return id;
}

static unsigned frame_of(Writer *w, const McStack *s, unsigned i)
{
    const McFrame frame = mc_frame(s, i);
    g_autoptr(GString) symbol = g_string_new(NULL);

    if (w->e->kernel) {
        mc_put_pc(symbol, w->e->kernel, &frame);
    }
    return mc_heap_profile_frame(w->names, frame.pc, symbol->str);
}

static unsigned trace_of(Writer *w, KtStackId stack)
{
    const gpointer key = GUINT_TO_POINTER(stack.v + 1);
    gpointer known = g_hash_table_lookup(w->stacks, key);
    McStack s = mc_stack(w->tracer, stack);
    unsigned trace = 0;

    if (known) {
        return GPOINTER_TO_UINT(known);
    }
    for (unsigned i = s.n; i-- > 0;) {
        trace = add_frame(w, frame_of(w, &s, i), trace);
    }
    if (!s.n) {
        trace = add_frame(w, mc_heap_profile_frame(w->names, 0, NULL), 0);
    }
    g_hash_table_insert(w->stacks, key, GUINT_TO_POINTER(trace));
    return trace;
}

/* ---- blocks -------------------------------------------------------------- */

static void end_block(Writer *w, const Live *b)
{
    const uint64_t va = b->va;

    fprintf(w->to, "- %x\n", b->a);
    g_tree_remove(w->live, &va);
}

static void begin_block(Writer *w, uint64_t va, uint64_t len, KtStackId stack)
{
    unsigned trace = trace_of(w, stack);
    bool is_new;
    unsigned a = pair_id(w->allocs, len, trace, &is_new) - 1;
    Live *b = g_new(Live, 1);

    if (is_new) {
        fprintf(w->to, "a %" PRIx64 " %x\n", len, trace);
    }
    fprintf(w->to, "+ %x\n", a);
    *b = (Live) { va, len, a };
    g_tree_replace(w->live, &b->va, b);
}

/* Return the live block that contains an address, or the first one behind it
 * that begins in @len bytes; NULL if there is none. */
static const Live *find_block(const Writer *w, uint64_t va, uint64_t len)
{
    GTreeNode *behind = g_tree_upper_bound(w->live, &va);
    GTreeNode *before = behind ? g_tree_node_previous(behind) :
                                 g_tree_node_last(w->live);
    const Live *b = before ? g_tree_node_value(before) : NULL;

    if (b && va - b->va < MAX(b->len, 1)) {
        return b;
    }
    b = behind ? g_tree_node_value(behind) : NULL;
    return b && b->va - va < len ? b : NULL;
}

static void put_time(Writer *w, uint64_t us)
{
    if (us / 1000 > w->ms) {
        w->ms = us / 1000;
        fprintf(w->to, "c %" PRIx64 "\n", w->ms);
    }
}

static void end_range(Writer *w, uint64_t va, uint64_t len)
{
    const Live *b;

    while ((b = find_block(w, va, len))) {
        end_block(w, b);
    }
}

static void put_alloc(Writer *w, const KtEvent *ev)
{
    const uint64_t len = MAX(ev->actual, ev->size);

    if ((ev->flags & KT_EVF_IF_NEW) && find_block(w, ev->va, MAX(len, 1))) {
        return;
    }
    end_range(w, ev->va, MAX(len, 1));
    begin_block(w, ev->va, len, ev->stack);
}

static void put_free(Writer *w, const KtEvent *ev)
{
    const Live *b = find_block(w, ev->va, 1);

    if (kt_event_removes(ev)) {
        end_range(w, ev->va, ev->size);
    } else if (b && (b->va == ev->va || (ev->flags & KT_EVF_INSIDE))) {
        end_block(w, b);
    }
}

static bool put_event(void *opaque, const KtEvent *ev)
{
    Writer *w = opaque;

    if (w->starts) {
        return true;
    }
    put_time(w, ev->us);
    if (ev->kind == KT_EV_ALLOC) {
        put_alloc(w, ev);
    } else if (ev->kind == KT_EV_FREE) {
        put_free(w, ev);
    }
    return true;
}

/* ---- reading the journal ------------------------------------------------- */

static bool is_start(KtReplayControl control)
{
    return control == KT_REPLAY_RESET || control == KT_REPLAY_CLEAR ||
           control == KT_REPLAY_LOAD;
}

static bool count_start(void *opaque, KtReplayControl control, uint64_t value)
{
    Writer *w = opaque;

    w->starts += is_start(control);
    return true;
}

/* The sums of ka begin anew there, so the file begins there. */
static bool pass_start(void *opaque, KtReplayControl control, uint64_t value)
{
    Writer *w = opaque;

    w->starts -= is_start(control);
    w->loaded = control == KT_REPLAY_LOAD || (w->loaded && !is_start(control));
    return true;
}

static bool count_starts(Writer *w, GError **errp)
{
    g_autoptr(KtReplay) r = kt_replay_open(w->e->journal, errp);
    const KtReplayPlan plan = {
        .until_us = w->e->until_us, .since_us = UINT64_MAX,
        .control = count_start, .opaque = w,
    };

    if (r) {
        kt_replay_run(r, &plan);
    }
    return r != NULL;
}

/* ---- the end ------------------------------------------------------------- */

/** struct Mending - @missing: KtBlock, live blocks of ka that the writer does
 *  not have; @kept: addresses of those that both have */
typedef struct Mending {
    Writer *w;
    GArray *missing;
    GHashTable *kept;
} Mending;

static bool compare_block(const KtBlock *b, void *opaque)
{
    Mending *m = opaque;
    const Live *ours = b->state == KT_BLOCK_ALLOCATED ?
                       g_tree_lookup(m->w->live, &b->va) : NULL;

    if (ours && ours->len == kt_block_len(b)) {
        g_hash_table_add(m->kept, (gpointer)(uintptr_t)b->va);
    } else if (b->state == KT_BLOCK_ALLOCATED) {
        g_array_append_val(m->missing, *b);
    }
    return true;
}

static gboolean collect_stale(gpointer va, gpointer value, gpointer opaque)
{
    Mending *m = opaque;

    if (!g_hash_table_contains(m->kept,
                               (gpointer)(uintptr_t)*(uint64_t *)va)) {
        fprintf(m->w->to, "- %x\n", ((Live *)value)->a);
        m->w->mended++;
    }
    return FALSE;
}

static void mend(Writer *w)
{
    g_autoptr(GArray) missing = g_array_new(FALSE, FALSE, sizeof(KtBlock));
    g_autoptr(GHashTable) kept = g_hash_table_new(NULL, NULL);
    Mending m = { w, missing, kept };

    kt_query_begin(w->tracer);
    kt_query_range(w->tracer, 0, UINT64_MAX, compare_block, &m);
    kt_query_end(w->tracer);
    g_tree_foreach(w->live, collect_stale, &m);
    for (unsigned i = 0; i < missing->len; i++) {
        const KtBlock *b = &g_array_index(missing, KtBlock, i);

        begin_block(w, b->va, kt_block_len(b), b->alloc_stack);
        w->mended++;
    }
    if (w->mended) {
        fprintf(w->to, "# at the end %" PRIu64 " blocks were corrected: ka "
                "knows more of them than events say\n", w->mended);
    }
}

/* ---- the file ------------------------------------------------------------ */

static void put_head(const McExport *e, FILE *to)
{
    const McHeapProfile *p = e->profile;

    fprintf(to, "v " VERSION " " FORMAT "\n# ka: sizes are bytes as "
            "reserved\n");
    fprintf(to, "X %s\n", p->banner ? p->banner : "Linux");
    for (unsigned i = 0; i < p->note->len; i++) {
        fprintf(to, "# %s\n", (const char *)p->note->pdata[i]);
    }
}

static bool put_events(Writer *w, GError **errp)
{
    g_autoptr(KtReplay) r = kt_replay_open(w->e->journal, errp);
    const KtReplayPlan plan = {
        .until_us = w->e->until_us, .since_us = UINT64_MAX, .apply = true,
        .event = put_event, .control = pass_start, .opaque = w,
    };

    if (!r) {
        return false;
    }
    w->tracer = kt_replay_tracer(r);
    kt_replay_run(r, &plan);
    if (w->loaded) {
        fprintf(w->to, "# missing: a VM state was loaded; its blocks have no "
                "events\n");
    }
    mend(w);
    return true;
}

bool mc_export_heaptrack(const McExport *e, FILE *to, GError **errp)
{
    g_autoptr(McHeapProfile) names = mc_heap_profile_new();
    g_autoptr(GHashTable) strings =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GHashTable) ips = g_hash_table_new(NULL, NULL);
    g_autoptr(GHashTable) traces =
        g_hash_table_new_full(hash_pair, equal_pairs, g_free, NULL);
    g_autoptr(GHashTable) allocs =
        g_hash_table_new_full(hash_pair, equal_pairs, g_free, NULL);
    g_autoptr(GHashTable) stacks = g_hash_table_new(NULL, NULL);
    g_autoptr(GTree) live = g_tree_new_full(compare_addresses, NULL, NULL,
                                            g_free);
    Writer w = {
        .e = e, .to = to, .names = names, .strings = strings, .ips = ips,
        .traces = traces, .allocs = allocs, .stacks = stacks, .live = live,
    };

    put_head(e, to);
    return count_starts(&w, errp) && put_events(&w, errp);
}
