/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Skip members that look like pointers but keep nothing alive: the rows of
 * skip-members.def. Each applies to the blocks of the cache that has the name
 * of the type.
 */
#include "kalloc-tracer/leak/roots.h"

#include <string.h>

typedef enum Kind {
    KIND_NUMBER,
    KIND_RB_NODE,
    KIND_REMOVED,
} Kind;

static const struct {
    Kind kind;
    const char *cache, *type, *member;
} rows[] = {
#define KT_LEAK_MEMBER(kind_, cache_, type_, member_, why_) \
    { KIND_##kind_, (cache_), (type_), (member_) },
#include "kalloc-tracer/leak/skip-members.def"
};

#define ROWS G_N_ELEMENTS(rows)

/*
 * struct Finding - offsets and sizes in this kernel
 * @at, @size: of the member of each row
 */
typedef struct Finding {
    KtLiveSet *w;
    uint32_t at[ROWS], size[ROWS];
} Finding;

/* Return a bit for each row whose member this kernel has. */
static unsigned find_rows(Finding *f)
{
    const GsKernel *k = f->w->plan->kernel;
    bool nodes = kt_layout_has_all(&f->w->layout, KT_M_RB_PARENT,
                                   KT_M_RB_RIGHT);
    bool removed = nodes && kt_layout_has_all(&f->w->layout,
                                              KT_M_KERNFS_ACTIVE,
                                              KT_M_KERNFS_RB);
    unsigned found = 0;

    for (unsigned i = 0; i < ROWS; i++) {
        if ((rows[i].kind != KIND_RB_NODE || nodes) &&
            (rows[i].kind != KIND_REMOVED || removed) &&
            gs_kernel_member(k, rows[i].type, rows[i].member, &f->at[i],
                             &f->size[i])) {
            found |= 1u << i;
        }
    }
    return found;
}

/* Return (owned) an array by cache id, with a bit for each row. */
static uint8_t *rows_of_caches(const KtLiveSet *w, unsigned found)
{
    uint8_t *bits = g_new0(uint8_t, UINT16_MAX + 1);
    KtCacheInfo info;

    G_STATIC_ASSERT(ROWS <= 8);
    for (unsigned id = 1; id <= UINT16_MAX &&
         kt_tracer_cache(w->tracer, (KtCacheId) { id }, &info); id++) {
        for (unsigned i = 0; i < ROWS; i++) {
            bits[id] |= strcmp(info.name, rows[i].cache) ? 0 : found & 1u << i;
        }
    }
    return bits;
}

/* Is the rb_node in a tree? Then its parent has it as a child, or it is the
 * root and has no parent. RB_CLEAR_NODE() sets the parent to the node
 * itself. */
static bool is_linked(const Finding *f, uint64_t node)
{
    const uint32_t *at = f->w->layout.at;
    uint64_t parent, left, right;

    if (!kt_live_set_load(f->w, node + at[KT_M_RB_PARENT], &parent)) {
        return false;
    }
    parent &= ~3ull;
    return !parent || (kt_live_set_load(f->w, parent + at[KT_M_RB_LEFT],
                                        &left) &&
                       kt_live_set_load(f->w, parent + at[KT_M_RB_RIGHT],
                                        &right) &&
                       parent != node && (left == node || right == node));
}

/* Was the kernfs_node removed? Then it is in no tree (its rb_node points to
 * itself), and its count of users is negative. */
static bool is_removed(const Finding *f, uint64_t va)
{
    const uint32_t *at = f->w->layout.at;
    uint64_t parent, node = va + at[KT_M_KERNFS_RB];
    int32_t active;

    return f->w->mem.read(f->w->mem.opaque, va + at[KT_M_KERNFS_ACTIVE],
                          &active, sizeof(active)) && active < 0 &&
           kt_live_set_load(f->w, node + at[KT_M_RB_PARENT], &parent) &&
           parent == node;
}

static bool is_stale(const Finding *f, uint64_t va, unsigned row)
{
    switch (rows[row].kind) {
    case KIND_RB_NODE:
        return !is_linked(f, va + f->at[row]);
    case KIND_REMOVED:
        return is_removed(f, va);
    default:
        return true;
    }
}

static void skip_member(const Finding *f, uint32_t block, unsigned row)
{
    uint32_t at = f->at[row];

    if (is_stale(f, kt_live_set_block(f->w, block)->va, row)) {
        kt_marker_skip(f->w->scan, block, at, at + (uint64_t)f->size[row]);
    }
}

void kt_skip_members(KtLiveSet *w)
{
    Finding f = { .w = w };
    unsigned found = find_rows(&f);
    g_autofree uint8_t *of_cache = rows_of_caches(w, found);

    for (uint32_t i = 0; found && i < w->live->len && !w->ended; i++) {
        unsigned bits = of_cache[kt_live_set_block(w, i)->cache.v];

        for (; bits; bits &= bits - 1) {
            skip_member(&f, i, __builtin_ctz(bits));
        }
    }
}
