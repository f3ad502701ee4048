/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Definitions of a journal: see definitions.h.
 */
#include "kalloc-tracer/journal/definitions.h"

#include "kalloc-tracer/base/stack-tag.h"
#include "kalloc-tracer/journal/journal-format.h"

typedef enum Tag {
    TAG_FORGET,             /* numbers of program counters begin anew */
    TAG_STACK,
    TAG_TASK,
    TAG_CACHE,
} Tag;

/* The stack before, which writer and reader remember. */
typedef struct Last {
    uint32_t id;
    uint64_t pc;            /* that got a number last */
    uint64_t frame[KT_MAX_FRAMES];
    unsigned n;
} Last;

static unsigned shared_tail(const Last *l, const uint64_t *pc, unsigned n)
{
    unsigned same = 0;

    while (same < n && same < l->n &&
           pc[n - 1 - same] == l->frame[l->n - 1 - same]) {
        same++;
    }
    return same;
}

static void keep_stack(Last *l, uint32_t id, const uint64_t *pc, unsigned n)
{
    l->id = id;
    l->n = n;
    memcpy(l->frame, pc, n * sizeof(*pc));
}

/* ---- writing ------------------------------------------------------------ */

/* The ids that are defined already, as a bitmap. */
typedef struct Seen {
    uint64_t *bits;
    uint32_t n;             /* words */
} Seen;

struct KtDefinitions {
    const KtDepot *stacks;
    const KtTasksCaches *names;
    Seen stack, task, cache;
    GHashTable *number;     /* of a program counter */
    Last last;
    bool told;              /* that all begins anew */
};

KtDefinitions *kt_definitions_new(const KtDepot *stacks,
                                  const KtTasksCaches *names)
{
    KtDefinitions *d = g_new0(KtDefinitions, 1);

    d->stacks = stacks;
    d->names = names;
    d->number = g_hash_table_new_full(gs_number_hash, g_int64_equal, g_free,
                                      NULL);
    return d;
}

void kt_definitions_reset(KtDefinitions *d)
{
    g_clear_pointer(&d->stack.bits, g_free);
    g_clear_pointer(&d->task.bits, g_free);
    g_clear_pointer(&d->cache.bits, g_free);
    d->stack.n = d->task.n = d->cache.n = 0;
    g_hash_table_remove_all(d->number);
    d->last = (Last) { 0 };
    d->told = false;
}

void kt_definitions_free(KtDefinitions *d)
{
    if (d) {
        kt_definitions_reset(d);
        g_hash_table_unref(d->number);
        g_free(d);
    }
}

/* Return true the first time for each @id. */
static bool first_sight(Seen *s, uint32_t id)
{
    uint32_t word = id / 64;
    uint64_t bit = (uint64_t)1 << id % 64;

    if (word >= s->n) {
        uint32_t n = MAX(64, s->n);

        while (n <= word) {
            n *= 2;
        }
        s->bits = g_renew(uint64_t, s->bits, n);
        memset(s->bits + s->n, 0, (n - s->n) * sizeof(*s->bits));
        s->n = n;
    }
    if (s->bits[word] & bit) {
        return false;
    }
    s->bits[word] |= bit;
    return true;
}

static void begin(KtDefinitions *d, Tag tag, GsOut *out)
{
    if (!d->told) {
        gs_out_u8(out, TAG_FORGET);
        d->told = true;
    }
    gs_out_u8(out, tag);
}

static uint64_t *new_key(uint64_t pc)
{
    uint64_t *key = g_new(uint64_t, 1);

    *key = pc;
    return key;
}

static void put_pc(KtDefinitions *d, uint64_t pc, GsOut *out)
{
    guint number = GPOINTER_TO_UINT(g_hash_table_lookup(d->number, &pc));

    gs_out_varint(out, number);
    if (number) {
        return;
    }
    gs_out_varint(out, gs_zigzag(pc - d->last.pc));
    d->last.pc = pc;
    number = g_hash_table_size(d->number) + 1;
    if (number <= KT_NAMED_PCS) {
        g_hash_table_insert(d->number, new_key(pc),
                            GUINT_TO_POINTER(number));
    }
}

static void put_stack(KtDefinitions *d, uint32_t id, GsOut *out)
{
    unsigned n, same;
    uint64_t tag;
    const uint64_t *pc = kt_depot_get(d->stacks, id, &n, &tag);

    if (!pc || n > KT_MAX_FRAMES) {
        return;
    }
    begin(d, TAG_STACK, out);
    same = shared_tail(&d->last, pc, n);
    gs_out_varint(out, gs_zigzag((uint64_t)id - d->last.id));
    gs_out_u8(out, n);
    gs_out_u8(out, kt_stack_tag_stop(tag));
    gs_out_u8(out, same);
    for (unsigned i = 0; i < n - same; i++) {
        put_pc(d, pc[i], out);
    }
    keep_stack(&d->last, id, pc, n);
}

