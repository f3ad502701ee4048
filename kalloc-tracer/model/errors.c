/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Errors: see errors.h. The model calls this with the tracer's lock held.
 */
#include "kalloc-tracer/model/errors.h"

#include <string.h>

static const struct {
    const char *name;
    const char *text;
} kinds[KT_ERR__COUNT] = {
#define KT_ERROR_KIND(id, name, text) [KT_ERR_##id] = { name, text },
#include "kalloc-tracer/api/errors.def"
};

#define LAYER(l) (1u << KT_LAYER_##l)

/*
 * What a function of a family (row) does with a live block of a layer (column)
 * if it gets the block's start. docs/errors.md has the same table with what
 * each kernel says. kfree() may free any slab object: SLUB always allowed it,
 * and since 6.4 the documentation says so.
 *
 *   RIGHT  frees it
 *   KEPT   wrong-family: the kernel warns and returns, or dies; the block
 *          stays live
 *   FREED  wrong-family: the block is free afterwards, or nobody knows
 *
 * Blocks of pages are in another map; here they are what kfree() and vfree()
 * find if nothing else is at the address. Then the hooks of the page allocator
 * record what becomes of the pages. free_pages() of a slab's page is refused if
 * the kernel checks pages ("Bad page state").
 */
typedef enum Pair { RIGHT, KEPT, FREED } Pair;

static const uint8_t pairs[KT_FAMILY__COUNT][KT_LAYER__COUNT] = {
    /*                     -      kmalloc large  cache  vmalloc percpu pages */
    [KT_FAMILY_ANY] =    { RIGHT, RIGHT, RIGHT, RIGHT, RIGHT, RIGHT, RIGHT },
    [KT_FAMILY_KFREE] =  { KEPT,  RIGHT, RIGHT, RIGHT, KEPT,  KEPT,  KEPT },
    [KT_FAMILY_CACHE] =  { KEPT,  RIGHT, KEPT,  RIGHT, KEPT,  KEPT,  KEPT },
    [KT_FAMILY_VFREE] =  { KEPT,  KEPT,  KEPT,  KEPT,  RIGHT, KEPT,  KEPT },
    [KT_FAMILY_PERCPU] = { KEPT,  KEPT,  KEPT,  KEPT,  KEPT,  RIGHT, KEPT },
    [KT_FAMILY_PAGES] =  { KEPT,  KEPT,  FREED, KEPT,  KEPT,  KEPT,  RIGHT },
    [KT_FAMILY_KMALLOC] = { FREED, RIGHT, RIGHT, FREED, FREED, FREED, FREED },
    [KT_FAMILY_ZONE] =   { FREED, FREED, FREED, RIGHT, FREED, FREED, FREED },
};

/* The gfp flag of compound pages, since 4.12 (include/linux/gfp_types.h). */
#define GFP_COMP 0x40000u

/* Bytes to which vfree() wants its address aligned, at least. */
#define PAGE_MASK 4095ull

const char *kt_error_name(KtErrorKind kind)
{
    return (unsigned)kind < KT_ERR__COUNT ? kinds[kind].name : "?";
}

const char *kt_error_text(KtErrorKind kind)
{
    return (unsigned)kind < KT_ERR__COUNT ? kinds[kind].text : "?";
}

bool kt_error_parse(const char *name, KtErrorKind *out)
{
    for (unsigned i = 0; i < KT_ERR__COUNT; i++) {
        if (!strcmp(name, kinds[i].name)) {
            *out = i;
            return true;
        }
    }
    return false;
}

/* ---- rules -------------------------------------------------------------- */

static KtVerdict bad(KtErrorKind *kind, KtErrorKind is)
{
    *kind = is;
    return KT_BAD;
}

/*
 * Return true if the block was freed and then its whole slab was freed, too.
 * For the kernel the address now lies in a page that is no slab, or in the slab
 * of another cache, which never handed it out. So a second kfree() is an
 * invalid free, no double free.
 */
static bool slab_was_freed(const KtCase *c)
{
    const KtRec *r = c->rec;

    return (c->ev->flags & KT_EVF_SLAB_READ) &&
           c->ev->family == KT_FAMILY_KFREE &&
           (LAYER(KMALLOC) | LAYER(CACHE)) & 1u << r->layer &&
           r->cache && r->cache != c->ev->cache.v;
}

/* May memory be handed out by functions that are not hooked? */
static bool is_unsure(const KtCase *c)
{
    return c->unseen || (c->ev->flags & KT_EVF_UNSURE);
}

/* Return true if the memory may have been freed and allocated again in a gap,
 * or by a function that is not hooked. */
static bool in_doubt(const KtCase *c)
{
    return c->rec->old || (c->rec->freed && is_unsure(c));
}

/*
 * Return true if the pointer is of an earlier block at this address. KASAN
 * gives each life of a slab object another tag, and refuses to free the object
 * by a pointer with an old one. A pointer without a tag fits each.
 */
