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

/* The layers that each family may free. kfree() may free any slab object: SLUB
 * always allowed it, and since 6.4 the documentation says so. */
static const unsigned may_free[KT_FAMILY__COUNT] = {
    [KT_FAMILY_ANY] = ~0u,
    [KT_FAMILY_KFREE] = LAYER(KMALLOC) | LAYER(LARGE) | LAYER(CACHE),
    [KT_FAMILY_CACHE] = LAYER(KMALLOC) | LAYER(CACHE),
    [KT_FAMILY_VFREE] = LAYER(VMALLOC),
    [KT_FAMILY_PERCPU] = LAYER(PERCPU),
    [KT_FAMILY_PAGES] = LAYER(PAGES),
    [KT_FAMILY_KMALLOC] = LAYER(KMALLOC) | LAYER(LARGE),
    [KT_FAMILY_ZONE] = LAYER(CACHE),
};

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

static KtVerdict rule_start(const KtCase *c, KtErrorKind *kind)
{
    const KtRec *r = c->rec;
    unsigned family = c->ev->family < KT_FAMILY__COUNT ? c->ev->family :
                      KT_FAMILY_ANY;

    if (r->freed) {
        return bad(kind, slab_was_freed(c) ? KT_ERR_INVALID_FREE :
                         KT_ERR_DOUBLE_FREE);
    }
    if (!(may_free[family] & 1u << r->layer)) {
        return bad(kind, KT_ERR_WRONG_FAMILY);
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

/* A free of unknown pages is never an error: pages of early boot have no
 * recorded allocation. */
KtVerdict kt_rule_free_pages(const KtCase *c, KtErrorKind *kind)
{
    const KtRec *r = c->rec;

    if (!r || r->va != c->ev->va || !r->freed || !c->whole || c->again ||
        (c->ev->flags & KT_EVF_FRESH) || in_doubt(c)) {
        return KT_OK;
    }
    return bad(kind, KT_ERR_DOUBLE_FREE);
}

KtVerdict kt_rule_queue(const KtCase *c, KtErrorKind *kind)
{
    const KtRec *r = c->rec;

    if (!r || r->va != c->ev->va) {
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

void kt_errors_init(KtErrors *e, KtBudget *budget)
{
    e->budget = budget;
    e->room = 0;
    e->list = g_array_new(FALSE, FALSE, sizeof(KtError));
}

void kt_errors_deinit(KtErrors *e)
{
    kt_budget_release(e->budget, KT_MEM_ERRORS, e->room * sizeof(KtError));
    g_array_unref(e->list);
}

/* Charge memory for twice as many entries: GArray doubles, too. */
static bool make_room(KtErrors *e)
{
    unsigned more = MAX(e->room, SOME_ERRORS);

    if (e->list->len < e->room) {
        return true;
    }
    if (!kt_budget_take(e->budget, KT_MEM_ERRORS, more * sizeof(KtError))) {
        return false;
    }
    e->room += more;
    return true;
}

bool kt_errors_keep(KtErrors *e, const KtError *err)
{
    if (e->list->len >= KT_MAX_ERRORS || !make_room(e)) {
        return false;
    }
    g_array_append_val(e->list, *err);
    g_array_index(e->list, KtError, e->list->len - 1).id = e->list->len;
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
