/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Owners: see leak-internal.h. First the blocks to which nothing refers own
 * what they reach, then the first block of what remains, such as a ring.
 */
#include "kalloc-tracer/leak/leak-internal.h"

#include "kalloc-tracer/leak/mark-internal.h"

/*
 * struct Finding - state of the search
 * @owner: by block, the result; KT_MARKER_NONE: none was found yet
 * @now: the owner of what is found now
 * @queue: uint32_t, owned blocks whose words are not compared yet
 */
typedef struct Finding {
    KtLiveSet *w;
    KtReader *r;
    uint32_t *owner;
    uint32_t now;
    GArray *queue;
} Finding;

static bool is_lost(const Finding *f, uint32_t i)
{
    return !kt_marker_reached(f->w->scan, i);
}

static void own(Finding *f, uint32_t i)
{
    f->owner[i] = f->now;
    g_array_append_val(f->queue, i);
}

static void compare(void *opaque, uint64_t va, const uint64_t *word, size_t n)
{
    Finding *f = opaque;

    for (size_t k = 0; k < n; k++) {
        uint32_t i = word[k] ? kt_marker_find(f->w->scan, word[k]) :
                               KT_MARKER_NONE;

        if (i == KT_MARKER_NONE || f->owner[i] != KT_MARKER_NONE ||
            !is_lost(f, i) ||
            (word[k] < KT_MARKER_LOW &&
             word[k] != kt_live_set_block(f->w, i)->va)) {
            continue;
        }
        own(f, i);
    }
}

/* Let block @i own all that it reaches. */
static void follow(Finding *f, uint32_t i)
{
    f->now = i;
    own(f, i);
    while (f->queue->len && !f->r->stopped) {
        uint32_t next = g_array_index(f->queue, uint32_t, f->queue->len - 1);

        g_array_set_size(f->queue, f->queue->len - 1);
        kt_marker_each(f->w->scan, next, f->r, false, compare, f);
    }
    g_array_set_size(f->queue, 0);
}

uint32_t *kt_owners_find(KtLiveSet *w, KtReader *r)
{
    g_autoptr(GArray) queue = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    Finding f = { .w = w, .r = r, .queue = queue,
                  .owner = g_new(uint32_t, w->live->len + 1ull) };

    for (uint32_t i = 0; i < w->live->len; i++) {
        f.owner[i] = is_lost(&f, i) ? KT_MARKER_NONE : i;
    }
    for (unsigned pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < w->live->len; i++) {
            if (f.owner[i] == KT_MARKER_NONE &&
                (pass || kt_marker_hold(w->scan, i) == KT_HOLD_NONE)) {
                follow(&f, i);
            }
        }
    }
    return f.owner;
}
