/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The long form of a row of a block (-l): a paragraph, for people.
 *
 *       A ffff888000001000-ffff88800000103f (   40/   40)
 *         size               64 (0x40) requested, 64 (0x40) reserved
 *         allocated at 120us, 3.2 ms ago, by sh (pid 7) on vCPU 0, in kmalloc
 *             make_it+0x10
 *             init+0x20[module]
 *         layer              kmalloc
 *
 * The first line is the begin of the short form: the columns with MC_HEAD. What
 * happened to the block follows, each with its stack, a frame a line; then the
 * other columns, named by their keys. What is unknown is not printed.
 *
 * Called by row.c, on the thread of the command; no locks.
 */
#include "monitor-cmds/output/block-row.h"

#include <string.h>

/* Indentation of a detail, and of a frame of its stack. */
#define DETAIL "        "
#define FRAME  "            "

/** Columns of something that happened. */
enum { STACK, US, PID, COMM, CPU, HOOK, COLUMNS };

/** struct Deed - something that happened; @word: NULL is the kind of an error.
 *  @key: of its columns, NULL if there is no such column */
typedef struct Deed {
    const char *word;
    const char *key[COLUMNS];
} Deed;

/* Place of the free in the table. */
#define FREED 2

static const Deed deeds[] = {
    { "allocated", { "alloc", "alloc_us", "pid", "comm", "cpu", "hook" } },
    { "queued by kfree_rcu", { "rcu", "rcu_us" } },
    [FREED] = { "freed", { "free", "free_us", "free_pid", "free_comm",
                           "free_cpu", "free_hook" } },
    { NULL, { "error_stack", "error_us", "error_pid", "error_comm",
              "error_cpu", "error_hook" } },
    { "neighbour allocated", { "neighbour_alloc", "neighbour_us",
                               "neighbour_pid", "neighbour_comm" } },
    { "former owner allocated", { "former_alloc", "former_alloc_us",
                                  "former_pid", "former_comm" } },
    { "former owner freed", { "former_free", "former_free_us" } },
};

/**
 * struct McLongPlan - where the columns of an object are printed: found once
 *                     for all rows of it
 * @deed: the columns of each deed, NULL if there is none
 * @kind: (nullable) the kind of an error
 * @ended: (nullable) how a block ended, if it was not freed
 * @other: (McColumn) the other columns, in their order
 */
struct McLongPlan {
    const McObject *object;
    const McColumn *deed[G_N_ELEMENTS(deeds)][COLUMNS], *kind;
    const McColumn *ended;
    GPtrArray *other;
};

/** struct Long - the row that is printed */
typedef struct Long {
    McOut *o;
    const McLongPlan *plan;
    const void *row;
} Long;

/* Find what the column is for. Only the first column with a key counts. */
static void plan_column(McLongPlan *p, const McColumn *c)
{
    bool other = !(c->flags & MC_HEAD);

    for (unsigned i = 0; i < G_N_ELEMENTS(deeds) * COLUMNS; i++) {
        const McColumn **at = &p->deed[i / COLUMNS][i % COLUMNS];

        if (!g_strcmp0(c->key, deeds[i / COLUMNS].key[i % COLUMNS])) {
            *at = *at ? *at : c;
            other = false;
        }
    }
    if (!strcmp(c->key, "error")) {
        p->kind = p->kind ? p->kind : c;
    }
    if (!strcmp(c->key, "ended")) {
        p->ended = p->ended ? p->ended : c;
        other = false;
    }
    if (other) {
        g_ptr_array_add(p->other, (gpointer)c);
    }
}

void mc_long_plan_free(McLongPlan *p)
{
    if (p) {
        g_ptr_array_unref(p->other);
        g_free(p);
    }
}

static const McLongPlan *plan_of(McOut *o, const McObject *object)
{
    if (o->long_plan && o->long_plan->object == object) {
        return o->long_plan;
    }
    mc_long_plan_free(o->long_plan);
    o->long_plan = g_new0(McLongPlan, 1);
    o->long_plan->object = object;
    o->long_plan->other = g_ptr_array_new();
    for (unsigned i = 0; i < MC_SETS && object->columns[i]; i++) {
        for (const McColumn *c = object->columns[i]; c->key; c++) {
            plan_column(o->long_plan, c);
        }
    }
    return o->long_plan;
}

/* Read a column (nullable); return false if it does not apply, or is unknown.
 * Some columns repeat others, if the short form does not have them. */
static bool get(const Long *l, const McColumn *c, McValue *v)
{
    *v = (McValue) { 0 };
    return c && c->text && mc_applies(l->o, c, l->row) &&
           (!c->text_when || c->text_when(l->row)) &&
           mc_value(l->o, c, l->row, v) &&
           (c->look != MC_LOOK_LIST || *v->list);
}