static bool is_stale(const KtCase *c)
{
    return c->ev->tag && c->tag && c->ev->tag != c->tag && !c->rec->old &&
           !is_unsure(c) &&
           ((LAYER(KMALLOC) | LAYER(CACHE)) & 1u << c->rec->layer);
}

static unsigned family_of(const KtCase *c)
{
    return c->ev->family < KT_FAMILY__COUNT ? c->ev->family : KT_FAMILY_ANY;
}

static KtVerdict rule_start(const KtCase *c, KtErrorKind *kind)
{
    const KtRec *r = c->rec;
    unsigned family = family_of(c);

    if (r->freed) {
        return bad(kind, slab_was_freed(c) ? KT_ERR_INVALID_FREE :
                         KT_ERR_DOUBLE_FREE);
    }
    if (pairs[family][r->layer] != RIGHT) {
        return bad(kind, KT_ERR_WRONG_FAMILY);
    }
    if (is_stale(c)) {
        return bad(kind, KT_ERR_DOUBLE_FREE);
    }
    if ((family == KT_FAMILY_CACHE || family == KT_FAMILY_ZONE) &&
        c->ev->cache.v && r->cache && c->ev->cache.v != r->cache) {
        return bad(kind, KT_ERR_WRONG_CACHE);
    }
    if ((c->ev->flags & KT_EVF_SIZED) && c->ev->size != c->requested) {
        return bad(kind, KT_ERR_WRONG_SIZE);
    }
    return KT_OK;
}

KtVerdict kt_rule_free(const KtCase *c, KtErrorKind *kind)
{
    const KtRec *r = c->rec;
    KtVerdict v;

    if (!r || (r->va != c->ev->va && r->freed)) {
        return c->certain && !(c->ev->flags & KT_EVF_UNSURE) ?
               bad(kind, KT_ERR_INVALID_FREE) : KT_OK_UNKNOWN;
    }
    v = r->va == c->ev->va ? rule_start(c, kind) :
        bad(kind, KT_ERR_INTERIOR_FREE);
    return v == KT_BAD && in_doubt(c) ? KT_OK_UNKNOWN : v;
}

/*
 * Return true if the function frees the whole block although it gets an address
 * inside it. kfree() frees the compound page that contains the address, and
 * vfree() the area.
 */
static bool frees_from_inside(const KtCase *c)
{
    switch (c->ev->family) {
    case KT_FAMILY_KFREE:
        return c->rec->layer == KT_LAYER_LARGE;
    case KT_FAMILY_VFREE:
        return c->rec->layer == KT_LAYER_VMALLOC &&
               !(c->ev->va & PAGE_MASK);
    default:
        return false;
    }
}

bool kt_rule_frees(const KtCase *c, KtVerdict v, KtErrorKind kind)
{
    if (v != KT_BAD) {
        return c->rec->va == c->ev->va;
    }
    switch (kind) {
    case KT_ERR_WRONG_FAMILY:
        return pairs[family_of(c)][c->rec->layer] == FREED;
    case KT_ERR_WRONG_CACHE:
        return !(c->ev->flags & KT_EVF_STRICT);
    case KT_ERR_INTERIOR_FREE:
        return frees_from_inside(c);
    case KT_ERR_DOUBLE_FREE:
        return false;       /* of an earlier block: is_stale() */
    default:
        return true;
    }
}

/*
 * Return true if the pages are freed with another order than they were
 * allocated with. Less than a block may be freed after split_page() or the
 * split of a compound page. split_page() makes a reference for each page. A
 * compound page shows its order until it is split; what it was is unknown
 * afterwards. Compaction splits pages without a trace; its blocks have no gfp
 * flags.
 */
static bool is_wrong_order(const KtCase *c)
{
    uint64_t len = c->block_last - c->rec->va + 1;

    if (!(c->ev->flags & KT_EVF_ORDER) || !c->gfp || c->last == c->block_last ||
        (len & (len - 1)) || (c->rec->va & (len - 1))) {
        return false;
    }
    return c->last > c->block_last || (c->ev->flags & KT_EVF_OTHER_ORDER) ||
           ((c->ev->flags & KT_EVF_UNSPLIT) && !(c->gfp & GFP_COMP));
}

/* A free of unknown pages is never an error: pages of early boot have no
 * recorded allocation. */
KtVerdict kt_rule_free_pages(const KtCase *c, KtErrorKind *kind)
{
    const KtRec *r = c->rec;

    if (!r || r->va != c->ev->va || r->old) {
        return KT_OK;
    }
    if (!r->freed) {
        return is_wrong_order(c) ? bad(kind, KT_ERR_WRONG_ORDER) : KT_OK;
    }
    return c->last != c->block_last || c->again || c->unseen || c->removed ||
           (c->ev->flags & KT_EVF_FRESH) ? KT_OK :
           bad(kind, KT_ERR_DOUBLE_FREE);
}

