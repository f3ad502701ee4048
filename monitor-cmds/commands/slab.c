/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka slab: the slab that contains an address, slot by slot.
 *
 * Called through mc_run(). The VM is paused meanwhile. The slab and the lists
 * of its cache are read first; then the blocks of all slots are copied under
 * one hold of the tracer's lock.
 */
#include "monitor-cmds/commands/commands.h"
#include "monitor-cmds/output/block-row.h"

#include <string.h>

/* Past lives of a slot that are printed. */
#define LIVES_MAX 65536u

/** struct Show - state of the command; @slab: what is known of it; @hit: the
 *  slot that contains the address */
typedef struct Show {
    McOut *out;
    const McArgs *args;
    KtSlabs *s;
    KtSlabCache c;
    const KtListedSlab *slab;
    uint32_t hit;
} Show;

/* ---- past lives ---------------------------------------------------------- */

static bool append_block(const KtBlock *b, void *opaque)
{
    GArray *lives = opaque;

    g_array_append_vals(lives, b, 1);
    return lives->len < LIVES_MAX;
}

/* Print the past lives of a slot, the newest first. */
static void print_past(const Show *s, uint64_t va)
{
    KtTracer *t = s->out->ctx->tracer;
    g_autoptr(GArray) lives = NULL;

    if (!mc_given(s->args, MC_OPT_HISTORY)) {
        return;
    }
    lives = g_array_new(FALSE, FALSE, sizeof(KtBlock));
    kt_query_begin(t);
    kt_query_history(t, va, append_block, lives);
    kt_query_end(t);
    for (unsigned i = 0; i < lives->len && !s->out->closed; i++) {
        mc_print_block(s->out, &g_array_index(lives, KtBlock, i));
    }
}

/* ---- the map only -------------------------------------------------------- */

static bool add_block(const KtBlock *b, void *opaque)
{
    if (b->layer == KT_LAYER_KMALLOC || b->layer == KT_LAYER_CACHE) {
        g_array_append_val((GArray *)opaque, *b);
    }
    return true;
}

static void print_block(const Show *s, const KtBlock *b)
{
    uint64_t va = s->args->va.lo;
    bool hit = va >= b->va && va - b->va < MAX(kt_block_len(b), 1);

    mc_print(s->out, &mc_block_object, &(McBlockRow) {
        .block = b, .hit = hit, .offset = hit ? va - b->va : 0 });
    print_past(s, b->va);
}

/* Print the blocks of the page: nothing says where its slab ends. */
static bool print_page(const Show *s, const char *why)
{
    const McContext *ctx = s->out->ctx;
    unsigned shift = ctx->kernel ? gs_kernel_page_shift(ctx->kernel) : 12;
    uint64_t lo = s->args->va.lo >> shift << shift;
    g_autoptr(GArray) blocks = g_array_new(FALSE, FALSE, sizeof(KtBlock));

    kt_query_begin(ctx->tracer);
    kt_query_range(ctx->tracer, lo, lo + (1ull << shift) - 1, add_block,
                   blocks);
    kt_query_end(ctx->tracer);
    for (unsigned i = 0;
         mc_goes_on(s->out, i, blocks->len, s->args->limit); i++) {
        print_block(s, &g_array_index(blocks, KtBlock, i));
    }
    mc_remarkf(s->out, "%u blocks in the page %016" PRIx64 "; %s", blocks->len,
               lo, why);
    return true;
}

/* ---- the slab ------------------------------------------------------------ */

static bool fail_no_slab(const Show *s, GError **errp)
{
    return mc_fail_unknown(errp, "%016" PRIx64 " is in no slab; ka whatis says "
                           "what it is", s->args->va.lo);
}

/* The numbers of the slab are damaged, or it is a page of KFENCE, which says
 * that it is a slab with one object. */
