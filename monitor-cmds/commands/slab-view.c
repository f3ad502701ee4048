/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lists and slots for the commands about slabs: see slab-view.h. */
#include "monitor-cmds/commands/slab-view.h"
#include "monitor-cmds/commands/object-row.h"

KtSlabs *mc_slabs_open(McOut *out, GError **errp)
{
    const McContext *ctx = out->ctx;
    const KtObjects o = { ctx->tracer, ctx->kernel_found ? ctx->kernel : NULL,
                          ctx->vm };

    return kt_slabs_new(&o, errp);
}

void mc_slab_note_running(McOut *out)
{
    if (out->ctx->vm && out->ctx->vm->running) {
        out->format->none(out, "the VM runs: numbers of different moments");
    }
}

char *mc_slab_list_text(KtSlabListKind kind, unsigned number)
{
    return g_strdup_printf("%s%u-%s", kt_slab_list_owner(kind), number,
                           kt_slab_list_name(kind));
}

void mc_slab_print_problem(McOut *out, const KtSlabProblem *p)
{
    g_autofree char *list = mc_slab_list_text(p->list->kind, p->list->number);
    g_auto(McObjectRow) r;

    mc_object_row_init(&r);
    g_string_append_printf(r.text, "! %s on %s", kt_slab_problem_name(p->kind),
                           list);
    mc_object_add_word(&r, "problem", kt_slab_problem_name(p->kind));
    mc_object_add_word(&r, "list", list);
    if (p->slab) {
        mc_object_put_address(&r, "slab", true, p->slab->base);
    }
    if (p->slot != KT_NO_SLOT) {
        mc_object_put_number(&r, "slot", true, p->slot);
    }
    mc_object_put_hex(&r, "value", true, p->value);
    if (p->expected) {
        mc_object_put_hex(&r, "expected", true, p->expected);
    }
    g_string_append_printf(r.text, ": %s", kt_slab_problem_text(p->kind));
    mc_object_print(out, MC_OBJ_LIST_PROBLEM, &r);
}

/* ---- slots --------------------------------------------------------------- */

static void clear_slot(gpointer slot)
{
    g_clear_pointer(&((McSlotAt *)slot)->list, g_free);
}

GArray *mc_slots_new(void)
{
    GArray *slots = g_array_new(FALSE, FALSE, sizeof(McSlotAt));

    g_array_set_clear_func(slots, clear_slot);
    return slots;
}

/* The pages of the slab begin where its first slot does. */
static bool find_block(KtTracer *t, uint64_t va, KtBlock *out)
{
    return kt_query_find(t, va, out) && out->va == va &&
           out->layer != KT_LAYER_PAGES;
}

void mc_slots_find_blocks(KtTracer *t, GArray *slots, unsigned first,
                          unsigned end)
{
    kt_query_begin(t);
    for (unsigned i = first; i < end; i++) {
        McSlotAt *slot = &g_array_index(slots, McSlotAt, i);

        slot->has_block = find_block(t, slot->va, &slot->block);
    }
    kt_query_end(t);
}

static char letter_of(const McSlotAt *slot)
{
    if (!slot->has_block) {
        return '.';
    }
    if (slot->block.state == KT_BLOCK_FREED) {
        return 'F';
    }
    return slot->block.rcu_queued ? 'R' : 'A';
}

void mc_slot_print(McOut *out, const McSlotAt *slot, uint64_t va,
                   bool numbered)
{
    const McSlotRow row = { slot->va, slot->number, numbered, slot->list };

    out->format->row(out, &(McRow) {
        .block = slot->has_block ? &slot->block : NULL, .hit = va != 0,
        .offset = va > slot->va ? va - slot->va : 0, .slot = &row });
}

/* ---- a slab -------------------------------------------------------------- */

char *mc_slab_place(const KtSlabs *s, const KtListedSlab *slab)
{
    if (slab->listed) {
        return mc_slab_list_text(slab->kind, slab->number);
    }
    if (slab->slab.inuse == slab->slab.objects) {
        return g_strdup("full");
    }
    return g_strdup(kt_slabs_knows_cpus(s) ? "no list" : "list of a CPU");
}

GArray *mc_slab_slots(const KtSlabCache *c, const KtListedSlab *slab)
{
    GArray *slots = mc_slots_new();

    for (uint32_t i = 0; i < slab->slab.objects; i++) {
        const KtSlabSlot *at = &slab->slot[i];
        McSlotAt slot = { .va = kt_slab_object(c, &slab->slab, i),
                          .number = i };

        if (at->listed) {
            g_autofree char *list = mc_slab_list_text(at->kind, at->number);

            slot.list = g_strdup_printf("%s:%" PRIu64, list, at->position);
        }
        g_array_append_val(slots, slot);
    }
    return slots;
}

void mc_slab_print_letters(McOut *out, const KtSlabs *s, const KtSlabCache *c,
                           const KtListedSlab *slab, uint32_t hit)
{
    g_autofree char *place = mc_slab_place(s, slab);
    g_autoptr(GArray) slots = mc_slab_slots(c, slab);
    g_autoptr(GString) letters = g_string_new(NULL);
    g_auto(McObjectRow) r;

    mc_slots_find_blocks(out->ctx->tracer, slots, 0, slots->len);
    for (unsigned i = 0; i < slots->len; i++) {
        if (i == hit) {
            g_string_append_c(letters, '>');
        }
        g_string_append_c(letters,
                          letter_of(&g_array_index(slots, McSlotAt, i)));
    }
    mc_object_row_init(&r);
    mc_put_hex(r.text, slab->slab.base, 16);
    g_string_append_printf(r.text, " %s %s%s", letters->str,
                           slab->listed ? "on " : "", place);
    mc_object_add_address(&r, "va", slab->slab.base);
    mc_object_add_word(&r, "letters", letters->str);
    mc_object_add_word(&r, "list", place);
    mc_object_print(out, MC_OBJ_SLAB, &r);
}
