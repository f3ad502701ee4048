/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Live bytes by cache over time: see timeline.h. */
#include "monitor-cmds/export/timeline.h"

#include <string.h>

/* Counters of one cache each; another two are everything and the others. */
#define MAX_NAMED (MC_TIMELINE_COUNTERS - 2)
#define OTHER     "(other)"

/* Bytes of the smallest page. */
#define PAGE 4096

/**
 * struct Counter - a counter that is followed; number 0 is of everything
 * @name: (borrowed from @names of McLiveBytes) NULL: of everything
 * @n: accounts that count in it
 * @live: by events
 * @peak: greatest value by the accounts, if @n is 1
 * @high, @high_at: greatest value in the points that are kept back, and the
 *                  number of this point + 1; 0: there is none
 */
typedef struct Counter {
    const char *name;
    McCounterSeries *series;
    unsigned n;
    int64_t live;
    uint64_t peak;
    int64_t high;
    unsigned high_at;
} Counter;

/** struct Account - a cache, or an allocator. @counter: number + 1; 0: it was
 *  not seen yet */
typedef struct Account {
    unsigned counter;
    int64_t live;
} Account;

/** struct Block - a live block. @account: its number */
typedef struct Block {
    uint64_t len, actual;
    unsigned account;
} Block;

/**
 * struct Kept - a point that waits for the end of its frame of the journal,
 * where live bytes are compared with what the tracer has
 */
typedef struct Kept {
    unsigned counter;
    uint64_t us;
    int64_t value;
} Kept;

/**
 * struct McLiveBytes - @account: Account, by number
 * @chosen: names of caches that get a counter of their own
 * @by_name: name -> number of its counter
 * @block: address -> Block
 * @kept: Kept, in order
 * @begun: what the accounts had at the restart is known
 */
struct McLiveBytes {
    KtTracer *tracer;
    McHeapProfile *names;
    GHashTable *chosen, *by_name, *block;
    GArray *account, *counter, *kept;
    uint64_t corrected;
    bool begun;
};

static void clear_counter(gpointer p)
{
    g_clear_pointer(&((Counter *)p)->series, mc_counter_series_free);
}

static unsigned add_counter(McLiveBytes *l, const char *name)
{
    const Counter c = {
        .name = name, .series = mc_counter_series_new(MC_TIMELINE_POINTS),
    };

    g_array_append_val(l->counter, c);
    return l->counter->len - 1;
}

static Counter *counter_at(const McLiveBytes *l, unsigned i)
{
    return &g_array_index(l->counter, Counter, i);
}

/* ---- which caches have a counter ----------------------------------------- */

static gint by_peak(gconstpointer a, gconstpointer b)
{
    const McProfileStack *x = *(const McProfileStack *const *)a;
    const McProfileStack *y = *(const McProfileStack *const *)b;
    const int64_t p = x->value[MC_TOP_peak], q = y->value[MC_TOP_peak];

    return p != q ? (p < q ? 1 : -1) :
           (x->first > y->first) - (x->first < y->first);
}

/* Choose the caches that had most bytes at one time. */
static void choose(McLiveBytes *l, const McHeapProfile *sums)
{
    g_autoptr(GPtrArray) rows = g_ptr_array_new();

    for (unsigned i = 0; i < sums->stack->len; i++) {
        g_ptr_array_add(rows, &g_array_index(sums->stack, McProfileStack, i));
    }
    g_ptr_array_sort(rows, by_peak);
    for (unsigned i = 0; i < rows->len; i++) {
        const McProfileStack *s = rows->pdata[i];
        unsigned frame = g_array_index(sums->path, unsigned, s->first);
        const char *name = g_array_index(sums->frame, McProfileFrame,
                                         frame).function;

        if (g_hash_table_size(l->chosen) < MAX_NAMED) {
            g_hash_table_add(l->chosen, g_strdup(name));
        }
    }
}