static void put_both(GString *s, uint64_t v)
{
    g_string_append_printf(s, "%" PRIu64 " (0x%" PRIx64 ")", v, v);
}

/* ---- what happened ------------------------------------------------------- */

static void put_time(const Long *l, const McColumn *c)
{
    GString *s = l->o->line;
    McValue v;

    if (!get(l, c, &v)) {
        return;
    }
    g_string_append_printf(s, " at %" PRIu64 "us", v.u);
    if (v.u <= l->o->newest_us) {
        g_string_append(s, ", ");
        mc_put_duration(s, l->o->newest_us - v.u);
        g_string_append(s, " ago");
    }
}

static void put_doer(const Long *l, const McColumn *const c[])
{
    GString *s = l->o->line;
    McValue v;
    bool named = get(l, c[COMM], &v);

    if (named) {
        g_string_append(s, ", by ");
        mc_put_word(s, v.s);
    }
    if (get(l, c[PID], &v)) {
        g_string_append_printf(s, " (pid %" PRIu64 ")", v.u);
    }
    if (get(l, c[CPU], &v)) {
        g_string_append_printf(s, "%s on vCPU %" PRIu64, named ? "" : ",",
                               v.u);
    }
    if (get(l, c[HOOK], &v)) {
        g_string_append(s, ", in ");
        mc_put_word(s, v.s);
    }
}

void mc_long_stack(McOut *o, const McStack *stack)
{
    for (unsigned i = 0; i < stack->n && !o->closed; i++) {
        McFrame frame = mc_frame(stack, i);

        g_string_append(o->line, FRAME);
        mc_put_pc(o->line, o->symbols, &frame);
        if (o->pcs) {
            g_string_append_printf(o->line, " @%016" PRIx64,
                                   mc_frame_at(o->symbols, &frame));
        }
        mc_out_end_line(o);
    }
    if (!stack->n) {
        mc_out_printf(o, FRAME "(no stack was kept)");
    } else if (stack->stop == GS_STOP_REPLACED) {
        mc_out_printf(o, FRAME "(a tracer replaced the return address)");
    }
}

static void print_deed(const Long *l, unsigned i)
{
    const McColumn *const *c = l->plan->deed[i];
    const char *word = deeds[i].word;
    McValue v, kind;
    bool known = get(l, c[STACK], &v) || get(l, c[US], &v);

    if (!known || (!word && !get(l, l->plan->kind, &kind))) {
        return;
    }
    if (i == FREED && get(l, l->plan->ended, &kind)) {
        word = kind.s;
    }
    g_string_append_printf(l->o->line, DETAIL "%s", word ? word : kind.s);
    put_time(l, c[US]);
    put_doer(l, c);
    mc_out_end_line(l->o);
    get(l, c[STACK], &v);
    mc_long_stack(l->o, &v.stack);
}

/* ---- the other columns --------------------------------------------------- */

static void put_list(GString *s, const char *const *list)
{
    for (unsigned i = 0; list[i]; i++) {
        g_string_append(s, i ? ", " : "");
        g_string_append(s, list[i]);
    }
}

static void put_value(McOut *o, const McColumn *c, const McValue *v)
{
    if (c->look == MC_LOOK_BYTES || c->look == MC_LOOK_HEX) {
        put_both(o->line, v->u);
    } else if (c->look == MC_LOOK_LIST) {
        put_list(o->line, v->list);
    } else {
        mc_put_text_value(o, o->line, c, v);
        g_string_append(o->line, g_str_has_suffix(c->key, "_us") ? "us" : "");
    }
}

static void print_others(const Long *l)
{
    for (unsigned i = 0; i < l->plan->other->len; i++) {
        const McColumn *c = l->plan->other->pdata[i];
        McValue v;

        if (get(l, c, &v)) {
            g_string_append_printf(l->o->line, DETAIL "%-18s ", c->key);
            put_value(l->o, c, &v);
            mc_out_end_line(l->o);
        }
    }
}

static void print_size(McOut *o, const KtBlock *b)
{
    g_string_append_printf(o->line, DETAIL "%-18s ", "size");
    put_both(o->line, b->requested);
    g_string_append(o->line, " requested, ");
    put_both(o->line, b->actual);
    g_string_append(o->line, " reserved");
    mc_out_end_line(o);
}

void mc_long_row(McOut *o, const McObject *object, const void *row)
{
    const KtBlock *b = ((const McBlockRow *)row)->block;
    const Long l = { o, plan_of(o, object), row };

    for (unsigned i = 0; i < MC_SETS && object->columns[i]; i++) {
        mc_put_columns(o, o->line, object->columns[i], row, MC_HEAD);
    }
    mc_out_end_line(o);
    if (b) {
        print_size(o, b);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(deeds); i++) {
        print_deed(&l, i);
    }
    print_others(&l);
}