static void put_task(KtDefinitions *d, KtTaskId id, GsOut *out)
{
    char comm[KT_COMM_LEN + 1];
    uint32_t pid;

    if (kt_tasks_caches_task(d->names, id, &pid, comm)) {
        begin(d, TAG_TASK, out);
        gs_out_varint(out, id.v);
        gs_out_varint(out, pid);
        gs_out_str(out, comm);
    }
}

static void put_cache(KtDefinitions *d, KtCacheId id, GsOut *out)
{
    KtCacheInfo info;

    if (kt_tasks_caches_cache(d->names, id, &info)) {
        begin(d, TAG_CACHE, out);
        gs_out_varint(out, id.v);
        gs_out_u64(out, info.va);
        gs_out_varint(out, info.object_size);
        gs_out_varint(out, info.size);
        gs_out_str(out, info.name);
    }
}

void kt_definitions_add(KtDefinitions *d, const KtEvent *ev, GsOut *out)
{
    if (ev->stack.v && first_sight(&d->stack, ev->stack.v)) {
        put_stack(d, ev->stack.v, out);
    }
    if (ev->task.v && first_sight(&d->task, ev->task.v)) {
        put_task(d, ev->task, out);
    }
    if (ev->cache.v && first_sight(&d->cache, ev->cache.v)) {
        put_cache(d, ev->cache, out);
    }
}

/* ---- reading ------------------------------------------------------------ */

struct KtDefinitionsReader {
    const KtDefinitionsOps *ops;
    void *opaque;
    GArray *pc;             /* by number less 1 */
    Last last;
};

KtDefinitionsReader *kt_definitions_reader_new(const KtDefinitionsOps *ops,
                                               void *opaque)
{
    KtDefinitionsReader *r = g_new0(KtDefinitionsReader, 1);

    r->ops = ops;
    r->opaque = opaque;
    r->pc = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    return r;
}

void kt_definitions_reader_free(KtDefinitionsReader *r)
{
    if (r) {
        g_array_free(r->pc, TRUE);
        g_free(r);
    }
}

static uint64_t read_pc(KtDefinitionsReader *r, GsBytes *in)
{
    uint64_t number = gs_bytes_varint(in, r->pc->len);

    if (number) {
        return g_array_index(r->pc, uint64_t, number - 1);
    }
    r->last.pc += gs_unzigzag(gs_bytes_varint(in, UINT64_MAX));
    if (r->pc->len < KT_NAMED_PCS) {
        g_array_append_val(r->pc, r->last.pc);
    }
    return r->last.pc;
}

static bool read_stack(KtDefinitionsReader *r, GsBytes *in)
{
    uint64_t id = r->last.id + gs_unzigzag(gs_bytes_varint(in, UINT64_MAX));
    unsigned n = gs_bytes_u8(in);
    unsigned stop = gs_bytes_u8(in);
    unsigned same = gs_bytes_u8(in);
    uint64_t pc[KT_MAX_FRAMES];

    if (in->failed || !id || id > KT_MAX_STACKS || !n || n > KT_MAX_FRAMES ||
        stop >= GS_STOP__COUNT || same > n || same > r->last.n) {
        return false;
    }
    for (unsigned i = 0; i < n - same; i++) {
        pc[i] = read_pc(r, in);
    }
    memcpy(pc + n - same, r->last.frame + r->last.n - same,
           same * sizeof(*pc));
    keep_stack(&r->last, id, pc, n);
    return !in->failed && r->ops->stack(r->opaque, id, pc, n, stop);
}

static bool read_task(KtDefinitionsReader *r, GsBytes *in)
{
    uint32_t id = gs_bytes_varint(in, KT_MAX_TASKS);
    uint32_t pid = gs_bytes_varint(in, UINT32_MAX);
    const char *text = gs_bytes_str(in, KT_COMM_LEN, NULL);
    char comm[KT_COMM_LEN + 1] = { 0 };

    if (in->failed || !id || !text) {
        return false;
    }
    g_strlcpy(comm, text, sizeof(comm));
    return r->ops->task(r->opaque, id, pid, comm);
}

static bool read_cache(KtDefinitionsReader *r, GsBytes *in)
{
    uint16_t id = gs_bytes_varint(in, UINT16_MAX);
    KtCacheInfo info = { .va = gs_bytes_u64(in) };

    info.object_size = gs_bytes_varint(in, UINT32_MAX);
    info.size = gs_bytes_varint(in, UINT32_MAX);
    info.name = gs_bytes_str(in, KT_CACHE_ESCAPED_MAX, NULL);
    return !in->failed && id && r->ops->cache(r->opaque, id, &info);
}

static bool read_one(KtDefinitionsReader *r, GsBytes *in)
{
    switch (gs_bytes_u8(in)) {
    case TAG_FORGET:
        g_array_set_size(r->pc, 0);
        r->last = (Last) { 0 };
        return true;
    case TAG_STACK:
        return read_stack(r, in);
    case TAG_TASK:
        return read_task(r, in);
    case TAG_CACHE:
        return read_cache(r, in);
    default:
        return false;
    }
}

bool kt_definitions_read(KtDefinitionsReader *r, GsBytes *in)
{
    while (gs_bytes_left(in)) {
        if (!read_one(r, in)) {
            return false;
        }
    }
    return !in->failed;
}