static const char *name_of(McLiveBytes *l, unsigned account)
{
    KtCacheId id = { account - MIN(account, KT_LAYER__COUNT) };
    g_autofree char *layer = NULL;
    KtCacheInfo cache;
    unsigned label;

    if (account >= KT_LAYER__COUNT &&
        kt_tracer_cache(l->tracer, id, &cache)) {
        label = mc_heap_profile_label(l->names, cache.name);
    } else {
        layer = g_strdup_printf("[%s]", account < KT_LAYER__COUNT ?
                                kt_layer_name(account) : "-");
        label = mc_heap_profile_label(l->names, layer);
    }
    return g_array_index(l->names->frame, McProfileFrame, label).function;
}

/* Return the number of the counter of a name. */
static unsigned counter_of(McLiveBytes *l, const char *name)
{
    gpointer id;

    if (!g_hash_table_contains(l->chosen, name)) {
        name = OTHER;
    }
    id = g_hash_table_lookup(l->by_name, name);
    if (!id) {
        id = GUINT_TO_POINTER(add_counter(l, name));
        g_hash_table_insert(l->by_name, (gpointer)name, id);
    }
    return GPOINTER_TO_UINT(id);
}

/* (borrowed until the next call) */
static Account *account_at(McLiveBytes *l, unsigned i)
{
    Account *a;

    if (i >= l->account->len) {
        g_array_set_size(l->account, i + 1);
    }
    a = &g_array_index(l->account, Account, i);
    if (!a->counter) {
        unsigned counter = counter_of(l, name_of(l, i));

        a->counter = counter + 1;
        counter_at(l, counter)->n++;
    }
    return a;
}

static unsigned account_of(KtCacheId cache, unsigned layer)
{
    return cache.v ? (unsigned)KT_LAYER__COUNT + cache.v : layer;
}

/* ---- points -------------------------------------------------------------- */

static void keep(McLiveBytes *l, unsigned counter, uint64_t us, int64_t value)
{
    const Kept k = { counter, us, value };
    Counter *c = counter_at(l, counter);

    g_array_append_val(l->kept, k);
    if (!c->high_at || value > c->high) {
        c->high = value;
        c->high_at = l->kept->len;
    }
}

static void change(McLiveBytes *l, unsigned account, int64_t by, uint64_t us)
{
    Account *a = account_at(l, account);
    const unsigned both[] = { 0, a->counter - 1 };

    a->live += by;
    for (unsigned i = 0; i < G_N_ELEMENTS(both); i++) {
        Counter *c = counter_at(l, both[i]);

        c->live += by;
        keep(l, both[i], us, c->live);
    }
}

/* Make the greatest of the kept points the peak that the account has, if this
 * peak is new. */
static void set_peak(McLiveBytes *l, unsigned counter, uint64_t peak,
                     uint64_t us)
{
    Counter *c = counter_at(l, counter);

    if (l->begun && peak > c->peak) {
        if (!c->high_at) {
            keep(l, counter, us, peak);
        }
        g_array_index(l->kept, Kept, c->high_at - 1).value = peak;
    }
    c->peak = peak;
}

/* Add the kept points to their series. Events alone can have more bytes than
 * there ever were. */
static void add_kept(McLiveBytes *l)
{
    for (unsigned i = 0; i < l->kept->len; i++) {
        const Kept *k = &g_array_index(l->kept, Kept, i);
        Counter *c = counter_at(l, k->counter);
        uint64_t value = MAX(k->value, 0);

        if (c->n == 1) {
            value = MIN(value, c->peak);
        }
        mc_counter_series_add(c->series, k->us, value);
        c->high_at = 0;
    }
    g_array_set_size(l->kept, 0);
}

/* ---- comparing ----------------------------------------------------------- */

/** struct Comparing - @live: of each counter, by the accounts */
typedef struct Comparing {
    McLiveBytes *l;
    GArray *live;
    uint64_t us;
} Comparing;

static int64_t live_of(const KtAccount *a)
{
    return a->reserved - a->freed_reserved;
}

