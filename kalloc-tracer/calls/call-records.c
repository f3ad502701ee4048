/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records of all vCPUs: see call-records.h. */
#include "kalloc-tracer/calls/call-records.h"

#include <string.h>


#define POINTS          (UINT16_MAX + 1)

/* What only one vCPU writes, so that vCPUs which make the same call do not wait
 * for each other. */
typedef struct CpuStore {
    KtCallRing *ring;
    uint64_t last_ns;                   /* atomic */
    uint64_t entered[POINTS];           /* atomic, by point */
} CpuStore;

/* What kt_call_records_open() allocates. */
typedef struct Store {
    KtOpenCalls *calls;
    uint64_t since_ns[POINTS];          /* atomic, by point; 0: never */
    CpuStore *cpu[];
} Store;

struct KtCallRecords {
    KtBudget *budget;
    uint64_t bytes;
    unsigned n_cpus;
    GMutex lock;                        /* of opening */
    Store *store;                       /* atomic; NULL: not open */
    GByteArray *stored;                 /* of a journal: calls under way */
};

KtCallRecords *kt_call_records_new(KtBudget *budget)
{
    KtCallRecords *r = g_new0(KtCallRecords, 1);

    r->budget = budget;
    r->n_cpus = 1;
    g_mutex_init(&r->lock);
    return r;
}

static Store *store_of(const KtCallRecords *r)
{
    return __atomic_load_n(&r->store, __ATOMIC_ACQUIRE);
}

static uint64_t store_bytes(const KtCallRecords *r)
{
    return sizeof(Store) + r->bytes + kt_open_calls_bytes(r->n_cpus) +
           r->n_cpus * (sizeof(CpuStore *) + sizeof(CpuStore));
}

void kt_call_records_free(KtCallRecords *r)
{
    Store *s = r ? r->store : NULL;

    for (unsigned i = 0; s && i < r->n_cpus; i++) {
        kt_call_ring_free(s->cpu[i]->ring);
        g_free(s->cpu[i]);
    }
    if (s) {
        kt_open_calls_free(s->calls);
        kt_budget_release(r->budget, KT_MEM_CALLS, store_bytes(r));
        g_free(s);
    }
    if (r) {
        g_clear_pointer(&r->stored, g_byte_array_unref);
        g_mutex_clear(&r->lock);
    }
    g_free(r);
}

void kt_call_records_configure(KtCallRecords *r, uint64_t bytes,
                               unsigned n_cpus)
{
    r->bytes = bytes;
    r->n_cpus = n_cpus;
}

void kt_call_records_set_uncharged(KtCallRecords *r)
{
    r->budget = NULL;
}

static Store *new_store(const KtCallRecords *r)
{
    Store *s = g_malloc0(sizeof(Store) + r->n_cpus * sizeof(CpuStore *));

    s->calls = kt_open_calls_new(r->budget, r->n_cpus);
    for (unsigned i = 0; i < r->n_cpus; i++) {
        s->cpu[i] = g_new0(CpuStore, 1);
        s->cpu[i]->ring = kt_call_ring_new(r->bytes / r->n_cpus);
    }
    return s;
}

static bool open_locked(KtCallRecords *r, GError **errp)
{
    if (r->store) {
        return true;
    }
    if (!r->bytes) {
        g_set_error(errp, GS_ERROR, GS_ERROR_UNSUPPORTED,
                    "calls cannot be watched: the plugin runs with calls=0");
        return false;
    }
    if (!kt_budget_take(r->budget, KT_MEM_CALLS, store_bytes(r))) {
        g_set_error(errp, GS_ERROR, GS_ERROR_UNSUPPORTED,
                    "no room for %" G_GUINT64_FORMAT " MiB of call records "
                    "within mem=: use a smaller calls=SIZE", r->bytes >> 20);
        return false;
    }
    __atomic_store_n(&r->store, new_store(r), __ATOMIC_RELEASE);
    return true;
}

bool kt_call_records_open(KtCallRecords *r, GError **errp)
{
    bool ok;

    g_mutex_lock(&r->lock);
    ok = open_locked(r, errp);
    g_mutex_unlock(&r->lock);
    return ok;
}

/* ---- vCPUs --------------------------------------------------------------- */

KtOpenCalls *kt_call_records_calls(const KtCallRecords *r)
{
    const Store *s = store_of(r);

    return s ? s->calls : NULL;
}

void kt_call_records_enter(KtCallRecords *r, unsigned cpu, KtPointId id,
                           uint64_t ns)
{
    Store *s = store_of(r);
    CpuStore *c = s->cpu[cpu % r->n_cpus];
    uint64_t n = c->entered[id.v];

    __atomic_store_n(&c->last_ns, ns, __ATOMIC_RELAXED);
    __atomic_store_n(&c->entered[id.v], n + 1, __ATOMIC_RELAXED);
    if (!n && !__atomic_load_n(&s->since_ns[id.v], __ATOMIC_RELAXED)) {
        __atomic_store_n(&s->since_ns[id.v], ns, __ATOMIC_RELAXED);
    }
}

unsigned kt_call_records_put(KtCallRecords *r, const KtCall *call,
                             const uint64_t *args, const uint8_t *extra)
{
    return kt_call_ring_put(store_of(r)->cpu[call->cpu % r->n_cpus]->ring, call,
                            args, extra);
}

/* ---- queries ------------------------------------------------------------- */

uint64_t kt_call_records_entered(const KtCallRecords *r, KtPointId id,
                                 uint64_t *since_ns)
{
    const Store *s = store_of(r);
    uint64_t n = 0;

    for (unsigned i = 0; s && i < r->n_cpus; i++) {
        n += __atomic_load_n(&s->cpu[i]->entered[id.v], __ATOMIC_RELAXED);
    }
    *since_ns = s ? __atomic_load_n(&s->since_ns[id.v], __ATOMIC_RELAXED) : 0;
    return n;
}

