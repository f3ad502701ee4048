/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Walks over all past lives: for snapshots and listings. See history.h.
 */
#include "kalloc-tracer/model/history-rows.h"

void kt_history_foreach(const KtHistory *h, KtBlockFn fn, void *opaque)
{
    for (uint64_t number = h->oldest; number < h->next; number++) {
        KtBlock b;
        Row r;

        read_row(h, number, &r);
        to_block(&r, &b);
        if (!fn(&b, opaque)) {
            return;
        }
    }
}

bool kt_history_some(const KtHistory *h, uint64_t *at, unsigned n,
                     KtBlockFn fn, void *opaque)
{
    uint64_t number = MAX(*at, h->oldest);

    for (; n && number < h->next; n--, number++) {
        KtBlock b;
        Row r;

        read_row(h, number, &r);
        to_block(&r, &b);
        if (!fn(&b, opaque)) {
            break;
        }
    }
    *at = number;
    return number < h->next;
}

void kt_history_renumber(KtHistory *h, const KtRenumber *to)
{
    for (uint64_t number = h->oldest; number < h->next; number++) {
        Row r;

        unpack(row_at(h, number), &r);
        r.cache = to->cache[r.cache];
        r.alloc_stack = to->stack[r.alloc_stack];
        r.free_stack = to->stack[r.free_stack];
        r.alloc_task = to->task[r.alloc_task];
        r.other = (r.flags & ROW_QUEUED ? to->stack : to->task)[r.other];
        pack(row_at(h, number), &r);
    }
}
