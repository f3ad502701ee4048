/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lists and slots for the commands about slabs: see commands.h. */
#include "monitor-cmds/commands/commands.h"
#include "monitor-cmds/output/block-row.h"

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
        mc_remark(out, "the VM runs: numbers of different moments");
    }
}

char *mc_slab_list_text(KtSlabListKind kind, unsigned number)
{
    return g_strdup_printf("%s%u-%s", kt_slab_list_owner(kind), number,
                           kt_slab_list_name(kind));
}

/** struct ProblemRow - @p: what is wrong; @slab: (nullable) where */
typedef struct ProblemRow {
    const KtSlabProblem *p;
    const KtSlab *slab;
    const char *problem, *list, *what;
} ProblemRow;

#define P(key_, member_, look_, text_, help_, ...) \
    MC_VIA(key_, ProblemRow, p, member_, look_, text_, help_, __VA_ARGS__)

const McObject mc_list_problem_object = MC_LINE_OBJECT("list_problem",
    "ka cache of one cache: a list of free objects is damaged",
    MC_COLUMN(ProblemRow, problem, TEXT, "! %", "its kind"),
    MC_COLUMN(ProblemRow, list, TEXT, " on %", "the list"),
    MC_VIA("slab", ProblemRow, slab, base, POINTER, " slab=%",
           "address of the slab's memory", .flags = MC_OMIT),
    P("slot", slot, NUMBER, " slot=%", "the slot whose free pointer is wrong",
      .flags = MC_MOST | MC_OMIT),
    P("value", value, HEX, " value=%", "what is there"),
    P("expected", expected, HEX, " expected=%", "what should be",
      .flags = MC_ZERO | MC_OMIT),
    MC_KEY(NULL, ProblemRow, what, TEXT, ": %", NULL));

void mc_slab_print_problem(McOut *out, const KtSlabProblem *p)
{
    g_autofree char *list = mc_slab_list_text(p->list->kind, p->list->number);

    mc_print(out, &mc_list_problem_object, &(ProblemRow) {
        p, p->slab, kt_slab_problem_name(p->kind), list,
        kt_slab_problem_text(p->kind) });
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

typedef struct Row {
    McBlockRow b;
    uint32_t slot;
    bool numbered;
    const char *list;
} Row;

MC_GETTER(no_state)
{
    v->u = '-';
    return true;
}

MC_GETTER(unseen)
{
    v->s = "unseen";
    return true;
}

static const McColumn slot_columns[] = {
    MC_COLUMN(Row, slot, NUMBER, "%4 ",
              "ka slab: number of the slot in its slab", .flags = MC_HEAD,
              MC_IF(Row, numbered)),
    MC_END
};
static const McColumn unseen_columns[] = {
    MC_GET("state", get_no_state, LETTER, "%", "- no block",
           .flags = MC_HEAD),
    MC_KEY("va", Row, b.va, ADDRESS, " %", "of the slot", .flags = MC_HEAD),
    MC_GET("unseen", get_unseen, WORD, " %",
           "ka slab: the word unseen, if no block is known in the slot: it "
           "was not handed out since ka records events"),
    MC_END
};
static const McColumn list_columns[] = {
    MC_COLUMN(Row, list, WORD, " list=%",
              "ka slab, ka cache -v: the list of free objects that the slot "
              "is on, and its place there; 0 is handed out next",
              .flags = MC_OMIT),
    MC_END
};

const McObject mc_slot_object = {
    "slot", "ka slab, and ka cache -v for each object on a list",
    { mc_margin_columns, slot_columns, mc_block_columns, list_columns,
      mc_block_more_columns }, .is_block = true,
};
const McObject mc_unseen_object = {
    "slot", "ka slab, and ka cache -v for each object on a list",
    { mc_margin_columns, slot_columns, unseen_columns, list_columns },
    .is_block = true,
};

void mc_slot_print(McOut *out, const McSlotAt *slot, uint64_t va,
                   bool numbered)
{
    mc_print(out, slot->has_block ? &mc_slot_object :
             &mc_unseen_object, &(Row) {
        .b = { .block = slot->has_block ? &slot->block : NULL,
               .va = slot->va, .hit = va != 0,
               .offset = va > slot->va ? va - slot->va : 0 },
        .slot = slot->number, .numbered = numbered, .list = slot->list });
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

typedef struct LettersRow {
    uint64_t va;
    const char *letters, *list;
    bool listed;
} LettersRow;

const McObject mc_slab_letters_object = MC_LINE_OBJECT("slab",
    "ka slab, and ka cache --format line",
    MC_COLUMN(LettersRow, va, POINTER, "%", "its memory"),
    MC_COLUMN(LettersRow, letters, TEXT, " % ", "one for each slot"),
    MC_ONLY_TEXT("on ", MC_IF(LettersRow, listed)),
    MC_COLUMN(LettersRow, list, TEXT, "%", "the list that it is on"));

void mc_slab_print_letters(McOut *out, const KtSlabs *s, const KtSlabCache *c,
                           const KtListedSlab *slab, uint32_t hit)
{
    g_autofree char *place = mc_slab_place(s, slab);
    g_autoptr(GArray) slots = mc_slab_slots(c, slab);
    g_autoptr(GString) letters = g_string_new(NULL);

    mc_slots_find_blocks(out->ctx->tracer, slots, 0, slots->len);
    for (unsigned i = 0; i < slots->len; i++) {
        if (i == hit) {
            g_string_append_c(letters, '>');
        }
        g_string_append_c(letters,
                          letter_of(&g_array_index(slots, McSlotAt, i)));
    }
    mc_print(out, &mc_slab_letters_object, &(LettersRow) {
        slab->slab.base, letters->str, place, slab->listed });
}