static bool fail_odd_slab(const Show *s, const KtSlab *slab, GError **errp)
{
    uint64_t va = s->args->va.lo;

    if (slab->objects == 1 && kt_slabs_in_kfence(s->s, va)) {
        mc_fail_unknown(errp, "%016" PRIx64 " is in KFENCE's pool, whose "
                        "objects are in no slab; ka show prints the block", va);
    } else {
        mc_fail_unknown(errp, "the slab at %016" PRIx64 " says that it has %u "
                        "objects, %u in use; %s has %u in a slab", slab->base,
                        slab->objects, slab->inuse, s->c.name, s->c.per_slab);
    }
    return false;
}

static bool find_slab(Show *s, KtSlab *slab, GError **errp)
{
    uint64_t va = s->args->va.lo;

    if (!kt_slabs_slab_of(s->s, va, slab) || !slab->is_slab ||
        !kt_slabs_cache(s->s, slab->cache, &s->c)) {
        return fail_no_slab(s, errp);
    }
    if (!kt_slab_len(s->s, &s->c, slab)) {
        return fail_odd_slab(s, slab, errp);
    }
    s->hit = kt_slab_slot_around(&s->c, slab, va);
    return true;
}

/** struct HeadRow - @end: last byte of the slab */
typedef struct HeadRow {
    const KtSlab *slab;
    uint64_t end;
    const char *cache, *list;
    bool listed;
} HeadRow;

static const McObject head_object = MC_LINE_OBJECT("slab", "ka slab",
    MC_VIA("va", HeadRow, slab, base, POINTER, "slab %", "its memory"),
    MC_COLUMN(HeadRow, end, POINTER, "-%", "last byte of it"),
    MC_COLUMN(HeadRow, cache, WORD, " of %", "the cache"),
    MC_VIA("slots", HeadRow, slab, objects, NUMBER, ", % slots, ",
           "the kernel's number"),
    MC_VIA("inuse", HeadRow, slab, inuse, NUMBER, NULL,
           "the kernel's number"),
    MC_ONLY_TEXT("on ", MC_IF(HeadRow, listed)),
    MC_COLUMN(HeadRow, list, TEXT, "%", "the list that it is on"),
    MC_VIA(NULL, HeadRow, slab, inuse, NUMBER, ", inuse %", NULL));

MC_OBJECTS(mc_slab_objects, &head_object);

static void print_header(const Show *s)
{
    const KtSlab *slab = &s->slab->slab;
    g_autofree char *place = mc_slab_place(s->s, s->slab);

    mc_print(s->out, &head_object, &(HeadRow) {
        slab, slab->base + kt_slab_len(s->s, &s->c, slab) - 1, s->c.name,
        place, s->slab->listed });
}

static void print_slots(const Show *s)
{
    KtTracer *t = s->out->ctx->tracer;
    g_autoptr(GArray) slots = mc_slab_slots(&s->c, s->slab);
    uint64_t n = MIN(slots->len, s->args->limit);

    mc_slots_find_blocks(t, slots, 0, n);
    mc_set_margin(s->out, s->c.size);
    for (unsigned i = 0;
         mc_goes_on(s->out, i, slots->len, s->args->limit); i++) {
        const McSlotAt *slot = &g_array_index(slots, McSlotAt, i);

        mc_slot_print(s->out, slot, i == s->hit ? s->args->va.lo : 0, true);
        print_past(s, slot->va);
    }
}

bool mc_cmd_slab(McOut *out, const McArgs *args, GError **errp)
{
    g_autoptr(GError) why = NULL;
    g_autoptr(KtSlabs) slabs = mc_slabs_open(out, &why);
    g_autoptr(KtSlabListing) listing = NULL;
    Show s = { .out = out, .args = args, .s = slabs };
    KtSlab slab;

    if (!slabs) {
        return print_page(&s, why->message);
    }
    if (!find_slab(&s, &slab, errp)) {
        return false;
    }
    listing = kt_slab_listing_new(slabs, &s.c);
    s.slab = kt_slab_listing_get(listing, &slab);
    if (args->form == MC_FORM_LINE) {
        mc_slab_print_letters(out, slabs, &s.c, s.slab, s.hit);
    } else {
        print_header(&s);
        print_slots(&s);
    }
    mc_slab_note_running(out);
    return true;
}
