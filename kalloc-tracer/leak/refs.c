/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Search for references, for `ka refs`: compare every word of the live set, in
 * blocks and roots, with a range of addresses. Nothing is skipped, except
 * memory that is not scanned at all.
 *
 * Runs in the thread of the monitor command, while the VM is stopped. The
 * tracer's lock is held only to copy the blocks that refer.
 */
#include "kalloc-tracer/leak/leak-internal.h"

#include <stdlib.h>

/* clang-format off */
static const char *const place_names[] = {
    [KT_PLACE_BLOCK] = "block",
    [KT_PLACE_DATA] = "data",
    [KT_PLACE_PERCPU] = "percpu",
    [KT_PLACE_STACK] = "stack",
    [KT_PLACE_REGISTER] = "register",
    [KT_PLACE_STRUCT_PAGE] = "struct-page",
    [KT_PLACE_PAGE] = "page",
    [KT_PLACE_CODE] = "code",
    [KT_PLACE_FREELIST] = "freelist",
};
/* clang-format on */

const char *kt_place_name(KtPlace place)
{
    return place < KT_PLACE__COUNT ? place_names[place] : "?";
}

/*
 * struct Search - state of one search
 * @s: how to walk; must be the first member
 * @lo, @len: the addresses that are searched for
 * @out: KtRef, what was found
 * @more: number of references above KT_REFS_MAX
 */
typedef struct Search {
    KtSearch s;
    uint64_t lo, len;
    GArray *out;
    uint64_t more;
} Search;

static void found(Search *s, uint64_t va, uint64_t value)
{
    KtRef ref = s->s.here;

    ref.va = va;
    ref.value = value;
    if (s->out->len < KT_REFS_MAX) {
        g_array_append_val(s->out, ref);
    } else {
        s->more++;
    }
}

static void compare(void *opaque, uint64_t va, const uint64_t *word, size_t n)
{
    Search *s = opaque;

    for (size_t i = 0; i < n; i++) {
        if (G_UNLIKELY(word[i] - s->lo < s->len)) {
            found(s, va + i * 8, word[i]);
        }
    }
}

/* Order: pointers to the start first, then by place, then by address. */
static int by_certainty(const void *a, const void *b, void *opaque)
{
    const KtRef *x = a, *y = b;
    uint64_t lo = *(const uint64_t *)opaque;
    int start = (y->value == lo) - (x->value == lo);
    int place = (int)x->place - (int)y->place;

    return start ? start : place ? place : (x->va > y->va) - (x->va < y->va);
}

bool kt_refs(KtTracer *t, const KtLeakPlan *plan, uint64_t lo, uint64_t hi,
             GArray **out, uint64_t *more, uint64_t *bytes, GError **errp)
{
    g_autoptr(KtLiveSet) w = kt_leak_collect(t, plan, errp);
    g_autoptr(GArray) list = g_array_new(FALSE, FALSE, sizeof(KtRef));
    Search s = { .s = { .w = w, .whole = true, .compare = compare },
                 .lo = lo, .len = hi - lo + 1, .out = list };

    if (!w) {
        return false;
    }
    kt_marker_seal(w->scan);
    if (!kt_search_run(&s.s)) {
        return kt_live_set_fail(w, errp);
    }
    kt_search_name_owners(&s.s, (KtRef *)list->data, list->len, sizeof(KtRef));
    g_array_sort_with_data(list, by_certainty, &lo);
    *more = s.more;
    *bytes = s.s.reader.bytes;
    *out = g_steal_pointer(&list);
    return true;
}