uint64_t kt_call_records_last_ns(const KtCallRecords *r)
{
    const Store *s = store_of(r);
    uint64_t last = 0;

    for (unsigned i = 0; s && i < r->n_cpus; i++) {
        uint64_t ns = __atomic_load_n(&s->cpu[i]->last_ns, __ATOMIC_RELAXED);

        last = MAX(last, ns);
    }
    return last;
}

void kt_call_records_stats(const KtCallRecords *r, KtCallsStats *out)
{
    const Store *s = store_of(r);

    *out = (KtCallsStats) {
        .bytes = s ? store_bytes(r) : 0, .n_cpus = r->n_cpus,
    };
    for (unsigned i = 0; s && i < r->n_cpus; i++) {
        out->kept += kt_call_ring_count(s->cpu[i]->ring);
    }
    out->unfinished = s ? kt_open_calls_count(s->calls) : 0;
}

static void add_open(const KtOpenCall *c, void *opaque)
{
    GByteArray *out = opaque;
    KtCall call = c->call;
    static const uint8_t pad[8];

    if (c->undecided) {
        return;
    }
    call.flags |= KT_CALL_UNFINISHED;
    call.seq = UINT64_MAX;
    g_byte_array_append(out, (const uint8_t *)&call, sizeof(call));
    g_byte_array_append(out, (const uint8_t *)c->args, call.n_args * 8u);
    g_byte_array_append(out, c->extra, call.n_extra);
    g_byte_array_append(out, pad, -call.n_extra & 7u);
}

void kt_call_records_under_way(KtCallRecords *r, GByteArray *out)
{
    Store *s = store_of(r);

    if (s) {
        kt_open_calls_foreach(s->calls, add_open, out);
    }
    if (r->stored) {
        g_byte_array_append(out, r->stored->data, r->stored->len);
    }
}

void kt_call_records_set_under_way(KtCallRecords *r, const GByteArray *calls)
{
    g_clear_pointer(&r->stored, g_byte_array_unref);
    r->stored = g_byte_array_new();
    g_byte_array_append(r->stored, calls->data, calls->len);
}

unsigned kt_call_records_rings(const KtCallRecords *r)
{
    return store_of(r) ? r->n_cpus : 0;
}

bool kt_call_records_read(KtCallRecords *r, unsigned ring, uint64_t *seq,
                          uint64_t max, GByteArray *out, uint64_t *lost)
{
    return kt_call_ring_read(store_of(r)->cpu[ring]->ring, seq, max, out, lost);
}

/* Calls that return meanwhile are in the rings, so those under way are read
 * first; such a call is then listed twice and filtered by are_twins(). */
GByteArray *kt_call_records_copy(KtCallRecords *r)
{
    GByteArray *out = g_byte_array_new();

    kt_call_records_under_way(r, out);
    for (unsigned i = 0; i < kt_call_records_rings(r); i++) {
        uint64_t seq = 0, lost = 0;

        while (kt_call_records_read(r, i, &seq, UINT64_MAX, out, &lost)) {
        }
    }
    return out;
}

static gint by_start(gconstpointer pa, gconstpointer pb)
{
    const KtCall *a = ((const KtCallView *)pa)->call;
    const KtCall *b = ((const KtCallView *)pb)->call;

    if (a->start_ns != b->start_ns) {
        return a->start_ns < b->start_ns ? -1 : 1;
    }
    if (a->cpu != b->cpu) {
        return a->cpu < b->cpu ? -1 : 1;
    }
    return a->seq < b->seq ? -1 : a->seq > b->seq;
}

/* Return true if @a was under way when it was read, and @b is its record. */
static bool are_twins(const KtCall *a, const KtCall *b)
{
    return b->seq == UINT64_MAX && a->start_ns == b->start_ns &&
           a->point.v == b->point.v && a->task.v == b->task.v &&
           a->caller == b->caller;
}

KtCallList kt_call_records_list(GByteArray *bytes)
{
    KtCallList l = { bytes, g_array_new(false, false, sizeof(KtCallView)) };
    const KtCallView *v;
    unsigned n = 0;

    for (uint64_t at = 0; at < bytes->len;) {
        const KtCallView view = kt_call_view(bytes->data + at);

        g_array_append_val(l.calls, view);
        at += kt_call_bytes(view.call);
    }
    g_array_sort(l.calls, by_start);
    v = (const KtCallView *)l.calls->data;
    for (unsigned i = 0; i < l.calls->len; i++) {
        if (!i || !are_twins(v[i - 1].call, v[i].call)) {
            g_array_index(l.calls, KtCallView, n++) = v[i];
        }
    }
    g_array_set_size(l.calls, n);
    return l;
}

void kt_call_list_deinit(KtCallList *l)
{
    g_clear_pointer(&l->bytes, g_byte_array_unref);
    g_clear_pointer(&l->calls, g_array_unref);
}

void kt_call_records_clear(KtCallRecords *r)
{
    Store *s = store_of(r);

    for (unsigned i = 0; s && i < r->n_cpus; i++) {
        kt_call_ring_clear(s->cpu[i]->ring);
    }
    g_clear_pointer(&r->stored, g_byte_array_unref);
}

void kt_call_records_end_boot(KtCallRecords *r)
{
    Store *s = store_of(r);

    kt_call_records_clear(r);
    if (s) {
        kt_open_calls_clear(s->calls);
        memset(s->since_ns, 0, sizeof(s->since_ns));
    }
    for (unsigned i = 0; s && i < r->n_cpus; i++) {
        memset(s->cpu[i]->entered, 0, sizeof(s->cpu[i]->entered));
    }
}