static bool compare_account(const KtAccountKey *key, const KtAccount *a,
                            void *opaque)
{
    Comparing *x = opaque;
    Account *ours;
    unsigned counter;

    if (key->backing) {
        return true;
    }
    ours = account_at(x->l, account_of(key->cache, key->layer));
    counter = ours->counter - 1;
    x->l->corrected += x->l->begun && ours->live != live_of(a);
    ours->live = live_of(a);
    if (counter >= x->live->len) {
        g_array_set_size(x->live, counter + 1);
    }
    g_array_index(x->live, int64_t, counter) += ours->live;
    if (counter_at(x->l, counter)->n == 1) {
        set_peak(x->l, counter, a->peak, x->us);
    }
    return true;
}

void mc_live_bytes_compare(McLiveBytes *l, uint64_t us)
{
    g_autoptr(GArray) live = g_array_new(FALSE, TRUE, sizeof(int64_t));
    Comparing x = { l, live, us };
    KtTotals totals;

    kt_query_begin(l->tracer);
    kt_query_accounts(l->tracer, NULL, KT_BY_CACHE, compare_account, &x);
    kt_query_totals(l->tracer, NULL, &totals);
    kt_query_end(l->tracer);
    set_peak(l, 0, totals.sum.peak, us);
    g_array_set_size(live, l->counter->len);
    g_array_index(live, int64_t, 0) = live_of(&totals.sum);
    add_kept(l);
    for (unsigned i = 0; i < live->len; i++) {
        Counter *c = counter_at(l, i);

        c->live = g_array_index(live, int64_t, i);
        mc_counter_series_add(c->series, us, MAX(c->live, 0));
    }
    l->begun = true;
}

/* ---- events -------------------------------------------------------------- */

static void add_block(McLiveBytes *l, uint64_t va, Block b)
{
    uint64_t *key = g_memdup2(&va, sizeof(va));

    g_hash_table_replace(l->block, key, g_memdup2(&b, sizeof(b)));
}

static void drop_block(McLiveBytes *l, uint64_t va, uint64_t us)
{
    const Block *b = g_hash_table_lookup(l->block, &va);

    if (b) {
        change(l, b->account, -(int64_t)b->len, us);
        g_hash_table_remove(l->block, &va);
    }
}

static void follow_alloc(McLiveBytes *l, const KtEvent *ev, uint64_t us)
{
    const Block b = {
        MAX(ev->size, ev->actual), ev->actual,
        account_of(ev->cache, ev->layer),
    };
    const KtBlock block = { .layer = ev->layer, .alloc_stack = ev->stack };

    if (ev->layer == KT_LAYER_NONE || ev->layer >= KT_LAYER__COUNT ||
        kt_query_is_backing(l->tracer, &block) ||
        ((ev->flags & KT_EVF_IF_NEW) &&
         g_hash_table_contains(l->block, &ev->va))) {
        return;
    }
    drop_block(l, ev->va, us);
    add_block(l, ev->va, b);
    change(l, b.account, b.len, us);
}

/* Memory is removed: drop the blocks that begin in it. */
static void drop_range(McLiveBytes *l, uint64_t va, uint64_t len, uint64_t us)
{
    g_autoptr(GArray) gone = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    GHashTableIter i;
    gpointer key;

    g_hash_table_iter_init(&i, l->block);
    while (g_hash_table_iter_next(&i, &key, NULL)) {
        if (*(uint64_t *)key - va < len) {
            g_array_append_vals(gone, key, 1);
        }
    }
    for (guint k = 0; k < gone->len; k++) {
        drop_block(l, g_array_index(gone, uint64_t, k), us);
    }
}