KtVerdict kt_rule_queue(const KtCase *c, KtErrorKind *kind)
{
    const KtRec *r = c->rec;

    if (!r || r->va != c->ev->va) {
        return KT_OK_UNKNOWN;
    }
    if (!r->freed && is_stale(c)) {
        return KT_OK_UNKNOWN;
    }
    if (!r->freed && !r->queued) {
        return KT_OK;
    }
    return in_doubt(c) ? KT_OK_UNKNOWN : bad(kind, KT_ERR_DOUBLE_FREE);
}

/* ---- list --------------------------------------------------------------- */

/* Entries for which memory is charged at once. */
#define SOME_ERRORS 64
/* Bytes of an entry: the error, and its place in KtErrors.same. */
#define ERROR_BYTES (sizeof(KtError) + sizeof(Same) + 32)

/* What an error of an access and its repeats have in common. */
typedef struct Same {
    uint64_t pc;
    uint32_t alloc;
    uint32_t free;
    uint64_t kind;
} Same;

static guint same_hash(gconstpointer key)
{
    const Same *s = key;
    uint64_t h = (s->pc ^ s->kind << 56 ^ (uint64_t)s->free << 32 ^ s->alloc) *
                 0x9e3779b97f4a7c15u;

    return h >> 32;
}

static gboolean same_equal(gconstpointer a, gconstpointer b)
{
    return !memcmp(a, b, sizeof(Same));
}

static Same same_of(const KtError *err)
{
    return (Same) {
        .pc = err->access.pc, .kind = err->kind,
        .alloc = err->has_block ? err->block.alloc_stack.v : 0,
        .free = err->has_block ? err->block.free_stack.v : 0,
    };
}

void kt_errors_init(KtErrors *e, KtBudget *budget)
{
    e->budget = budget;
    e->room = 0;
    e->same = g_hash_table_new_full(same_hash, same_equal, g_free, NULL);
    e->list = g_array_new(FALSE, FALSE, sizeof(KtError));
}

void kt_errors_deinit(KtErrors *e)
{
    kt_budget_release(e->budget, KT_MEM_ERRORS, e->room * ERROR_BYTES);
    g_array_unref(e->list);
    g_hash_table_unref(e->same);
}

/* Charge memory for twice as many entries: GArray doubles, too. */
static bool make_room(KtErrors *e)
{
    unsigned more = MAX(e->room, SOME_ERRORS);

    if (e->list->len < e->room) {
        return true;
    }
    if (!kt_budget_take(e->budget, KT_MEM_ERRORS, more * ERROR_BYTES)) {
        return false;
    }
    e->room += more;
    return true;
}

/* Find repeats of error @id from now on. */
static void index_error(KtErrors *e, unsigned id)
{
    const KtError *err = &g_array_index(e->list, KtError, id - 1);
    Same same = same_of(err);

    if (kt_error_is_access(err->kind)) {
        g_hash_table_insert(e->same, g_memdup2(&same, sizeof(same)),
                            GUINT_TO_POINTER(id));
    }
}

void kt_errors_index(KtErrors *e)
{
    g_hash_table_remove_all(e->same);
    for (unsigned id = 1; id <= e->list->len; id++) {
        index_error(e, id);
    }
}

bool kt_errors_keep(KtErrors *e, const KtError *err)
{
    if (e->list->len >= KT_MAX_ERRORS || !make_room(e)) {
        return false;
    }
    g_array_append_val(e->list, *err);
    g_array_index(e->list, KtError, e->list->len - 1).id = e->list->len;
    index_error(e, e->list->len);
    return true;
}

bool kt_errors_add_access(KtErrors *e, const KtError *err)
{
    Same same = same_of(err);
    unsigned id = GPOINTER_TO_UINT(g_hash_table_lookup(e->same, &same));
    KtError first = *err;
    KtErrorAccess *a;

    if (!id) {
        first.access.count = 1;
        return kt_errors_keep(e, &first);
    }
    a = &g_array_index(e->list, KtError, id - 1).access;
    a->count++;
    a->last_us = MAX(a->last_us, err->access.last_us);
    a->offset = MAX(a->offset, err->access.offset);
    return true;
}

bool kt_errors_add(KtErrors *e, KtErrorKind kind, const KtEvent *ev,
                   const KtBlock *block)
{
    KtError err = {
        .kind = kind,
        .va = ev->va,
        .stack = ev->stack,
        .task = ev->task,
        .cpu = ev->cpu,
        .hook = ev->hook,
        .cache = ev->cache,
        .us = ev->us,
        .size = ev->size,
    };

    if (block) {
        err.has_block = true;
        err.block = *block;
    }
    return kt_errors_keep(e, &err);
}
