/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The naive model: frees of pages. */
#include "tests/lib/naive-model.h"

/* Return true if a block of pages is freed in another size than it was
 * allocated in, although nobody split it. 0x40000 is __GFP_COMP. */
static bool is_wrong_order(const NaiveBlock *x, const KtEvent *ev,
                           uint64_t last)
{
    uint64_t len = naive_last(x) - x->b.va + 1;

    if (!(ev->flags & KT_EVF_ORDER) || !x->b.gfp || last == naive_last(x) ||
        len & (len - 1) || x->b.va & (len - 1)) {
        return false;
    }
    return last > naive_last(x) || ev->flags & KT_EVF_OTHER_ORDER ||
           (ev->flags & KT_EVF_UNSPLIT && !(x->b.gfp & 0x40000));
}

/* No page has a reference: nothing is freed. */
static void refuse_pages(Naive *m, const KtEvent *ev, NaiveBlock *x,
                         uint64_t last)
{
    NaiveBlock *object = naive_first_object(m, ev->va, last);

    if (object) {
        naive_error(m, KT_ERR_WRONG_FAMILY, ev, object);
    } else if (x && x->b.state == KT_BLOCK_FREED) {
        naive_error(m, KT_ERR_DOUBLE_FREE, ev, x);
    } else if (x && !x->old && x->b.va != ev->va) {
        naive_error(m, KT_ERR_INTERIOR_FREE, ev, x);
    } else {
        m->unknown_pages++;
        m->totals.stray++;
    }
}

/* Return true if there are live objects of other allocators in the pages. Large
 * blocks among them are freed. Only the first eight blocks are examined. */
static bool free_objects(Naive *m, const KtEvent *ev, uint64_t last)
{
    uint64_t va = ev->va;
    bool reported = false;

    for (unsigned i = 0; i < 8 && ev->flags & KT_EVF_ORDER; i++) {
        NaiveBlock *x = naive_next_object(m, va);

        if (!x || x->b.va > last) {
            break;
        }
        if (naive_is_live_object(x)) {
            if (!reported) {
                naive_error(m, KT_ERR_WRONG_FAMILY, ev, x);
            }
            reported = true;
            if (x->b.layer == KT_LAYER_LARGE) {
                naive_set_freed(m, x, ev);
            }
        }
        va = x->b.va + 1;
        if (!va) {
            break;
        }
    }
    return reported;
}

void naive_free_pages(Naive *m, const KtEvent *ev)
{
    NaiveBlock *x = naive_find(m, true, ev->va);
    uint64_t last = ev->size ? naive_end(ev->va, ev->size) :
                    x ? naive_last(x) : ev->va;
    bool again = x && x->b.state == KT_BLOCK_FREED &&
                 ev->flags & KT_EVF_AGAIN && x->b.free_stack.v == ev->stack.v &&
                 x->b.free_task.v == ev->task.v;

    if (ev->flags & KT_EVF_REMOVED) {
        for (unsigned i = 0; ev->size && i < 2; i++) {
            naive_free_range(m, i == 0, ev->va, last, ev);
        }
    } else if (ev->flags & KT_EVF_UNREFERENCED) {
        refuse_pages(m, ev, x, last);
    } else if (free_objects(m, ev, last)) {
        naive_free_range(m, true, ev->va, last, ev);
    } else if (x && x->b.state == KT_BLOCK_FREED && x->b.va == ev->va &&
        naive_last(x) == last && !naive_in_doubt(m, x) && !again &&
        !x->b.removed &&
        !(ev->flags & KT_EVF_FRESH)) {
        naive_error(m, KT_ERR_DOUBLE_FREE, ev, x);
        naive_free_range(m, true, ev->va, last, ev);
    } else if (x && x->b.state == KT_BLOCK_ALLOCATED && x->b.va == ev->va &&
               !x->old && is_wrong_order(x, ev, last)) {
        if (ev->va != m->misfreed) {
            naive_error(m, KT_ERR_WRONG_ORDER, ev, x);
        }
        naive_free_range(m, true, ev->va, last, ev);
    } else if (!naive_free_range(m, true, ev->va, last, ev) && !again) {
        m->unknown_pages++;
        m->totals.stray++;
    }
}