/* Pages can be freed in parts, from the first one on. */
static void follow_free(McLiveBytes *l, const KtEvent *ev, uint64_t us)
{
    const Block *found = g_hash_table_lookup(l->block, &ev->va);
    Block rest;

    if (kt_event_removes(ev) && ev->size > PAGE) {
        drop_range(l, ev->va, ev->size, us);
        return;
    }
    if (!found || (ev->family == KT_FAMILY_PAGES &&
                   (ev->flags & KT_EVF_UNREFERENCED))) {
        return;
    }
    rest = *found;
    drop_block(l, ev->va, us);
    if (ev->family == KT_FAMILY_PAGES && ev->size && ev->size < rest.len) {
        rest.len -= ev->size;
        rest.actual -= MIN(rest.actual, ev->size);
        add_block(l, ev->va + ev->size, rest);
        change(l, rest.account, rest.len, us);
    }
}

static void follow_resize(McLiveBytes *l, const KtEvent *ev, uint64_t us)
{
    Block *b = g_hash_table_lookup(l->block, &ev->va);
    uint64_t len = b ? MAX(ev->size, b->actual) : 0;

    if (b && len != b->len) {
        change(l, b->account, (int64_t)(len - b->len), us);
        b->len = len;
    }
}

void mc_live_bytes_event(McLiveBytes *l, const KtEvent *ev, uint64_t us)
{
    if (ev->kind == KT_EV_ALLOC) {
        follow_alloc(l, ev, us);
    } else if (ev->kind == KT_EV_FREE) {
        follow_free(l, ev, us);
    } else if (ev->kind == KT_EV_RESIZE) {
        follow_resize(l, ev, us);
    }
}

/* ---- life ---------------------------------------------------------------- */

static bool add_loaded(const KtBlock *b, void *opaque)
{
    McLiveBytes *l = opaque;

    if (b->state == KT_BLOCK_ALLOCATED && !kt_query_is_backing(l->tracer, b)) {
        add_block(l, b->va, (Block) { kt_block_len(b), b->actual,
                                      account_of(b->cache, b->layer) });
    }
    return true;
}

void mc_live_bytes_restart(McLiveBytes *l, bool loaded)
{
    g_hash_table_remove_all(l->by_name);
    g_hash_table_remove_all(l->block);
    g_array_set_size(l->account, 0);
    g_array_set_size(l->counter, 0);
    g_array_set_size(l->kept, 0);
    l->corrected = 0;
    l->begun = !loaded;
    add_counter(l, NULL);
    counter_at(l, 0)->n = 1;
    if (loaded) {
        kt_query_begin(l->tracer);
        kt_query_range(l->tracer, 0, UINT64_MAX, add_loaded, l);
        kt_query_end(l->tracer);
    }
}

McLiveBytes *mc_live_bytes_new(KtTracer *t, const McHeapProfile *sums)
{
    McLiveBytes *l = g_new0(McLiveBytes, 1);

    l->tracer = t;
    l->names = mc_heap_profile_new();
    l->chosen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    l->by_name = g_hash_table_new(g_str_hash, g_str_equal);
    l->block = g_hash_table_new_full(gs_number_hash, g_int64_equal, g_free,
                                     g_free);
    l->account = g_array_new(FALSE, TRUE, sizeof(Account));
    l->counter = g_array_new(FALSE, TRUE, sizeof(Counter));
    g_array_set_clear_func(l->counter, clear_counter);
    l->kept = g_array_new(FALSE, FALSE, sizeof(Kept));
    choose(l, sums);
    mc_live_bytes_restart(l, false);
    return l;
}

void mc_live_bytes_free(McLiveBytes *l)
{
    if (!l) {
        return;
    }
    mc_heap_profile_free(l->names);
    g_hash_table_unref(l->chosen);
    g_hash_table_unref(l->by_name);
    g_hash_table_unref(l->block);
    g_array_unref(l->account);
    g_array_unref(l->counter);
    g_array_unref(l->kept);
    g_free(l);
}

void mc_live_bytes_end(McLiveBytes *l, McTimeline *t)
{
    t->corrected = l->corrected;
    for (unsigned i = 0; i < l->counter->len; i++) {
        Counter *c = counter_at(l, i);
        const McCounter to = {
            c->name ? g_string_chunk_insert_const(t->names, c->name) : NULL,
            g_steal_pointer(&c->series),
        };

        g_array_append_val(t->counter, to);
    }
}
